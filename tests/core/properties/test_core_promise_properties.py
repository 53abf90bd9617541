"""Whatever is asked for: a promise never moves to a later start, and is kept, as long as nobody outruns what
was planned and no operator or exit has a hand in it."""

from core.course import course
from core.harness import House
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq

QUEUES = ("front", "back", "apart")
REQUEST = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(QUEUES),
        "owner": st.sampled_from(["anne", "ben", "cleo"]),
        "pes": st.integers(1, 6),
        "wall": st.integers(1, 12),
        "early": st.integers(0, 11),
        "after": st.integers(0, 5),
        "gpu": st.integers(0, 2),
        "mem": st.integers(1, 60),
    }
)
QUEUE = st.fixed_dictionaries(
    {
        "order": st.sampled_from(["fcfs", "sjf", "priority"]),
        "backfill": st.sampled_from(["limit", "limit", "none"]),
        "reserve": st.sampled_from([0, 1, 2, None]),
        "backfill_order": st.sampled_from(["order", "shortest"]),
        "user_limit": st.sampled_from([None, 1, 2]),
        "pe_limit": st.sampled_from([None, 6, 7]),
    }
)


def built(queues: list[dict]) -> House:
    house = House().machine(pes=9).limit(memory_limit="120mb")
    house.change(ev.Change("create", "consumable/gpu", {"units": ("0", "1", "2")}))
    house.change(ev.Change("create", "domain/wide", {"pes": ("6-8",)}))
    for priority, (name, wanted) in enumerate(zip(QUEUES, queues, strict=True)):
        house.queue(name, priority=priority, share=1, time=1, **wanted)
    return house.set("queue/apart/domain", "wide")


def asked_for(each: dict) -> str:
    return f" mem={each['mem']}mb" + (f" gpu={each['gpu']}" if each["gpu"] else "")


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(QUEUE, min_size=3, max_size=3), st.lists(REQUEST, min_size=2, max_size=18))
def test_a_promised_start_comes_no_later_and_moves_only_forward(queues, requests):
    house = built(queues)
    promised: dict[Seq, Instant] = {}
    for _ in course(house, requests, asked_for, House.end):
        for seq, request in house.site.requests.items():
            kept = request.reservation
            if kept is not None and kept.at is not None:
                assert kept.at <= promised.get(seq, kept.at), f"{seq} is promised a later start"
                assert not kept.late, f"{seq}: {kept.late}"
                promised[seq] = kept.at
            elif request.started is not None and seq in promised:
                assert request.started <= promised.pop(seq), f"{seq} starts later than it was promised"
            assert kept is None or kept.at is None or kept.at >= house.now, f"{seq} should have started"
    assert not house.site.requests, "somebody never started"
