"""What the home's owner alone may set: where a mail server is told the password, variables of jobs."""

import pytest
from engine.harness import ANNE, ROOT, Centre, item
from msgspec.structs import replace

from nqspy.model import commands as cm
from nqspy.model.people import Caller

MIA = Caller("mia", 1007)
MAIL = "set mail smtp=post tls=implicit user=nqs password_file=/etc/nqs.password"


@pytest.fixture
def centre():
    return Centre().qmgr("add managers = (mia:m)")


@pytest.mark.parametrize(
    "text",
    [
        "set mail smtp=evil",
        "set mail tls=starttls",
        "set mail password_file=/etc/shadow",
        'set mail command="cat > /tmp/x"',
    ],
)
def test_a_manager_does_not_say_who_is_told_the_password(centre, text):
    centre.qmgr(MAIL)
    assert "the home's owner alone" in str(centre.refused(centre.command(text), MIA))
    assert centre.site.settings.mail.smtp == "post"
    centre.ask(centre.command("set mail limit=3"), MIA)


def test_nor_which_file_it_is_read_from(centre):
    assert "the home's owner alone" in str(centre.refused(centre.command(MAIL), MIA))
    centre.ask(centre.command("set mail limit=3 from=nqs@example.org"), MIA)


def test_nor_by_way_of_a_shift(centre):
    shift = f'define shift day when=("30 8 * * *")\n{MAIL}\nend'
    assert "the home's owner alone" in str(centre.refused(centre.command(shift), MIA))
    centre.qmgr(shift)
    centre.ask(centre.command("set shift day spill=leave"), MIA)


@pytest.mark.parametrize("name", ["MAKEFILES", "HTTPS_PROXY", "GIT_DIR", "LC_ALL", "CLASSPATH", "EVIL", "_X"])
def test_a_manager_sets_no_variable_but_those_that_show_devices(centre, name):
    centre.ask(centre.command("create consumable d count=1"), MIA)
    for text in (f"create consumable c count=1 env={name}", f"set consumable d env={name}"):
        assert "the home's owner alone" in str(centre.refused(centre.command(text), MIA))
    centre.ask(centre.command("create consumable gpu count=2 env=CUDA_VISIBLE_DEVICES"), MIA)
    centre.qmgr("create consumable barrier count=4 env=BARRIER_CIRCUIT")
    centre.ask(centre.command("set consumable barrier env=none"), MIA)


def test_nor_does_he_name_the_units_that_another_variable_shows(centre):
    for name, env in (("license", "LM_LICENSE_FILE"), ("gpu", "CUDA_VISIBLE_DEVICES")):
        centre.qmgr(f"create consumable {name} units=(a, b) env={env}")
    command = centre.command("set consumable license units=(evil)")
    assert "the home's owner alone" in str(centre.refused(command, MIA))
    assert centre.site.settings.consumables["license"].units == ("a", "b")
    centre.ask(centre.command("set consumable gpu units=(0, 1)"), MIA)
    centre.ask(centre.command("set consumable license offline=(a)"), MIA)


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
