"""No starvation, where the manual says so (page `waits`): whatever is submitted behind a request, it starts
within a bound known at its submission; and where it may starve, it does."""

import re
from random import Random

import pytest
from engine.harness import PLAIN, Centre, item
from examples import examples
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model.requests import Request

AS_DRAWN = (Phase.explicit, Phase.generate)
"""Seed of a stream of requests; a smaller number gives no simpler stream."""
PES, MANY, MINUTE = 8, 40, 60_000
SITE = """
create consumable gpu units=(g0, g1)
create batch_queue front priority=20
create batch_queue back priority=10
enable queue front, back
start queue front, back
create group d1 share=9 members=(anne, ben)
create group d2 share=1 members=(cleo, dora)
set global memory_limit=100mb
"""
IN_ORDER = (
    "order=fcfs backfill=none", "order=priority backfill=none reserve=1", "order=fcfs reserve=1",
    "order=priority reserve=1 backfill_order=shortest", "order=fcfs reserve=2", "order=fcfs reserve=all",
    "order=fcfs reserve=1 backfill=contract",
)  # fmt: skip
"""Policies by date, where the first request has a reservation or no request passes it."""
ALL_PROMISED = (
    "order=sjf reserve=all",
    "order=priority reserve=all sched_factor share 20 sched_factor cpu 6",
    "order=sjf reserve=all backfill_order=shortest",
)
"""Policies of any order, where every request gets a reservation at its submission."""


def narrow(chance: Random) -> dict:
    """Draw a narrow request of the crowd."""
    return {
        "owner": chance.choice(["anne", "ben"]), "pes": chance.choice([1, 1, 2]),
        "wall": chance.randint(1, 4), "early": chance.choice([0, 0, 1, 3]),
        "after": chance.choice([0, 0, 1, 1, 2]), "more": chance.choice(["", "", "gpu=1", "contract"]),
    }  # fmt: skip


def wide(chance: Random) -> dict:
    """Draw a request that does not fit beside the crowd."""
    return narrow(chance) | {
        "owner": chance.choice(["anne", "cleo", "dora"]),
        "pes": chance.choice([5, 6, 8, 8]),
        "wall": chance.randint(1, 6),
        "more": chance.choice(["", "", "gpu=2"]),
    }


def stream_of(seed: int) -> list[dict]:
    """Draw a stream of narrow, short requests that repeats, with a few wide ones."""
    chance = Random(seed)
    crowd = [narrow(chance) for _ in range(chance.randint(2, 6))]
    stream = [crowd[n % len(crowd)] for n in range(MANY)]
    for _ in range(chance.randint(1, 4)):
        stream.insert(chance.randint(2, MANY // 2), wide(chance))
    return stream


STREAM = st.integers(0, 10**9).map(stream_of)


def longest(*all_of: list[dict]) -> int:
    """Return the longest wall limit (minutes)."""
    return max(each["wall"] for stream in all_of for each in stream)


def early(request: Request) -> Run:
    """Run a request to its limit less the minutes in its name, at least one minute."""
    assert request.spec.ask.wall is not None
    return Run(max(MINUTE, request.spec.ask.wall - int(request.spec.name) * MINUTE))


def built(*commands: str) -> Centre:
    return Centre(SITE, pes=PES, lengths=early).qmgr("\n".join(commands))


def handed_in(centre: Centre, each: dict, queue: str) -> int:
    """Submit a request at an instant of its own; return its number."""
    memory = 10 * each["pes"]
    words = f"{each['owner']} name={each['early']} pes={each['pes']} wall={each['wall'] * 60} mem={memory}mb"
    answer = centre.ask(cm.Submit((item(f"{words} {each['more']}", centre.sim.now, queue=queue),)))
    return int(answer["ids"][0].partition(".")[0])


def take_their_course(centre: Centre, streams: dict[str, list[dict]]) -> dict[int, tuple[str, int]]:
    """Submit everything, queue by queue in turn, and let it end; return queue and number of requests before
    it, by request."""
    met = {}
    for n in range(max(map(len, streams.values()))):
        for queue, stream in streams.items():
            if n < len(stream):
                centre.later(minutes=stream[n]["after"])
                before = len(centre.site.waiting.get(queue, ()))
                met[handed_in(centre, stream[n], queue)] = queue, before
    centre.later(days=3)
    assert not centre.site.requests, "somebody never started"
    return met


BY_CHANCE = [f"order=fcfs reserve=1 backfill=probable probability={sure}%" for sure in (30, 50, 90)]
"""Policies where a wide request may start late by one wall limit."""


@pytest.mark.parametrize(
    ("policy", "times"), [(each, 1) for each in IN_ORDER + ALL_PROMISED] + [(each, 2) for each in BY_CHANCE]
)
@settings(max_examples=examples(8), phases=AS_DRAWN)
@given(stream=STREAM)
def test_each_waits_a_wall_limit_for_each_that_it_finds_waiting_and_one_more(policy, times, stream):
    centre = built(f"set queue back {policy}")
    met = take_their_course(centre, {"back": stream})
    for seq, waited in centre.waits().items():
        note(f"{seq} found {met[seq]} and waited {waited} min")
        assert waited <= (met[seq][1] + 1) * times * longest(stream)


def reservations_of(policy: str) -> int:
    """Return the number of reservations of a queue with this policy."""
    found = re.search(r"\breserve=(\d)", policy)
    return int(found[1]) if found else 0


@settings(max_examples=examples(15), phases=AS_DRAWN)
@given(
    st.sampled_from([policy for policy in IN_ORDER if "reserve" in policy] + list(ALL_PROMISED)),
    st.sampled_from(["order=priority", "order=sjf backfill=none", "order=fcfs reserve=1"]),
    STREAM,
    STREAM,
)
def test_beside_queues_with_reservations_each_waits_for_these_as_well(policy, before, front, back):
    centre = built(f"set queue back {policy}", f"set queue front {before}")
    met = take_their_course(centre, {"front": front, "back": back})
    for seq, waited in centre.waits().items():
        queue, found = met[seq]
        own, other = (policy, before) if queue == "back" else (before, policy)
        if "reserve" in own and "reserve=all" not in other:
            assert waited <= (found + 1) * (1 + reservations_of(other)) * longest(front, back)


@settings(max_examples=examples(12), phases=AS_DRAWN)
@given(st.sampled_from(IN_ORDER), st.integers(1, 2), st.sampled_from(["queue back", "global"]), STREAM)
def test_limits_that_all_share_change_nothing(policy, spare, where, stream):
    """A limit of PEs or memory that the widest request almost reaches."""
    centre = built(f"set queue back {policy}", f"set {where} pe_limit={PES}")
    centre.qmgr(f"set {where} memory_limit={10 * PES + 5 * spare}mb")
    met = take_their_course(centre, {"back": stream})
    assert all(waited <= (met[seq][1] + 1) * longest(stream) for seq, waited in centre.waits().items())


NARROW, SHORT = "anne name=0 wall=4:00", "anne name=0 wall=1:00"
WIDE = ([NARROW], "cleo name=0 pes=8 wall=5:00", 3, [NARROW])
"""Request before, request that may starve, and hours of the stream; half of the machine is empty."""
LONG = (3 * [SHORT], "cleo name=0 wall=9:00", 2, 3 * [SHORT])
"""More come than can run."""
FACTORS = "\nset machine pes=1\nset sched_factor cpu 6 time 10"
"""T = 10 and C = 6: `tau_max` bounds a ratio and, under a lasting overload, no wait. Where half as many again
come as can run, the next of the crowd has waited a third as long as the longest waiter, which is less than
1 - C / T; where twice as many come, half as long."""


def large(crowd: int) -> tuple:
    line = f"{SHORT} cpu=1:00"
    return 3 * [line], "cleo name=0 wall=9:00 cpu=1:00:00", 3, crowd * [line]


@pytest.mark.parametrize(
    ("case", "policy", "starves"),
    [
        (WIDE, "", True),
        (WIDE, "order=fcfs", True),
        (WIDE, "backfill_order=shortest", True),
        (WIDE, "reserve=1", False),
        (WIDE, "reserve=1 backfill=probable", False),
        (WIDE, "backfill=none", False),
        (WIDE, "reserve=all order=sjf", False),
        (LONG, "order=sjf backfill=none\nset machine pes=1", True),
        (LONG, "order=sjf reserve=1\nset machine pes=1", True),
        (LONG, "order=fcfs reserve=1\nset machine pes=1", False),
        (LONG, "order=sjf reserve=all\nset machine pes=1", False),
        *((large(3), f"{kept}{FACTORS}", False) for kept in ("reserve=0", "reserve=1")),
        *((large(4), f"{kept}{FACTORS}", True) for kept in ("reserve=0", "reserve=1")),
    ],
)
def test_one_waits_as_long_as_others_come_or_does_not(case, policy, starves):
    before, line, hours, crowd = case
    centre = built(f"set queue back {policy}" if policy else "")
    centre.submit(*before, queue="back")
    [one] = centre.submit(line, queue="back")
    for _ in range(hours * 30):
        centre.submit(*crowd, queue="back")
        centre.later(minutes=2)
    assert (centre.state(one) == "queued") is starves
    centre.later(hours=5)
    assert centre.state(one) != "queued", "once nobody comes any more it starts"


@pytest.mark.parametrize(("policy", "starves"), [("reserve=1", True), ("reserve=all", False)])
def test_a_request_blocked_by_its_own_group_has_a_reservation_only_where_all_have(policy, starves):
    """One request of d1 may run. When it ends, another group has the reservation, and the next of d1 passes;
    when that reservation starts, one of d1 runs."""
    others = [f"create group g{n} members=(u{n})" for n in range(60)]
    centre = built(f"set queue back order=fcfs {policy} group_limit=1", *others)
    centre.submit("u0 name=0 pes=5 wall=10:00", queue="back")
    centre.later(minutes=1)
    centre.submit("ben name=0 wall=4:00", queue="back")
    [mine] = centre.submit("anne name=0 pes=8 wall=4:00", queue="back")
    for n in range(1, 60):
        centre.submit(f"u{n} name=0 pes=5 wall=10:00", "ben name=0 wall=4:00", queue="back")
        centre.later(minutes=2)
    assert (centre.state(mine) == "queued") is starves


# ---------------------------------------------------------------- requests without a wall limit
RESERVES = ("2", "3", "all")
FILLS = ("limit", "none", "contract", "probable")
REQUEST = st.fixed_dictionaries(
    {
        "owner": st.sampled_from(["anne", "ben", "cleo"]),
        "pes": st.integers(1, 4),
        "wall": st.sampled_from(["", "", " wall=300", " wall=900"]),
        "array": st.sampled_from(["", "", "", " array=1-3"]),
        "place": st.sampled_from(["", "", "first", "next", "now"]),
        "after": st.sampled_from([0, 0, 200, 700]),
    }
)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(FILLS),
    st.sampled_from(RESERVES),
    st.sampled_from(["fcfs", "sjf", "priority"]),
    st.lists(REQUEST, min_size=4, max_size=12),
)
def test_nothing_waits_for_ever_beside_a_free_machine(backfill, reserve, order, requests):
    text = f"set queue batch order={order} reserve={reserve} backfill={backfill}\n"
    centre = Centre(PLAIN + text, pes=4, lengths=lambda r: Run(wall=600_000))
    for each in requests:
        (seq,) = centre.submit(f"{each['owner']} pes={each['pes']}{each['wall']}{each['array']}")
        if each["place"] and centre.state(seq) == "queued":
            centre.qmgr(f"schedule request {centre.id(seq)} {each['place']}")
        centre.later(seconds=each["after"])
    centre.later(hours=24)
    assert not centre.site.requests
