"""User exits in a replay: they fail again where the journal says that they failed, however quick they are
today; for the rest they have more time than a daemon gives them."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Instant, Seq
from nqspy.userexit.call_stats import Subject
from nqspy.userexit.guard import Guard
from nqspy.userexit.kept import Spare
from nqspy.userexit.loader import Source
from nqspy.userexit.seats import Hook
from nqspy.userexit.site_exits import SiteExits

PATIENCE = 20
"""So many times its budget an exit may take: what it did in time then must not fail on a busy machine now."""


class PatientGuard(Guard):
    """A guard with `PATIENCE`."""

    def call(self, function: Any, args: tuple[Any, ...], budget: int, wall: int | None = None) -> Any:
        """What the function returns. Raises Overrun, or whatever the function raises."""
        return super().call(function, args, PATIENCE * budget, wall)


class RecordedExits(SiteExits):
    """The exits of a folder (``sources``: these files instead), as they were at work then."""

    def __init__(self, folder: Path, sources: Sequence[Source] | None = None) -> None:
        super().__init__(folder, sources=sources, guard=PatientGuard)
        self._expected: list[ExitFailure] = []
        self._started: Collection[Seq] = ()

    def expect(self, failures: Sequence[ExitFailure], started: Collection[Seq]) -> None:
        """In the next pass these fail again; ``started``: what that pass starts. One that is told to have
        failed on a request that was started failed after it was chosen."""
        self._expected, self._started = [each for each in failures if each.traceback], started

    def lost_at(self, failures: Sequence[ExitFailure], at: Instant) -> None:
        """Their process was lost at these: they are not asked about them for a while."""
        asked = ("jobselect", "elected", "route")
        failed = [each for each in failures if each.lost and each.seq is not None]
        self.lost([Spare(each.exit, hook, each.seq, at, each.text) for each in failed for hook in asked], ())

    def _call(self, hook: Hook, subject: Subject, seq: Seq | None, args: tuple[Any, ...]) -> Any:
        for failure in self._expected:
            if self._is_of(failure, hook, seq):
                self._expected.remove(failure)
                return self._note(hook, subject, seq, args, failure.text, failure.traceback)
        return super()._call(hook, subject, seq, args)

    def _is_of(self, failure: ExitFailure, hook: Hook, seq: Seq | None) -> bool:
        if (failure.exit, failure.seq) != (hook.exit.module.name, seq):
            return False
        return (hook.name == "elected") == (seq in self._started)
