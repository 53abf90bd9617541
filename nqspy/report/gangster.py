"""The screen of `nqspy gangster` (seed 000, "Sample Gangster Display") as text, made of the daemon's answer
(`gang_jobs`): the node map in three dimensions and the table of jobs. The command reads no clock and no site.
"""

from collections.abc import Mapping, Sequence
from string import ascii_letters
from typing import Any

from nqspy.model.domains import numbers

Data = Mapping[str, Any]
"""Answer to the question ``gangster``, see `gang_jobs.jobs_on_nodes`."""
Letters = dict[str, str]
"""Letters of jobs by identifier."""

FREE, OFFLINE, HIDDEN, FURTHER = ".", "-", "#", "+"
"""Signs of a node that is free, offline, held by a job that is not shown, and of a job without a letter."""
HEADS = ("CLAS", "JOB-USER", "PID", "COMMAND", "#PE", "BASE", "W", "ST", "H:MM")
_RIGHT = ("PID", "#PE", "BASE", "H:MM")
_LEAST = {"CLAS": 4, "JOB-USER": 12, "COMMAND": 8}
_SHORT = {
    "interactive": "Int", "benchmark": "Bmrk", "production": "Prod", "standby": "Stby", "foreign": "Frgn",
}  # fmt: skip
WIDE = 100
"""Columns from which on user and command have more room, and identifiers are shown."""
_GAP = "  "


def _holders(data: Data) -> dict[int, str]:
    """Return which job is shown on each held PE: of several the one of the highest class, running first."""
    held: dict[int, str] = {}
    for job in sorted(data["jobs"], key=lambda job: (-job["rank"], job["state"] != "R")):
        for pe in numbers(tuple(job["places"])):
            held.setdefault(pe, job["id"])
    return held


def letters_of(data: Data, former: Mapping[str, str] | None = None) -> Letters:
    """Return a letter for each job. Jobs on the map have the first ones, then those that have run longest; a
    job keeps its letter of a ``former`` screen. Beyond 52 jobs the sign is `FURTHER`."""
    shown = set(_holders(data).values())
    jobs = sorted(data["jobs"], key=lambda j: (j["id"] not in shown, j["state"] == "N", -j["ran_s"]))
    kept = {job["id"]: (former or {}).get(job["id"], FURTHER) for job in jobs}
    free = [letter for letter in ascii_letters if letter not in kept.values()]
    for id, letter in kept.items():
        if letter == FURTHER and free:
            kept[id] = free.pop(0)
    return kept


def node_map(data: Data, letters: Mapping[str, str]) -> list[str]:
    """Return the lines of the node map: a plane for each y, the highest first, with x downward and z to the
    right; node 000 is at the upper left of the last plane. Without a shape: one line, PE by PE."""
    signs = dict.fromkeys(numbers(tuple(data["offline"])), OFFLINE)
    signs |= dict.fromkeys(numbers(tuple(data["hidden"])), HIDDEN)
    signs |= {pe: letters[id] for pe, id in _holders(data).items()}
    if data["shape"] is None:
        return ["".join(signs.get(pe, FREE) for pe in range(data["pes"]))]
    (x, y, z), own = data["shape"], data["pes_per_node"]

    def node(first: int) -> str:
        """Return the sign of a node: of its first PE that is held, else free, else offline."""
        found = [signs.get(pe, FREE) for pe in range(first, first + own)]
        return next((sign for sign in found if sign not in (FREE, OFFLINE)), max(found))

    lines = []
    for plane in reversed(range(y)):
        rows = [[node(row + x * (plane + y * column)) for column in range(z)] for row in range(0, x, own)]
        lines += ["".join(row) for row in rows] + [""]
    return lines[:-1]


def table(data: Data, letters: Mapping[str, str], wide: bool = False) -> tuple[str, list[tuple[str, str]]]:
    """Return the head line of the table, and (identifier, line) of each job, by class, then by letter; an
    empty pair stands between two classes. ``wide``: with longer names and the identifiers."""
    jobs = sorted(data["jobs"], key=lambda job: (-job["rank"], job["class"], _place(letters[job["id"]])))
    rows = [_cells(job, letters[job["id"]], data["shape"], wide) + (job["id"],) * wide for job in jobs]
    heads = HEADS + ("ID",) * wide
    columns = zip(heads, *rows, strict=True)
    widths = [max(_LEAST.get(column[0], 1), *map(len, column)) for column in columns]
    head, *lines = (
        " ".join(
            cell.rjust(width) if name in _RIGHT else cell.ljust(width)
            for name, cell, width in zip(heads, row, widths, strict=True)
        )
        for row in (heads, *rows)
    )
    listed = list[tuple[str, str]]()
    for place, job in enumerate(jobs):
        if place and jobs[place - 1]["class"] != job["class"]:
            listed.append(("", ""))
        listed.append((job["id"], lines[place]))
    return head, listed


def _place(letter: str) -> int:
    return ascii_letters.find(letter) if letter != FURTHER else len(ascii_letters)


def _cells(job: Data, letter: str, shape: Sequence[int] | None, wide: bool) -> tuple[str, ...]:
    user, command = (12, 20) if wide else (8, 8)
    minutes = job["ran_s"] // 60
    name = job["class"]
    return (
        _SHORT.get(name, name[:4].capitalize()) or "-",
        f"{letter} - {_cut(job['user'], user)}",
        "-" if job["pid"] is None else str(job["pid"]),
        _cut(job["command"], command),
        str(job["pes"]),
        _base(job["base"], shape),
        "-" if job["circuit"] is None else job["circuit"],
        job["state"],
        f"{minutes // 60:02}:{minutes % 60:02}",
    )


def _cut(text: str, width: int) -> str:
    return "".join(char if char.isprintable() else "?" for char in text[:width])


def _base(base: int | None, shape: Sequence[int] | None) -> str:
    """Return a job's lowest PE as its z, y and x, as the paper writes them; without a shape its number."""
    if base is None or shape is None:
        return "-" if base is None else str(base)
    x, y, _ = shape
    place = base // (x * y), base // x % y, base % x
    return ("" if max(shape) <= 10 else ",").join(map(str, place))


def beside(nodes: Sequence[str], head: str, width: int | None) -> bool:
    """True if the node map has room beside the table in ``width`` columns (None: no bound)."""
    return width is None or max(map(len, nodes)) + len(_GAP) + len(head) <= width


def wrapped(nodes: Sequence[str], width: int) -> list[str]:
    """Return the lines of a node map, longer ones in pieces of ``width``."""
    return [line[at : at + width] for line in nodes for at in range(0, max(1, len(line)), width)]


def screen(data: Data, width: int | None = None) -> str:
    """Return the whole screen as text: the map beside the table, or above it where it is too wide."""
    letters = letters_of(data)
    nodes = node_map(data, letters)
    head, rows = table(data, letters, wide=width is None or width >= WIDE)
    lines = [head, *(line for _, line in rows)]
    lines += [f"and {data['further']} more wait"] if data["further"] else []
    if beside(nodes, head, width):
        room, count = max(map(len, nodes)), max(len(nodes), len(lines))
        left = [*nodes, *[""] * (count - len(nodes))]
        right = [*lines, *[""] * (count - len(lines))]
        whole = [f"{node:<{room}}{_GAP}{line}" for node, line in zip(left, right, strict=True)]
    else:
        whole = [*wrapped(nodes, width or WIDE), "", *lines]
    return "".join(f"{line.rstrip()}\n" for line in whole)
