"""Swap control's own words: how it stands, for people and for programs."""

from nqspy.core.preemption.swap import CONTROL, SWAP
from nqspy.model import events as ev

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
