"""Why a request waits, in which place, and when it would start."""

from engine.harness import ANNE, OLGA, PLAIN, Centre, item
from engine.story import play
from engine.test_engine_swap import Prime

from nqspy.engine.explain import Places, causes, reasons_of
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.ids import Seq, member


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
