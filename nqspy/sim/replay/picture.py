"""Drawing of both runs of a night, one above the other: PEs held, requests waiting, PEs over time."""

from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nqspy.model import events as ev
from nqspy.model.events import Recorded
from nqspy.model.ids import Instant, Seq, number_of
from nqspy.model.site import Site
from nqspy.report.drawing import Drawing, stacked
from nqspy.sim.batch import HeldPes
from nqspy.sim.pictures.album import FORMATS, write
from nqspy.sim.pictures.over_time import chart, strips
from nqspy.sim.replay.comparison import NightComparison
from nqspy.sim.replay.isolated import NotReplayed
from nqspy.sim.trail import Trail

WAS, WOULD = "as it was", "as it would be"


def check(path: Path) -> None:
    """Raise NqspyError unless a picture can be drawn and written there; create the file if it is missing."""
    if path.suffix.lower() not in FORMATS:
        raise NotReplayed(f"{path}: pictures are written as {' or '.join(FORMATS)}")
    write(path, b"", "ab")
    if path.suffix.lower() == ".png":
        with suppress(ImportError):  # reported when it is drawn
            import PIL.Image
            import PIL.ImageDraw
            import PIL.ImageFont
            import PIL.PngImagePlugin  # noqa: F401 - it is read later


def drawn(path: Path, comparison: NightComparison) -> str:
    """Draw both runs, or one without a change; return the file's bytes in base64. Raises NotSimulated."""
    return b64encode(FORMATS[path.suffix.lower()](drawing(path.stem, comparison))).decode()


def drawing(name: str, comparison: NightComparison) -> Drawing:
    """Return the drawing of both runs (one if they do not differ); ``name``: its file's name."""
    found = comparison.found
    origin = f"{found.zone.text(comparison.begin)[:16].replace('T', ' ')}"
    courses = [(WAS, comparison.base)]
    if found.would is not None and comparison.diverged is not None:
        courses.append((WOULD, found.would.made))
    pes = max(found.site.pes(), found.before.pes(), 1)
    trails = [(label, _trail(pes, comparison, events)) for label, events in courses]
    drawings = [strips(trails, origin), chart(trails, origin)]
    title = f"Replay from {origin}" + (f", {found.label}" if found.label else "")
    return stacked(name, title, drawings)


def _trail(pes: int, comparison: NightComparison, events: Iterable[Recorded]) -> Trail:
    trail, last = Trail(pes, comparison.begin), comparison.begin
    walk = _Walk(trail, comparison.found.before, comparison.begin)
    for recorded in events:
        last = max(last, recorded.at)
        walk.add(recorded)
    for seq in list(walk.holds):  # what has not ended by then
        walk.held(seq, last)
    for seq in list(walk.waits):
        walk.waited(seq, last)
    return trail


class _Walk:
    """Adds to a trail, event by event, which requests hold which PEs, and which wait."""

    def __init__(self, trail: Trail, before: Site, begin: Instant) -> None:
        self._trail, self._begin, started = trail, begin, before.started
        self._pes = {seq: request.pes for seq, request in started.items()}
        self.holds = {seq: begin for seq, request in started.items() if not request.pes_released}
        self.waits = {seq: begin for seq in before.requests if seq not in started}

    def add(self, recorded: Recorded) -> None:
        """Follow an event: note changes of held PEs and of waiting requests."""
        event: Any = recorded.event
        at = max(self._begin, recorded.at)
        if isinstance(event, ev.Submitted):
            self.waits[event.seq] = at
        elif isinstance(event, ev.Starting):
            self.waited(event.seq, at)
            self.holds[event.seq], self._pes[event.seq] = at, event.pes
        elif isinstance(event, ev.Resumed) and event.seq not in self.holds:
            self.holds[event.seq], self._pes[event.seq] = at, event.pes or self._pes.get(event.seq, ())
        elif isinstance(event, ev.Migrated):
            self.held(event.seq, at)
            self.holds[event.seq], self._pes[event.seq] = at, event.pes
        elif isinstance(event, ev.Requeued):
            self.held(event.seq, at)
            self.waits[event.seq] = at
        elif isinstance(event, ev.Ended | ev.Exiting) or (isinstance(event, ev.Suspended) and event.parked):
            self.held(event.seq, at)
        elif isinstance(event, ev.Deleted) and not event.indices:
            self.waited(event.seq, at)

    def held(self, seq: Seq, at: Instant) -> None:
        """Add to the trail the PEs that a request held until ``at``, if it held any."""
        since = self.holds.pop(seq, None)
        if since is not None and self._pes[seq]:
            self._trail.hold(number_of(seq), HeldPes(since, at, self._pes[seq]))

    def waited(self, seq: Seq, at: Instant) -> None:
        """Add to the trail the wait of a request until ``at``, if it waited."""
        since = self.waits.pop(seq, None)
        if since is not None and at >= since:
            self._trail.wait(since, at)
