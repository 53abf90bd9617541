"""What becomes of those that wait under a set of exits: their places, who starts now and why others do not,
and when they would probably start."""

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from nqspy.core import standing
from nqspy.engine.explain import reasons_of
from nqspy.engine.look_ahead import Spent, probable_runs
from nqspy.engine.virtual.ahead import AheadRun
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import STARTED
from nqspy.model.site import Site
from nqspy.ports import Exits
from nqspy.sim.trying.copied import SiteCopy

Lines = dict[str, list[Seq]]


class ForeseenStarts(Struct):
    """By request. ``places``: in its queue's order of offers; ``reasons``: why it does not start now, and who
    says so; ``starts``: when it would, probably (at the instant of the copy: now); ``until``: so far was
    looked, None: to the end."""

    places: dict[Seq, int] = field(default_factory=dict)
    reasons: dict[Seq, tuple[str, str]] = field(default_factory=dict)
    starts: dict[Seq, int] = field(default_factory=dict)
    until: int | None = None


def lines_of(copy: SiteCopy, twin: Site, exits: Exits) -> Lines:
    """The queued requests of each queue, in the order in which a pass looks at them."""
    samples = dict(copy.between.samples)
    with exits.rehearsal(copy.now):
        return {
            queue: standing(twin, queue, copy.now, exits, samples).line()
            for queue, columns in twin.waiting.items()
            if len(columns) and queue in twin.settings.queues
        }


def foreseen(copy: SiteCopy, twin: Site, exits: Exits, lines: Lines, spent: Spent) -> ForeseenStarts:
    """Lets time pass on ``twin``, which is used up: one pass at least, and more as long as there is time."""
    places = {seq: place for line in lines.values() for place, seq in enumerate(line, 1)}
    left = {each.seq for each in twin.requests.values() if each.state not in STARTED}
    run = AheadRun(twin, probable_runs(copy.site, copy.now), copy.now, exits, replace(copy.between, due=True))
    told = reasons_of(run.engine, left - run.starts.keys())
    reasons = {seq: (reason.text, reason.who) for seq, reason in told.items()}
    cut = run.go_on_while(lambda: not left <= run.starts.keys() and spent() < 1)
    until = int(run.now) if cut and not left <= run.starts.keys() else None
    return ForeseenStarts(places, reasons, _known(run.starts, left), until)


def _known(starts: Mapping[Seq, Instant], wanted: set[Seq]) -> dict[Seq, int]:
    return {seq: int(at) for seq, at in starts.items() if seq in wanted}
