"""The exits as the engine sees them (`ports.Exits`) when they run in a worker: their declarations are known
here, their answers are asked of the worker, with a deadline. After the deadline the standard rule is used."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from nqspy.core.no_exits import NoExits
from nqspy.core.views import FIELDS, SubmitView
from nqspy.decider import loading, messages, plans
from nqspy.decider.client import QUESTION, DeciderClient
from nqspy.model.actions import ExitFailure
from nqspy.model.errors import Refusal
from nqspy.model.ids import Seq
from nqspy.model.site import Site
from nqspy.ports import PassView, RequestView, SubmitAnswer, is_change

A = TypeVar("A", messages.SubmitAnswered, messages.RouteAnswered)

FRESH = 0.5
"""Real seconds for which received share terms are used."""


class RemoteExits(NoExits):
    """Implements ``ports.Exits`` in the daemon; jobselect and elected are called in the worker's passes only.
    ``refused``: why the last `reload` failed, or empty."""

    beside: Callable[[], None] | None = None
    """Loads the files in the background and then reloads; None: `reload` waits for them."""

    def __init__(self, client: DeciderClient) -> None:
        self._client = client
        self._failures: list[ExitFailure] = []
        self._shares: dict[tuple[str, str], float | None] = {}
        self._shares_at = -FRESH
        self.refused = ""

    # ------------------------------------------------------------ files and settings

    @property
    def problems(self) -> list[str]:
        """Return one line for each file that was left out when the exits were loaded."""
        return self._client.problems

    def begin(self, site: Site) -> None:
        """Apply the site's settings of exits, and forget failures."""
        self._failures = []
        self._client.begin(site)

    def has(self, hook: str) -> bool:
        """True if any exit that is switched on implements that hook."""
        return self._client.registry.has(hook)

    def declared(self) -> Mapping[str, Mapping[str, str]]:
        """Return the units of the settings that loaded exits declare: exit -> setting -> unit."""
        return self._client.registry.declared()

    def check_setting(self, exit: str, setting: str, text: str) -> None:
        """Raise BadValue if the loaded exit has no such setting, or if ``text`` is no value for it."""
        self._client.registry.check_setting(exit, setting, text)

    def reload(self) -> str:
        """Put the files in force that were loaded in the background, all or none; return a sentence. If none
        were (a shift asks), begin to load them. Raises Refusal with file and line."""
        if self._client.loading is None and self.beside is not None:
            self.beside()
            return ""
        try:
            text = loading.reload(self._client)
        except Refusal as refusal:
            self.refused = str(refusal)
            raise
        self.refused = ""
        return text

    def files(self) -> Mapping[str, bytes]:
        """Return the source text of each loaded exit, by its name without ``.py``."""
        return {source.path.stem: source.text for source in self._client.sources}

    def listing(self) -> list[dict[str, Any]]:
        """Return a row for each exit; its ``left_out`` says why an exit is not loaded."""
        return self._client.registry.listing(self._client.backoff.out)

    def trace(self, seq: Seq) -> list[dict[str, Any]]:
        """Return the exits' last answers about a request since the worker's fork; empty if it is late."""
        if not self._client.needed:
            return []
        silent = messages.TraceAnswered(0, messages.packed([]))
        return self._client.query(messages.AskTrace(0, 0, seq), silent, QUESTION).read()

    def failures(self) -> tuple[ExitFailure, ...]:
        """Return and forget the failures since `begin`."""
        failures, self._failures = tuple(self._failures), []
        return failures

    # ------------------------------------------------------------ questions of a waiting client

    def submit(self, request: RequestView, view: PassView) -> SubmitAnswer | None:
        """Return the submit exits' answer; None (accepted as it is) if it does not come in time."""
        order = messages.AskSubmit(0, 0, view.now, _fields(request))
        found = self._asked("submit", order, messages.SubmitAnswered(0, None, "", None, ()))
        if found.refusal is not None:
            return SubmitAnswer(found.refusal, found.who)
        fields = {name: value for name, value in (found.fields or {}).items() if is_change(name, value)}
        return SubmitAnswer(None, found.who, fields) if fields else None

    def route(self, request: RequestView, destinations: Sequence[str], view: PassView) -> Sequence[str]:
        """Return the destinations to try, in order; those of the queue if the exits do not answer in time."""
        order = messages.AskRoute(0, 0, view.now, _fields(request), tuple(destinations))
        found = self._asked("route", order, messages.RouteAnswered(0, tuple(destinations), ()))
        return [name for name in found.destinations if name in destinations]

    def shrpri(self, owner: str, group: str, view: PassView) -> float | None:
        """Return an owner's share term in a group, for displays, at most `FRESH` s old or as last known;
        None: not known. The terms of all owners are asked for together, when the worker is free."""
        pair = (owner, group)
        fresh = time.monotonic() - self._shares_at <= FRESH and pair in self._shares
        if not fresh and not self._client.busy:
            pairs = sorted({pair, *((owner, group) for group, owner in self._client.site.busy())})
            order = messages.AskShares(0, 0, view.now, (), pairs)
            found = self._client.query(order, messages.SharesAnswered(0, []), self._wall("shrpri"))
            self._shares_at = time.monotonic()
            if len(found.values) == len(pairs):
                good = [v if v is not None and 0 <= v < float("inf") else None for v in found.values]
                self._shares = dict(zip(pairs, good, strict=True))
        return self._shares.get(pair)

    def _wall(self, hook: str) -> float:
        return self._client.registry.wall(hook) + QUESTION

    def _asked(self, hook: str, order: messages.Order, silent: A) -> A:
        """Return the worker's answer and note failures in it; ``silent`` (standard rule) if it is late."""
        found, registry = self._client.query(order, silent, self._wall(hook)), self._client.registry
        worker = self._client.worker
        why = "in time" if worker is not None and not worker.dead else "because its process ended"
        for name in registry.of(hook) if found is silent else ():
            text = f"{hook} did not answer {why}; the standard rule is used"
            self._failures.append(ExitFailure(name, None, text))
            registry.failed(name)
        self._failures += plans.known_failures(found.failures, registry.names)
        return found


def _fields(request: RequestView) -> dict[str, Any]:
    script = {"script": request.script} if isinstance(request, SubmitView) else {}
    return {name: getattr(request, name) for name in FIELDS} | script
