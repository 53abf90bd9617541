"""What is foreseen where jobs are scheduled by class: who gives way in what comes, too, with what that
takes."""

from engine.harness import Centre
from engine.test_engine_look_ahead_properties import by_its_limit, each_is_foreseen
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.engine.look_ahead import MOVED, UNMOVED
from nqspy.engine.virtual.attempts import Run
from nqspy.engine.virtual.moves import OutOnly
from nqspy.model import events as ev
from nqspy.model.events import MovedOut

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
        "queue": st.sampled_from(["apps", "apps", "apps", "rows", "plain"]),
        "kind": st.sampled_from(KINDS),
        "pes": st.integers(1, 6),
        "wall": st.integers(1, 3_000),
        "after": st.integers(0, 600),
    }
)

LAST = [
    {"queue": "apps", "after": 0} | more
    for more in (
        {"kind": "standby", "pes": 6, "wall": 2_000},
        {"kind": "production", "pes": 5, "wall": 500},
        {"kind": "interactive", "pes": 2, "wall": 100},
    )
]
"""The last three: where there is nobody else the first gives way to the second, and that to the third."""


def site_of(takes: int, wait: str = "5:00", keep: str = "1", lengths=by_its_limit) -> Centre:
    """``takes``: ms that a move takes for each PE."""
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
    """Somebody has given way once: how long a move takes is known."""
    long, short = centre.submit(
        "anne pes=6 wall=3000 queue=apps class=standby", "anne pes=6 wall=1 queue=apps class=interactive"
    )
    centre.later(hours=3)
    assert (centre.state(long), centre.state(short)) == ("ended", "ended")
    assert [event.took for event in centre.events(MovedOut)] == [6 * centre.site.moves[0][1] // 6]
    return centre


def test_each_start_is_foreseen_where_others_give_way():
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
        each_is_foreseen(centre)
        moved += len(centre.events(ev.Suspended)) - before

    foreseen()
    assert moved >= examples(80) // 16, f"only {moved} gave way after somebody had asked"


def test_what_a_move_takes_is_said_and_known_only_once_one_was_made():
    """Six PEs, a production job on all of them that may be disturbed a minute from now."""
    centre = site_of(2_000, keep="10")
    [long] = centre.submit("anne pes=6 wall=3000 queue=apps class=production")
    [short] = centre.submit("anne pes=2 wall=60 queue=apps class=interactive")
    begin = centre.sim.now
    latest = centre.outlooks(short)[short].latest
    assert latest.start == begin + 60_000
    assert latest.basis.endswith(UNMOVED)
    assert UNMOVED in centre.outlooks(short)[short].probably.basis
    centre.later(seconds=65)
    assert centre.state(long) == "suspended"
    assert centre.state(short) == "queued", "it moves out for 12 s"
    centre.later(hours=2)
    again, more = centre.submit(
        "anne pes=6 wall=3000 queue=apps class=production", "anne pes=2 wall=60 queue=apps class=interactive"
    )
    begin = centre.sim.now
    outlook = centre.outlooks(more)[more]
    assert outlook.latest.start == outlook.probably.start == begin + 72_000
    assert MOVED.format(seconds=2, which="the slowest of the last did") in outlook.latest.basis
    assert MOVED.format(seconds=2, which="the last did") in outlook.probably.basis
    centre.later(seconds=65)
    assert centre.state(again) == "suspended"
    assert centre.outlooks(more)[more].latest.start == begin + 72_000, "what is under way is not begun again"


def test_moves_are_remembered_over_a_restart_and_forgotten_with_time():
    centre = has_moved(site_of(2_000))
    assert centre.site.moves == ((6, 12_000),)
    assert centre.journal.load().moves == centre.site.moves
    for _ in range(30):
        has_moved_again(centre)
    assert centre.site.moves == ((4, 8_000),) * 20


def has_moved_again(centre: Centre) -> None:
    centre.submit(
        "anne pes=4 wall=60 queue=rows class=standby", "anne pes=4 wall=1 queue=rows class=interactive"
    )
    centre.later(seconds=100)


def test_who_goes_on_for_ever_is_who_holds_pes_and_no_script_that_holds_none():
    centre = site_of(0, lengths=lambda request: Run(3_600_000)).qmgr(
        "create domain nqs kind=command\ncreate batch_queue front domain=nqs\n"
        "enable queue front\nstart queue front\n"
    )
    _script, endless = centre.submit("anne pes=4 queue=front", "anne pes=6 queue=apps class=interactive")
    [waits] = centre.submit("anne pes=2 wall=60 queue=apps class=production")
    assert centre.outlooks(waits)[waits].latest.by == (endless,)
