"""A night in which jobs gave way by class, once more and under something else: the same where nothing is
other, and elsewhere moves take what they took."""

from engine.harness import Centre
from engine.test_engine_look_ahead_classes import JOB, LAST, hand_in, site_of
from engine.test_engine_replay import course, happened, unlike
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model import events as ev
from nqspy.model.events import MovedOut
from nqspy.model.ids import Instant
from nqspy.model.site_checks import check_site


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(JOB, min_size=2, max_size=12),
    st.sampled_from([0, 700, 20_000]),
    st.sampled_from(["0", "1", "20"]),
)
def test_a_night_with_classes_is_the_same_and_goes_to_its_end_under_other_settings(jobs, takes, keep):
    centre = site_of(takes, keep=keep)
    hand_in(centre, [*jobs, *LAST])
    centre.later(days=2)
    assert not unlike(centre.journal)
    was, would = course(centre, "set class production wait=5:00")
    assert happened(was.made) == happened(would.made)
    was, would = course(centre, "set class production wait=1:00", "set class interactive do_not_disturb=3")
    check_site(would.site)
    if takes <= int(keep) * 1000:  # else they may do nothing but move: `show gang` warns of that
        assert was.started == would.started


def moves(made) -> dict[int, tuple[Instant, int]]:
    """When each left its PEs, and how long that took."""
    return {each.event.seq: (each.at, each.event.took) for each in made if isinstance(each.event, MovedOut)}


def one_by_one(centre: Centre, *lines: str) -> list[int]:
    """Submit requests a second apart: at one instant a course makes one pass."""
    seqs = []
    for line in lines:
        seqs += centre.submit(line)
        centre.later(seconds=1)
    return seqs


def night(takes=2_000) -> tuple[Centre, list[int]]:
    """An hour in which one gave way and moved out for 12 s."""
    centre = site_of(takes, wait="30:00", keep="10")
    begin = centre.sim.now
    seqs = one_by_one(
        centre,
        "anne pes=6 wall=2000 queue=apps class=production",
        "anne pes=3 wall=60 queue=apps class=interactive",
    )
    centre.later(hours=2)
    assert moves(centre.journal.events()) == {seqs[0]: (begin + 72_000, 12_000)}
    return centre, seqs


def test_who_gives_way_at_another_time_takes_what_it_took():
    centre, (long, short) = night()
    begin = next(centre.journal.events()).at
    _, would = course(centre, "set class production do_not_disturb=5")
    assert moves(would.made) == {long: (begin + 42_000, 12_000)}
    starts = {each.event.seq: each.at for each in would.made if isinstance(each.event, ev.Starting)}
    assert starts[short] == begin + 42_000


def test_who_never_gave_way_takes_for_each_pe_what_the_others_took():
    centre, _ = night()
    begin = centre.sim.now
    wide, _ = one_by_one(
        centre,
        "anne pes=5 wall=2000 queue=apps class=production",
        "anne pes=3 wall=60 queue=apps class=standby",
    )
    centre.later(hours=2)
    _, would = course(centre, "set class standby priority=3 wait=0")
    assert moves(would.made)[wide] == (begin + 50_000 + 10_000, 10_000)


def test_who_moves_out_when_the_night_goes_another_way_has_moved_out_when_it_had():
    """It does so while the first one moves out: somebody else gives way in another domain."""
    centre = site_of(2_000, wait="30:00", keep="10")
    begin = centre.sim.now
    long, standby, *_ = one_by_one(
        centre,
        "anne pes=6 wall=2000 queue=apps class=production", "anne pes=4 wall=1000 queue=rows class=standby",
        "anne pes=3 wall=60 queue=apps class=interactive", "anne pes=4 wall=1000 queue=rows class=production",
    )  # fmt: skip
    centre.later(hours=2)
    _, would = course(centre, "set class production wait=1:05")
    assert moves(would.made) == {long: (begin + 72_000, 12_000), standby: (begin + 76_000, 8_000)}
