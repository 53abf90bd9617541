"""Every start of some simulated nights, as it was before the simulator was made faster: which request, at
which instant, on which PEs. Who changes what the scheduler decides records them anew (`digest`) and says
why."""

import gc
from hashlib import sha256
from pathlib import Path

import pytest
from scenarios.nights import POLICIES, centre_of, evenings

from nqspy.model import events as ev

ROOT = Path(__file__).parents[2]

RECORDED = {
    ("site", 1, 5): (517, "00542f07ae56da47"),
    ("site", 7, 1): (105, "8ee1db0fe01755e5"),
    ("tuned", 2, 1): (83, "8bbb73de2b0200f4"),
    ("users", 3, 1): (94, "b91943d8fc4dc1d9"),
    ("fifo", 4, 1): (77, "a379dbaaa36d9238"),
    ("fifo1", 5, 1): (97, "d6a0840ffbdbcc28"),
    ("fifo3", 6, 1): (89, "733e44854990f843"),
}
"""(policy, first night, nights): number of starts, and the digest of lines `request instant PEs`."""


@pytest.mark.parametrize(("policy", "first", "nights"), RECORDED, ids=lambda value: str(value))
def test_a_simulated_night_starts_the_same_requests_at_the_same_instants_on_the_same_pes(
    policy, first, nights
):
    centre = centre_of(ROOT, POLICIES[policy])
    for seed, evening in enumerate(evenings(nights), first):
        centre.night(evening, seed)
    starts = [
        (each.event, each.at) for each in centre.journal.events() if isinstance(each.event, ev.Starting)
    ]
    lines = "\n".join(f"{event.seq} {at} {event.pes}" for event, at in starts)
    assert (len(starts), sha256(lines.encode()).hexdigest()[:16]) == RECORDED[policy, first, nights]


def test_a_night_with_its_exits_leaves_no_circles_behind():
    centre = centre_of(ROOT, POLICIES["site"])
    gc.collect()
    gc.disable()
    try:
        centre.night(next(evenings(1)), 1)
        assert not gc.collect(), "somebody has to look for what submissions and passes leave"
    finally:
        gc.enable()
