"""Which free PEs a request gets and how many it could get; domains in a pass; and free PEs over time."""

import numpy as np
import pytest
from core.story import Story
from hypothesis import given
from hypothesis import strategies as st

from nqspy.core.domains import rows, text
from nqspy.core.placement.placements import PLACEMENTS
from nqspy.core.timeline.profile import FOREVER, Profile
from nqspy.core.timeline.spans import Holding, Spans, headroom_of
from nqspy.model.board import Board
from nqspy.model.domains import Domain
from nqspy.model.errors import BrokenSite
from nqspy.model.ids import Instant, Seq
from nqspy.model.site_checks import check_site


def board(text: str, depth: int = 1, own: str = "") -> Board:
    """Return a board from text with the number of holders of each PE; ``own``: ``x`` for each PE of the
    domain (empty: all)."""
    holders = {pe: tuple(range(1, int(held) + 1)) for pe, held in enumerate(text) if held != "0"}
    mask = np.array([each == "x" for each in own], dtype=bool) if own else np.ones(len(text), dtype=bool)
    return Board(Domain("d", depth=depth), mask, holders)


@pytest.mark.parametrize(
    ("policy", "held", "room", "picks"),
    [
        ("lowest", "0110010", 4, {1: (0,), 2: (0, 3), 4: (0, 3, 4, 6)}),
        ("contiguous", "0110010", 2, {1: (0,), 2: (3, 4)}),
        ("contiguous", "000100000100", 5, {1: (10,), 2: (10, 11), 3: (0, 1, 2), 4: (4, 5, 6, 7)}),
        ("contiguous", "111", 0, {}),
        ("most_packed", "000100100000", 10, {1: (4,), 2: (4, 5), 3: (0, 4, 5), 5: (0, 1, 2, 4, 5)}),
    ],
)
def test_who_gets_which_pes(policy, held, room, picks):
    one = PLACEMENTS[policy]
    assert one.room(board(held)) == room
    assert {count: one.pick(board(held), count) for count in picks} == picks


def test_a_block_does_not_reach_over_pes_of_another_domain():
    mine = board("000000", own="xxx.xx")
    assert PLACEMENTS["contiguous"].room(mine) == 3
    assert PLACEMENTS["contiguous"].pick(mine, 2) == (4, 5)


def test_where_pes_have_slots_those_are_filled_first_that_have_holders():
    assert PLACEMENTS["most_packed"].pick(board("0102", depth=3), 2) == (1, 3)
    assert PLACEMENTS["most_packed"].pick(board("0102", depth=2), 2) == (0, 1)


@given(st.text("012", max_size=16), st.integers(1, 2), st.data())
def test_whoever_asks_for_no_more_than_there_is_room_gets_free_pes_each_once(held, depth, data):
    for name, policy in PLACEMENTS.items():
        one = board(held, depth)
        room = policy.room(one)
        assert 0 <= room <= one.free
        assert (room > 0) == (one.free > 0)
        if room:
            count = data.draw(st.integers(1, room))
            pes = policy.pick(one, count)
            assert len(set(pes)) == count
            assert set(pes) <= set(one.open().tolist())
            assert list(pes) == sorted(pes)
            assert name != "contiguous" or pes[-1] - pes[0] == count - 1


# ---------------------------------------------------------------- domains in a pass
TWO = "machine 8; create domain/wide pes=(5-7); queue day domain=wide priority=2; queue night priority=1"
ROW = "set domain/application/placement contiguous"
DEEP = "queue night; set domain/application/depth 2"
TEN = """machine 10; create domain/wide pes=(5-9) placement=contiguous; queue day domain=wide priority=2
    queue night priority=1"""
STORIES = {
    "each queue has PEs of its own domain": f"""{TWO}
        run anne pes=2, ben pes=2, cleo queue=day, dora pes=2 queue=day
        pes anne 0-1; pes ben 2-3; pes cleo 5; pes dora 6-7""",
    "a full domain holds no request of another": f"""{TWO}
        submit anne pes=3 queue=day, ben queue=day, cleo pes=5, dora; starts anne cleo; short yes
        why ben no_pe_free 1 3 wide -; why dora no_pe_free 1 5 application -""",
    "more PEs than its domain has": f"""{TWO}; submit anne pes=4 queue=day; starts -
        why anne above_domain 4 3""",
    "limits span domains": f"""{TWO}; create complex/both queues=(day,night) user_limit=2; limit run_limit=3
        submit anne, anne, anne, anne queue=day, ben queue=day, cleo queue=day; picks anne4 ben cleo
        limit run_limit=6; picks anne4 ben cleo anne""",
    "without a second domain none is named": """machine 2; queue night; submit anne pes=2, ben; starts anne
        why ben no_pe_free 1 2 - - who=machine""",
    "a block without a gap": f"""machine 6; queue night; {ROW}; run anne pes=2, ben pes=2, cleo pes=2
        end anne cleo; submit dora pes=3, emma pes=2; starts emma; pes ben 2-3; pes emma 0-1
        why dora NO_PES""",
    "the block is named if the free PEs would suffice": f"""machine 5; queue night; {ROW}
        run anne pes=2, ben, cleo pes=2; end anne cleo; submit dora pes=3; starts -
        why dora few_pes_free 3 4 5 - 2 -""",
    "what is parked comes back in its own domain": f"""{TWO}; run anne pes=2 queue=day
        suspend anne probe nfs; set domain/wide/pes (4,6-7); submit ben pes=4; does resume:anne start:ben
        pes anne 4,6""",
    "a slot is free when its holder has ended": f"""machine 2; {DEEP}; run anne pes=2, ben, cleo; pes ben 0
        pes cleo 1; end anne; run dora; pes dora 0""",
    "a depth that is set again holds at once": f"""machine 2; {DEEP}; submit anne pes=2, ben pes=2
        set domain/application/depth 1; starts anne; set domain/application/depth 2; starts ben""",
    "a holder keeps a PE that goes offline, and no other is given it": f"""{TEN}; run anne pes=2
        set machine/offline (0,2-3); submit ben, cleo; starts ben; pes anne 0-1; pes ben 4
        why cleo no_pe_free 1 5 application 3; end anne; starts cleo; pes cleo 1; set machine/offline ()
        run dora pes=3; pes dora 0,2-3""",
    "a block does not reach over a PE that is offline": f"""{TEN}; set machine/offline (0,7)
        submit anne pes=3 queue=day; starts -; why anne few_pes_free 3 4 5 wide 2 1; set machine/offline (0)
        starts anne; pes anne 5-7""",
    "PEs must come back if too few are left": f"""{TEN}; run anne pes=2; set machine/offline (4)
        submit ben pes=5; starts -; why ben pes_offline 5 2 5 application 1""",
    "other PEs may become free": f"""{TEN}; run anne pes=2; set machine/offline (4); submit ben pes=3
        starts -; why ben few_pes_free 3 2 5 application - 1""",
    "what gave its PEs away does not come back on one that is offline": f"""{TEN}; run anne pes=5
        suspend anne probe nfs; set machine/offline (3); does -; set machine/offline (); does resume:anne
        pes anne 0-4""",
    "requests of a command domain hold no PEs and take none from others": """machine 4
        create domain/front kind=command; queue front domain=front order=fcfs
        submit anne pes=4, ben pes=3; starts anne ben; queue batch; run cleo pes=4; pes cleo 0-3""",
    "units are given to requests of a command domain too": """machine 2
        create domain/talk kind=command requests=2; create consumable/gpu units=(g0)
        queue talk domain=talk; submit anne gpu=1, ben gpu=1; starts anne; units anne gpu=g0""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_domains(house, title):
    Story(house).play(STORIES[title])


def test_a_pe_with_two_slots_has_two_holders_and_no_third(house):
    Story(house).play(f"machine 1; {DEEP}; run anne, ben, cleo")
    assert house.site.holders == {0: (1, 2)}
    house.set("domain/application/depth", 1)
    with pytest.raises(BrokenSite, match="too often"):
        check_site(house.site)
    house.set("domain/application/depth", 2)


def test_each_domain_counts_its_own_pes_that_are_offline(house):
    Story(house).play(f"{TEN}; set machine/offline (0,7)")
    row = {row["name"]: (row["free"], row["held"], row["offline"]) for row in rows(house.site)}
    assert row == {"application": (4, 0, 1), "wide": (4, 0, 1)}
    assert "PEs 5-9: 5, 4 free, 0 held, 1 offline (7)" in text(house.site, ("wide",))


def test_a_start_past_one_without_a_time_holds_headroom_of_no_pes_in_a_command_domain():
    profile = Profile(Instant(0))
    profile.provide("units", 3)
    assert Spans(profile).headroom({("pes", "front"): 0, "units": 2}) == {("headroom", "units"): 2}


# ---------------------------------------------------------------- what is free over time
HORIZON = 40
SPAN = st.tuples(st.integers(0, HORIZON), st.integers(1, HORIZON), st.integers(1, 4))


def counted(most: int, spans: list[tuple[int, int, int]]) -> list[int]:
    """Return the free amount at each instant."""
    free = [most] * (2 * HORIZON)
    for begin, length, amount in spans:
        for at in range(begin, begin + length):
            free[at] -= amount
    return free


def holding(most: int, **held: list[tuple[int, int, int]]) -> Profile:
    """Return a profile with these total amounts, of which the spans hold some."""
    profile = Profile(0, dict.fromkeys(held, most))
    for amount, spans in held.items():
        for begin, length, count in spans:
            profile.hold(begin, begin + length, {amount: count})
    return profile


@given(st.lists(SPAN, max_size=8), st.lists(SPAN, max_size=8), st.integers(1, 4), st.integers(1, HORIZON))
def test_of_several_amounts_all_must_be_free_at_once(pes, gpus, wanted, length):
    profile = holding(4, pes=pes, gpu=gpus)
    both = zip(counted(4, pes), counted(4, gpus), strict=True)
    free = [min(pair) for pair in both] + [4] * 2 * HORIZON
    starts = (at for at in range(2 * HORIZON + 1) if min(free[at : at + length]) >= wanted)
    assert profile.earliest({"pes": wanted, "gpu": wanted}, length) == next(starts)


@given(
    st.lists(SPAN, max_size=8),
    st.lists(SPAN, max_size=8),
    st.integers(0, 5),
    st.integers(1, HORIZON) | st.just(FOREVER),
)
def test_what_fits_now_is_what_could_start_at_the_earliest_now(pes, gpus, wanted, length):
    profile = holding(6, pes=pes, gpu=gpus)
    claims = {"pes": wanted, "gpu": 2, "nobody's": 9}
    assert profile.fits(claims, length) == (profile.earliest(claims, length) == 0)


@given(st.lists(SPAN, max_size=10), st.lists(st.integers(0, 9), max_size=10))
def test_what_is_given_back_leaves_no_trace(spans, order):
    profile, removed = holding(9, pes=spans), {place for place in order if place < len(spans)}
    for begin, length, count in (spans[place] for place in removed):
        profile.release(begin, begin + length, {"pes": count})
    without = holding(9, pes=[span for place, span in enumerate(spans) if place not in removed])
    for at in range(2 * HORIZON):
        assert profile.free("pes", at) == without.free("pes", at)


@given(st.lists(SPAN, max_size=8), st.lists(st.integers(1, 2 * HORIZON), min_size=1, max_size=9))
def test_what_is_free_all_the_time_until_an_instant(spans, ends):
    profile = holding(6, pes=spans)
    free = [*counted(6, spans), 6]
    found = profile.least_until("pes", np.array(ends, dtype=float))
    assert profile.least("pes") == min(free)
    assert found.tolist() == [min(free[:end]) for end in ends]


def test_what_has_no_known_end_is_free_at_no_known_instant():
    profile = Profile(100, {"pes": 2})
    profile.hold(0, FOREVER, {"pes": 1})
    assert profile.earliest({"pes": 1}, FOREVER) == 100
    assert profile.earliest({"pes": 2}, 1) is None
    assert profile.earliest({"pes": 3}, 1) is None


def test_an_amount_of_which_nobody_has_spoken_bounds_nobody():
    profile = Profile(0, {"pes": 1})
    profile.hold(0, 10, {"pes": 1, "licence": 5})
    assert profile.earliest({"licence": 7}, 3) == 0
    assert not profile.has("licence")


NOW, PES = Instant(100), 9
BEGIN = st.integers(100, 140) | st.just(FOREVER)
KEEP = st.tuples(st.integers(1, 5), BEGIN, st.integers(1, 20), st.integers(1, 3), st.integers(1, 4))
"""Request, begin, length, PEs, turn."""


@given(st.lists(KEEP | st.integers(1, 5), max_size=20))
def test_holdings_added_and_lifted_in_any_order_are_counted(steps):
    spans, holdings = Spans(Profile(NOW, {"pes": PES})), dict[Seq, Holding]()
    for step in steps:
        seq = Seq(step if isinstance(step, int) else step[0])
        assert spans.lift(seq) == holdings.pop(seq, None)
        if not isinstance(step, int):
            _, begin, length, pes, turn = step
            holdings[seq] = Holding(begin, min(begin + length, FOREVER), {"pes": pes}, {}, turn)
            spans.add(seq, holdings[seq])
        copy = spans.copy(NOW)
        for each in (spans, copy):
            assert_counts(each, holdings)


def assert_counts(spans: Spans, holdings: dict[Seq, Holding]) -> None:
    for at in range(NOW, 170, 7):
        held = sum(each.claims["pes"] for each in holdings.values() if each.begin <= at < each.end)
        assert spans.profile.free("pes", at) == PES - held
    untimed = [(each.turn, seq) for seq, each in holdings.items() if each.begin == FOREVER]
    assert spans.has_untimed == bool(untimed)
    if untimed:
        wanted = sum(holdings[seq].claims["pes"] for _, seq in untimed)
        assert spans.profile.free(headroom_of("pes"), 150) == PES - wanted
    for seq in range(1, 6):
        others = [(each.begin, other) for other, each in holdings.items() if other != seq]
        assert spans.first(Seq(seq), {"pes"}) == min(others, default=None)
        turn = 2, Seq(seq)
        assert spans.is_untimed_before(turn) == any(each < turn for each in untimed)
    assert spans.is_untimed_before(None) == bool(untimed)
