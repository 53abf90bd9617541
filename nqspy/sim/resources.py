"""Invented resources: what a probe would find of one that is well or broken as it is told, try after try."""

from collections.abc import Callable, Iterator

from nqspy.core import health
from nqspy.core.resource_health import PROBES
from nqspy.model.ids import Instant
from nqspy.model.observations import ObservedResource
from nqspy.model.settings import Settings


def results(
    settings: Settings,
    name: str,
    begin: Instant,
    end: Instant,
    well: Callable[[Instant], bool],
    text: str = "it is broken",
) -> Iterator[tuple[Instant, ObservedResource]]:
    """The changes of state that tries from ``begin`` to ``end`` make known, with their instants: counted as
    the daemon counts. ``well`` says whether the resource is at an instant; each try is over at once."""
    probe, count = PROBES.all(settings)[name], health.Count()
    for at in range(begin, end, probe.every):
        good = well(Instant(at))
        changed = count.tell(probe, good)
        if changed is not None:
            yield Instant(at), ObservedResource(probe.name, changed, "" if good else text)
