"""Notices to exits about what happened (jobinit, jobend, shift_changed), with their arguments."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import structs

from nqspy.core.draft import Draft
from nqspy.core.views import FIELDS, ExitView
from nqspy.model.events import Ended, Recorded, Requeued, ShiftChanged, Started, Starting
from nqspy.model.ids import Seq
from nqspy.model.requests import Request, State
from nqspy.model.site import Site
from nqspy.ports import Exits

DueNotice = tuple[str, dict[str, Any]]
"""Name of the hook, and its arguments; a ``request`` is a mapping of its fields (`worker.SentRequest`)."""


class DueNotices:
    """Finds which notices to exits the committed events call for; none for a hook that no exit has."""

    def __init__(self, exits: Exits) -> None:
        self._exits = exits
        self._begun: dict[Seq, Request] = {}

    def adopt(self, site: Site) -> None:
        """Remember the requests that run when the daemon starts, so that their ends get notices."""
        for request in site.started.values():
            self._begun[request.seq] = structs.replace(request, slot=-1)

    def of(self, happened: Iterable[Recorded], site: Site) -> Iterator[DueNotice]:
        """Yield the notices that these events call for (starts, ends, changes of the shift), in order."""
        for recorded in happened:
            event = recorded.event
            if isinstance(event, Starting):
                # Remembered now: a short one has left the site when its start is reported.
                request = site.requests.get(event.seq)
                if request is not None and (self._exits.has("jobinit") or self._exits.has("jobend")):
                    self._begun[event.seq] = structs.replace(request, slot=-1)
            elif isinstance(event, Started) and event.seq in self._begun:
                yield from self._of("jobinit", self._begun[event.seq], recorded, site)
            elif isinstance(event, Ended | Requeued):
                request = self._begun.pop(event.seq, None)
                if request is not None and isinstance(event, Ended):
                    run = structs.replace(request.run, used=event.used)
                    ended = structs.replace(request, state=State.ENDED, attempt=run)
                    yield from self._of("jobend", ended, recorded, site)
            elif isinstance(event, ShiftChanged) and self._exits.has("shift_changed"):
                yield "shift_changed", {"old": event.former, "new": event.shift}

    def _of(self, hook: str, request: Request, recorded: Recorded, site: Site) -> Iterator[DueNotice]:
        if self._exits.has(hook):
            view = ExitView(request, Draft(site, recorded.at, self._exits, {}))
            yield hook, {"request": {name: getattr(view, name) for name in FIELDS}}
