"""The exits' notices: jobinit, jobend, shift_changed and night_report, told after the commit, in order, by
the notices' thread."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from nqspy.daemon.notices import Notices
from nqspy.decider.due_notices import DueNotices
from nqspy.decider.notice_runner import NoticeRunner
from nqspy.model.events import Recorded
from nqspy.model.site import Site
from nqspy.ports import Exits


class ExitNotices:
    """Looks at what was committed; costs nothing where no exit listens. ``runner`` gives notices, in the
    notices' thread."""

    def __init__(self, exits: Exits, notices: Notices, runner: NoticeRunner) -> None:
        self._exits, self._due = exits, DueNotices(exits)
        self._notices, self._runner = notices, runner

    def adopt(self, site: Site) -> None:
        """Remembers the requests that run already, so that their ends can be told."""
        self._due.adopt(site)

    def tell(self, happened: Iterable[Recorded], site: Site) -> None:
        """Has the exits told of starts, ends and shifts among what happened."""
        for hook, arguments in self._due.of(happened, site):
            self._later(hook, arguments)

    def report(self, data: Any) -> None:
        """Has the exits told of the night's report, which they can read only."""
        if self._exits.has("night_report"):
            self._later("night_report", {"report": data})

    def _later(self, hook: str, arguments: dict[str, Any]) -> None:
        self._runner.ready()
        self._notices.later(partial(self._runner.tell, hook, arguments))
