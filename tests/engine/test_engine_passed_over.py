"""What could have been given to a request whose turn had come before a plan's starts (semantics.md 1)."""

import pytest
from engine.harness import Centre
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.placement.placements import PLACEMENTS
from nqspy.engine.passed_over import passed_over
from nqspy.model.actions import Plan, Start
from nqspy.model.events import Decided
from nqspy.model.ids import Seq
from nqspy.model.reasons import ReasonCode
from nqspy.report.night import night_bounds, night_report
from nqspy.report.time_text import zone_of

DIVIDED = """
create domain wide pes=7-11
create batch_queue batch priority=10 user_limit=1
create batch_queue other priority=20 user_limit=1
create batch_queue day priority=5 domain=wide user_limit=1
enable queue batch, other, day
start queue batch, other, day
set default batch_request queue batch
set managers = (max:m, olga:o)
"""
REQUESTS = st.tuples(st.sampled_from(("batch", "other", "day")), st.integers(1, 4), st.booleans())


def with_pes(site, seqs):
    """Starts of these, each on the lowest PEs of its domain that are free beside those before it."""
    boards, found = {}, []
    for seq in seqs:
        request = site.requests[seq]
        name = site.domain_of(request.queue).name
        board = boards.setdefault(name, site.board(name))
        if PLACEMENTS["lowest"].room(board) >= request.spec.ask.pes:
            found.append(Start(seq, 1, PLACEMENTS["lowest"].pick(board, request.spec.ask.pes)))
            board.take(found[-1].pes)
    return found


def free_then(site, starts, request):
    """The PEs of a request's domain that were free when the first of its list behind it was chosen; None
    where none was: counted start by start."""
    left = site.board(site.domain_of(request.queue).name).free
    for each in (site.requests[start.seq] for start in starts):
        alike = (each.queue, each.group) == (request.queue, request.group)
        if alike and (each.date_in_queue, each.seq) > (request.date_in_queue, request.seq):
            return left
        left -= each.spec.ask.pes if site.domain_of(each.queue) == site.domain_of(request.queue) else 0
    return None


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(REQUESTS, min_size=2, max_size=14), st.randoms(use_true_random=False))
def test_who_is_too_wide_when_its_turn_comes_lacks_pes_and_all_others_their_limit(requests, chance):
    centre = Centre(DIVIDED, pes=12)
    centre.submit(*(f"anne pes=1 queue={queue}" for queue in ("batch", "other", "day")))
    first = len(centre.site.requests)
    for queue, pes, _ in requests:
        centre.submit(f"anne pes={pes} queue={queue}")
    site = centre.site
    chosen = [Seq(first + n) for n, each in enumerate(requests, start=1) if each[2]]
    chance.shuffle(chosen)
    starts = with_pes(site, chosen)
    told = {seq: (code, text) for seq, code, _, text in passed_over(site, Plan(tuple(starts)))}
    waiting = [each for each in site.requests.values() if each.slot >= 0 and each.seq not in chosen]
    rooms = {each.seq: free_then(site, starts, each) for each in waiting}
    assert {seq for seq, room in rooms.items() if room is not None} <= told.keys()
    for seq, (code, text) in told.items():
        if (room := rooms.get(seq)) is not None:
            pes = site.requests[seq].spec.ask.pes
            assert (code == ReasonCode.NO_PES.value) == (pes > room), (seq, text)


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ("memory_limit=100mb run_limit=2", ("mem=60mb", "mem=60mb", "mem=10mb")),
        ("memory_limit=100mb group_limit=2", ("mem=60mb", "mem=60mb", "mem=10mb")),
        ("pe_limit=3 run_limit=2", ("pes=2", "pes=2", "pes=1")),
    ],
)
def test_a_limit_that_was_reached_when_its_turn_came_is_told_and_the_order_is_kept(limits, asked):
    """A run or group limit that the pass itself reached afterwards is not what kept it back."""
    centre = Centre(DIVIDED.replace("user_limit=1", ""), pes=12)
    centre.qmgr(f"set queue batch {limits}\nstop queue batch")
    centre.submit(*(f"anne {each}" for each in asked))
    centre.qmgr("start queue batch")
    centre.later(minutes=1)
    assert centre.starts() == [1, 3]
    events = centre.journal.events()
    [kept] = [each for e in events if isinstance(e.event, Decided) for each in e.event.wait if each[0] == 2]
    assert kept[1:3] == ("LIMIT", "queue batch")
    assert limits.split("_")[0] in kept[3].lower(), kept
    night = night_bounds(events, zone_of("Europe/Paris"), centre.sim.now)
    assert night_report(events, centre.site, night, centre.sim.now)["order_kept"]
