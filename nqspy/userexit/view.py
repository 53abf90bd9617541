"""What an exit gets to see of the site: the pass's view, read only, never interrupted half-way."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from nqspy.model.ids import Instant
from nqspy.ports import Answer, PassView, RequestView, Selection

Shield = Callable[[Callable[..., Any]], Callable[..., Any]]
Key = tuple[str | None, str | None, str | None, str | None]
"""By which queue, owner, group and name requests were chosen; None: by any."""

_METHODS = ("queue", "waiting", "running", "ahead", "usage", "share", "stock_shrpri")
_STEADY = ("queue", "waiting", "running")
"""What these give changes with settings or with the requests chosen; what all others give, with anything."""


class Reads:
    """What an exit looked at in one call: requests by these ``keys``; ``fleeting``: something that may be
    another at each moment."""

    __slots__ = ("fleeting", "keys")

    def __init__(self) -> None:
        self.keys: set[Key] = set()
        self.fleeting = False

    def begin(self) -> None:
        """A call begins."""
        self.keys.clear()
        self.fleeting = False

    def noting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method; whoever calls it looks at what is fleeting."""

        def call(*args: Any, **words: Any) -> Any:
            self.fleeting = True
            return method(*args, **words)

        return call


class View:
    """The site in this pass, with what the pass has decided so far. Read only.

    ``now``: the instant of the pass; ``shift``: name of the shift in force; ``machine``: settings of the
    machine; ``settings``: settings of the whole site (an exit's own are its ``setting(...).value``);
    ``exit``: the name of the exit that looks (``answer.who == view.exit``: an answer of its own); ``reads``:
    what it has looked at so far.
    """

    __slots__ = (
        *("exit", "machine", "reads", "settings", "shift"),
        *("_ahead", "_now", "_queue", "_running", "_share", "_stock_shrpri", "_usage", "_waiting"),
    )
    exit: str
    reads: Reads
    shift: str | None
    machine: Any
    settings: Any
    _now: Instant
    _queue: Callable[..., Any]
    _waiting: Callable[..., Selection]
    _running: Callable[..., Sequence[RequestView]]
    _ahead: Callable[..., Sequence[tuple[RequestView, Answer | None]]]
    _usage: Callable[..., float]
    _share: Callable[..., float]
    _stock_shrpri: Callable[..., float]

    def __init__(self, view: PassView, exit: str, shield: Shield) -> None:
        put = object.__setattr__
        put(self, "exit", exit)
        put(self, "_now", view.now)
        put(self, "reads", Reads())
        put(self, "shift", view.shift)
        for name in ("machine", "settings"):
            put(self, name, getattr(view, name, None))
        for name in _METHODS:
            if (method := getattr(view, name, None)) is not None:
                method = shield(method)
                put(self, f"_{name}", method if name in _STEADY else self.reads.noting(method))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("the view is read only")

    @property
    def now(self) -> Instant:
        """The instant of the pass."""
        self.reads.fleeting = True
        return self._now

    def queue(self, name: str) -> Any:
        """The settings of a queue. Raises KeyError."""
        return self._queue(name)

    def waiting(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Selection:  # fmt: skip
        """Requests in state queued that this pass has not chosen, by date; narrowed by what is given."""
        self.reads.keys.add((queue, owner, group, name))
        return self._waiting(queue=queue, owner=owner, group=group, name=name)

    def running(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Sequence[RequestView]:  # fmt: skip
        """Started requests, and those this pass has chosen; narrowed by what is given."""
        self.reads.keys.add((queue, owner, group, name))
        return self._running(queue=queue, owner=owner, group=group, name=name)

    def ahead(self, request: RequestView) -> Sequence[tuple[RequestView, Answer | None]]:
        """The candidates of its queue offered before it in this pass, with their answers."""
        return self._ahead(request)

    def usage(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Decayed use as a fraction of the whole, running and committed use included."""
        return self._usage(group=group, owner=owner)

    def share(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Entitlement as a fraction of the whole."""
        return self._share(group=group, owner=owner)

    def stock_shrpri(self, owner: str | None, group: str) -> float:
        """What the stock share rule (``set global share_rule``) gives a user in a group, in [0, 1]; without a
        user the group: what a site may scale."""
        return self._stock_shrpri(owner, group)
