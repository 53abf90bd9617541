"""The exits' notices: jobinit, jobend, shift_changed and night_report, told after the commit, in order, by
the notices' thread."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from msgspec import structs

from nqspy.core.draft import Draft
from nqspy.core.sight import FIELDS, Seen
from nqspy.daemon.notices import Notices
from nqspy.decider.notice_runner import NoticeRunner
from nqspy.model.events import Ended, Recorded, Requeued, ShiftChanged, Started, Starting
from nqspy.model.ids import Seq
from nqspy.model.requests import Request, State
from nqspy.model.site import Site
from nqspy.ports import Exits


class ExitNotices:
    """Looks at what was committed; costs nothing where no exit listens. ``runner`` gives notices, in the
    notices' thread."""

    def __init__(self, exits: Exits, notices: Notices, runner: NoticeRunner) -> None:
        self._exits = exits
        self._notices = notices
        self._runner = runner
        self._begun: dict[Seq, Request] = {}

    def adopt(self, site: Site) -> None:
        """Remembers the requests that run already, so that their ends can be told."""
        for request in site.started.values():
            self._begun[request.seq] = structs.replace(request, slot=-1)

    def tell(self, happened: Iterable[Recorded], site: Site) -> None:
        """Has the exits told of starts, ends and shifts among what happened."""
        for recorded in happened:
            event = recorded.event
            if isinstance(event, Starting):
                self._starting(event, site)
            elif isinstance(event, Started) and event.seq in self._begun:
                self._call("jobinit", self._begun[event.seq], recorded, site)
            elif isinstance(event, (Ended, Requeued)):
                self._ended(event, recorded, site)
            elif isinstance(event, ShiftChanged) and self._exits.has("shift_changed"):
                names = {"old": event.former, "new": event.shift}
                self._later("shift_changed", names)

    def report(self, data: Any) -> None:
        """Has the exits told of the night's report, which they can read only."""
        if self._exits.has("night_report"):
            self._later("night_report", {"report": data})

    def _starting(self, event: Starting, site: Site) -> None:
        """Remembers the request: a short one is gone from the site when its start is told."""
        request = site.requests.get(event.seq)
        if request is not None and (self._exits.has("jobinit") or self._exits.has("jobend")):
            self._begun[event.seq] = structs.replace(request, slot=-1)

    def _ended(self, event: Ended | Requeued, recorded: Recorded, site: Site) -> None:
        request = self._begun.pop(event.seq, None)
        if request is not None and isinstance(event, Ended):
            run = structs.replace(request.run, used=event.used)
            self._call("jobend", structs.replace(request, state=State.ENDED, attempt=run), recorded, site)

    def _call(self, hook: str, request: Request, recorded: Recorded, site: Site) -> None:
        if self._exits.has(hook):
            seen = Seen(request, Draft(site, recorded.at, self._exits, {}))
            fields = {name: getattr(seen, name) for name in FIELDS}
            self._later(hook, {"request": fields})

    def _later(self, hook: str, arguments: dict[str, Any]) -> None:
        self._runner.ready()
        self._notices.later(partial(self._runner.tell, hook, arguments))
