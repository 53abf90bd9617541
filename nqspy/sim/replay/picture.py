"""Both courses of a night as a picture, one above the other: PEs held and requests waiting, and which PEs
were held when."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nqspy.model import events as ev
from nqspy.model.event import Recorded
from nqspy.model.ids import Instant, Seq, number_of
from nqspy.model.site import Site
from nqspy.report.drawing import Drawing, stacked
from nqspy.sim.batch import HeldPes, NotSimulated
from nqspy.sim.pictures.album import FORMATS, write
from nqspy.sim.pictures.gantt import chart
from nqspy.sim.pictures.utilisation import strips
from nqspy.sim.replay.comparison import NightComparison
from nqspy.sim.replay.wrong import NotReplayed
from nqspy.sim.trail import Trail

WAS, WOULD = "as it was", "as it would be"


def check(path: Path) -> None:
    """Raises NotReplayed unless a picture can be drawn and written there."""
    if path.suffix.lower() not in FORMATS:
        raise NotReplayed(f"{path}: pictures are drawn as {' or '.join(FORMATS)}")
    _write(path, b"", "ab")
    if path.suffix.lower() == ".png":
        with suppress(ImportError):  # that is told when it is drawn
            import PIL.Image
            import PIL.ImageDraw
            import PIL.ImageFont
            import PIL.PngImagePlugin  # noqa: F401 - it is read later


def drawn(path: Path, comparison: NightComparison) -> str:
    """The file's content, in base64: both courses, one where nothing is changed. Raises NotReplayed."""
    try:
        content = FORMATS[path.suffix.lower()](drawing(path.stem, comparison))
    except NotSimulated as error:
        raise NotReplayed(str(error)) from None
    return b64encode(content).decode()


def save(path: Path, content: str) -> None:
    """Writes a file that was `drawn`. Raises NotReplayed."""
    _write(path, b64decode(content), "wb")


def _write(path: Path, content: bytes, mode: Any) -> None:
    try:
        write(path, content, mode)
    except NotSimulated as error:
        raise NotReplayed(str(error)) from None


def drawing(name: str, comparison: NightComparison) -> Drawing:
    """The picture of both."""
    found = comparison.found
    origin = f"{found.zone.text(comparison.begin)[:16].replace('T', ' ')}"
    courses = [(WAS, comparison.base)]
    if found.would is not None and comparison.left is not None:
        courses.append((WOULD, found.would.made))
    pes = max(found.site.pes(), found.before.pes(), 1)
    trails = [(label, _trail(pes, comparison, events)) for label, events in courses]
    drawings = [strips(trails, origin), chart(trails, origin)]
    title = f"Replay from {origin}" + (f", {found.words}" if found.words else "")
    return stacked(name, title, drawings)


def _trail(pes: int, comparison: NightComparison, events: Iterable[Recorded]) -> Trail:
    begin, trail = comparison.begin, Trail(pes, comparison.begin)
    last = begin
    walk = _Walk(comparison.found.before, begin)
    for recorded in events:
        last = max(last, recorded.at)
        for what in walk.take(recorded):
            _note(trail, what)
    for what in walk.end(last):
        _note(trail, what)
    return trail


_What = tuple[Seq, HeldPes] | tuple[int, int]


def _note(trail: Trail, what: _What) -> None:
    if isinstance(what[1], HeldPes):
        trail.hold(number_of(what[0]), what[1])
    elif what[1] >= what[0]:
        trail.wait(what[0], what[1])


class _Walk:
    """Who holds which PEs, and who waits, event by event."""

    def __init__(self, before: Site, begin: Instant) -> None:
        self._begin = begin
        self._holds: dict[Seq, tuple[Instant, tuple[int, ...]]] = {
            seq: (begin, request.pes)
            for seq, request in before.started.items()
            if request.pes and not request.pes_released
        }
        self._kept: dict[Seq, tuple[int, ...]] = {
            seq: request.pes for seq, request in before.started.items() if request.pes_released
        }
        started = before.started
        self._waits = {seq: begin for seq in before.requests if seq not in started}

    def take(self, recorded: Recorded) -> Iterator[_What]:
        """What is over by an event."""
        event: Any = recorded.event
        at = max(self._begin, recorded.at)
        if isinstance(event, ev.Submitted):
            self._waits[event.seq] = at
        elif isinstance(event, ev.Starting):
            since = self._waits.pop(event.seq, None)
            yield from () if since is None else ((since, at),)
            self._holds[event.seq] = at, event.pes
        elif isinstance(event, ev.Resumed) and event.seq not in self._holds:
            self._holds[event.seq] = at, event.pes or self._kept.get(event.seq, ())
        elif isinstance(event, ev.Requeued):
            yield from self._over(event.seq, at)
            self._waits[event.seq] = at
        elif isinstance(event, ev.Ended | ev.Exiting) or (isinstance(event, ev.Suspended) and event.parked):
            self._kept[event.seq] = self._holds.get(event.seq, (at, ()))[1]
            yield from self._over(event.seq, at)
        elif isinstance(event, ev.Deleted) and not event.indices:
            since = self._waits.pop(event.seq, None)
            yield from () if since is None else ((since, at),)

    def _over(self, seq: Seq, at: Instant) -> Iterator[_What]:
        held = self._holds.pop(seq, None)
        if held is not None and held[1]:
            yield seq, HeldPes(held[0], at, held[1])

    def end(self, at: Instant) -> Iterator[_What]:
        """What is not over by then."""
        for seq in list(self._holds):
            yield from self._over(seq, at)
        waits: Mapping[Seq, Instant] = self._waits
        yield from ((since, at) for since in waits.values())
