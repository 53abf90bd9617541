"""The features that a domain lists: only these have its running requests give way, or stay away."""

import pytest
from core.story import Story

from nqspy.core import features
from nqspy.core.preemption.swap import CONTROL, SWAP
from nqspy.model import events as ev
from nqspy.model.configure import dump, load
from nqspy.model.errors import BadValue
from nqspy.model.tree import declared

BOTH = """machine 4; create domain/wide pes=(2-3); queue day; queue night domain=wide
    run anne wall=9:00:00 queue=day, ben wall=9:00:00 queue=night; later 60"""
STOPPED = f"{BOTH}; day suspend stop:day stop:night"
WIDE = "set domain/wide/features"
STORIES = {
    f"without swap requests run on while memory is short: {listed}": f"""{BOTH}; {WIDE} {listed}
        submit cleo queue=night; memory high 91 anne=20 ben=60; does suspend:{leaves}; why cleo MEMORY"""
    for listed, leaves in (("-", "ben"), ("(swap)", "ben"), ("(health,shift_end)", "anne"), ("()", "anne"))
} | {
    # The last large request stays only where requests that may give way fill the memory.
    f"the memory of a domain without swap counts as that of other programs: {listed}": f"""{BOTH}
        {WIDE} {listed}; memory high 91 anne=100 ben=700; does suspend:{leaves}"""
    for listed, leaves in (("(swap)", "ben"), ("()", "anne"))
} | {
    f"nothing is told or expected of a shift that lets requests run on: {listed}": f"""{BOTH}
        queue other domain=wide reserve=1; {WIDE} {listed}; stops night 180 suspend; go; why ben {why}
        run cleo pes=2 wall=1:00 queue=other; reserved cleo {at}"""
    for listed, why, at in (("-", "will_rest 06:00 night", 180), ("(health)", "-", 540))
} | {
    f"without health what runs goes on and what waits still waits: {listed} {running}": f"""{BOTH}
        probe nfs broken running={running}; set queue/day/needs (nfs); set queue/night/needs (nfs)
        submit cleo queue=night; {WIDE} {listed}; does {running}:anne{more}; why cleo RESOURCE"""
    for running in ("suspend", "requeue")
    for listed, more in (("-", f" {running}:ben"), ("(swap,shift_end)", ""))
} | {
    "one that gave way to memory comes back when its domain lists swap no more": f"""{BOTH}
        memory high 91 anne=20 ben=60; does suspend:ben; {WIDE} (); does -; why ben MEMORY
        memory calm 20 anne=20; does resume:ben""",
    "with shift_end all give way": f"{STOPPED}; does suspend:anne suspend:ben",
    "without shift_end requests run on when a shift stops their queue": f"""{STOPPED}
        {WIDE} (health,swap); does suspend:anne""",
    "a suspended one goes on once its domain lists the feature no more": f"""{STOPPED}
        does suspend:anne suspend:ben; does -; why ben SHIFT; {WIDE} (); does resume:ben; why anne SHIFT""",
    "domain application has the setting too": f"""{BOTH}; day requeue stop:day
        set domain/application/features (swap); does -; set domain/application/features -
        does requeue:anne""",
}  # fmt: skip
THREE = "machine 2; queue night; run anne, ben, cleo"
PARKED = """run anne pes=2 wall=1:00:00{units}; later 10; suspend anne probe nfs
    submit ben pes=2 wall=20:00; begins ben 0-1"""
AWAY = f"machine 2; queue night reserve=1; {PARKED.format(units='')}"
STORIES |= {
    "before all that waits": f"{THREE}; suspend anne probe nfs; go; returns anne; why cleo NO_PES",
    "one that an operator suspended keeps its PEs and stays": f"{THREE}; suspend anne op; does -",
    "what is to end gives way to none and does not come back": f"""{THREE}; suspend ben probe nfs; delete ben
        does start:cleo; delete anne; day suspend stop:night; does suspend:cleo""",
    "a PE that the machine no longer has is neither freed nor taken": """machine 2; queue night
        queue batch; run anne queue=night, ben queue=night; machine 1; submit cleo, dora
        day suspend stop:night; does suspend:anne suspend:ben start:cleo; pes cleo 0""",
    "on the PE that becomes free": f"""{THREE}; suspend anne probe nfs; begins cleo 0; go; returns -
        why anne pes_to_go_on 1 -; end ben; go; returns anne 1; pes anne 1; end cleo; submit dora
        starts dora; pes dora 0""",
    "on its own PEs if they are free": """machine 4; queue night; run anne, ben pes=2; suspend ben probe nfs
        end anne; go; returns ben; pes ben 1-2""",
    "it keeps of its PEs what is free": """machine 4; queue night; run anne pes=2; suspend anne probe nfs
        submit ben; begins ben 0; go; returns anne 1-2""",
    "too few free PEs are kept for it": """machine 4; queue night; run anne pes=3; suspend anne probe nfs
        submit ben, cleo, dora; begins ben 0; begins cleo 3; starts -; why anne pes_to_go_on 3 2
        end cleo; go; returns anne 1-3""",
    "two that had the same PE": """machine 1; queue night; run anne, ben; suspend anne probe nfs; later 5s
        begins ben 0; suspend ben probe nfs; go; returns anne; why ben NO_PES""",
    "a user limit counts it": """machine 3; queue night user_limit=1; run anne, anne, ben
        suspend anne probe nfs; go; returns anne; why anne2 limit_reached""",
    "while it is away only memory counts": """machine 3
        queue night user_limit=1 run_limit=1 memory_limit=10mw; run anne mem=6mw, anne mem=4mw, anne mem=1mw
        suspend anne probe nfs; delete anne; starts anne2; end anne2; submit ben mem=5mw; starts anne3""",
    "a start is reserved behind its return": f"""{AWAY}; run cleo pes=2 wall=5:00; reserved cleo 80; later 20
        end ben; go; returns anne; later 50; end anne; starts cleo""",
    "what it did not give back is its own until its end": f"""machine 2; queue night reserve=1
        create consumable/gpu units=(g0); {PARKED.format(units=" gpu=1")}; run cleo gpu=1 wall=5:00
        reserved cleo 80; units anne gpu=g0""",
    "nothing is kept for one of a stopped queue": f"""{AWAY}; set queue/night/started off
        queue day reserve=1; run cleo pes=2 wall=5:00; reserved cleo 30""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_features_of_a_domain(house, title):
    Story(house).play(STORIES[title])


def test_a_domain_lists_what_may_give_way_and_nothing_that_starts_requests(house):
    Story(house).play(BOTH)
    known = declared(type(house.site.domain("wide")))["features"]
    assert known.words == ("health", "shift_end", "swap")
    assert {*known.words, *known.fixed} == {*features.BY_NAME}
    for word, said in (("route", "route is always on"), ("sawp", "'sawp' is not known")):
        with pytest.raises(BadValue, match=said):
            house.set("domain/wide/features", [word])


def test_a_domain_that_no_longer_lists_a_feature_is_left_alone_by_it(house):
    Story(house).play(STOPPED)
    actions = house.run_pass().actions
    assert [features.stands(house.site, each) for each in actions] == [True, True]
    house.set("domain/wide/features", ["health"])
    assert [features.stands(house.site, each) for each in actions] == [True, False]
    house.set("domain/wide/features", None).go()
    assert features.keeping(house.site, house.request(2)) is not None
    house.set("domain/wide/features", [])
    assert [features.keeping(house.site, house.request(seq)) is None for seq in (1, 2)] == [False, True]


def test_rows_keep_the_list_without_words_of_features_that_are_gone(house):
    Story(house).play(BOTH)
    assert "features" not in dump(house.site.settings)["domain/wide"]
    house.set("domain/wide/features", ["health", "swap"])
    rows = dump(house.site.settings)
    assert load(rows).domains["wide"].features == ("health", "swap")
    rows["domain/wide"]["features"] = ["health", "gone"]
    assert load(rows).domains["wide"].features == ("health",)
    house.set("domain/wide/features", [])
    assert load(dump(house.site.settings)).domains["wide"].features == ()


# ---------------------------------------------------------------- swap control: how it stands

MW = 8 * 2**20


def status(house):
    return CONTROL.status(house.site, lambda at: None if at is None else f"at {at}")


def test_it_tells_how_the_memory_stands_and_who_gave_way(house):
    house.machine(pes=2).queue("night").set("swap_control/enabled", True)
    anne, ben = house.submit("anne", "ben")
    house.apply(house.run_pass())
    assert status(house).rows == [("memory", "not measured yet")]
    house._event(ev.PressureChanged("high", 91.2, "91 % in use", ((anne, 93 * MW), (ben, 40 * MW)), 100 * MW))
    for _ in range(2):
        house._event(ev.Suspended(ben, 1, "swap", cause=SWAP))
        house._event(ev.Resumed(ben, 1, "swap", cause=SWAP))
    house._event(ev.Suspended(anne, 1, "swap", cause=SWAP))
    rows = dict(status(house).rows)
    assert rows.keys() == {"memory", f"{anne}.ymp", f"{ben}.ymp"}
    assert rows["memory"] == f"high (91 % in use) since at {house.now}"
    assert status(house).data["gave_way"] == [
        {"id": f"{anne}.ymp", "times": 1, "away": True, "gave_bytes": 93 * MW},
        {"id": f"{ben}.ymp", "times": 2, "away": False, "gave_bytes": 40 * MW},
    ]
    assert status(house).data["pressure"]["level"] == "high"


def test_once_it_is_switched_off_nothing_is_known_of_the_memory(house):
    house.machine(pes=2).queue("night").set("swap_control/enabled", True)
    house._event(ev.PressureChanged("high", 91.2, "91 % in use", (), 100 * MW))
    house.set("swap_control/enabled", False)
    assert status(house).rows == [("memory", "not measured yet")]
