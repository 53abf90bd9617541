"""Rights: every command by manager, operator, owner and another user."""

import pytest
from engine.harness import ANNE, BEN, MAX, OLGA, PLAIN, ROOT, Centre, item
from engine.story import play
from msgspec.structs import replace

from nqspy.model import commands as cm
from nqspy.model.errors import Refusal
from nqspy.model.people import Caller

BY = {"manager": MAX, "operator": OLGA, "owner": ANNE, "other": BEN}

OWN, OPERATORS = ("manager", "operator", "owner"), ("manager", "operator")
ORDERS = {
    "delete running": (OWN, "running", lambda i: cm.Delete((i,), force=True)),
    "kill running": (OWN, "running", lambda i: cm.Delete((i,), kill=True)),
    "signal running": (OWN, "running", lambda i: cm.Delete((i,), signal=10)),
    "rerun": (OWN, "running", lambda i: cm.RerunRequests((i,))),
    "suspend": (OPERATORS, "running", lambda i: cm.SuspendRequests((i,))),
    "operator hold": (OPERATORS, "queued", lambda i: cm.HoldRequests((i,), "o")),
}
"""Who may give an order to a request in this state; all orders to one that waits are in the table of
`tests/answers/test_answers_roles.py`."""
OF_QUEUES = {
    "abort queue": cm.AbortQueue("batch"),
    "purge queue": cm.PurgeQueue("batch"),
    "move queue": cm.MoveRequests((), "other", "batch"),
    "switch shift": cm.SwitchShift("night"),
    "automatic shift": cm.AutomaticShift(),
}

SETTINGS = f"""{PLAIN}
create batch_queue other priority=1
enable queue other
define shift night when=("0 21 * * *")
set run_limit=4 batch
end
"""


def centre_with(state: str) -> tuple[Centre, str]:
    centre = Centre(SETTINGS, pes=1)
    if state == "queued":
        centre.submit("eva")
    [seq] = centre.submit("anne")
    assert centre.state(seq) == state
    return centre, centre.id(seq)


def outcome(centre: Centre, command: cm.Command, by: str) -> bool:
    """Return True if a command was done; a refusal must be for lack of rights."""
    try:
        answer = centre.ask(command, BY[by])
    except Refusal as refusal:
        if refusal.code != "not_permitted":
            raise
        return False
    failed = answer["failed"]
    assert all(each["code"] == "not_permitted" for each in failed)
    centre.is_sound()
    return not failed


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("order", ORDERS)
def test_orders_about_requests_are_for_some_and_not_for_others(order, by):
    roles, state, command = ORDERS[order]
    centre, name = centre_with(state)
    assert outcome(centre, command(name), by) == (by in roles)


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("order", OF_QUEUES)
def test_queues_and_shifts_are_the_operators(order, by):
    centre = Centre(SETTINGS)
    if by in ("manager", "operator"):
        centre.ask(OF_QUEUES[order], BY[by])
        centre.is_sound()
    else:
        assert centre.refused(OF_QUEUES[order], BY[by]).code == "not_permitted"


OF_OPERATORS = ("disable queue batch", "set priority=3 batch", "stop queue all")
OF_MANAGERS = (
    "set per_request cpu_limit=60 batch", "set sched_factor share 20", "set global run_limit=3",
    "create batch_queue new", "create group d9 share=1", "set grace 20",
)  # fmt: skip


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("command", OF_OPERATORS + OF_MANAGERS)
def test_operators_change_the_operators_settings_only(command, by):
    centre = Centre(SETTINGS)
    one = centre.command(command)
    if by == "manager" or (by == "operator" and command in OF_OPERATORS):
        centre.ask(one, BY[by])
    else:
        refusal = centre.refused(one, BY[by])
        assert refusal.code == "not_permitted"
        assert f"{BY[by].user} is a" in str(refusal)


def test_the_homes_owner_and_root_are_managers_without_being_named():
    centre = Centre("create batch_queue q")
    assert not centre.site.settings.managers
    centre.qmgr("set global run_limit=3", by=ROOT)


def test_queues_d_are_applied_by_managers_only():
    assert Centre().refused(cm.ApplyFiles(()), ANNE).code == "not_permitted"


# ---------------------------------------------------------------- what the home's owner alone may set
MAIL = "set mail smtp=post tls=implicit user=nqs password_file=/etc/nqs.password"


MIA = Caller("mia", 1007)
SHIFT = f'define shift day when=("30 8 * * *") | {MAIL} | end'
GUARDED = {
    "who is told the password": f"""qmgr {MAIL}; deny set mail smtp=evil by mia -> guarded_setting
        deny set mail tls=starttls by mia -> guarded_setting
        deny set mail password_file=/etc/shadow by mia -> guarded_setting
        deny set mail command="cat > /tmp/x" by mia -> guarded_setting; qmgr set mail limit=3 by mia""",
    "which file it is read from": f"""deny {MAIL} by mia -> guarded_setting
        qmgr set mail limit=3 from=nqs@example.org by mia""",
    "by way of a shift": f"""deny {SHIFT} by mia -> guarded_setting; qmgr {SHIFT}
        qmgr set shift day spill=leave by mia""",
    "variables that show no devices": """qmgr create consumable d count=1 by mia
        qmgr create consumable gpu count=2 env=CUDA_VISIBLE_DEVICES by mia
        qmgr create consumable barrier count=4 env=BARRIER_CIRCUIT
        qmgr set consumable barrier env=none by mia; """ + "; ".join(
            f"deny {text} env={name} by mia -> guarded_setting"
            for name in ("MAKEFILES", "HTTPS_PROXY", "GIT_DIR", "LC_ALL", "CLASSPATH", "EVIL", "_X")
            for text in ("create consumable c count=1", "set consumable d")
        ),
    "units that such a variable shows": """qmgr create consumable license units=(a, b) env=LM_LICENSE_FILE
        qmgr create consumable gpu units=(a, b) env=CUDA_VISIBLE_DEVICES
        deny set consumable license units=(evil) by mia -> guarded_setting
        qmgr set consumable gpu units=(0, 1) by mia; qmgr set consumable license offline=(a) by mia""",
}  # fmt: skip


@pytest.mark.parametrize("title", GUARDED)
def test_a_manager_does_not_set(title):
    play(f"qmgr add managers = (mia:m); {GUARDED[title]}")


@pytest.fixture
def centre():
    return Centre().qmgr("add managers = (mia:m)")


def test_nor_does_he_change_which_variables_a_request_of_roots_has(centre):
    centre.qmgr("create consumable gpu count=2 env=CUDA_VISIBLE_DEVICES")
    centre.qmgr("create consumable plain count=2")
    of_root = handed_in(centre, ROOT)
    of_anne = handed_in(centre, ANNE)
    for values in ({"units/gpu": 1}, {"ask/consumables": [["gpu", 1]]}):
        change = cm.ModifyRequest((of_root,), values)
        assert centre.ask(change, MIA)["failed"][0]["code"] == "not_permitted"
        assert not centre.ask(cm.ModifyRequest((of_anne,), values), MIA)["failed"]
    assert not centre.ask(cm.ModifyRequest((of_root,), {"units/plain": 1}), MIA)["failed"]
    assert not centre.ask(cm.ModifyRequest((of_root,), {"units/gpu": 1}), ROOT)["failed"]


def handed_in(centre, caller):
    plain = item(caller.user, centre.sim.now)
    spec = replace(plain.spec, held=True)
    [id] = centre.ask(cm.Submit((replace(plain, spec=spec, user=None),)), caller)["ids"]
    return id
