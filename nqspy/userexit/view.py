"""The site as an exit sees it: the view of a pass, read only and never interrupted half-way; and the
submitted request. Editors complete these types, and mypy checks them."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NoReturn, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr

from nqspy.model.ids import Instant
from nqspy.model.machine import Machine
from nqspy.model.queues import Queue
from nqspy.model.site import Settings
from nqspy.ports import Answer, PassView, RequestView, Selection

Shield = Callable[[Callable[..., Any]], Callable[..., Any]]
T = TypeVar("T")


class SubmittedRequest(RequestView, Protocol):
    """A request as the exit ``submit`` sees it: with the first 64 KiB of its script as text."""

    script: str


class _Lazy:
    """A field of a view that is made at its first use."""

    __slots__ = ("_make", "_name")

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make, self._name = make, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, view: Any, owner: type) -> Any:
        if view is None:
            return self
        made = view.__dict__[self._name] = self._make(view)
        return made


def _called(name: str) -> Any:
    """Return a field that is a method of the pass's view."""
    return _Lazy(lambda view: view._shield(getattr(view._site, name)))


def _shown(name: str) -> Any:
    """Return a field that is a field of the pass's view."""
    return _Lazy(lambda view: view._shield(getattr)(view._site, name, None))


def _by_clock(name: str) -> Any:
    """Return a field that is the result of a function of `clock`."""
    return _Lazy(lambda view: view._shield(getattr(view._clock, name))(view._site.site, view._site.now))


class ViewFields:
    """Fields of the site. ``local``: instant of the pass in the site's time zone; ``shift_ends``: the instant
    (ms) at which another shift begins; None: none does."""

    __slots__ = ()

    shift: str | None = _shown("shift")
    machine: Machine = _shown("machine")
    settings: Settings = _shown("settings")
    local: datetime = _by_clock("local_time")
    shift_ends: Instant | None = _by_clock("end_of_shift")
    _queue: Callable[..., Queue] = _called("queue")
    _waiting: Callable[..., Selection] = _called("waiting")
    _running: Callable[..., Sequence[RequestView]] = _called("running")
    _ahead: Callable[..., Sequence[tuple[RequestView, Answer | None]]] = _called("ahead")
    _usage: Callable[..., float] = _called("usage")
    _share: Callable[..., float] = _called("share")
    _stock_shrpri: Callable[..., float] = _called("stock_shrpri")


class View(ViewFields, Struct, dict=True, eq=False):
    """The site in this pass, with the decisions of the pass so far. Read only.

    ``now``: instant of the pass; ``shift``: name of the shift in force; ``machine``: settings of the machine;
    ``settings``: of the whole site (an exit's own are its ``setting(...).value``); ``exit``: name of the exit
    that uses the view (``answer.who == view.exit``: an answer of its own); ``_aheads``: number of its calls
    of `ahead`; ``_clock``: the module `clock`, which loads parts of the engine that a file alone does not
    need. (A Struct: a pass makes several.)
    """

    _site: PassView
    exit: str
    _shield: Shield
    _made: dict[Callable[..., Any], tuple[object, Any]] = field(default_factory=dict)
    _aheads: int = 0
    _clock: Any = None

    @staticmethod
    def _lacks(name: str) -> str:
        """Return the text about a missing name. (``__getattr__`` would slow all other fields down.)"""
        return f"a view has no {name}"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("the view is read only")

    __repr__ = object.__repr__

    @property
    def now(self) -> Instant:
        """Instant of the pass, ms."""
        return self._site.now

    def at(self, time: str) -> Instant:
        """Return the first instant (ms) later than now at which the site's clock shows ``time`` ("06:00").
        Raises ValueError, TypeError."""
        found: Instant = self._clock.next_at(time, self._site.site.timezone, self._site.now)
        return found

    def once(self, make: Callable[["View"], T]) -> T:
        """Return ``make(view)``, computed once for all calls of this exit until the pass changes something.
        ``make`` must be the same function each time and read only the view and settings; callers must not
        change its result."""
        version, aheads = getattr(self._site, "version", None), self._aheads
        stored = self._made.get(make)
        if stored is not None and version is not None and stored[0] == version:
            result: T = stored[1]
            return result
        made = make(self)
        if self._aheads == aheads:  # what is ahead differs for each candidate
            self._made[make] = version, made
        return made

    def queue(self, name: str) -> Queue:
        """Return the settings of a queue. Raises KeyError if there is no such queue."""
        return self._queue(name)

    def waiting(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Selection:  # fmt: skip
        """Return the queued requests that this pass has not chosen and that have these values, by date."""
        return self._waiting(queue=queue, owner=owner, group=group, name=name)

    def running(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Sequence[RequestView]:  # fmt: skip
        """Return the started requests, and those chosen by this pass, that have these values."""
        return self._running(queue=queue, owner=owner, group=group, name=name)

    def ahead(self, request: RequestView) -> Sequence[tuple[RequestView, Answer | None]]:
        """Return the candidates of its queue offered before it in this pass, each with the exits' answer."""
        force_setattr(self, "_aheads", self._aheads + 1)
        return self._ahead(request)

    def usage(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Return decayed use of a group or owner as a fraction of all, with running and chosen requests."""
        return self._usage(group=group, owner=owner)

    def share(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Return the entitlement of a group (or an owner, a part of its group's) as a fraction of all."""
        return self._share(group=group, owner=owner)

    def stock_shrpri(self, owner: str | None, group: str) -> float:
        """Return the share term by the stock rule (``set global share_rule``), from 0 to 1: of a user in a
        group, or of the group if ``owner`` is None."""
        return self._stock_shrpri(owner, group)
