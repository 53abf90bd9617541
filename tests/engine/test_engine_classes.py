"""Jobs scheduled by class: estimates for suspended jobs, the cost of moves, and replays of nights."""

import pytest
from engine.harness import Centre, moment
from engine.test_engine_look_ahead_properties import by_its_limit, check_estimates
from engine.test_engine_properties import happened, unlike, what_if
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.classes import GANG, class_in
from nqspy.engine.look_ahead import MOVED, UNMOVED
from nqspy.engine.virtual.attempts import Run
from nqspy.engine.virtual.moves import OutOnly
from nqspy.model import events as ev
from nqspy.model.events import MovedOut
from nqspy.model.ids import Instant
from nqspy.model.site_checks import check_site
from nqspy.report.json_objects import AnswerContext, request_object
from nqspy.report.night import Bounds, night_report
from nqspy.report.pages import night_text
from nqspy.report.time_text import Zone, zone_of
from nqspy.report.why import why_text

SITE = """
create domain wide pes=(6-9) placement=contiguous
create class production priority=2 wait={wait} do_not_disturb={keep}
create class interactive priority=4 wait=0 do_not_disturb={keep}
create class benchmark priority=3 wait=unlimited pe_limit=4 preempted=off
create class standby priority=1 wait=unlimited do_not_disturb=0
create batch_queue apps order=class
create batch_queue rows order=class domain=wide
create batch_queue plain
set gang large_size=5 large_limit=6
enable queue all
start queue all
"""
KINDS = ("production", "production", "interactive", "benchmark", "standby")
JOB = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(["apps", "apps", "apps", "rows", "plain"]), "kind": st.sampled_from(KINDS),
        "pes": st.integers(1, 6), "wall": st.integers(1, 3_000), "after": st.integers(0, 600),
    }
)  # fmt: skip

LAST = [
    {"queue": "apps", "after": 0} | more
    for more in (
        {"kind": "standby", "pes": 6, "wall": 2_000},
        {"kind": "production", "pes": 5, "wall": 500},
        {"kind": "interactive", "pes": 2, "wall": 100},
    )
]
"""In the last three the first job gives way to the second, and that to the third."""


def site_of(takes: int, wait: str = "5:00", keep: str = "1", lengths=by_its_limit) -> Centre:
    """Return a site. ``takes``: ms that a move takes for each PE."""
    return Centre(
        SITE.format(wait=wait, keep=keep), pes=10, lengths=lengths, moves=OutOnly(takes),
        at="2026-03-02T06:00:00+01:00",
    )  # fmt: skip


def hand_in(centre: Centre, jobs: list[dict]) -> None:
    for each in jobs:
        centre.later(seconds=each["after"])
        pes = min(each["pes"], 4) if each["queue"] == "rows" else each["pes"]
        kind = f" class={each['kind']}" if each["queue"] != "plain" else ""
        centre.submit(f"anne pes={pes} wall={each['wall']} queue={each['queue']}{kind}")


def has_moved(centre: Centre) -> Centre:
    """Let one job be suspended, so that the duration of a move is known."""
    long, short = centre.submit(
        "anne pes=6 wall=3000 queue=apps class=standby", "anne pes=6 wall=1 queue=apps class=interactive"
    )
    centre.later(hours=3)
    assert (centre.state(long), centre.state(short)) == ("ended", "ended")
    assert [event.took for event in centre.events(MovedOut)] == [6 * centre.site.moves[0][1] // 6]
    return centre


def test_each_estimate_is_exact_where_others_give_way():
    moved = 0

    @settings(max_examples=examples(80), deadline=None)
    @given(
        st.lists(JOB, min_size=3, max_size=18),
        st.sampled_from([0, 700, 20_000]),
        st.sampled_from(["0", "5:00", "30:00"]),
        st.sampled_from(["0", "1", "20"]),
        st.sampled_from([0, 0, 1, 30, 1_000]),
    )
    def foreseen(jobs, takes, wait, keep, later):
        nonlocal moved
        centre = has_moved(site_of(takes, wait, keep))
        hand_in(centre, [*jobs, *LAST])
        centre.later(seconds=later)
        before = len(centre.events(ev.Suspended))
        check_estimates(centre)
        moved += len(centre.events(ev.Suspended)) - before

    foreseen()
    assert moved >= examples(80) // 16, f"only {moved} gave way after somebody had asked"


def test_the_duration_of_a_move_is_known_only_after_a_move():
    """A production job on six PEs may be disturbed one minute from now."""
    centre = site_of(2_000, keep="10")
    [long] = centre.submit("anne pes=6 wall=3000 queue=apps class=production")
    [short] = centre.submit("anne pes=2 wall=60 queue=apps class=interactive")
    begin = centre.sim.now
    latest = centre.forecasts(short)[short].latest
    assert latest.start == begin + 60_000
    assert latest.basis.endswith(UNMOVED)
    assert UNMOVED in centre.forecasts(short)[short].probably.basis
    centre.later(seconds=65)
    assert centre.state(long) == "suspended"
    assert centre.state(short) == "queued", "it moves out for 12 s"
    centre.later(hours=2)
    again, more = centre.submit(
        "anne pes=6 wall=3000 queue=apps class=production", "anne pes=2 wall=60 queue=apps class=interactive"
    )
    begin = centre.sim.now
    forecast = centre.forecasts(more)[more]
    assert forecast.latest.start == forecast.probably.start == begin + 72_000
    assert MOVED.format(seconds=2, which="as the slowest recent one did") in forecast.latest.basis
    assert MOVED.format(seconds=2, which="as recent ones did") in forecast.probably.basis
    centre.later(seconds=65)
    assert centre.state(again) == "suspended"
    assert centre.forecasts(more)[more].latest.start == begin + 72_000, "what is under way is not begun again"


def test_moves_are_remembered_over_a_restart_and_forgotten_with_time():
    centre = has_moved(site_of(2_000))
    assert centre.site.moves == ((6, 12_000),)
    assert centre.journal.load().moves == centre.site.moves
    for _ in range(30):
        centre.submit("anne pes=4 wall=60 queue=rows class=standby")
        centre.submit("anne pes=4 wall=1 queue=rows class=interactive")
        centre.later(seconds=100)
    assert centre.site.moves == ((4, 8_000),) * 20


def test_who_goes_on_for_ever_is_who_holds_pes_and_no_script_that_holds_none():
    centre = site_of(0, lengths=lambda request: Run(3_600_000)).qmgr(
        "create domain nqs kind=command\ncreate batch_queue front domain=nqs\n"
        "enable queue front\nstart queue front\n"
    )
    _script, endless = centre.submit("anne pes=4 queue=front", "anne pes=6 queue=apps class=interactive")
    [waits] = centre.submit("anne pes=2 wall=60 queue=apps class=production")
    assert centre.forecasts(waits)[waits].latest.by == (endless,)


# ---------------------------------------------------------------- what moves cost is told
PARIS = zone_of("Europe/Paris")


def twice_bumped() -> tuple[Centre, int]:
    """Return a site, and a job of 6 PEs that was suspended twice and runs again; each move took 12 s."""
    centre = site_of(2_000)
    [long] = centre.submit("anne pes=6 wall=3000 queue=apps class=production")
    for pes in (2, 6):
        centre.later(minutes=5)
        centre.submit(f"anne pes={pes} wall=60 queue=apps class=interactive")
        centre.later(seconds=1)
    return centre, long


def seen(centre: Centre, seq: int) -> dict:
    context = AnswerContext("sim", Zone("Europe/Paris"), centre.sim.now)
    return request_object(centre.request(seq), context)


def test_a_request_says_how_often_it_left_its_pes_and_what_that_took():
    centre, long = twice_bumped()
    assert centre.state(long) == "suspended"
    assert ", last on PEs " in why_text(seen(centre, long))
    assert seen(centre, long)["moved"] == {"times": 1, "took_s": 12, "paged_bytes": 0}
    centre.later(minutes=5)
    assert centre.state(long) == "running"
    found = seen(centre, long)
    assert ", now on PEs " in why_text(found)
    assert found["moved"] == {"times": 2, "took_s": 24, "paged_bytes": 0}
    assert "moved: " in why_text(found)
    classes = {queue: class_in(centre.site, queue, found["class"]) for queue in ("apps", "plain")}
    assert classes == {"apps": "production", "plain": ""}
    assert "queue apps, class production\n" in why_text(found | {"by_class": classes["apps"]})
    [other] = centre.submit("anne queue=plain wall=1000")
    assert "moved" not in seen(centre, other)


def test_show_gang_says_what_a_move_takes_and_who_is_disturbed_sooner():
    def shown(centre: Centre) -> dict[str, str]:
        return dict(GANG.status(centre.site, PARIS.stamp).rows)

    assert shown(site_of(2_000)) == {"moves": "none yet"}
    centre, _ = twice_bumped()
    centre.later(minutes=5)
    rows = shown(centre)
    assert rows["moves"].startswith("2 s for each PE")
    assert "do_not_disturb=1 " in rows["class production"]
    centre.qmgr("set class production do_not_disturb=2")
    assert "class production" not in shown(centre)
    assert GANG.status(centre.site, PARIS.stamp).data["moves"]["mean_s"] == 2


def test_the_night_report_counts_who_gave_way_and_the_pe_hours_that_it_cost():
    centre, _ = twice_bumped()
    centre.later(minutes=5)
    start = moment("2026-03-02T06:00:00+01:00")
    bounds = Bounds(PARIS.local(start).date(), start, None, None)
    data = night_report(centre.journal.events(), centre.site, bounds, centre.sim.now)
    assert data["moves"] == pytest.approx(
        {"gave_way": 2, "moved": 2, "pe_hours": 24 * 6 / 3600, "paged_bytes": 0}
    )
    assert "0.04 PE hours" in night_text(data)


# ---------------------------------------------------------------- a night once more, and under something else
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
    was, would = what_if(centre, "set class production wait=5:00")
    assert happened(was.made) == happened(would.made)
    was, would = what_if(centre, "set class production wait=1:00", "set class interactive do_not_disturb=3")
    check_site(would.site)
    if takes <= int(keep) * 1000:  # else they may do nothing but move: `show gang` warns of that
        assert was.started == would.started


def moves(made) -> dict[int, tuple[Instant, int]]:
    """Return when each job left its PEs, and how long that took."""
    return {each.event.seq: (each.at, each.event.took) for each in made if isinstance(each.event, MovedOut)}


def one_by_one(centre: Centre, *lines: str) -> list[int]:
    """Submit requests one second apart; at one instant a what-if run would make only one pass."""
    seqs = []
    for line in lines:
        seqs += centre.submit(line)
        centre.later(seconds=1)
    return seqs


def night(takes=2_000) -> tuple[Centre, list[int]]:
    """Return a site after two hours in which one job was suspended and moved out for 12 s, and its jobs."""
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
    _, would = what_if(centre, "set class production do_not_disturb=5")
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
    _, would = what_if(centre, "set class standby priority=3 wait=0")
    assert moves(would.made)[wide] == (begin + 50_000 + 10_000, 10_000)


def test_who_moves_out_when_the_night_goes_another_way_has_moved_out_when_it_had():
    """While the first job moves out, another one is suspended in another domain."""
    centre = site_of(2_000, wait="30:00", keep="10")
    begin = centre.sim.now
    long, standby, *_ = one_by_one(
        centre,
        "anne pes=6 wall=2000 queue=apps class=production", "anne pes=4 wall=1000 queue=rows class=standby",
        "anne pes=3 wall=60 queue=apps class=interactive", "anne pes=4 wall=1000 queue=rows class=production",
    )  # fmt: skip
    centre.later(hours=2)
    _, would = what_if(centre, "set class production wait=1:05")
    assert moves(would.made) == {long: (begin + 72_000, 12_000), standby: (begin + 76_000, 8_000)}
