"""The working copy of one pass: what was proposed so far, and the view of it that user exits are handed.

Nothing else in a pass is mutable; the site is only read. Every stage sees what earlier stages proposed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from nqspy.core.ledger import Ledger
from nqspy.model.actions import Action, Hold, Move, Redate, Requeue, Resume, Suspend
from nqspy.model.columns import Columns, Ints
from nqspy.model.ids import Instant, Seq
from nqspy.model.machine import Machine
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import STARTED, Request, State, Used, finite
from nqspy.model.site import Site
from nqspy.ports import Answer, Exits, RequestView, Selection, View


@dataclass(slots=True)
class Choice:
    """A request that this pass starts, past the limits if ``forced``, and what its start brings about."""

    request: Request
    forced: bool = False
    follow: list[Action] = field(default_factory=list)


class Draft:
    """Proposals of one pass over ``site`` at ``now``.

    ``free``: PEs not given yet; ``chosen``: starts in order; ``own`` and ``closing``: reasons so far;
    ``offered``: candidates offered to jobselect, by queue; ``short``: some request waits only for a PE;
    ``resumed``: suspended requests that go on; ``shut``: why queues start nothing in this pass, by name, and
    ``barred``: why none does.
    """

    def __init__(self, site: Site, now: Instant, exits: Exits, samples: Mapping[Seq, Used]) -> None:
        self.site, self.now, self.exits, self.samples = site, now, exits, samples
        self.held_pes = {pe for r in site.started.values() if not r.parked for pe in r.pes}
        self.held_pes.update(site.offline())
        pes = site.pes()
        self.free = pes - sum(1 for pe in self.held_pes if pe < pes)
        self.before: list[Action] = []
        self.chosen: list[Choice] = []
        self.after: list[Action] = []
        self.own: dict[Seq, Reason] = {}
        self.closing: dict[str, Reason] = {}
        self.offered: defaultdict[str, list[tuple[RequestView, Answer | None]]] = defaultdict(list)
        self.short = False
        self.resumed: list[Request] = []
        self.shut: dict[str, Reason] = {}
        self.barred: Reason | None = None
        self.priorities: dict[tuple[str, str], float] = {}
        self._dates: dict[str, Ints] = {}
        self._gone: dict[str, list[int]] = {}
        self._started: set[Seq] = set()
        self._leaving: set[Seq] = set()

    @cached_property
    def ledger(self) -> Ledger:
        """Use and entitlement, starts of this pass included; made when first asked for."""
        return Ledger(self.site, self.now, self.samples, (choice.request for choice in self.chosen))

    @cached_property
    def view(self) -> View:
        """What exits see of this draft."""
        return SiteView(self)

    # ------------------------------------------------------------ proposals

    def choose(self, request: Request, forced: bool = False) -> Choice:
        """Proposes a start: takes PEs, debits its group. A new round of share values begins."""
        choice = Choice(request, forced)
        if "ledger" in self.__dict__:
            self.ledger.commit(request)
        self.chosen.append(choice)
        self.free -= request.spec.ask.pes
        self._started.add(request.seq)
        self._gone.setdefault(request.queue, []).append(request.slot)
        self.priorities.clear()
        return choice

    def follow(self, choice: Choice, actions: Iterable[Action]) -> list[Request]:
        """Adds what exits want done after a choice; returns the waiting requests that changed by it."""
        changed: list[Request] = []
        for action in actions:
            if isinstance(action, Redate):
                seqs = tuple(seq for seq in action.seqs if seq not in self._started)
                if seqs:
                    action = replace(action, seqs=seqs, cause=choice.request.seq)
                    choice.follow.append(action)
                    changed += self._redate(seqs, action.date)
                continue
            choice.follow.append(action)
            if isinstance(action, (Hold, Move)):
                changed += self._withdraw(action)
        return changed

    def _redate(self, seqs: Sequence[Seq], date: Instant) -> list[Request]:
        requests = self.site.requests
        waiting = [r for seq in seqs if (r := requests.get(seq)) is not None and r.slot >= 0]
        for queue in {request.queue for request in waiting}:
            if queue not in self._dates:
                self._dates[queue] = self.site.waiting[queue].date.copy()
            self._dates[queue][[r.slot for r in waiting if r.queue == queue]] = date
        return waiting

    def _withdraw(self, action: Hold | Move) -> list[Request]:
        request = self.site.requests.get(action.seq)
        if request is None or request.slot < 0 or request.slot in self.gone(request.queue):
            return []
        self._gone.setdefault(request.queue, []).append(request.slot)
        text = action.text if isinstance(action, Hold) else f"it is moved to queue {action.queue}"
        who = action.who if isinstance(action, Hold) else f"queue {request.queue}"
        self.own[request.seq] = Reason(ReasonCode.HELD, who, text)
        return [request]

    # ------------------------------------------------------------ running requests give way, and come back

    def running(self) -> list[Request]:
        """Requests that run and nobody has asked to end, in the order of their starts: those of which a stage
        may say that they give way."""
        going = (r for r in self.site.started.values() if r.state is State.RUNNING and not r.ending)
        return sorted((r for r in going if r.seq not in self._leaving), key=_by_start)

    def parked(self) -> list[Request]:
        """Suspended requests whose PEs others may have meanwhile, in the order of their starts."""
        return sorted((r for r in self.site.started.values() if r.parked and not r.ending), key=_by_start)

    def suspend(self, request: Request, who: str, text: str, *, parked: bool, page_out: bool = False) -> None:
        """Proposes to suspend a running request; its PEs are free at once if it is ``parked``."""
        self.before.append(Suspend(request.seq, request.attempt, who, text, parked, page_out))
        self._leaving.add(request.seq)
        if parked:
            freed = {pe for pe in request.pes if pe < self.site.pes()}.difference(self.site.offline())
            self.held_pes -= freed
            self.free += len(freed)

    def requeue(self, request: Request, who: str, text: str) -> None:
        """Proposes to end a running request, which then waits again; its PEs are free once it has ended."""
        self.before.append(Requeue(request.seq, request.attempt, who, text))
        self._leaving.add(request.seq)

    def keep(self, request: Request, reason: Reason) -> None:
        """A suspended request stays so in this pass, for this reason."""
        self.own[request.seq] = reason

    def resume(self, request: Request, who: str) -> None:
        """Proposes that a suspended request goes on, on the PEs it had."""
        self.before.append(Resume(request.seq, request.attempt, who))
        self.resumed.append(request)
        if request.parked:
            self.take(request.pes)

    def take(self, pes: Iterable[int]) -> None:
        """These PEs are not given to anybody else in this pass."""
        taken = {pe for pe in pes if pe < self.site.pes()} - self.held_pes
        self.held_pes |= taken
        self.free -= len(taken)

    # ------------------------------------------------------------ what stands now

    def dates(self, queue: str) -> Ints:
        """Dates in queue of the rows of a queue, re-datings of this pass included."""
        found = self._dates.get(queue)
        return found if found is not None else self.site.waiting[queue].date

    def gone(self, queue: str) -> list[int]:
        """Rows of a queue that wait no more: chosen in this pass, held or moved by it."""
        return self._gone.get(queue, [])

    def is_chosen(self, seq: Seq) -> bool:
        """Whether this pass starts it."""
        return seq in self._started

    def date_of(self, request: Request) -> Instant:
        """Date in queue of one request, re-datings of this pass included."""
        if request.slot >= 0 and request.queue in self._dates:
            return Instant(int(self._dates[request.queue][request.slot]))
        return request.date_in_queue

    def waiting(self) -> Iterator[tuple[Queue, Columns]]:
        """Queues that hold waiting requests, in the order in which they are served: priority, then name."""
        queues = self.site.settings.queues
        served = [(queues[name], held) for name, held in self.site.waiting.items() if name in queues and held]
        return iter(sorted(served, key=lambda pair: (-pair[0].priority, pair[0].name)))


def _by_start(request: Request) -> tuple[int, Seq]:
    return (request.started or 0, request.seq)


# ---------------------------------------------------------------- the view of exits


_FIELDS: dict[str, Callable[[Request, Draft], Any]] = {
    "id": lambda r, d: d.site.id_of(r.seq),
    "seq": lambda r, d: r.seq,
    "name": lambda r, d: r.spec.name,
    "name_given": lambda r, d: r.spec.name_given,
    "owner": lambda r, d: r.spec.owner,
    "group": lambda r, d: r.spec.group,
    "account": lambda r, d: r.spec.account,
    "queue": lambda r, d: r.queue,
    "state": lambda r, d: State.RUNNING.value if d.is_chosen(r.seq) else r.state.value,
    "date_in_queue": lambda r, d: d.date_of(r),
    "submitted": lambda r, d: r.submitted,
    "started": lambda r, d: d.now if d.is_chosen(r.seq) else r.started,
    "cpu": lambda r, d: finite(r.spec.ask.cpu_wanted()),
    "memory": lambda r, d: finite(r.spec.ask.memory_wanted()),
    "pes": lambda r, d: r.spec.ask.pes,
    "wall": lambda r, d: finite(r.spec.ask.wall),
    "priority": lambda r, d: r.spec.priority,
    "attributes": lambda r, d: r.spec.attributes,
}


FIELDS: tuple[str, ...] = tuple(_FIELDS)
"""What exits see of a request."""


class Seen:
    """A request as exits see it (`ports.RequestView`): read only, each field looked up when it is read."""

    __slots__ = ("_draft", "_request")

    id: str
    seq: Seq
    name: str
    name_given: bool
    owner: str
    group: str
    account: str | None
    queue: str
    state: str
    date_in_queue: Instant
    submitted: Instant
    started: Instant | None
    cpu: int | None
    memory: int | None
    pes: int
    wall: int | None
    priority: int | None
    attributes: tuple[str, ...]

    def __init__(self, request: Request, draft: Draft) -> None:
        self._request, self._draft = request, draft

    def __getattr__(self, name: str) -> Any:
        try:
            read = _FIELDS[name]
        except KeyError:
            raise AttributeError(f"a request has no {name}; it has {', '.join(_FIELDS)}") from None
        return read(self._request, self._draft)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and self._request.seq == other._request.seq

    def __hash__(self) -> int:
        return hash(self._request.seq)

    def __repr__(self) -> str:
        return f"<request {self.id} {self.name} of {self.owner}>"


class Waiting:
    """Waiting requests chosen by queue, owner, group or name (`ports.Selection`): a mask over the columns,
    made when it is first read."""

    __slots__ = ("_asked", "_draft", "_found")

    def __init__(self, draft: Draft, asked: Mapping[str, str]) -> None:
        self._draft, self._asked = draft, asked
        self._found: list[tuple[Columns, Ints]] | None = None

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self._rows())

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[RequestView]:
        requests = self._draft.site.requests
        return (Seen(requests[seq], self._draft) for seq in self.seqs())

    def seqs(self) -> tuple[Seq, ...]:
        """Sequence numbers in the order of date in queue, then of sequence number."""
        parts = self._rows()
        if not parts:
            return ()
        if len(parts) == 1 and len(parts[0][1]) == 1:
            columns, rows = parts[0]
            return (int(columns.seq[rows[0]]),)
        seqs = np.concatenate([columns.seq[rows] for columns, rows in parts])
        dates = np.concatenate([self._dates(columns)[rows] for columns, rows in parts])
        return tuple(seqs[np.lexsort((seqs, dates))].tolist())

    def _dates(self, columns: Columns) -> Ints:
        return self._draft.dates(columns.request(0).queue)

    def _rows(self) -> list[tuple[Columns, Ints]]:
        if self._found is None:
            numbers, asked = self._draft.site.numbers, self._asked
            known = {"owner": numbers.owners, "group": numbers.groups, "name": numbers.names}
            wanted = {key: known[key].known(asked[key]) for key in known if key in asked}
            self._found = []
            if None not in wanted.values():
                self._found = [part for part in self._parts(wanted) if len(part[1])]
        return self._found

    def _parts(self, wanted: Mapping[str, int | None]) -> Iterator[tuple[Columns, Ints]]:
        for queue, columns in self._draft.site.waiting.items():
            if len(columns) and self._asked.get("queue", queue) == queue:
                mask = np.ones(len(columns), dtype=bool) if not wanted else None
                for key, number in wanted.items():
                    equal = getattr(columns, key) == number
                    mask = equal if mask is None else mask & equal
                assert mask is not None
                if gone := self._draft.gone(queue):
                    mask[gone] = False
                yield columns, mask.nonzero()[0]


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
    """The site as exits see it in this pass (`ports.View`), what the pass has decided so far included."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.now = draft.now
        self.shift = draft.site.shift.current
        self._running: list[RequestView] = [
            Seen(r, draft) for r in draft.site.started.values() if r.state in STARTED
        ]
        self._seen = 0

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
        draft = self._draft
        self._running += [Seen(choice.request, draft) for choice in draft.chosen[self._seen :]]
        self._seen = len(draft.chosen)
        return [
            r for r in self._running
            if (queue is None or r.queue == queue) and (owner is None or r.owner == owner)
            and (group is None or r.group == group) and (name is None or r.name == name)
        ]  # fmt: skip

    def ahead(self, request: RequestView) -> Sequence[tuple[RequestView, Answer | None]]:
        """Candidates of its queue offered before it in this pass, with their answers. None: left to the
        standard rules, which started it (it is in ``running`` then) or kept it back."""
        offered = self._draft.offered.get(request.queue, [])
        for place, (other, _) in enumerate(reversed(offered)):
            if other.seq == request.seq:
                return offered[: len(offered) - place - 1]
        return offered

    def usage(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Decayed use as a fraction of the whole, running and committed use included."""
        return self._draft.ledger.usage(group, owner)

    def share(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Entitlement as a fraction of the whole; a user's is his part of his group's."""
        return self._draft.ledger.share(group, owner)
