"""What is told of the machine and the site: probes whose resources break or are well again, memory that
becomes scarce."""

from nqspy.engine.desk.context import Desk
from nqspy.model import sightings as si
from nqspy.model.events import PressureChanged, ProbeChanged


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
    if news.level == "high" or desk.site.pressure.level != news.level:
        desk.emit(PressureChanged(news.level, news.used, news.text, news.resident))
        desk.dirty()
