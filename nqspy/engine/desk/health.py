"""What is told of the machine and the site: probes whose resources break or are well again, memory that
becomes scarce."""

from nqspy.engine.desk.context import Desk
from nqspy.model import sightings as si
from nqspy.model.events import PressureChanged, ProbeChanged
from nqspy.model.health import SWAP

NOTABLE = 1.0
"""Per cent of the memory by which two readings must differ to be worth a line in the journal."""


def take(desk: Desk, news: si.News) -> None:
    """Turns news into an event, and has a pass look at it; what is known already changes nothing."""
    match news:
        case si.SeenProbe():
            _probe(desk, news)
        case si.SeenPressure():
            _pressure(desk, news)


def _probe(desk: Desk, news: si.SeenProbe) -> None:
    known = desk.site.probes.get(news.name)
    if news.name in desk.site.settings.probes and (known is None or known.state != news.state):
        desk.emit(ProbeChanged(news.name, news.state, news.text))
        desk.dirty()


def _pressure(desk: Desk, news: si.SeenPressure) -> None:
    """A reading is kept where something may follow from it: another level, the answer to what was decided
    on the last one, or another use of the memory while requests give way."""
    known, site = desk.site.pressure, desk.site
    away = any(request.suspended_by == SWAP for request in site.started.values())
    moved = known.answered or news.people != known.people or abs(news.used - known.used) >= NOTABLE
    if news.level != known.level or ((news.level != "calm" or away) and moved):
        desk.emit(PressureChanged(news.level, news.used, news.text, news.resident, news.total, news.people))
        desk.dirty()
