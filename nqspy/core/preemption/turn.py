"""Whose state is moved first where several jobs leave their PEs or come back: what a bumper waits for, by the
priority of his class, then who comes back, by that of his own, then what nobody waits for any more."""

from nqspy.core.classes import ClassTable
from nqspy.core.preemption.bumper import NAME
from nqspy.model.domains import numbers
from nqspy.model.ids import Seq
from nqspy.model.promises import made
from nqspy.model.site import Site


def move_rank(site: Site, seq: Seq) -> int:
    """The rank of a job's move, out or in: higher goes first."""
    request, table = site.requests.get(seq), ClassTable(site.settings)
    if request is None:
        return 0
    if request.pause is None:
        return 2 * table.of(request).priority + 1
    promised = made(site, NAME).get(site.domain_of(request.queue).name)
    if not promised or set(request.pes).isdisjoint(numbers(tuple(promised["pes"]))):
        return 0
    bumper = site.requests.get(promised["seq"])
    return 0 if bumper is None else 2 * table.of(bumper).priority + 2
