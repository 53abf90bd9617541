"""The submit message as the client library builds it from Python values."""

import math
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict, cast

from nqspy.model import indices
from nqspy.model.errors import BadValue, Refusal
from nqspy.model.foreign_text import ForeignText, converted
from nqspy.model.job_variables import leave_behind
from nqspy.model.options import OPTIONS
from nqspy.model.units import parse_size, parse_time

Time = float | str
Size = int | str
Name = str | os.PathLike[str]


class Options(TypedDict, total=False):
    """Options of a submission; all may be omitted. Times in seconds or as text, sizes in bytes or as text.
    ``eligible``: earliest start (with a zone); ``user``: run as another user (managers); ``after``: start
    after ``ID`` has ended well (``ID:any``: has ended); ``needs``: resources that must work, a list or
    ``nfs+licence``; ``consumables``: units by name, like ``{"gpu": 2}``; ``contract``: it may start in a gap
    before a reservation that is shorter than its wall limit, and is ended then; ``array``: ``"1-100%5"`` as
    of `qsub -J`, or indices like ``range(1, 101)``; ``sizes``: numbers of PEs on which it may run, ``walls``
    its wall limits on them, or ``speedup`` Downey's A and sigma, with ``wall`` as the time on one PE;
    ``key``: the same key again returns the same request."""

    name: str
    queue: str
    account: str
    cpu: Time
    cpu_process: Time
    wall: Time
    best_guess: Time
    memory: Size
    memory_process: Size
    pes: int
    array: str | Iterable[int]
    sizes: Sequence[int]
    walls: Sequence[Time]
    speedup: tuple[float, float]
    nice: int
    needs: str | Sequence[str]
    consumables: Mapping[str, int]
    shell: str
    priority: int
    eligible: datetime
    held: bool
    rerunnable: bool
    contract: bool
    job_class: str
    stdout: Name
    stderr: Name
    join: bool
    environment: Mapping[str, str]
    workdir: Name
    user: str
    after: str | Sequence[str]
    attributes: Sequence[str]
    key: str


NAME_MAX = 230
"""Most bytes of a request's name that is taken from a file's."""

_Types = tuple[type, ...]
_Right = tuple[_Types, _Types, str]
_NUMBER, _TIME = (int, float), (int, float, str)
_OF_UNIT: Mapping[str, _Right] = {
    "name": ((str,), (), "a text"),
    "time": (_TIME, (), 'seconds, or a text like "10:00"'),
    "size": ((int, str), (), 'bytes, or a text like "32mw"'),
    "count": ((int,), (), "a whole number"),
    "number": ((int,), (), "a whole number"),
    "flag": ((bool,), (), "True or False"),
    "path": ((str, os.PathLike), (), "a path"),
    "date": ((datetime,), (), "a datetime with a zone"),
    "names": ((Iterable,), (str,), "a list of texts"),
    "amounts": ((Mapping,), (str,), 'numbers by name, like {"gpu": 2}'),
}
_DECLARED = {option.python: option for option in OPTIONS if option.python}
_RIGHT: Mapping[str, _Right] = {name: _OF_UNIT[option.unit] for name, option in _DECLARED.items()} | {
    "user": _OF_UNIT["name"],
    "key": _OF_UNIT["name"],
    "workdir": _OF_UNIT["path"],
    "array": ((str, Iterable), (), 'indices like range(1, 6), or a text like "1-5"'),
    "after": ((str, Iterable), (str,), 'an identifier like "17:any", or a list of them'),
    "needs": ((str, Iterable), (str,), 'a text like "nfs+licence", or a list of names'),
    "sizes": ((Iterable,), (int,), "a list of numbers of PEs, like [2, 4]"),
    "walls": ((Iterable,), _TIME, 'a list of times, like [600, "5:00"]'),
    "speedup": ((Sequence,), _NUMBER, "A and sigma, like (8, 0.5)"),
    "environment": ((Mapping,), (str,), 'texts by name, like {"LANG": "C"}'),
}
"""Types of each option: of its value, of its items (of a mapping: of its keys); what would be right, in
words."""


def submission(
    script: str | bytes | os.PathLike[str], args: Sequence[str], options: Options
) -> dict[str, Any]:
    """Return one request as an item of the submit message. Raises BadValue, Refusal, OSError, and TypeError
    for an unknown option."""
    unknown = sorted(set(options) - set(_RIGHT))
    if unknown:
        raise TypeError(f"there is no option {unknown[0]}; options: {', '.join(_RIGHT)}")
    need("script", script, (str, bytes, os.PathLike), "a text, or a path object")
    for arg in args:
        need("an argument of the script", arg, (str,), "a text")
    options = _checked(options)
    body, default_name = _script(script)
    folder = os.path.abspath(options.get("workdir") or os.getcwd())
    named = options.get("after", ())
    named = [named] if isinstance(named, str) else named
    after = [f"after:{one if ':' in one else one + ':ok'}" for one in named]
    values: dict[str, Any] = {}
    for option in (_DECLARED[name] for name in options if name in _DECLARED):
        convert = _CONVERT.get(option.unit, lambda value: value)
        values[option.path] = convert(options[option.python])  # type: ignore[literal-required]
    status = Path("/proc/self/status").read_text().splitlines()  # the umask without changing it (proc(5))
    umask = next((int(line.split()[1], 8) for line in status if line.startswith("Umask:")), 0o022)
    curve = options.get("speedup")
    sizes = {
        "sizes": list(options.get("sizes", ())),
        "walls": [_milliseconds(wall) for wall in options.get("walls", ())],
        "speedup": None if curve is None else {"parallelism": curve[0], "sigma": curve[1]},
    }
    here = folder.replace("%", "%%")  # a folder's own name holds no marks
    paths = (("stdout", options.get("stdout")), ("stderr", options.get("stderr")))
    output = {name: os.path.join(here, path) for name, path in paths if path is not None}
    spec = {path: value for path, value in values.items() if "/" not in path} | {
        "owner": "", "uid": 0, "script": "", "environment": "", "queue": options.get("queue", ""),
        "name": options.get("name", default_name), "name_given": "name" in options, "workdir": folder,
        "ask": {path[4:]: value for path, value in values.items() if path.startswith("ask/")},
        "output": {**output, "join": options.get("join", False)}, "args": list(args),
        "host": socket.gethostname(), "umask": umask, "mold": sizes if any(sizes.values()) else None,
        "attributes": [*options.get("attributes", ()), *after], "array": _array(options.get("array")),
        "script_name": default_name if default_name != "STDIN" else None,
    }  # fmt: skip
    environment = _environment(options.get("environment", {}), folder)
    item = {"spec": given(spec), "script": body, "environment": environment, "user": options.get("user")}
    found: dict[str, Any] = _in_utf8(given(item))
    return found


def need(name: str, value: Any, types: _Types, right: str) -> None:
    """Raise BadValue unless the value ``name`` has one of these types; ``right``: what it must be, in words.
    A bool is no number, a str no list."""
    alone = type(value) in (bool, str, bytes) and type(value) not in types
    if alone or not isinstance(value, types):
        raise BadValue(f"{name} is {value!r}; it must be {right}")


def _checked(options: Options) -> Options:
    """Return the options that are not None, after a check of their types. Raises BadValue."""
    found = given(options)
    for name in found:
        types, parts, right = _RIGHT[name]
        need(name, found[name], types, right)
        if parts and not isinstance(found[name], (str, Mapping)):
            found[name] = list(found[name])
        for part in found[name] if parts and not isinstance(found[name], str) else ():
            need(f"a part of {name}", part, parts, right)
        if name == "speedup" and len(found[name]) != 2:
            raise BadValue(f"{name} is {found[name]!r}; it must be {right}")
    return cast(Options, found)


def _in_utf8(value: Any) -> Any:
    """Return the value with all texts in UTF-8, whatever the encoding of file names. Raises BadValue."""
    if isinstance(value, str) and not value.isascii():
        try:
            return value.encode("utf-8", "surrogateescape").decode()
        except UnicodeDecodeError:
            raise BadValue(f"{value!a} is not UTF-8 text; rename it") from None
    if isinstance(value, dict):
        return {name: _in_utf8(each) for name, each in value.items()}
    return [_in_utf8(each) for each in value] if isinstance(value, (list, tuple)) else value


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _array(asked: str | Iterable[int] | None) -> dict[str, Any] | None:
    """Return the fields for an array: its indices, and how many may run at a time. Raises BadValue."""
    if asked is None:
        return None
    if not isinstance(asked, str):
        asked = ",".join(map(str, asked))
    listed, percent, limit = asked.partition("%")
    if percent and not (limit.isascii() and limit.isdigit() and 0 < int(limit[:7]) <= indices.MOST_INDICES):
        right = f"write a whole number from 1 to {indices.MOST_INDICES}, like 1-100%5"
        raise BadValue(f"{limit!r} is not a number of indices that may run at a time; {right}")
    return {"indices": indices.read(listed)} | ({"limit": int(limit)} if percent else {})


def _script(script: str | bytes | os.PathLike[str]) -> tuple[str, str]:
    """Return the script as Latin-1 text, and its default name. Raises Refusal, BadValue, OSError."""
    name = "STDIN"
    line = script if isinstance(script, str) and "\n" not in script else ""
    named = bool(line) and os.path.isfile(line)
    if line.endswith((".sh", ".py")) and not named:  # a mistyped path
        raise Refusal("no_script", path=line)
    if isinstance(script, str) and not named:
        data = script.encode("utf-8", "surrogateescape")
    elif isinstance(script, bytes):
        data = script
    else:
        path = Path(script)
        data, name = path.read_bytes(), os.fsencode(path.name)[:NAME_MAX].decode("utf-8", "ignore")
    try:
        return converted(data)[0].decode("latin-1"), name
    except ForeignText as error:
        raise BadValue(f"the script cannot be read: {error}") from None


def _milliseconds(value: Time) -> int:
    if isinstance(value, str):
        return parse_time(value)
    if not 0 <= value < math.inf:
        raise BadValue(f'{value} is not a time; write "unlimited" for no limit')
    return round(value * 1000)


def _bytes(value: int | str) -> int:
    if isinstance(value, str):
        return parse_size(value)
    if value < 0:
        raise BadValue(f'{value} is not a size; write "unlimited" for no limit')
    return value


_CONVERT: Mapping[str, Callable[[Any], Any]] = {
    "time": _milliseconds,
    "size": _bytes,
    "date": lambda value: round(value.timestamp() * 1000),
    "names": lambda value: value.split("+") if isinstance(value, str) else list(value),
    "amounts": lambda value: list(value.items()),
}


def _environment(chosen: Mapping[str, str], folder: str) -> str:
    """Return the job's variables for the wire: ``chosen``, and qsub's usual ones. Raises BadValue."""
    for name, value in chosen.items():
        if not name or "=" in name or "\0" in f"{name}{value}":
            raise BadValue(f"variable {name!r}: remove = from its name, and NUL from name and value")
    passed_on = leave_behind(chosen)  # without variables of the job that submits; changed values stay
    found = {n: value for n, value in chosen.items() if n in passed_on or value != os.environ.get(n)}
    for name in ("HOME", "LOGNAME", "MAIL", "PATH", "SHELL", "TZ"):
        if name in os.environ:
            found[f"QSUB_{name}"] = found[f"PBS_O_{name}"] = os.environ[name]
    found["QSUB_USER"] = os.environ.get("USER", os.environ.get("LOGNAME", ""))
    found["QSUB_HOST"] = found["PBS_O_HOST"] = socket.gethostname()
    found["QSUB_WORKDIR"] = found["PBS_O_WORKDIR"] = folder
    pairs = (f"{name}={value}" for name, value in found.items())
    return "\0".join(pairs).encode("utf-8", "surrogateescape").decode("latin-1")
