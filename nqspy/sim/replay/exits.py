"""User exits in a replay: they fail as recorded; in all other calls recorded exits get more time."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from nqspy.decider.heartbeat import Heartbeat
from nqspy.engine.replay.follow import ExitHistory
from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Instant, Seq
from nqspy.model.site import Site
from nqspy.userexit.call_stats import CallWatch, Mark, OwnerBackoff, Skipped, Subject
from nqspy.userexit.calls import Calls
from nqspy.userexit.guard import NS, Guard
from nqspy.userexit.hooks import Hook
from nqspy.userexit.loader import Source, read_folder
from nqspy.userexit.site_exits import SiteExits

PATIENCE = 20
"""Factor of the budget for a recorded exit: it was in time then, on a machine less busy."""


class PatientGuard(Guard):
    """A guard with many times the budget, not shown in texts; ``overran``: True if that was too little."""

    patience = PATIENCE
    overran = False

    def _begin(self, budget: int, wall: int) -> None:
        super()._begin(self.patience * budget, self.patience * wall)

    def _late(self) -> bool:
        late = super()._late()
        self.overran |= late
        for given in (self._limit, self._budget) if late and self.patience > 1 else ():
            shown = f" {given // NS} ms"
            self._over = self._over.replace(shown, f" {given // self.patience // NS} ms")
        return late


class RecordedCalls(Calls):
    """Calls of recorded exits; ``others``: names of exits that were not loaded then; ``lost``: exits and
    requests for which a call fails, with the text. An exit that once exceeded the longer time on a request
    has only its budget when it is called for that request again."""

    def __init__(self, guard: PatientGuard, watch: CallWatch) -> None:
        super().__init__(guard, watch)
        self._patient = guard
        self.others: Collection[str] = ()
        self.lost: Mapping[tuple[str, Seq | None], str] = {}
        self._expected: list[ExitFailure] = []
        self._endless: set[tuple[str, str, Seq | None]] = set()
        self._started: Collection[Seq] = ()

    def expect(self, failures: Sequence[ExitFailure], started: Collection[Seq]) -> None:
        """Have these calls fail again in the next pass; ``started``: requests that it starts. A failure on a
        started request came after the choice (``elected``)."""
        reported = (failure for failure in failures if failure.traceback and failure.exit not in self.others)
        self._expected, self._started = list(reported), started

    def call(self, hook: Hook, subject: Subject, seq: Seq | None, args: tuple[Any, ...]) -> Any:
        """Call a hook as `Calls` does; for an expected or ``lost`` failure note that without a call."""
        after_choice = (hook.name == "elected") == (seq in self._started)
        for failure in self._expected:
            if after_choice and (failure.exit, failure.seq) == (hook.who, seq):
                self._expected.remove(failure)
                failed = self.failed(hook, subject, seq, args, failure.text, failure.traceback)
                self.failures[-1] = failure
                return failed
        if seq is not None and (hook.who, seq) in self.lost:
            return self.failed(hook, subject, seq, args, self.lost[hook.who, seq], "")
        about = hook.who, hook.name, seq
        patient = about[0] not in self.others and about not in self._endless
        self._patient.patience, self._patient.overran = PATIENCE if patient else 1, False
        answer = super().call(hook, subject, seq, args)
        if self._patient.overran:
            self._endless.add(about)
        return answer


Files = Mapping[str, str] | None
"""Loaded exits: content hashes by name; None: the journal does not have them."""
Choice = Callable[[Files], Sequence[Source]]
"""Function that returns the files to load in a replay in place of recorded ones."""


class ExitVersions(Struct, frozen=True):
    """Exits that were loaded in a time, version by version. ``copies``: the files by content hash; ``now``:
    those of the home, used if the journal does not have the loaded ones; ``loads``: loaded files, and since
    when (None: before the time); ``unknown_until``: end of the time without known loads; ``lost``: why the
    process was lost, by exit, its content hash and request; ``heartbeat``: shows the call at work."""

    folder: Path
    copies: Mapping[str, bytes]
    now: Sequence[Source]
    loads: Sequence[tuple[Instant | None, Files]]
    unknown_until: Instant | None = None
    lost: Mapping[tuple[str, str | None, Seq | None], str] = {}
    heartbeat: Heartbeat = field(default_factory=Heartbeat)

    def sources(self, files: Files) -> tuple[Source, ...]:
        """Return the files of a load, except those without a copy."""
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
    """The exits of a recorded time (``versions``), each from its load on. ``choice``: other files instead:
    those that were not loaded then have no recorded failures, and no longer time than in a daemon.
    ``what_if``: no exit is asked about a request on which it ended its process: it fails."""

    def __init__(self, versions: ExitVersions, choice: Choice | None = None, what_if: bool = False) -> None:
        self._versions, self._choice, self._what_if = versions, choice or versions.sources, what_if
        self._others: Collection[str] = ()
        self._loaded: Files = None
        super().__init__(versions.folder, sources=(), watch=versions.heartbeat, guard=PatientGuard)
        self._sources = None

    def load(self, files: Files, site: Site, again: bool = True, start: bool = False) -> None:
        """Load the files of a version, as `follow.ExitHistory` does."""
        if not again and self._sources is not None and files == self._loaded:
            return
        start = start and files != self._loaded
        self._loaded, self._sources = files, self._choice(files)
        self._others = self._recorded.others = unlike(self._sources, self._versions.sources(files))
        lost = self._versions.lost.items() if self._what_if else ()
        self._recorded.lost = {
            (name, seq): text
            for (name, digest, seq), text in lost
            if name not in self._others and (files or {}).get(name) == digest
        }
        modules, self.problems = self._load()
        former = {name: one for name, one in self._exits.items() if start}
        self._install(modules)
        self.begin(site)
        for name, one in self._exits.items():
            same = name in former and former[name].module.text == one.module.text
            for hook in one.hooks.values() if same else ():
                hook.record = former[name].hooks[hook.name].record

    def _index_hooks(self) -> None:
        """Call submit hooks of new exits only: the recorded ones have accepted the submissions."""
        super()._index_hooks()
        new = tuple(hook for hook in self._active["submit"] if hook.who in self._others)
        self._active["submit"] = new
        self._had -= set() if new else {"submit"}

    def reload(self) -> str:
        """Load nothing: the journal has the loads."""
        return ""

    def _make_calls(self, watch: CallWatch) -> Calls:
        assert isinstance(self._guard, PatientGuard)
        self._recorded = RecordedCalls(self._guard, watch)
        return self._recorded

    def expect(self, failures: Sequence[ExitFailure], started: Collection[Seq]) -> None:
        """Expect failures, as `RecordedCalls.expect` does."""
        self._recorded.expect(failures, started)

    def failed_before(self, site: Site, failures: Iterable[tuple[Instant, ExitFailure]]) -> None:
        """Have exits go on skipping the requests and owners on which they failed shortly before the replay
        begins, except exits with other files than the recorded ones. ``failures``: with their instants."""
        for at, each in failures:
            request, mark = site.requests.get(each.seq or 0), Mark(at, each.text, each.lost)
            owner = each.rests if each.lost or request is None else request.owner
            for record in () if each.exit in self._others else self._records(each.exit):
                if request is not None:
                    record.skip(request.seq, mark)
                if each.rests:
                    record.back_off(owner, mark)

    def lost_at(self, failures: Sequence[ExitFailure], at: Instant) -> None:
        """Have the exits that ended their process at ``at`` skip these requests and owners for a while."""
        asked = ("jobselect", "elected", "route")
        lost = [failure for failure in failures if failure.lost and failure.exit not in self._others]
        about = [each for each in lost if each.seq is not None]
        skips = [Skipped(each.exit, hook, each.seq, at, each.text) for each in about for hook in asked]
        self.lost(skips, [OwnerBackoff(each.exit, each.rests, at) for each in lost if each.rests])


def files_in(folder: Path) -> tuple[Source, ...]:
    """Return the files of a folder that may be exits, without running them."""
    return tuple(read_folder(folder)[0])


def unlike(now: Sequence[Source], then: Sequence[Source]) -> frozenset[str]:
    """Return the names of exits that are in one of the lists only, or have different files in them."""
    known = {each.path.stem: each.text for each in then}
    mine = {each.path.stem: each.text for each in now}
    return frozenset(name for name in {*known, *mine} if known.get(name) != mine.get(name))
