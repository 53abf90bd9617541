"""What user exits are handed of a pass: requests, selections of them, the site; all of it read only."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NoReturn, Protocol

import numpy as np
from msgspec import Struct

from nqspy.core.fair_share import FairShare
from nqspy.core.stock import Stock
from nqspy.model.columns import Columns, Ints
from nqspy.model.ids import Instant, Seq, array_of, index_of
from nqspy.model.machine import Machine
from nqspy.model.requests import STARTED, Request, State, finite
from nqspy.model.site import Site
from nqspy.ports import Answer, RequestView, Selection


class Proposal(Protocol):
    """What the view reads of a draft (`core.draft.Draft`)."""

    site: Site
    now: Instant
    offered: defaultdict[str, list[tuple[RequestView, Answer | None]]]
    sights: dict[Seq, "Seen"]
    starting: set[Seq]

    @property
    def ledger(self) -> FairShare: ...
    @property
    def awaiting(self) -> Mapping[str, list[Request]]: ...
    @property
    def started(self) -> Sequence[Request]: ...
    @property
    def asked(self) -> str: ...
    @property
    def proposals(self) -> int: ...
    def stocks_of(self, domain: str) -> Stock: ...
    def dates(self, queue: str) -> Ints: ...
    def gone(self, queue: str) -> list[int]: ...
    def date_of(self, request: Request) -> Instant: ...
    def left_of(self, request: Request) -> int: ...


def _array(seen: "Seen") -> str | None:
    """The identifier of the array that it is, or is one index of."""
    request = seen._request
    array = request.seq if request.array is not None else array_of(request.seq)
    return None if array is None else seen._draft.site.id_of(array)


def _state(seen: "Seen") -> str:
    """The word for where it stands, what this pass has chosen included."""
    request = seen._request
    return _RUNS if request.seq in seen._draft.starting else _WORDS[request.state]


_WORDS: Mapping[State, str] = {state: state.value for state in State}
_RUNS = State.RUNNING.value

_THERE: Mapping[str, str] = {
    "seq": "seq",
    "name": "spec.name",
    "name_given": "spec.name_given",
    "owner": "spec.owner",
    "group": "spec.group",
    "account": "spec.account",
    "queue": "queue",
    "submitted": "submitted",
    "pes": "spec.ask.pes",
    "priority": "spec.priority",
    "attributes": "spec.attributes",
}
"""What a request has of itself, and where."""

_MADE: dict[str, Callable[["Seen"], Any]] = {
    "id": lambda s: s._draft.site.id_of(s._request.seq),
    "cpu": lambda s: s._request.spec.ask.finite_cpu(),
    "memory": lambda s: s._request.spec.ask.finite_memory(),
    "wall": lambda s: finite(s._request.spec.ask.wall),
    "project": lambda s: s._request.spec.project,
    "arguments": lambda s: _bounded(s._request.spec.args),
    "array": _array,
    "index": lambda s: index_of(s._request.seq),
}
"""What is made of it, and stays as it is for the whole pass."""

_MOVING: dict[str, Callable[["Seen"], Any]] = {
    "state": _state,
    "date_in_queue": lambda s: s._draft.date_of(s._request),
    "started": lambda s: s._draft.now if s._request.seq in s._draft.starting else s._request.started,
    "count": lambda s: s._draft.left_of(s._request),
    "consumables": lambda s: dict(s._request.spec.ask.consumables),
}
"""What the pass itself may change, and what whoever reads it could."""

HANDED = "script"
"""What only submit exits see of a request, besides `FIELDS`."""
SEEN_ARGUMENTS = 65_536
"""Characters of all arguments that exits see."""
SEEN_SCRIPT = 65_536
"""Bytes of a script that submit exits see."""


def _bounded(words: tuple[str, ...]) -> tuple[str, ...]:
    """The first of them, as many as exits see."""
    size = 0
    for place, word in enumerate(words):
        size += len(word) + 1
        if size > SEEN_ARGUMENTS:
            return words[:place]
    return words


FIELDS: tuple[str, ...] = (*_THERE, *_MADE, *_MOVING)
"""What exits see of a request."""

SIGHTS = 10_000
"""Requests whose fields are remembered in a pass, at most."""


def _there(name: str) -> Any:
    return property(attrgetter(f"_request.{_THERE[name]}"))


def _made(name: str) -> Any:
    return cached_property(_MADE[name])


def _moving(name: str) -> Any:
    return property(_MOVING[name])


class SeenFields:
    """The fields of a request as exits see it."""

    __slots__ = ()

    id: str = _made("id")
    seq: Seq = _there("seq")
    name: str = _there("name")
    name_given: bool = _there("name_given")
    owner: str = _there("owner")
    group: str = _there("group")
    account: str | None = _there("account")
    project: str | None = _made("project")
    queue: str = _there("queue")
    submitted: Instant = _there("submitted")
    cpu: int | None = _made("cpu")
    memory: int | None = _made("memory")
    pes: int = _there("pes")
    wall: int | None = _made("wall")
    priority: int | None = _there("priority")
    attributes: tuple[str, ...] = _there("attributes")
    arguments: tuple[str, ...] = _made("arguments")
    array: str | None = _made("array")
    index: int | None = _made("index")
    state: str = _moving("state")
    date_in_queue: Instant = _moving("date_in_queue")
    started: Instant | None = _moving("started")
    count: int = _moving("count")
    consumables: Mapping[str, int] = _moving("consumables")


class Seen(SeenFields, Struct, dict=True, eq=False):
    """A request as exits see it (`ports.RequestView`): read only. What is made of it is made when it is first
    read, what the pass may change each time. Of one request a pass makes but one (`seen`). (A Struct: a pass
    makes dozens.)"""

    _request: Request
    _draft: Proposal

    @staticmethod
    def _lacks(name: str) -> str:
        """What is said of a field that it has not. (With ``__getattr__`` all that it has would be dear.)"""
        return f"a request has no {name}; it has {', '.join(FIELDS)}"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a request is read only")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and self._request.seq == other._request.seq

    def __hash__(self) -> int:
        return hash(self._request.seq)

    def __repr__(self) -> str:
        return f"<request {self.id} {self.name} of {self.owner}>"


def seen(request: Request, draft: Proposal) -> Seen:
    """The request as exits see it in this pass."""
    sights, seq = draft.sights, request.seq
    found = sights.get(seq)
    if found is None or found._request is not request:
        found = Seen(request, draft)
        if len(sights) < SIGHTS:
            sights[seq] = found
    return found


class Handed(Seen, eq=False):
    """A request as submit exits see it: with its script, as text, the first `SEEN_SCRIPT` bytes of it."""

    _bytes: bytes

    @property
    def script(self) -> str:
        """What it runs."""
        return self._bytes[:SEEN_SCRIPT].decode("utf-8", "replace")


class Waiting:
    """Waiting requests chosen by queue, owner, group or name (`ports.Selection`): a mask over the columns,
    made when it is first read."""

    __slots__ = ("_asked", "_draft", "_found")

    def __init__(self, draft: Proposal, asked: Mapping[str, str]) -> None:
        self._draft, self._asked = draft, asked
        self._found: list[tuple[Columns, Ints]] | None = None

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self._rows())

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[RequestView]:
        requests = self._draft.site.requests
        return (seen(requests[seq], self._draft) for seq in self.seqs())

    def seqs(self) -> tuple[Seq, ...]:
        """Sequence numbers in the order of date in queue, then of sequence number."""
        parts = self._rows()
        if not parts:
            return ()
        if len(parts) == 1 and len(parts[0][1]) == 1:
            columns, rows = parts[0]
            return (columns.seq.item(rows.item()),)
        seqs = np.concatenate([columns.seq[rows] for columns, rows in parts])
        turns = np.concatenate([columns.turn[rows] for columns, rows in parts])
        dates = np.concatenate([self._dates(columns)[rows] for columns, rows in parts])
        return tuple(seqs[np.lexsort((turns, dates))].tolist())

    def reach(self) -> tuple[Seq, ...]:
        """Theirs, and those of requests chosen by the same words that wait for others: a chain of requests
        gets no older than a burst of them (`redate`)."""
        awaiting = self._draft.awaiting
        mine = awaiting.get(self._asked["owner"], []) if "owner" in self._asked else chain(*awaiting.values())
        asked = self._asked.items()
        chosen = [r.seq for r in mine if all(getattr(r, key) == value for key, value in asked)]
        return self.seqs() + tuple(sorted(chosen))

    def _dates(self, columns: Columns) -> Ints:
        return self._draft.dates(columns.request(0).queue)

    def _rows(self) -> list[tuple[Columns, Ints]]:
        if self._found is None:
            wanted = self._wanted()
            self._found = []
            if None not in wanted.values():
                self._found = [part for part in self._parts(wanted) if len(part[1])]
        return self._found

    def _wanted(self) -> dict[str, int | None]:
        """Which number which column has of those chosen; None: nobody that waits has it."""
        numbers, asked = self._draft.site.numbers, self._asked
        owner, group, name = asked.get("owner"), asked.get("group"), asked.get("name")
        found: dict[str, int | None] = {}
        if owner is not None and group is not None:
            found["pair"] = numbers.pairs.known(f"{group}:{owner}")
        elif owner is not None:
            found["owner"] = numbers.owners.known(owner)
        elif group is not None:
            found["group"] = numbers.groups.known(group)
        if name is not None:
            found["name"] = numbers.names.known(name)
        return found

    def _parts(self, wanted: Mapping[str, int | None]) -> Iterator[tuple[Columns, Ints]]:
        pair = wanted.get("pair")
        for queue, columns in self._draft.site.waiting.items():
            if not len(columns) or self._asked.get("queue", queue) != queue:
                continue
            if pair is not None and not _count(columns, pair):
                continue
            mask = np.ones(len(columns), dtype=bool) if not wanted else None
            for key, number in wanted.items():
                equal = getattr(columns, key) == number
                mask = equal if mask is None else mask & equal
            assert mask is not None
            if gone := self._draft.gone(queue):
                mask[gone] = False
            yield columns, mask.nonzero()[0]


def _count(columns: Columns, pair: int) -> int:
    """How many rows a pair of owner and group has."""
    counts = columns.by_pair()
    return counts.item(pair) if pair < len(counts) else 0


_PLAIN = (str, int, float, bool, tuple, type(None))


class ReadOnly:
    """Settings as exits see them: to be read, not written. Raises AttributeError on writing."""

    __slots__ = ("_node",)

    def __init__(self, node: Any) -> None:
        object.__setattr__(self, "_node", node)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._node, name)
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, dict):
            return MappingProxyType(
                {k: v if isinstance(v, _PLAIN) else ReadOnly(v) for k, v in value.items()}
            )
        return value if callable(value) else ReadOnly(value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"exits read settings and do not change them: {name}")


class SiteView:
    """The site as exits see it in this pass (`ports.PassView`), what the pass has decided so far included."""

    def __init__(self, draft: Proposal) -> None:
        self._draft = draft
        self.now = draft.now
        self.shift = draft.site.shift.current
        self._running: list[Request] | None = None
        self._seen = 0  # so many of those this pass has chosen are among them
        self._shown: list[RequestView] = []

    @property
    def site(self) -> Site:
        """The site itself: what the clock and the shifts are read from."""
        return self._draft.site

    @property
    def version(self) -> tuple[int, str]:
        """The same as long as nothing that this shows becomes another, but who is ahead of whom."""
        return self._draft.proposals, self._draft.asked

    @property
    def settings(self) -> ReadOnly:
        """All settings, read only."""
        return ReadOnly(self._draft.site.settings)

    @property
    def machine(self) -> Machine:
        """PEs and memory (bytes) of the machine, as set or found."""
        site = self._draft.site
        memory = site.settings.machine.memory
        return Machine(site.pes(), memory if memory is not None else site.found.memory)

    def queue(self, name: str) -> ReadOnly:
        """The settings of a queue, read only. Raises KeyError."""
        return ReadOnly(self._draft.site.settings.queues[name])

    def waiting(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Selection:  # fmt: skip
        """Queued requests that this pass has not chosen, narrowed by what is given."""
        asked = {"queue": queue, "owner": owner, "group": group, "name": name}
        return Waiting(self._draft, {key: value for key, value in asked.items() if value is not None})

    def running(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Sequence[RequestView]:  # fmt: skip
        """Started requests, and those this pass has chosen, narrowed by what is given."""
        draft, running = self._draft, self._all_running()
        if queue is owner is group is name is None:
            shown = self._shown
            if len(shown) < len(running):
                shown += [seen(r, draft) for r in running[len(shown) :]]
            return shown.copy()
        return [
            seen(r, draft) for r in running
            if (queue is None or r.queue == queue) and (owner is None or r.spec.owner == owner)
            and (group is None or r.spec.group == group) and (name is None or r.spec.name == name)
        ]  # fmt: skip

    def _all_running(self) -> Sequence[Request]:
        found, started = self._running, self._draft.started
        if found is None:
            found = self._running = [r for r in self._draft.site.started.values() if r.state in STARTED]
        if self._seen < len(started):
            found += started[self._seen :]
            self._seen = len(started)
        return found

    def ahead(self, request: RequestView) -> Sequence[tuple[RequestView, Answer | None]]:
        """Candidates of its queue offered before it in this pass, with their answers. None: left to the
        standard rules, which started it (it is in ``running`` then) or kept it back."""
        offered = self._draft.offered.get(request.queue, [])
        seq = request.seq
        for place, (other, _) in enumerate(reversed(offered)):
            if other.seq == seq:
                return offered[: len(offered) - place - 1]
        return offered

    def usage(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Decayed use as a fraction of the whole, running and committed use included."""
        return self._draft.ledger.usage(group, owner)

    def share(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Entitlement as a fraction of the whole; a user's is his part of his group's."""
        return self._draft.ledger.share(group, owner)

    def stock_shrpri(self, owner: str | None, group: str) -> float:
        """What the stock share rule gives a user in a group; without a user the group."""
        draft = self._draft
        return draft.stocks_of(draft.asked).value(owner, group)
