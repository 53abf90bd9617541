"""Read-only views of a pass for user exits: requests, selections of requests, the site."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import chain
from operator import and_, attrgetter
from types import MappingProxyType
from typing import Any, NoReturn, cast

import numpy as np
from msgspec import Struct

from nqspy.core.draft import Choice, Draft
from nqspy.model.columns import Columns, Ints
from nqspy.model.ids import Seq, array_of, index_of
from nqspy.model.machine import Machine
from nqspy.model.options import OPTIONS
from nqspy.model.requests import STARTED, Request, State
from nqspy.model.site import Site
from nqspy.model.specs import shown_part
from nqspy.ports import Answer, PassView, RequestView, Selection


def _array(view: "ExitView") -> str | None:
    """Return the identifier of the array that the request is, or is an index of; None: no array."""
    request = view._request
    array = request.seq if request.array is not None else array_of(request.seq)
    return None if array is None else view._draft.site.id_of(array)


_SHOWN = {option.shown: shown_part(option) for option in OPTIONS if option.shown}
_DIRECT: Mapping[str, str] = {
    "seq": "seq",
    "owner": "spec.owner",
    "name_given": "spec.name_given",
    "queue": "queue",
    "submitted": "submitted",
} | {name: f"spec.{path}" for name, (path, convert) in _SHOWN.items() if convert is None}
"""Fields that are attributes of the request, by name, with their paths."""


def _value(path: str, convert: Callable[[Any], Any]) -> Callable[["ExitView"], Any]:
    read = attrgetter(f"_request.spec.{path}")
    return lambda s: convert(read(s))


_COMPUTED: dict[str, Callable[["ExitView"], Any]] = {
    "id": lambda s: s._draft.site.id_of(s._request.seq),
    "project": lambda s: s._request.spec.project,
    "arguments": lambda s: _bounded(s._request.spec.args),
    "array": _array,
    "index": lambda s: index_of(s._request.seq),
}
"""Fields that are computed, and do not change within a pass."""

_CHANGING: dict[str, Callable[["ExitView"], Any]] = {
    "state": lambda s: (State.RUNNING if s._request.seq in s._draft.starting else s._request.state)._value_,
    "date_in_queue": lambda s: s._draft.date_of(s._request),
    "started": lambda s: s._draft.now if s._request.seq in s._draft.starting else s._request.started,
    "count": lambda s: s._draft.remaining_of(s._request),
} | {name: _value(path, convert) for name, (path, convert) in _SHOWN.items() if convert is not None}
"""Fields computed at each access: a pass or an exit may change the value, or it is quickly computed."""

SUBMIT_FIELD = "script"
"""The field that only submit exits see, in addition to `FIELDS`."""
SHOWN_ARGUMENTS = 65_536
"""Most characters that exits see of all arguments of a request together."""
SHOWN_SCRIPT = 65_536
"""Most bytes of a script that submit exits see: its beginning."""


def _bounded(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first arguments, up to `SHOWN_ARGUMENTS` characters."""
    size = 0
    for place, word in enumerate(words):
        size += len(word) + 1
        if size > SHOWN_ARGUMENTS:
            return words[:place]
    return words


FIELDS: tuple[str, ...] = (*_DIRECT, *_COMPUTED, *_CHANGING)
"""The fields of a request that exits see."""

MOST_VIEWS = 10_000
"""Most views of requests that a pass keeps."""


class ExitViewFields:
    """The fields of a request that exits see, as properties; `ports.RequestView` has their types."""

    __slots__ = ()
    vars().update({name: property(attrgetter(f"_request.{path}")) for name, path in _DIRECT.items()})
    vars().update({name: cached_property(compute) for name, compute in _COMPUTED.items()})
    vars().update({name: property(compute) for name, compute in _CHANGING.items()})


class ExitView(ExitViewFields, Struct, dict=True, eq=False):
    """Read-only view of a request for exits (`ports.RequestView`); a pass makes one for each request.

    Fields of `_COMPUTED` are computed when they are first read, those of `_CHANGING` at each access.
    """

    _request: Request
    _draft: Draft

    @staticmethod
    def _lacks(name: str) -> str:
        """Return the error text for a missing field. (``__getattr__`` would slow all other fields down.)"""
        return f"a request has no {name}; it has {', '.join(FIELDS)}"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a request is read only")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExitView) and self._request.seq == other._request.seq

    def __hash__(self) -> int:
        return hash(self._request.seq)

    def __repr__(self) -> str:
        request = self._request
        return f"<request {self._draft.site.id_of(request.seq)} {request.name} of {request.owner}>"


def request_view(request: Request, draft: Draft) -> RequestView:
    """Return the view of a request for exits in this pass."""
    views, seq = draft.views, request.seq
    view: Any = views.get(seq)
    if view is None or view._request is not request:
        view = ExitView(request, draft)
        if len(views) < MOST_VIEWS:
            views[seq] = view
    shown: RequestView = view
    return shown


class SubmitView(ExitView, eq=False):
    """View of a request for submit exits: with the first `SHOWN_SCRIPT` bytes of its script, as text."""

    _bytes: bytes

    @property
    def script(self) -> str:
        """First `SHOWN_SCRIPT` bytes of the request's script, as text."""
        return self._bytes[:SHOWN_SCRIPT].decode("utf-8", "replace")


def submit_view(request: Request, draft: Draft, script: bytes) -> RequestView:
    """Return the view of an arriving request for submit exits."""
    return cast(RequestView, SubmitView(request, draft, script))


class Waiting:
    """Selection of waiting requests by queue, owner, group or name (`ports.Selection`), found when used."""

    __slots__ = ("_asked", "_draft", "_found")

    def __init__(self, draft: Draft, asked: Mapping[str, str]) -> None:
        self._draft, self._asked = draft, asked
        self._found: list[tuple[str, Columns, Ints]] | None = None

    def __len__(self) -> int:
        return sum(len(rows) for _, _, rows in self._rows())

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[RequestView]:
        requests = self._draft.site.requests
        return (request_view(requests[seq], self._draft) for seq in self.seqs())

    def seqs(self) -> tuple[Seq, ...]:
        """Return the sequence numbers of the selection by date in queue, then by sequence number."""
        parts = self._rows()
        if len(parts) == 1 and len(parts[0][2]) == 1:  # mostly the request that the exit is asked about
            return (parts[0][1].seq.item(parts[0][2].item()),)
        keys = [
            (each.seq[rows], each.turn[rows], self._draft.dates(queue)[rows]) for queue, each, rows in parts
        ]
        if not keys:
            return ()
        seqs, turns, dates = keys[0] if len(keys) == 1 else map(np.concatenate, zip(*keys, strict=True))
        return tuple(seqs[np.lexsort((turns, dates))].tolist())

    def reach(self) -> tuple[Seq, ...]:
        """Return the sequence numbers of the selection, and of requests with the same values that wait for
        other requests. `redate` changes all, so that a chain of requests gains nothing over a burst."""
        awaiting = self._draft.awaiting
        mine = awaiting.get(self._asked["owner"], []) if "owner" in self._asked else chain(*awaiting.values())
        asked = self._asked.items()
        chosen = [r.seq for r in mine if all(getattr(r, key) == value for key, value in asked)]
        return self.seqs() + tuple(sorted(chosen))

    def _rows(self) -> list[tuple[str, Columns, Ints]]:
        """Return the queues with rows of the selection, each with its columns and these rows."""
        if self._found is not None:
            return self._found
        numbers, asked, found = self._draft.site.numbers, self._asked, list[tuple[str, Columns, Ints]]()
        owner, group, name = asked.get("owner"), asked.get("group"), asked.get("name")
        wanted: dict[str, int | None] = {}  # the number to compare each column with; None: no request has it
        if owner is not None and group is not None:
            wanted["pair"] = numbers.pairs.known(f"{group}:{owner}")
        elif owner is not None:
            wanted["owner"] = numbers.owners.known(owner)
        elif group is not None:
            wanted["group"] = numbers.groups.known(group)
        if name is not None:
            wanted["name"] = numbers.names.known(name)
        pair, waiting = wanted.get("pair"), self._draft.site.waiting
        for queue, columns in waiting.items() if None not in wanted.values() else ():
            if not len(columns) or asked.get("queue", queue) != queue:
                continue
            if pair is None or columns.has_pair(pair):
                equal = [getattr(columns, key) == number for key, number in wanted.items()]
                mask = reduce(and_, equal) if equal else np.ones(len(columns), dtype=bool)
                if removed := self._draft.removed(queue):
                    mask[removed] = False
                if len(rows := mask.nonzero()[0]):
                    found.append((queue, columns, rows))
        self._found = found
        return found


_PLAIN = (str, int, float, bool, tuple, type(None))


class ReadOnly:
    """Read-only view of settings for exits. Raises AttributeError on writing."""

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
    """Read-only view of the site for exits in this pass (`ports.PassView`), with its decisions so far."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.now = draft.now
        self.shift = draft.site.shift.current
        self._running: list[Request] | None = None
        self._listed = 0  # number of this pass's starts that are in `_running`
        self._shown: list[RequestView] = []

    @property
    def site(self) -> Site:
        """The site itself, from which the clock and the shifts are read."""
        return self._draft.site

    @property
    def version(self) -> tuple[int, str]:
        """Value that changes whenever anything visible here changes, except the order of candidates."""
        return self._draft.proposals, self._draft.asked

    @property
    def settings(self) -> ReadOnly:
        """All settings, read only."""
        return ReadOnly(self._draft.site.settings)

    @property
    def machine(self) -> Machine:
        """PEs and memory (bytes) of the machine, as set or as found."""
        site = self._draft.site
        memory = site.settings.machine.memory
        return Machine(site.pes(), memory if memory is not None else site.found.memory)

    def queue(self, name: str) -> ReadOnly:
        """Return the settings of a queue, read only. Raises KeyError for an unknown queue."""
        return ReadOnly(self._draft.site.settings.queues[name])

    def waiting(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Selection:  # fmt: skip
        """Return the requests with these values (None: any) that are queued, after the pass's decisions."""
        asked = {"queue": queue, "owner": owner, "group": group, "name": name}
        return Waiting(self._draft, {key: value for key, value in asked.items() if value is not None})

    def running(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Sequence[RequestView]:  # fmt: skip
        """Return started requests, this pass's starts included, with these values (None: any)."""
        draft, running, started = self._draft, self._running, self._draft.started
        if running is None:
            running = self._running = [r for r in draft.site.started.values() if r.state in STARTED]
        if self._listed < len(started):
            running += started[self._listed :]
            self._listed = len(started)
        if queue is owner is group is name is None:
            shown = self._shown
            if len(shown) < len(running):
                shown += [request_view(r, draft) for r in running[len(shown) :]]
            return shown.copy()
        if owner is not None:
            running = [request for request in running if request.spec.owner == owner]
        if queue is not None:
            running = [request for request in running if request.queue == queue]
        if group is not None:
            running = [request for request in running if request.spec.group == group]
        if name is not None:
            running = [request for request in running if request.spec.name == name]
        return [request_view(request, draft) for request in running]

    def ahead(self, request: RequestView) -> Sequence[tuple[RequestView, Answer | None]]:
        """Return the candidates of a request's queue that were offered before it in this pass, with the
        answers. None: left to the standard rules, which started it (it is in ``running``) or blocked it."""
        offered = self._draft.offered.get(request.queue, [])
        seq = request.seq
        for place, (other, _) in enumerate(reversed(offered)):
            if other.seq == seq:
                return offered[: len(offered) - place - 1]
        return offered

    def usage(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Return the decayed use of a group or owner as a fraction of all use, with use of running requests
        and the use expected of those that this pass starts."""
        return self._draft.ledger.usage(group, owner)

    def share(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Return the entitlement of a group or owner as a fraction of the whole; active users of a group have
        equal parts of it."""
        return self._draft.ledger.share(group, owner)

    def stock_shrpri(self, owner: str | None, group: str) -> float:
        """Return the share value (0 to 1) by ``set global share_rule`` of a user in a group, or (``owner``
        None) of the group, in the domain for which exits are asked now."""
        return self._draft.ledger_of(self._draft.asked).stocks.value(owner, group)


def view_of(draft: Draft) -> PassView:
    """Return the view of a pass for exits."""
    if draft.view is None:
        draft.view = SiteView(draft)
    return draft.view


def elected(draft: Draft, choice: Choice, starts: Request) -> list[Request]:
    """Call the `elected` exits for the start of ``starts`` (``choice``), record the actions that they want in
    the draft, and return the waiting requests that these change."""
    if not draft.exits.has("elected"):
        return []
    return draft.follow(choice, draft.exits.elected(request_view(starts, draft), view_of(draft)))
