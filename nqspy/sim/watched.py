"""The site's exits, watched: what each candidate of a pass was answered, to be judged from outside."""

from pathlib import Path

from nqspy.model.ids import Seq
from nqspy.model.site import Site
from nqspy.ports import Answer, PassView, RequestView
from nqspy.userexit.guard import Unguarded
from nqspy.userexit.site_exits import SiteExits


class Watched(SiteExits):
    """Site exits that note the answers of jobselect. ``passed_by``: (later, earlier) large requests, where
    the later one was let pass although the pass had refused an earlier one of its queue for its memory.

    ``large``: (more than, at most) bytes: what counts as large and may ever fit.
    """

    def __init__(self, folder: Path, large: tuple[float, float] = (0.0, 0.0)) -> None:
        super().__init__(folder, guard=Unguarded)
        self.large = large
        self.passed_by: list[tuple[Seq, Seq]] = []
        self._refused: dict[str, Seq] = {}

    def begin(self, site: Site) -> None:
        """A pass begins."""
        super().begin(site)
        self._refused = {}

    def jobselect(self, request: RequestView, view: PassView) -> Answer | None:
        """What the exits say."""
        answer = super().jobselect(request, view)
        if answer is None or answer.verdict == "force":
            if self._refused and request.queue in self._refused and self._is_large(request):
                self.passed_by.append((request.seq, self._refused[request.queue]))
        elif answer.who == "large_memory" and self._is_large(request):
            self._refused.setdefault(request.queue, request.seq)
        return answer

    def _is_large(self, request: RequestView) -> bool:
        memory, (least, most) = request.memory, self.large
        return memory is not None and least < memory <= most
