"""User exits in a replay: they fail where the journal says so; for the rest, those of then have more time."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from nqspy.engine.replay.follow import ExitHistory
from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Instant, Seq
from nqspy.model.site import Site
from nqspy.userexit.call_stats import CallWatch, Mark, Spare, Subject
from nqspy.userexit.calls import Calls
from nqspy.userexit.guard import NS, Guard
from nqspy.userexit.hooks import Hook
from nqspy.userexit.loader import Source, read_folder
from nqspy.userexit.site_exits import SiteExits

PATIENCE = 20
"""So many times its budget an exit of that time may take: it was in time then, on a machine less busy."""


class PatientGuard(Guard):
    """A guard that gives many times the budget, untold; ``overran``: even that was too little."""

    patience = PATIENCE
    overran = False

    def _begin(self, budget: int, wall: int) -> None:
        super()._begin(self.patience * budget, self.patience * wall)

    def _late(self) -> bool:
        late = super()._late()
        self.overran |= late
        for given in (self._limit, self._budget) if late and self.patience > 1 else ():
            said = f" {given // NS} ms"
            self._over = self._over.replace(said, f" {given // self.patience // NS} ms")
        return late


class RecordedCalls(Calls):
    """Calls of the exits as they were at work then; ``others``: names of those that were not there then. What
    one took too long for once, all patience spent, it gets its budget for alone when it is asked again."""

    def __init__(self, guard: PatientGuard, watch: CallWatch) -> None:
        super().__init__(guard, watch)
        self._patient = guard
        self.others: Collection[str] = ()
        self._expected: list[ExitFailure] = []
        self._endless: set[tuple[str, str, Seq | None]] = set()
        self._started: Collection[Seq] = ()

    def expect(self, failures: Sequence[ExitFailure], started: Collection[Seq]) -> None:
        """In the next pass these fail again; ``started``: what that pass starts. One that is told to have
        failed on a request that was started failed after it was chosen."""
        told = (each for each in failures if each.traceback and each.exit not in self.others)
        self._expected, self._started = list(told), started

    def call(self, hook: Hook, subject: Subject, seq: Seq | None, args: tuple[Any, ...]) -> Any:
        """Call as `Calls` does; a failure that is expected comes without a call."""
        after_choice = (hook.name == "elected") == (seq in self._started)
        for failure in self._expected:
            if after_choice and (failure.exit, failure.seq) == (hook.who, seq):
                self._expected.remove(failure)
                failed = self.failed(hook, subject, seq, args, failure.text, failure.traceback)
                self.failures[-1] = failure
                return failed
        about = hook.who, hook.name, seq
        patient = about[0] not in self.others and about not in self._endless
        self._patient.patience, self._patient.overran = PATIENCE if patient else 1, False
        answer = super().call(hook, subject, seq, args)
        if self._patient.overran:
            self._endless.add(about)
        return answer


Files = Mapping[str, str] | None
"""Loaded exits: content hashes by name; None: the journal does not know them."""
Choice = Callable[[Files], Sequence[Source]]
"""The files to load in a replay where the journal has those."""


class ExitVersions(Struct, frozen=True):
    """The exits that were loaded in a time, version by version. ``copies``: the files by content hash;
    ``now``: those of the home, asked where the journal does not know what was loaded; ``loads``: what was
    loaded, and since when (None: before the time); ``unknown_until``: passes before that instant do not tell
    what was loaded."""

    folder: Path
    copies: Mapping[str, bytes]
    now: Sequence[Source]
    loads: Sequence[tuple[Instant | None, Files]]
    unknown_until: Instant | None = None

    def sources(self, files: Files) -> tuple[Source, ...]:
        """Return the files of a load, without those of which there is no copy."""
        if files is None:
            return tuple(self.now)
        known = ((name, self.copies.get(digest)) for name, digest in sorted(files.items()))
        return tuple(Source(self.folder / f"{name}.py", text) for name, text in known if text is not None)

    def missing(self) -> list[tuple[str, str, Instant | None]]:
        """Return the versions without a copy, each once: name, content hash, and since when it was loaded."""
        found: dict[tuple[str, str], Instant | None] = {}
        for at, files in self.loads:
            for name, digest in (files or {}).items():
                if digest not in self.copies:
                    found.setdefault((name, digest), at)
        return [(name, digest, at) for (name, digest), at in found.items()]

    def unlike(self, choice: Choice) -> bool:
        """True if a choice loads other files at any time."""
        return any(unlike(choice(files), self.sources(files)) for _, files in self.loads)


class RecordedExits(SiteExits, ExitHistory):
    """The exits of a recorded time (``versions``), each from when it was loaded on. ``choice``: other files
    instead: those that were not there then have no past, and no more time than a daemon gives them."""

    def __init__(self, versions: ExitVersions, choice: Choice | None = None) -> None:
        self._versions, self._choice = versions, choice or versions.sources
        self._others: Collection[str] = ()
        self._loaded: Files = None
        super().__init__(versions.folder, sources=(), guard=PatientGuard)
        self._sources = None

    def load(self, files: Files, site: Site, again: bool = True) -> None:
        """Load the files of a version, as `follow.ExitHistory` says."""
        if not again and self._sources is not None and files == self._loaded:
            return
        self._loaded, self._sources = files, self._choice(files)
        self._others = self._recorded.others = unlike(self._sources, self._versions.sources(files))
        modules, self.problems = self._load()
        self._take(modules)
        self.begin(site)

    def _seat(self) -> None:
        """Show submissions only to exits that were not there then: the others have accepted them."""
        super()._seat()
        new = tuple(hook for hook in self._active["submit"] if hook.who in self._others)
        self._active["submit"] = new
        self._had -= set() if new else {"submit"}

    def reload(self) -> str:
        """Load nothing: the journal says when exits were loaded."""
        return ""

    def _make_calls(self, watch: CallWatch) -> Calls:
        assert isinstance(self._guard, PatientGuard)
        self._recorded = RecordedCalls(self._guard, watch)
        return self._recorded

    def expect(self, failures: Sequence[ExitFailure], started: Collection[Seq]) -> None:
        """Expect failures as `RecordedCalls` does."""
        self._recorded.expect(failures, started)

    def failed_before(self, site: Site, failures: Iterable[tuple[Instant, ExitFailure]]) -> None:
        """Spare exits what they failed at shortly before the beginning, unless they are new."""
        for at, each in failures:
            one, request = self._exits.get(each.exit), site.requests.get(each.seq or 0)
            if one is not None and each.exit not in self._others and request is not None:
                for hook in one.hooks.values():
                    hook.record.spare(request.seq, Mark(at, each.text, each.lost))
                    if each.rests:
                        hook.record.rest(request.owner, Mark(at))

    def lost_at(self, failures: Sequence[ExitFailure], at: Instant) -> None:
        """Their process was lost at these: they are not asked about them for a while."""
        asked = ("jobselect", "elected", "route")
        failed = [each for each in failures if each.lost and each.seq is not None]
        self.lost([Spare(each.exit, hook, each.seq, at, each.text) for each in failed for hook in asked], ())


def files_in(folder: Path) -> tuple[Source, ...]:
    """The files of a folder that may be exits; nothing of them is run."""
    return tuple(read_folder(folder)[0])


def unlike(now: Sequence[Source], then: Sequence[Source]) -> frozenset[str]:
    """Names of the files that are not the same in both."""
    known = {each.path.stem: each.text for each in then}
    mine = {each.path.stem: each.text for each in now}
    return frozenset(name for name in {*known, *mine} if known.get(name) != mine.get(name))
