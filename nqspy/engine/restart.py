"""After a restart: what the rows say runs is compared with what the hands find (architecture.md 5.8)."""

from nqspy.engine.desk import health, strays
from nqspy.engine.desk.context import Desk
from nqspy.engine.inputs import Outcome
from nqspy.engine.loop import Engine
from nqspy.model.events import MachineFound
from nqspy.model.ids import Instant
from nqspy.model.machine import Found


def begin(engine: Engine, found: Found, host: str, zone: str, now: Instant) -> Outcome:
    """Adopts what runs, ends what ended meanwhile, queues again what was never begun; then the site must be
    sound. Raises BrokenSite when it is not.

    The hands claim every attempt that was not begun as void first, so nothing can run twice. A commit that
    fails leaves nothing undone: what the hands found is taken again later.
    """
    site = engine.site
    expected = {seq: request.attempt for seq, request in site.started.items()}
    sightings = engine.hands.scan(expected)
    engine.exits.begin(site)
    desk = engine.desk(now)
    _meet_machine(desk, found, host, zone)
    for sighting in sightings:
        engine.adopt(desk, sighting)
    strays.tell(desk, sightings)
    site.check()
    return engine.feed((), now)


def _meet_machine(desk: Desk, found: Found, host: str, zone: str) -> None:
    site = desk.site
    now = site.found.seen(found, bool(site.started))
    if site.n == 0 or (site.found, site.host, site.zone) != (now, host, zone):
        before, new = site.found, site.n == 0
        desk.emit(MachineFound(now.cpus, now.memory, host, zone, now.offline))
        if not new:
            health.tell_machine(desk, before)
