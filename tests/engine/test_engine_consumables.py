"""Consumables under a virtual clock: requested, assigned, held over restarts, and never assigned twice."""

import pytest
from engine.harness import OLGA, PLAIN, ROOT, Centre, asked, item
from engine.story import play
from engine.test_engine_late_plans import Late, plan
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core import consumables
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.actions import Start
from nqspy.model.configure import apply_changes, copy_of
from nqspy.model.machine import Device, Found
from nqspy.model.site import Settings
from nqspy.model.site_checks import check_site
from nqspy.store.journal import SqliteJournal

LAB = f"""{PLAIN}
create consumable gpu units=(0, 1, 2, 3) env=CUDA_VISIBLE_DEVICES
create consumable matlab count=2 policy=round_robin
"""


@pytest.fixture
def lab():
    """Return a site with eight PEs, four GPUs and two licences."""
    return Centre(LAB, pes=8)


def units(centre, seq):
    return {name: list(each) for name, each in centre.request(seq).units}


STORIES = {
    "what cannot be had": """refuse anne gpu=5 -> too_many_units; refuse anne gpus=9 -> too_many_units
        refuse anne fpga=1 -> unknown_consumable; refuse anne gpu=0 -> no_unit_asked
        refuse anne gpu=-1 -> no_unit_asked""",
    "gpus are the consumable gpu unless one is called so": """submit anne ngpus=2, anne gpus=1 gpu=1
        has 1 spec.ask.consumables=[["gpu",2]]; has 2 spec.ask.consumables=[["gpu",2]]
        qmgr create consumable gpus count=3; submit anne gpus=1; units 3 gpus=0""",
    "one that waits may ask for others": """submit anne held
        qmgr modify request 1 consumables=(gpus=1, matlab=2)
        has 1 spec.ask.consumables=[["gpu",1],["matlab",2]]
        qmgr modify request 1 consumables=(gpu=5); has 1 spec.ask.consumables=[["gpu",1],["matlab",2]]
        qmgr modify request 1 consumables=none; has 1 spec.ask.consumables=[]""",
    "one is altered and the others stay": """submit anne held gpu=1 matlab=2; modify 1 units.gpus=2
        has 1 spec.ask.consumables=[["gpu",2],["matlab",2]]; modify 1 units.matlab=0
        has 1 spec.ask.consumables=[["gpu",2]]; modify 1 units.fpga=0 -> 1:unknown_resource
        modify 1 units.gpu=5 -> 1:above_limit
        modify 1 units.gpu=two -> 1:bad_value; modify 1 units.matlab=1 units.gpu=0
        has 1 spec.ask.consumables=[["matlab",1]]""",
    "nothing is taken from what holds it or asks for it": """submit anne gpu=2, ben matlab=1 held
        deny set consumable gpu units=(1, 2, 3) -> unit_is_held; deny delete consumable gpu -> bad_setting
        deny delete consumable matlab -> bad_setting; qmgr set consumable gpu units=(0, 1, 2, 3, 4); later 1h
        qmgr delete consumable gpu; qmgr set queue batch consumable_limit=(matlab=1); delete 2
        deny delete consumable matlab -> bad_settings""",
    "operators take units out, and no more of it": """qmgr set consumable gpu offline=(2) by olga
        deny set consumable gpu units=(0) by olga -> not_permitted
        deny set consumable gpu offline=(1) by anne -> not_permitted""",
    "a broken unit is given to none until it is well": """
        qmgr create probe check units=gpu command=nvidia-smi running=requeue; submit anne gpu=1; units 1 gpu=0
        probe gpu[0] broken; probe gpu[1] ok; later 1s; units 1 gpu=1; submit ben gpu=3
        why 2 NO_UNITS consumable gpu; events alarm 1; restart; delete 1 kill; units 2 gpu=1,2,3
        submit cleo gpu=1; state 3 queued; probe gpu[0] ok; units 3 gpu=0""",
    "a shift takes none away that is held": """
        qmgr define shift day when=("0 6 * * *") | set consumable gpu offline=(0) | end
        qmgr define shift night when=("0 21 * * *") | set consumable gpu units=(0, 2, 3) | end
        submit anne gpu=1; units 1 gpu=1; deny switch shift night -> unit_is_held""",
}


@pytest.mark.parametrize("title", STORIES)
def test_stories(title):
    play(STORIES[title], settings=LAB, pes=8)


# ---------------------------------------------------------------- holding
def test_who_holds_which_is_the_same_after_a_restart_also_whose_turn_it_is(tmp_path):
    with SqliteJournal.open(tmp_path / "nqs.db") as journal:
        centre = Centre(LAB, pes=8, journal=journal)
        a, b = centre.submit("anne gpu=2 matlab=1", "ben gpu=1")
        before = centre.site.units
        centre.engine.flush(centre.sim.now)
        centre.sim.restart()
        assert centre.site.units == before == {"gpu": {"0": a, "1": a, "2": b}, "matlab": {"0": a}}
        centre.ask(cm.Delete((str(a),), kill=True))
        (c,) = centre.submit("cleo gpu=2 matlab=1")
        assert units(centre, c) == {"gpu": ["0", "1"], "matlab": ["1"]}
        centre.is_sound()


def test_a_forged_plan_gives_no_unit_twice_none_that_is_offline_and_not_another_number():
    centre = Late(LAB, pes=8)
    a, b = *centre.submit("anne gpu=2"), *centre.submit("ben gpu=1")
    plan(centre, Start(a, 1, (0,), True, (("gpu", ("0", "1")),)))
    centre.qmgr("set consumable gpu offline=(3)")
    wrong = [[("gpu", ["0"])], [("gpu", ["3"])], [("gpu", ["9"])], [], [("gpu", ["2", "2"])],
             [("gpu", ["2"]), ("matlab", ["0"])]]  # fmt: skip
    for units_given in wrong:
        plan(centre, Start(b, 1, (5,), True, tuple((name, tuple(each)) for name, each in units_given)))
        assert centre.state(b) == "queued", units_given
    plan(centre, Start(b, 1, (5,), True, (("gpu", ("2",)),)))
    assert (units(centre, a), units(centre, b)) == ({"gpu": ["0", "1"]}, {"gpu": ["2"]})


def test_devices_that_are_found_later_are_units_then(lab):
    lab.qmgr("create consumable card units=auto env=ROCR_VISIBLE_DEVICES")
    assert consumables.rows(lab.site, ("card",))[0]["units"] == []
    found = Found(lab.site.found.cpus, 0, devices=(Device("amd", "0"), Device("nvidia", "0")))
    lab.sim.feed([ob.ObservedMachine(found.cpus, found.memory, found.devices)])
    assert consumables.rows(lab.site, ("card",))[0]["units"] == ["0"]
    (a,) = lab.submit("anne card=1")
    lab.sim.feed([ob.ObservedMachine(found.cpus, found.memory)])
    added, removed = (each.text for each in lab.events(ev.Alarm))
    assert ("card 0 added" in added, "card 0 removed" in removed) == (True, True)
    assert units(lab, a) == {"card": ["0"]}, "it goes on"
    lab.is_sound()


IDS = st.lists(st.integers(1, 10).map(str), min_size=1, max_size=2).map(tuple)
ASKS = st.builds(
    "x pes={} gpu={} wall=1:00:00 {} needs=".format,
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from(("", "", "matlab=1", "matlab=2", "array=1-3", "array=1-4 matlab=1")),
)
OFFLINE = st.sets(st.sampled_from("0123")).map(
    lambda units: ev.Change("set", "consumable/gpu/offline", sorted(units))
)
OTHERS = st.sampled_from(
    [ev.Change("set", "consumable/gpu/policy", policy) for policy in ("round_robin", "nearest", "lowest")]
    + [ev.Change("set", "consumable/gpu/units", list(units)) for units in ("01234", "01")]
    + [ev.Change("set", "global/consumable_user_limit", most) for most in (["gpu=2"], [])]
    + [ev.Change("set", "queue/batch/consumable_limit", most) for most in (["gpu=3", "matlab=1"], [])]
    + [ev.Change("delete", "consumable/matlab")]
)
COMMANDS = st.one_of(
    st.builds(
        lambda lines: cm.Submit(tuple(item(line, 0) for line in lines)),
        st.lists(ASKS, min_size=1, max_size=3),
    ),
    st.builds(lambda change: cm.Configure((change,)), OFFLINE | OTHERS),
    st.builds(cm.Delete, IDS, st.booleans()),
    st.builds(cm.RerunRequests, IDS),
    st.builds(cm.SuspendRequests, IDS, st.booleans()),
    st.builds(cm.ScheduleRequest, IDS, st.sampled_from(("first", "now"))),
)
HAPPENINGS = st.one_of(
    st.builds(
        lambda command: asked(command, OLGA if isinstance(command, cm.Delete) else ROOT, object()), COMMANDS
    ),
    st.builds(
        ob.ObservedResource,
        st.sampled_from(("gpu[0]", "gpu[1]", "gpu[4]")),
        st.sampled_from(("ok", "broken")),
    ),
    st.builds(ob.ObservedLost, st.integers(1, 10), st.integers(1, 3)),
)
STORY = st.lists(
    st.tuples(st.sampled_from((0, 1_000, 300_000)), st.lists(HAPPENINGS, max_size=3), st.booleans()),
    max_size=12,
)


class Watcher:
    """Follows the journal independently: the holder of each unit, and the offline units."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.held: dict[tuple[str, str], int] = {}
        self.broken: set[str] = set()

    def see(self, event: ev.Event) -> None:
        if isinstance(event, ev.SettingsChanged):
            settings = copy_of(self.settings)
            apply_changes(settings, event.changes, upsert=True)
            self.settings = settings
        elif isinstance(event, ev.ResourceChanged):
            (self.broken.add if event.state == "broken" else self.broken.discard)(event.name)
        elif isinstance(event, ev.Starting):
            for name, units in event.units:
                for unit in units:
                    assert (name, unit) not in self.held, "a unit was given twice"
                    assert unit not in self.settings.consumables[name].offline, "an offline unit was given"
                    assert f"{name}[{unit}]" not in self.broken, "a broken unit was given"
                    self.held[name, unit] = event.seq
        elif isinstance(event, ev.Ended | ev.Requeued | ev.Exiting):
            self.held = {unit: seq for unit, seq in self.held.items() if seq != event.seq}


@settings(max_examples=examples(150))
@given(STORY)
def test_units_are_never_given_twice_and_offline_ones_never(story):
    centre = Centre(LAB + "create probe check units=gpu command=true running=requeue\n", pes=6, length=400)
    for ms, inputs, restarts in story:
        centre.sim.run(centre.sim.now + ms)
        centre.sim.feed(inputs)
        check_site(centre.site)
        if restarts:
            assert centre.journal.load().units == centre.site.units
            centre.sim.restart()
        check_site(centre.site)
    centre.is_sound()
    assert not [line for line in centre.sim.log if "internal error" in line]
    watcher = Watcher()
    for event in centre.events():
        watcher.see(event)
    assert watcher.held == {
        (name, unit): seq for name, each in centre.site.units.items() for unit, seq in each.items()
    }
