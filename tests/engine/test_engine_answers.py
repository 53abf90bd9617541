"""Why a request waits, in which place, and when it would start."""

import pytest
from engine.harness import ANNE, OLGA, PLAIN, Centre, item
from engine.story import play
from engine.test_engine_swap import Prime
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.placement.placements import PLACEMENTS
from nqspy.engine.explain import Places, causes, reasons_of
from nqspy.engine.passed_over import passed_over
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.actions import Plan, Start
from nqspy.model.events import Decided
from nqspy.model.ids import Seq, member
from nqspy.model.reasons import ReasonCode
from nqspy.report.night import night_bounds, night_report
from nqspy.report.time_text import zone_of


def test_every_waiting_request_has_a_reason():
    play("""qmgr create batch_queue shut | enable queue shut | set queue batch user_limit=1
        submit anne, anne, anne held, anne at=60, anne queue=shut, ben pes=2, cleo
        why 2 LIMIT queue batch; why 3 HELD owner; why 4 DATE; why 5 STOPPED queue shut
        why 6 NO_PES machine""")


def test_an_array_whose_indices_are_all_held_or_run_shows_the_hold():
    play("""site pes=1; submit anne array=1-3; hold 1[2-3] by anne; why 1[] HELD; hold 1[1] by anne -> ?
        qmgr stop queue batch; rerun 1[1] by anne; hold 1[1] by anne; delete 1[2-3] by anne; why 1[] HELD""")


def test_places_are_the_order_of_the_starts():
    centre = Centre(PLAIN + "set sched_factor cpu 6 time 10\n", pes=5)
    centre.submit("anne")
    centre.qmgr("stop queue batch")
    for cpu in (500, 100, 300):
        centre.submit(f"anne cpu={cpu}")
        centre.later(seconds=5)
    places = Places(centre.engine, centre.sim.now)
    order = sorted((2, 3, 4), key=lambda seq: places.of(centre.request(seq)).position)
    assert places.of(centre.request(1)) is None
    centre.qmgr("start queue batch")
    assert centre.starts()[1:] == order == [3, 2, 4]


def test_an_estimate_charges_a_wide_request_for_all_its_pes():
    """Else its department seems to be owed more than it is, and comes next too soon."""
    groups = "create group d1 share=1 members=(anne)\ncreate group d2 share=1 members=(ben)\n"
    runs = {"anne": Run(900_000, 3_600_000), "ben": Run(300_000, 300_000)}
    settings = PLAIN + groups + "set sched_factor share 20 time 1\n"
    centre = Centre(settings, pes=4, lengths=lambda request: runs[request.owner])
    centre.submit(*["anne pes=4 cpu=1:00:00", "ben pes=1 cpu=5:00", "ben pes=1 cpu=5:00"] * 4)
    waiting = [seq for seq in range(1, 13) if centre.state(seq) == "queued"]
    told = {seq: centre.estimate(seq)[0] for seq in waiting}
    centre.later(hours=5)
    real = centre.times(ev.Starting)
    assert told == {seq: real[seq] for seq in waiting}


def test_a_dry_run_of_a_long_list_estimates_nothing_and_is_quick():
    centre = Centre()
    items = tuple(item("anne", centre.sim.now) for _ in range(50))
    found = centre.ask(cm.Submit(items, dry_run=True))["dry_run"]
    assert len(found) == 50
    assert "estimate" not in found[0]


def test_while_memory_is_short_nobody_knows_when_it_starts():
    centre = Prime((5, 118))
    centre.submit("anne mem=256kw")
    centre.later(minutes=6)
    [late] = centre.submit("ben mem=2mw")
    start, basis = centre.estimate(late)
    assert start is None, "not this very moment"
    assert basis.startswith(f"{centre.why(late).text}; ")
    centre.qmgr("set swap_control off")
    assert centre.state(late) == "running"


def _held(centre: Centre, array: Seq, *some: str) -> None:
    names = tuple(centre.id(array).replace("[]", f"[{each}]") for each in some)
    assert centre.ask(cm.HoldRequests(names, "u"), ANNE)["failed"] == []


def test_each_cause_for_which_indices_wait_is_told_with_its_indices() -> None:
    centre = Centre(PLAIN, pes=1)
    (array,) = centre.submit("anne array=1-9 queue=batch")
    _held(centre, array, "3-5")
    centre.ask(cm.HoldRequests((centre.id(array).replace("[]", "[7]"),), "o"), OLGA)
    found = {indices.show(runs): (reason.code, reason.who) for runs, reason in causes(centre.engine, array)}
    assert found == {"2,6,8-9": ("NO_PES", "machine"), "3-5": ("HELD", "owner"), "7": ("HELD", "operator")}
    each = reasons_of(centre.engine, [member(array, index) for index in (2, 3, 7)])
    assert [reason.code for reason in each.values()] == ["NO_PES", "HELD", "HELD"]


# ---------------------------------------------------------------- what a later one was started before

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
