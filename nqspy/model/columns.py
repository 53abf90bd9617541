"""Waiting requests of one queue as numpy columns, so that a pass computes with arrays and not with Python
objects. Names are numbers there. The last row fills the place of a removed one. Only `lifecycle` writes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nqspy.model.consumables import Wanted, wanted_key
from nqspy.model.ids import Seq, member, rank_of
from nqspy.model.requests import Request
from nqspy.model.units import UNLIMITED

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


Arrays = Mapping[str, npt.NDArray[Any]]


class Numbers:
    """Numbers for names, from 0 upward, so that names fit into columns. ``names``: the names by number."""

    __slots__ = ("_by_name", "names")

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}
        self.names: list[str] = []

    def of(self, name: str) -> int:
        """Return the number of a name; a new name gets the next one."""
        number = self._by_name.get(name)
        if number is None:
            number = self._by_name[name] = len(self.names)
            self.names.append(name)
        return number

    def known(self, name: str) -> int | None:
        """Return the number of a name; None: it has no number, and gets none here."""
        return self._by_name.get(name)

    def __len__(self) -> int:
        return len(self.names)

    def copy(self) -> "Numbers":
        """Return an independent copy."""
        made = Numbers()
        made._by_name, made.names = dict(self._by_name), list(self.names)
        return made

    def become(self, names: list[str]) -> None:
        """Replace all names: from now on only these have numbers, in this order from 0."""
        self.names = names
        self._by_name = {name: number for number, name in enumerate(names)}


LEAST_NAMES = 10_000
"""Least value of `Dictionary.limit`: with fewer names and pairs, unused ones are never dropped."""


@dataclass(slots=True)
class Dictionary:
    """Numbers for names in the columns of all queues: owners, groups, request names, pairs ``GROUP:OWNER``
    and needs. When there are more than ``limit`` names or pairs, `compact` drops the unused ones."""

    owners: Numbers = field(default_factory=Numbers)
    groups: Numbers = field(default_factory=Numbers)
    names: Numbers = field(default_factory=Numbers)
    pairs: Numbers = field(default_factory=Numbers)
    needs: Numbers = field(default_factory=Numbers)
    limit: int = LEAST_NAMES

    def is_full(self) -> bool:
        """True if there are more names or pairs than ``limit``, so that `compact` should run."""
        return len(self.names) > self.limit or len(self.pairs) > self.limit

    def copy(self) -> "Dictionary":
        """Return an independent copy."""
        owners, groups, names, pairs, needs = (numbers.copy() for _, numbers in self.by_column())
        return Dictionary(owners, groups, names, pairs, needs, self.limit)

    def by_column(self) -> tuple[tuple[str, Numbers], ...]:
        """Return (column, numbers) for each column of `Columns` that holds names as numbers."""
        return (
            ("owner", self.owners), ("group", self.groups), ("name", self.names), ("pair", self.pairs),
            ("needs", self.needs),
        )  # fmt: skip


class Pairs(Struct, frozen=True):
    """Pairs of owner and group, by position. ``numbers``: their numbers in `Dictionary.pairs`; ``keys``:
    (owner, group); ``place``: index of the pair's group in ``groups``. ``rows``: for each of ``groups``, a
    dictionary from owner to the pair's position."""

    numbers: Ints
    keys: Sequence[tuple[str, str]]
    groups: Sequence[str]
    place: Ints
    rows: Sequence[dict[str, int]]


def pairs_of(numbers: Ints, names: Iterable[str]) -> Pairs:
    """Return the pairs with these numbers and names (``GROUP:OWNER``)."""
    keys = [(owner, group) for group, _, owner in (name.partition(":") for name in names)]
    rows: dict[str, dict[str, int]] = {}
    for row, (owner, group) in enumerate(keys):
        rows.setdefault(group, {})[owner] = row
    groups = sorted(rows)
    places = {group: place for place, group in enumerate(groups)}
    place = np.array([places[group] for _, group in keys], dtype=np.int64)
    return Pairs(numbers, keys, groups, place, [rows[group] for group in groups])


class Extremes:
    """Greatest (``least``: least) values of columns. ``known``: for each column asked for, (value, number of
    rows that have it), so that a column is searched again only after the last of these rows is gone."""

    __slots__ = ("_least", "known")

    def __init__(self, least: bool = False) -> None:
        self._least = least
        self.known: dict[str, tuple[float, int]] = {}

    def of(self, name: str, values: npt.NDArray[Any]) -> float:
        """Return the greatest (or least) value of the column ``name``; ``values``: the column, not empty."""
        found = self.known.get(name)
        if found is None:
            value = (values.min() if self._least else values.max()).item()
            found = self.known[name] = (value, int(np.count_nonzero(values == value)))
        return found[0]

    def added(self, arrays: Arrays, row: int) -> None:
        """Count a row that was added, or written again after `removed`; ``arrays``: the columns by name."""
        for name, (value, count) in self.known.items():
            new = arrays[name].item(row)
            if new == value:
                self.known[name] = (value, count + 1)
            elif (new < value) is self._least:
                self.known[name] = (new, 1)

    def removed(self, arrays: Arrays, row: int) -> None:
        """Stop counting a row that is about to be removed or written again."""
        last = []
        for name, (value, count) in self.known.items():
            if arrays[name].item(row) == value:
                self.known[name] = (value, count - 1)
                if count <= 1:
                    last.append(name)
        for name in last:
            del self.known[name]


def needs_key(names: tuple[str, ...], wanted: Wanted = ()) -> str:
    """Return the needs and wanted units of a request as a text: ``gpu=2+licence+nfs``; empty: no needs."""
    return "+".join(sorted({*names, *wanted_key(wanted)})) if names or wanted else ""


def turn_of(request: Request) -> int:
    """Return the number that orders requests with one date in queue, lower first: `place_of` as a rank."""
    return rank_of(place_of(request))


def place_of(request: Request) -> Seq:
    """Return the number (``seq``) that places a request among those of one date: that of its redating if it
    has one, of an array that of its next ready index, else its own."""
    if request.redated is not None and request.redated.place is not None:
        return request.redated.place
    ready = () if request.array is None else request.array.ready
    return member(request.seq, ready[0][0]) if ready else request.seq


class _Column:
    """A column of values of one kind. At its first use after rows were added or removed it is cut to the
    number of rows. (With ``__getattr__`` all other attributes would be slower.)"""

    names: ClassVar[dict[Any, list[str]]] = {}  # of all columns, by kind

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self.names.setdefault(self._kind, []).append(name)

    def __get__(self, columns: "Columns", owner: type) -> Any:
        found = columns.__dict__[self._name] = columns.cut(self._name)
        return found


class Columns:
    """Columns over the queued requests of one queue (`Site.waiting`); each property is an array of
    ``len(self)`` values, one for each row. ``cpu``, ``wall`` (ms) and ``memory`` (bytes): infinite without a
    finite limit in the request. ``date``: date in queue (ms). ``count``: starts that it is ready for (of an
    array; else 1). ``turn``: order within a date (`turn_of`). ``given``: 1 if the owner gave the name.
    ``owner``, ``group``, ``name``, ``pair`` (owner in group), ``needs``: numbers of a `Dictionary`.
    ``contract``: 1 if it may start in a short hole (`Spec.contract`). ``priority``: by ``qsub -p``, 0: none;
    ``prioritised``: number of rows with another one. ``version`` rises with every change."""

    __slots__ = (
        "__dict__", "_arrays", "_counted", "_least", "_length", "_most", "_pairs", "_rows", "_summed",
        "_tables", "prioritised", "version",
    )  # fmt: skip

    seq = _Column(np.int64)
    date = _Column(np.int64)
    cpu = _Column(np.float64)
    memory = _Column(np.float64)
    wall = _Column(np.float64)
    pes = _Column(np.int64)
    count = _Column(np.int64)
    turn = _Column(np.int64)
    owner = _Column(np.int64)
    group = _Column(np.int64)
    name = _Column(np.int64)
    given = _Column(np.int64)
    pair = _Column(np.int64)
    rank = _Column(np.int64)
    needs = _Column(np.int64)
    priority = _Column(np.int64)
    contract = _Column(np.int64)

    def __init__(self, capacity: int = 16) -> None:
        self._hold([np.zeros((len(names), capacity), kind) for kind, names in _Column.names.items()])
        self._length = 0
        self._rows: list[Request] = []
        self._counted: Ints | None = None
        self._summed: Ints | None = None
        self._pairs: Pairs | None = None
        self._most, self._least = Extremes(), Extremes(least=True)
        self.prioritised = self.version = 0

    def _hold(self, tables: list[npt.NDArray[Any]]) -> None:
        """Use these tables: columns of one kind are lines of one table, so that rows can be moved at once."""
        self._tables = tables
        self._arrays = dict(zip(chain(*_Column.names.values()), chain(*tables), strict=True))

    def __len__(self) -> int:
        return self._length

    def cut(self, name: str) -> Any:
        """Return the array of a column, cut to the number of rows."""
        return self._arrays[name][: self._length]

    def _resize(self, length: int) -> None:
        self._length = length
        self.__dict__.clear()  # columns of the former length

    def request(self, row: int) -> Request:
        """Return the request of a row."""
        return self._rows[row]

    def requests(self) -> list[Request]:
        """Return the requests of all rows, in row order."""
        return self._rows

    def add(self, request: Request, numbers: Dictionary) -> None:
        """Append a request; its ``slot`` becomes the number of its row."""
        row = self._length
        if row == len(self._arrays["seq"]):
            self._grow()
        request.slot = row
        self._rows.append(request)
        self._resize(row + 1)
        self.version += 1
        self._arrays["priority"][row] = 0
        self._write(row, request, numbers)
        self._added(row)

    def extend(self, requests: list[Request], numbers: Dictionary) -> None:
        """Append these requests: like `add` for each, but several times as fast."""
        start, end = self._length, self._length + len(requests)
        while end > len(self._arrays["seq"]):
            self._grow()
        for row, request in enumerate(requests, start):
            request.slot = row
        values = [_values_of(request, numbers) for request in requests]
        for table, rows in zip(self._tables, zip(*values, strict=True), strict=False):
            table[:, start:end] = np.array(rows, table.dtype).T
        self._rows += requests
        self.prioritised += int(np.count_nonzero(self._arrays["priority"][start:end]))
        self._resize(end)
        self._changed()

    def update(self, request: Request, numbers: Dictionary) -> None:
        """Write a request's row again, after its date, rank or what it asks for changed."""
        self.version += 1
        self._removed(request.slot)
        self._write(request.slot, request, numbers)
        self._added(request.slot)

    def remove(self, request: Request) -> None:
        """Remove a request; the last row moves into its place."""
        row, last = request.slot, self._length - 1
        self._removed(row)
        self.prioritised -= bool(self._arrays["priority"].item(row))
        if row != last:
            moved = self._rows[last]
            self._rows[row] = moved
            moved.slot = row
            for table in self._tables:
                table[:, row] = table[:, last]
        self._rows.pop()
        self._resize(last)
        request.slot = -1
        self.version += 1

    def redate(self, requests: list[Request], date: int) -> None:
        """Write date (now ``date``, ms) and `turn` of these requests into their rows."""
        rows = [request.slot for request in requests]
        self._arrays["date"][rows] = date
        self._arrays["turn"][rows] = [turn_of(request) for request in requests]
        self._changed()

    def renumber(self, name: str, table: Ints) -> None:
        """Replace the numbers in a column: ``table`` has the new number of each old one."""
        rows = self._arrays[name][: self._length]
        rows[:] = table[rows]
        self._changed()

    def _changed(self) -> None:
        """Drop all derived data, after many rows have changed."""
        self.version += 1
        self._counted = self._summed = self._pairs = None
        self._most.known.clear()
        self._least.known.clear()

    def _added(self, row: int) -> None:
        self._most.added(self._arrays, row)
        self._least.added(self._arrays, row)
        self._count(row, 1)

    def _removed(self, row: int) -> None:
        self._most.removed(self._arrays, row)
        self._least.removed(self._arrays, row)
        self._count(row, -1)

    def _count(self, row: int, sign: int) -> None:
        pair = self._arrays["pair"].item(row)
        if self._counted is not None:
            counted = self._counted = _longer(self._counted, pair)
            counted[pair] = now = counted.item(pair) + sign
            if now == (sign > 0):
                self._pairs = None  # its first came, or its last has gone
        if self._summed is not None:
            summed = self._summed = _longer(self._summed, pair)
            more = sign * self._arrays["pes"].item(row) * self._arrays["count"].item(row)
            summed[pair] = summed.item(pair) + more

    def _write(self, row: int, request: Request, numbers: Dictionary) -> None:
        self.prioritised += bool(request.spec.priority) - bool(self._arrays["priority"][row])
        for table, values in zip(self._tables, _values_of(request, numbers), strict=True):
            table[:, row] = values

    def _grow(self) -> None:
        self._hold([np.concatenate((table, np.zeros_like(table)), axis=1) for table in self._tables])

    def by_pair(self) -> Ints:
        """Return the number of rows of each pair (owner in group), by its number. Read it before a change."""
        if self._counted is None:
            self._counted = np.bincount(self.pair)
        return self._counted

    def has_pair(self, pair: int) -> bool:
        """True if some row has this pair of owner and group, given by its number."""
        counts = self.by_pair()
        return pair < len(counts) and counts.item(pair) > 0

    def pairs(self, numbers: Dictionary) -> Pairs:
        """Return the pairs of owner and group that have rows."""
        if self._pairs is None:
            present, names = np.flatnonzero(self.by_pair()), numbers.pairs.names
            self._pairs = pairs_of(present, [names[number] for number in present.tolist()])
        return self._pairs

    def pes_by_pair(self) -> Ints:
        """Return the PEs that the rows of each pair ask for (arrays: for all ready indices), by number of
        pair. Read it before the next change."""
        if self._summed is None:
            self._summed = np.bincount(self.pair, self.pes * self.count).astype(np.int64)
        return self._summed

    def most(self, name: str) -> float:
        """Return the greatest value of a column; 0: there is no row."""
        found = self._most.known.get(name)
        return self._extreme(self._most, name) if found is None else found[0]

    def least(self, name: str) -> float:
        """Return the least value of a column; 0: there is no row."""
        found = self._least.known.get(name)
        return self._extreme(self._least, name) if found is None else found[0]

    def _extreme(self, extremes: Extremes, name: str) -> float:
        return extremes.of(name, getattr(self, name)) if self._length else 0

    def copy(self, requests: Mapping[Seq, Request]) -> "Columns":
        """Return a copy of the columns; its rows are the requests with the same numbers in ``requests``."""
        made = Columns(0)
        made._hold([table.copy() for table in self._tables])
        made._rows = [requests[seq] for seq in self.seqs()]
        made._resize(self._length)
        made.prioritised, made.version = self.prioritised, self.version
        return made

    def later(self, most: int) -> set[Seq]:
        """Return the numbers of the requests behind the first ``most``, in order of date and turn."""
        order = np.lexsort((self.turn, self.date))
        return set(self.seq[order[most:]].tolist())

    def seqs(self) -> list[Seq]:
        """Return the sequence numbers in row order."""
        found: list[Seq] = self._arrays["seq"][: self._length].tolist()
        return found


def compact(numbers: Dictionary, every: Iterable[Columns]) -> None:
    """Drop the names that no row of ``every`` (all columns of the site) has, and renumber the others in their
    order, so nothing sorted by number changes. It reads each row: run it once the names have doubled."""
    columns = list(every)
    for name, known in numbers.by_column():
        used = np.unique(np.concatenate([getattr(each, name) for each in columns]))
        table = np.zeros(len(known), dtype=np.int64)
        table[used] = np.arange(len(used))
        for each in columns:
            each.renumber(name, table)
        known.become([known.names[number] for number in used.tolist()])
    numbers.limit = max(LEAST_NAMES, 2 * len(numbers.names), 2 * len(numbers.pairs))


def _values_of(request: Request, numbers: Dictionary) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the row of a request: its whole numbers and its other numbers, in the order of the columns."""
    spec, ask = request.spec, request.spec.ask
    whole = (
        request.seq, request.date_in_queue, ask.pes, request.multiplicity, turn_of(request),
        numbers.owners.of(spec.owner), numbers.groups.of(spec.group), numbers.names.of(spec.name),
        spec.name_given, numbers.pairs.of(f"{spec.group}:{spec.owner}"), request.rank,
        numbers.needs.of(needs_key(ask.needs, ask.consumables)), spec.priority or 0, spec.contract,
    )  # fmt: skip
    return whole, (_or_infinite(ask.cpu_wanted()), _or_infinite(ask.memory_wanted()), _or_infinite(ask.wall))


def _longer(sums: Ints, number: int) -> Ints:
    """Return ``sums``, extended by zeros so that the index ``number`` exists."""
    missing = number + 1 - len(sums)
    return np.append(sums, np.zeros(missing, dtype=np.int64)) if missing > 0 else sums


def _or_infinite(value: int | None) -> float:
    return float("inf") if value is None or value == UNLIMITED else float(value)
