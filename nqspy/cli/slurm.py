"""Slurm's options: the common ones of ``sbatch`` (``--dialect slurm``, `nqspy submit`). Loaded on use.
`finish` works out nodes, tasks and CPUs: on this one machine 2 nodes with 3 tasks of 4 CPUs are 24 PEs."""

from nqspy.cli import rare
from nqspy.cli.fast import Failure, Given, Parser
from nqspy.cli.resources import Listed
from nqspy.cli.sheet import RequestSheet, SlurmSheet
from nqspy.cli.slurm_options import REFUSED, TABLE
from nqspy.cli.words import split, split_variables
from nqspy.model import amounts
from nqspy.model.amounts import Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CLOCK = {"fika": "15:00", "teatime": "16:00"}
DEPEND = {**rare.DEPEND, "aftercorr": "each"}
_MAIL = {
    "NONE": (), "BEGIN": ("begin",), "END": ("end",), "FAIL": ("abort",), "REQUEUE": ("rerun",),
    "ALL": ("begin", "end", "abort", "rerun"),
}  # fmt: skip
_MARKS = {"j": "%s", "A": "%s", "J": "%s", "a": "%a", "x": "%x", "u": "%u", "%": "%%"}
_MOST = 10**6
_AS_IT_IS = {
    "input": (("/dev/null", "none"), "standard input of a request is empty; read the file in the script"),
    "open_mode": (("t", "truncate"), "{!r} is not offered: output files are always replaced (truncate)"),
}
"""Options that accept only the fixed value of this system: the values, and the error for others."""


def add(sheet: RequestSheet, given: Given) -> None:
    """Apply one option of sbatch to the request. Raises Wrong."""
    target, value = given.target, given.value
    if given.kind[:13] == "slurm_refused":
        raise Wrong(f"it is not offered: {REFUSED[target]}")
    slurm = sheet.slurm = sheet.slurm or SlurmSheet()
    slurm.by[target] = given
    if target in ("tasks", "cpus", "tasks_per_node"):
        slurm.numbers[target] = _count(value)
    elif target == "nodes":  # N or MIN-MAX: the smaller number is what it needs
        least, dash, most = value.partition("-")
        slurm.numbers["nodes"] = _count(least)
        if dash and _count(most) < slurm.numbers["nodes"]:
            raise Wrong(f"{value!r}: write the greater number of nodes last")
    elif target == "gpus":
        kind, colon, number = value.rpartition(":")
        if colon:
            raise Wrong(f"{value!r}: GPUs have no types here ({kind}); write the number alone")
        slurm.numbers["gpus"] = _count(number)
    elif target == "name":
        name = "".join(["_" if char in " /" else char for char in value])
        if not name.isprintable() or not 1 <= len(name.encode("utf-8", "surrogateescape")) <= 230:
            raise Wrong(f"{value!r} is not a name of up to 230 bytes")
        sheet.spec["name"], sheet.spec["name_given"] = name, True
    elif target == "time":
        sheet.ask["wall"] = parse_time(value)
    elif target in ("memory", "memory_per_cpu"):
        slurm.memory = (target, parse_memory(value))
    elif target == "account":
        if not value:
            raise Wrong("a value is missing")
        sheet.spec["account"] = value
    elif target == "queue":
        if "," in value:
            raise Wrong(f"{value!r}: name one queue; a pipe queue chooses among several")
        sheet.spec["queue"] = value
    elif target == "output":
        slurm.stdout = marks(value)
    elif target == "error":
        slurm.stderr = marks(value)
    elif target == "export":
        slurm.export = split_variables(value)
    elif target == "nice":  # Slurm's puts a request back; here it lowers the priority among the owner's own
        sheet.spec["priority"] = -amounts.parse_number(value or "100", -1023, 1024)
    elif target == "wrap":
        sheet.wrapped = value
    elif target in _AS_IT_IS:
        words, problem = _AS_IT_IS[target]
        if value not in words:
            raise Wrong(problem.format(value))
    else:
        _READ[target](sheet, slurm, value)


def parse_time(text: str) -> int:
    """Return the ms of ``[days-]hours:minutes:seconds``, ``minutes[:seconds]``, ``2h``. Raises Wrong."""
    wrong = f"{text!r} is not a time; write it like 30 (minutes), 1:30:00, 2-12 (days-hours), 2h or UNLIMITED"
    low = text.strip().lower()
    if low in ("unlimited", "infinite", "-1", "0"):
        return amounts.UNLIMITED
    if low[-1:].isalpha():
        try:
            return amounts.parse_time(low)
        except Wrong:
            raise Wrong(wrong) from None
    days, dash, rest = low.rpartition("-")
    parts = rest.split(":")
    weights = (3_600, 60, 1) if dash else {1: (60,), 2: (60, 1), 3: (3_600, 60, 1)}.get(len(parts), ())
    numbers = [*parts, days or "0"]
    if len(parts) > len(weights) or not all(_is_number(each) for each in numbers) or (dash and not days):
        raise Wrong(wrong)
    seconds = int(days or "0") * 86_400 + sum(int(n) * w for n, w in zip(parts, weights, strict=False))
    if seconds == 0:
        raise Wrong(wrong)
    return seconds * 1000


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def parse_memory(text: str) -> int:
    """Return the bytes of ``4G``, ``500M``, ``2T``, ``800K``; without a letter megabytes. Raises Wrong."""
    size = amounts.parse_size(text + "m" if text[-1:].isdigit() else text)
    if size <= 0:
        raise Wrong(f"{text!r} is not an amount of memory; write it like 4G or 500M")
    return size


def _count(text: str) -> int:
    return amounts.parse_number(text, 1, _MOST)


def marks(path: str) -> str:
    """Return a path with Slurm's marks (``%j %A %a %x %u %N``) replaced by ours. Raises Wrong."""
    import os

    pieces, at = [], 0
    while at < len(path):
        letter = path[at + 1 : at + 2]
        if path[at] != "%":
            pieces.append(path[at])
            at += 1
            continue
        if letter == "N":
            pieces.append(os.uname().nodename.partition(".")[0])
        elif letter in _MARKS and letter:
            pieces.append(_MARKS[letter])
        else:
            raise Wrong(f"%{letter} in {path!r} is not offered; write %j %A %a %x %u %N or %%")
        at += 2
    return "".join(pieces)


def _depend(sheet: RequestSheet, _slurm: SlurmSheet, value: str) -> None:
    """Apply ``TYPE:ID[:ID...][,TYPE...]``: all must be met."""
    sheet.depends.clear()
    for each in value.split(","):
        kind, *ids = each.split(":")
        ours = [_ours(id, kind) for id in ids]
        if kind not in DEPEND or not all(ours) or not ours:
            known = ", ".join(DEPEND)
            raise Wrong(f"{each!r} is not offered; write it like afterok:17:18 (types: {known})")
        sheet.depends += [f"after:{id}:{DEPEND[kind]}" for id in ours]


def _ours(id: str, kind: str) -> str:
    """Return our identifier of ``17.ymp``, ``17``, ``17_3``, ``17[3]`` (``aftercorr``: ``17[]``), or ""."""
    name, dot, host = id.partition(".")
    bare = name.removesuffix("]").replace("[", "_", 1) if name.endswith("]") else name
    number, line, index = bare.partition("_")
    if not _is_number(number) or (index and not _is_number(index)):
        return ""
    return f"{number}[{index}]{dot}{host}" if line or kind == "aftercorr" else id


def _begin(sheet: RequestSheet, _slurm: SlurmSheet, value: str) -> None:
    """Apply a date of ``-a``, or Slurm's ``teatime``, ``fika``, ``122426``, ``12.24.26``,
    ``12/24/26-18:00``."""
    digits = value.replace(".", "")
    if len(digits) == 6 and _is_number(digits) and value.count(".") != 1:
        value = f"{digits[:2]}/{digits[2:4]}/{digits[4:]}"
    elif "/" in value:
        value = value.replace("-", " ")
    sheet.spec["eligible"] = sheet.date(CLOCK.get(value.lower(), value))


def _mail_type(sheet: RequestSheet, _slurm: SlurmSheet, value: str) -> None:
    chosen: dict[str, object] = {}
    for word in value.upper().split(","):
        if word not in _MAIL:
            raise Wrong(f"{word} is not offered; write {', '.join(_MAIL)}")
        chosen |= dict.fromkeys(_MAIL[word], True)
    for name in ("begin", "end", "abort", "rerun"):
        sheet.mail.pop(name, None)
    sheet.mail |= chosen


def _gres(_sheet: RequestSheet, slurm: SlurmSheet, value: str) -> None:
    """Apply ``gpu:2``, ``gpu:TYPE:2``, ``NAME:N``; several between commas."""
    for each in value.split(","):
        name, colon, rest = each.partition(":")
        if not name or set(name) & set("\"'()=+"):
            raise Wrong(f"{each!r} has no name of a consumable; write it like gpu:2")
        if ":" in rest:
            raise Wrong(f"{each!r}: units have no types here; write it like {name}:1")
        slurm.numbers["gpus" if name == "gpu" else f"unit {name}"] = _count(rest) if colon else 1


_READ: "dict[str, Callable[[RequestSheet, SlurmSheet, str], None]]" = {
    "depend": _depend, "begin": _begin, "mail_type": _mail_type, "gres": _gres,
}  # fmt: skip


def finish(sheet: RequestSheet) -> None:
    """Work out PEs, memory, units, output and variables of all options together. Raises Failure."""
    from nqspy.cli.paths import output_path

    slurm = sheet.slurm or SlurmSheet()
    number = slurm.numbers
    nodes = number.get("nodes", 1)
    tasks = number.get("tasks", nodes * number.get("tasks_per_node", 1))
    pes = tasks * number.get("cpus", 1)
    if pes > _MOST:
        raise Failure(f"{tasks} tasks of {number.get('cpus', 1)} CPUs are {pes} PEs; ask for at most {_MOST}")
    sheet.ask["pes"] = pes
    layout = {"chunks": nodes, "ranks": tasks, "cpus": pes}
    sheet.spec["layout"] = layout | ({"threads": number["cpus"]} if "cpus" in number else {})
    if slurm.memory is not None:
        way, size = slurm.memory
        sheet.ask["memory"] = size * (pes if way == "memory_per_cpu" else nodes)
    for name, units in number.items():
        if name == "gpus" or name.startswith("unit "):
            source = slurm.by["gpus" if "gpus" in slurm.by and name == "gpus" else "gres"]
            unit = name.removeprefix("unit ")
            sheet.listed[unit] = Listed(unit, str(units), f"{unit}={units}", source)
    folder = str(sheet.spec.setdefault("start_in", sheet.workdir))
    name = slurm.stdout or ("slurm-%s_%a.out" if "array" in sheet.spec else "slurm-%s.out")
    sheet.output["stdout"] = output_path(folder, name)
    if slurm.stderr:
        sheet.output["stderr"] = output_path(folder, slurm.stderr)
    else:
        sheet.output["join"] = True
    # --export: ALL, NONE, NIL, names and values; without ALL only those named
    sheet.exports = "ALL" in slurm.export
    sheet.variables[:] = [word for word in slurm.export if word and word not in ("ALL", "NONE", "NIL")]


_IN_PBS = {
    "name": "-N {}", "time": "-l walltime={}", "tasks": "-l select={}", "cpus": "-l ncpus={}",
    "nodes": "-l nodes={}", "memory": "-l mem={}", "queue": "-q {}", "account": "-A {}", "output": "-o {}",
    "error": "-e {}", "folder": "-d {}", "array": "-J {}", "depend": "-W depend={}", "begin": "-a {}",
    "held": "-h", "mail_type": "-m", "mail.to": "-M {}", "export": "-v", "rerunnable": "-r {}",
    "gpus": "-l gpus={}",
}  # fmt: skip
"""PBS's words for Slurm's options."""
MOST = 12
"""Most directives that are explained; more are counted."""


def meaning(lines: list[str]) -> str:
    """Return Slurm's directives in PBS's words: ``--time=10 is -l walltime=0:10:00, -n 2 is -l select=2``."""
    parser, found = Parser(TABLE), list[str]()
    for line in lines:
        try:
            options, _ = parser.parse(split(line))
        except (Failure, Wrong):
            continue
        for given in options:
            if given.target in _IN_PBS:
                between = "=" if given.flag[:2] == "--" and given.value else " "
                option = f"{given.flag}{between}{given.value}".rstrip()
                found.append(f"{option} is {_IN_PBS[given.target].format(_value(given))}".rstrip())
    more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
    return ", ".join([*found[:MOST], *more])


def _value(given: Given) -> str:
    if given.kind in ("on", "off"):
        return "y" if given.kind == "on" else "n"
    if given.target != "time":
        return given.value
    try:
        seconds = parse_time(given.value) // 1000
    except Wrong:
        return given.value
    return "unlimited" if seconds < 0 else f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
