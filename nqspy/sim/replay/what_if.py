"""A home's journal gone through again, as it was and under something else: the one function for who wants
the two courses of a night (`replayed`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nqspy.engine.replay import pair
from nqspy.engine.replay.course import Change, Course
from nqspy.engine.replay.follow import Follower
from nqspy.engine.replay.recording import Recording
from nqspy.model.errors import NqspyError
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.model.twin import twin_of
from nqspy.sim.replay.exits import RecordedExits, files_in, unlike
from nqspy.sim.replay.past import Past
from nqspy.sim.replay.wrong import NotReplayed
from nqspy.sim.running import calm
from nqspy.userexit.loader import Source


@dataclass(frozen=True)
class Other:
    """What is other than it was. ``change``: settings; ``exits``: these files instead of the home's, None:
    the same. ``words``: what people read of it."""

    change: Change = Change()
    exits: Sequence[Source] | None = None
    words: str = ""

    @property
    def nothing(self) -> bool:
        """Whether it is all as it was."""
        return not self.change.commands and self.exits is None


@dataclass
class Replayed:
    """A time of a home's journal: ``before``, the site as it began; ``was``, the night as it was gone through
    again; ``would``, its other course, None where nothing is other than it was; ``moves``: why starts moved.
    ``exits`` are those of the other course."""

    past: Past
    recording: Recording
    before: Site
    was: Follower
    would: Course | None = None
    moves: pair.Moves = field(default_factory=pair.Moves)
    exits: RecordedExits | None = None
    words: str = ""


def replayed(
    past: Past,
    other: Other = Other(),  # noqa: B008 - frozen
    since: Instant | None = None,
    until: Instant | None = None,
    going: bool = True,
) -> Replayed:
    """Goes through what the journal has from ``since`` to ``until``, as it was and, where ``other`` says so,
    under something else; not ``going``: it stands at the beginning. Raises NotReplayed."""
    recording = past.recording(since, until)
    then = files_in(past.home / "exits")
    with calm():
        exits = RecordedExits(past.home / "exits", then)
        was = Follower(recording, exits, exits)
        found = Replayed(past, recording, twin_of(was.site), was, words=other.words)
        if not going:
            return found
        if other.nothing:
            was.follow()
        else:
            _other_course(found, other, then)
    return found


def _other_course(found: Replayed, other: Other, then: Sequence[Source]) -> None:
    mine = then if other.exits is None else tuple(other.exits)
    others = unlike(mine, then)
    change = replace(other.change, routed=other.change.routed or bool(others), asked=bool(others))
    found.exits = exits = RecordedExits(found.past.home / "exits", mine, others)
    if exits.problems:
        raise NotReplayed(exits.problems[0])
    found.would = Course(found.recording, exits, exits, change, found.was)
    try:
        found.moves = pair.run(found.was, found.would)
    except NqspyError as error:
        raise NotReplayed(f"{other.words or 'the change'}: {error}") from error


def exits_of(folder: Path) -> tuple[Source, ...]:
    """The files of a folder of exits. Raises NotReplayed where it is none."""
    if not folder.is_dir():
        raise NotReplayed(f"{folder} is no folder of user exits")
    return files_in(folder)
