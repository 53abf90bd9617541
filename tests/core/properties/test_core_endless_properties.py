"""Whatever is asked for, beside requests whose lengths are not known: who waits for one of these
loses nothing to all that pass him together, and whoever was promised a time keeps it."""

from core.course import check_promises, course
from core.harness import House
from core.properties.worlds import ASKED, SETTINGS, asked_for, two_queues
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model.ids import Instant, Seq

PES, UNITS = 8, 2
REQUEST = st.fixed_dictionaries(
    ASKED
    | {
        "queue": st.sampled_from(["front", "back"]),
        "pes": st.sampled_from([1, 1, 2, 2, 3, 4, 6]),
        "early": st.sampled_from([0, 0, 3]),
        "after": st.sampled_from([0, 0, 1, 3]),
        "gpu": st.sampled_from([0, 0, 1, 2]),
        "mem": st.just(0),
        "endless": st.sampled_from([False, False, True]),
    }
)
UNLIMITED = {"user_limit": st.none(), "pe_limit": st.none(), "reserve": st.sampled_from([1, 2, None])}
QUEUE = st.fixed_dictionaries(SETTINGS | UNLIMITED | {"order": st.sampled_from(["fcfs", "sjf"])})


def amounts(house: House, seqs: list[Seq]) -> tuple[int, int]:
    """PEs and units of these together."""
    asks = [house.request(seq).spec.ask for seq in seqs]
    return sum(ask.pes for ask in asks), sum(count for ask in asks for _, count in ask.consumables)


def look(house: House, before: dict[Seq, set[Seq]], told: dict[Seq, Instant]) -> None:
    """``before``: who ran, or was promised a start, before one that was promised one without a time."""
    reserved = list(house.site.reserved)
    without = [seq for seq in reserved if house.request(seq).reservation.at is None]
    for seq in set(before).difference(without):
        del before[seq]
    for seq in without:
        before.setdefault(seq, {*house.site.started, *reserved[: reserved.index(seq)]})
        passed = [other for other in house.site.started if other not in before[seq]]
        for most, kept, held in zip((PES, UNITS), amounts(house, [seq]), amounts(house, passed), strict=True):
            assert not kept or held <= most - kept, f"{seq} waits for what {passed} hold"
    check_promises(house, told)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(QUEUE, min_size=2, max_size=2), st.lists(REQUEST, min_size=3, max_size=22))
def test_all_that_pass_together_leave_what_is_kept_for_one_without_a_time(queues, requests):
    house = two_queues(queues)
    before: dict[Seq, set[Seq]] = {}
    told: dict[Seq, Instant] = {}
    for _ in course(house, requests, asked_for, House.end):
        look(house, before, told)
    assert not house.site.requests, "somebody never started"
