"""The object tree: every setting is declared once, as a dataclass field with unit, bounds and a sentence.
qmgr's ``set`` and ``show``, ``snap``, the manual's tables and tests derive from these declarations. A setting
is named by a path: ``queue/night/run_limit``, ``queue/night/per_request/cpu_limit``, ``global/run_limit``,
``sched_factor/share``.

Files of `core` declare further settings of objects in the model (`add_setting`), and the words of settings
that name such a file (`set_words`), when they are imported.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from typing import Any, Literal, ParamSpec

from nqspy.model.errors import BadValue
from nqspy.model.units import GREATEST, format_size, format_time

P = ParamSpec("P")

Unit = Literal[
    "count", "number", "time", "size", "percent", "name", "names", "flag", "text", "crons", "amounts"
]  # fmt: skip
"""How a value is written and held: count int or None = unlimited; number int; time ms or None; size bytes or
None; percent 0..100 as float or None; name str; names tuple of str; flag bool; text str; crons tuple of cron
expressions; amounts tuple of texts like ``gpu=2``."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Declaration of a setting: unit, default, sentence, bounds (inclusive), name. ``words``: the only texts
    allowed, alone or in a list; ``fixed``: always on, so never in a list. ``pipes``: for queues, if pipe
    queues use it. ``operator``: operators may change it too. ``nothing``: word for no value, which is allowed
    then. ``guard``: why only root and the home's owner may change it (empty: managers may); ``unguarded``:
    pattern of texts that managers may set all the same. ``distinct``: no word twice."""

    unit: Unit
    default: Any
    doc: str
    _: KW_ONLY
    low: int | None = None
    high: int | None = None
    words: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    operator: bool = False
    nothing: str = ""
    pipes: Literal["no", "too", "only"] = "no"
    guard: str = ""
    unguarded: str = ""
    distinct: bool = False
    name: str = ""

    @property
    def can_be_none(self) -> bool:
        """True if the setting may have no value: unlimited, automatic or none."""
        boundless = self.unit in ("count", "time", "size", "percent") and self.low is None
        return self.default is None or bool(self.nothing) or boundless

    @property
    def nothing_written(self) -> str:
        """Word that people write for no value, such as ``unlimited`` or ``auto``."""
        unbounded = "unlimited" if self.unit in ("count", "time", "size", "percent") else "none"
        return self.nothing or unbounded


def _field_of(declare: Callable[P, Declared]) -> Callable[P, Any]:
    def made(*args: P.args, **more: P.kwargs) -> Any:
        info = declare(*args, **more)
        return field(default=info.default, metadata={"setting": info})

    return made


setting = _field_of(Declared)
"""Function that returns a dataclass field for a setting. It takes the fields of `Declared`, not ``name``."""


def branch(kind: type) -> Any:
    """Return a dataclass field that holds further settings under its own name."""
    return field(default_factory=kind, metadata={"branch": kind})


def added_settings() -> Any:
    """Return a dataclass field for the values of settings declared by `add_setting`, by name."""
    return field(default_factory=dict, metadata={"added": True}, kw_only=True)


_added: dict[type, dict[str, Declared]] = {}
_words: dict[tuple[type, str], tuple[Mapping[str, str], tuple[str, ...]]] = {}
_known: dict[str, dict[str, Declared]] = {}


def add_setting(kind: type, info: Declared) -> str:
    """Declare a further setting of a class that has `added_settings`, and of classes derived from it; its
    value is read and set as an attribute. Return its name. Raises ValueError for a name that is taken."""
    name, default = info.name, info.default
    if hasattr(kind, name) or not name.isidentifier():
        raise ValueError(f"{name!r} cannot be a setting of a {kind.__name__.lower()}")

    def read(node: Any) -> Any:
        return node.added.get(name, default)

    def write(node: Any, value: Any) -> None:
        node.added[name] = value
        if value == default:
            del node.added[name]

    _added.setdefault(kind, {})[name] = info
    setattr(kind, name, property(read, write, doc=info.doc))
    _known.clear()
    return name


def set_words(kind: type, name: str, words: Mapping[str, str], fixed: tuple[str, ...] = ()) -> None:
    """Declare the words that a setting allows, with their meanings; ``fixed``: see `Declared`."""
    _words[kind, name] = words, fixed
    _known.clear()


def declared(kind: type) -> dict[str, Declared]:
    """Return the settings of a dataclass by path below it: ``run_limit``, ``per_request/cpu_limit``.
    Keyword-only fields (`KW_ONLY`), which those of a base class are, come last, as in a call."""
    if kind.__qualname__ not in _known:
        _known[kind.__qualname__] = dict(_walk(kind))
    return _known[kind.__qualname__]


def _walk(kind: type) -> Iterator[tuple[str, Declared]]:
    for f in sorted(dataclasses.fields(kind), key=lambda each: bool(each.kw_only)):
        if "setting" in f.metadata:
            info = dataclasses.replace(f.metadata["setting"], name=f.name)
            if (kind, f.name) in _words:
                words, fixed = _words[kind, f.name]
                doc = f"{info.doc}: " + "; ".join(f"{word} ({meaning})" for word, meaning in words.items())
                info = dataclasses.replace(info, words=tuple(words), fixed=fixed, doc=doc)
            yield f.name, info
        elif "added" in f.metadata:
            for base in reversed(kind.__mro__):
                yield from _added.get(base, {}).items()
        elif "branch" in f.metadata:
            for path, info in _walk(f.metadata["branch"]):
                yield f"{f.name}/{path}", info


def check_value(info: Declared, value: Any) -> None:
    """Raise BadValue unless a value fits the setting's unit, bounds and words."""
    if value is None:
        if info.can_be_none:
            return
        raise BadValue(f"{info.name} needs a value")
    if info.words and info.unit != "names" and (not isinstance(value, str) or value not in info.words):
        raise BadValue(f"{info.name} must be one of {', '.join(info.words)}, not {value!r}")
    if info.unit in ("count", "number", "time", "size", "percent"):
        _check_number(info, value)
    elif info.unit == "flag" and not isinstance(value, bool):
        raise BadValue(f"{info.name} must be on or off, not {value!r}")
    elif info.unit in ("name", "text") and not isinstance(value, str):
        raise BadValue(f"{info.name} must be a word, not {value!r}")
    elif info.unit in ("names", "crons", "amounts") and not (
        isinstance(value, tuple) and all(isinstance(each, str) and each for each in value)
    ):
        raise BadValue(f"{info.name} must be a list of words like (a, b), not {value!r}")
    elif info.unit == "names" and info.words:
        for word in (each for each in value if each not in info.words):
            wrong = f"{word} is always on" if word in info.fixed else f"{word!r} is not known"
            raise BadValue(f"{wrong}; {info.name} must be a list of {', '.join(info.words)}")
    elif info.unit == "amounts":
        for name, _, number in (each.partition("=") for each in value):
            if not (name and number.isascii() and number.isdigit() and int(number) <= GREATEST):
                raise BadValue(f"{info.name} must be a list like (gpu=2, matlab=1), not {value!r}")


def _check_number(info: Declared, value: Any) -> None:
    kinds = (int, float) if info.unit == "percent" else int
    if isinstance(value, bool) or not isinstance(value, kinds) or value != value:
        raise BadValue(f"{info.name} must be a whole number, not {value!r}")
    low = 0 if info.low is None else info.low
    if value > GREATEST:
        raise BadValue(f"{info.name} is too large: {value}")
    if not low <= value <= (GREATEST if info.high is None else info.high):
        least, most, given = (_written(info, number) for number in (low, info.high, value))
        bounds = f"from {least} to {most}" if info.high is not None else f"at least {least}"
        raise BadValue(f"{info.name} must be {bounds}, not {given}")


def _written(info: Declared, value: int | float | None) -> str:
    """Return a number of a setting as people write it."""
    if isinstance(value, int) and value >= 0 and info.unit == "time":
        return format_time(value) + "s" * (value < 60_000)
    if isinstance(value, int) and value >= 0 and info.unit == "size":
        return format_size(value)
    return str(value)


def get(node: Any, path: str) -> Any:
    """Return the value at a ``path`` below an object of settings. Raises KeyError with the path."""
    for part in path.split("/"):
        if not hasattr(node, part):
            raise KeyError(path)
        node = getattr(node, part)
    return node


def items(node: Any) -> Iterator[tuple[str, Declared, Any]]:
    """Yield all settings of an object in order: path below it, declaration, value."""
    return ((path, info, get(node, path)) for path, info in declared(type(node)).items())


def changed(node: Any) -> Iterator[tuple[str, Declared, Any]]:
    """Yield the settings of an object that differ from their defaults, like `items`."""
    return (each for each in items(node) if each[2] != each[1].default)


def list_at(node: Any, path: str) -> tuple[str, ...] | None:
    """Return the list of names or cron times at a path below an object; None: there is no such list."""
    info = declared(type(node)).get(path) if node is not None else None
    found: tuple[str, ...] | None = get(node, path) if info and info.unit in ("names", "crons") else None
    return found


def put(node: Any, path: str, value: Any) -> None:
    """Set one setting of an object. Raises BadValue for an unknown setting or a value that does not fit."""
    info = declared(type(node)).get(path)
    if info is None:
        raise BadValue(f"{path} is not a setting of a {type(node).__name__.lower()}")
    if isinstance(value, list):
        value = tuple(value)
    check_value(info, value)
    *parents, last = path.split("/")
    for part in parents:
        node = getattr(node, part)
    setattr(node, last, value)


@cache
def _fields_of(kind: type) -> tuple[tuple[str, bool], ...]:
    return tuple((f.name, "branch" in f.metadata) for f in dataclasses.fields(kind))


def copy_node(node: Any) -> Any:
    """Return a copy of an object of settings that can be changed; values are shared."""
    kind: Any = type(node)
    made = kind.__new__(kind)
    for name, is_branch in _fields_of(kind):
        value = getattr(node, name)
        if is_branch:
            value = copy_node(value)
        elif isinstance(value, dict):
            value = dict(value)
        setattr(made, name, value)
    return made


def dump(node: Any) -> dict[str, Any]:
    """Return the settings of an object that differ from their defaults, by path, for ``snap`` and rows."""
    return {path: list(value) if isinstance(value, tuple) else value for path, _, value in changed(node)}


def load(kind: type, values: dict[str, Any], **names: Any) -> Any:
    """Return an object of the class ``kind`` with the values of `dump`, without settings and words that no
    longer exist. ``names``: arguments of the class, such as the object's name."""
    node = kind(**names)
    known = declared(kind)
    for path, value in values.items():
        info = known.get(path)
        if info is not None and info.words and isinstance(value, list):
            value = [word for word in value if word in info.words]
        elif not is_declared(info, value):
            continue
        put(node, path, value)
    return node


def is_declared(info: Declared | None, value: Any) -> bool:
    """Return True if a setting is declared (None: it is not), and the words of its value are."""
    if info is None or not info.words:
        return info is not None
    return all(word in info.words for word in (value if isinstance(value, list) else (value,)))


def as_list(value: Any) -> Sequence[Any]:
    """Return the members of a list, or a text as the only member; of other values (refused later) nothing."""
    return (value,) if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
