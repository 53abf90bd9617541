"""What the home's owner alone may set: where a mail server is told the password, variables of jobs."""

import pytest
from engine.harness import ANNE, ROOT, Centre, item
from engine.story import play
from msgspec.structs import replace

from nqspy.model import commands as cm
from nqspy.model.people import Caller

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
