"""What `qmgr plan` says of settings: each as the command language writes it."""

import pytest

PLANS = [
    ("set domain big pes=4-6", ["domain big pes: (4-7) -> (4-6)"]),
    ("set domain application depth=2", ["domain application depth: 1 -> 2"]),
    ("set domain application placement=most_packed", ["domain application placement: lowest -> most_packed"]),
    ("set run_limit=unlimited batch", ["queue batch run_limit: 4 -> unlimited"]),
    ("set queue batch sched_factor share 5", ["queue batch sched_factor share: default -> 5"]),
    ("set machine pes=auto", ["machine pes: 8 -> auto"]),
    ("set grace 20", ["server grace: 10 -> 20"]),
    ("create domain odd pes=3", ["new: domain odd"]),
    ("set domain application depth=1", ["it changes no setting"]),
]


@pytest.fixture
def planned(fresh):
    fresh.qmgr("set machine pes=8", "create domain big pes=4-7")
    return lambda script: fresh.result("root", "qmgr", script=script, plan=True)["out"].splitlines()


@pytest.mark.parametrize(("script", "lines"), PLANS)
def test_a_plan_writes_values_as_they_are_read(planned, script, lines):
    assert planned(script) == lines


def test_times_of_a_shift_are_written_as_a_list(planned):
    said = planned('set shift night when=("0 20 * * *")')
    assert said[-1] == 'shift night when: ("0 21 * * *") -> ("0 20 * * *")'
