"""Exits that hang or die while they are loaded delay nobody: that is done beside, and the old set stays."""

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, until

GATE = """\
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request):
    return refuse("{text}") if request.name == "gated" else None
"""
OPENS = "import os, time\nkept = open('{}')\n"
"""Exit that shows that it is being loaded by the file it has open, as it may write none."""


def _opens(folder):
    (folder / "loads").touch()
    return OPENS.format(folder / "loads")


def _hangs(folder):
    """Write an exit that hangs without CPU time, so that only the deadline ends it."""
    return _opens(folder) + "time.sleep(1000)\n"


@pytest.mark.slow
def test_a_file_that_hangs_delays_nobody_and_the_old_set_stays_in_force(make_live, open_folder):
    live = make_live().site(ONE_QUEUE, {"gate": GATE.format(text="gate closed")}).start()
    gated = live.submit("true", name="gated")
    live.until(gated, lambda job: job["reason"]["text"] == "gate closed", "be refused")
    live.exit("hangs", _hangs(open_folder))
    live.write("site.qmgr", "set queue batch run_limit=3\nRELOAD EXIT\nset queue batch user_limit=2\n")
    manager = live.spawn("qmgr", "site.qmgr")
    until(lambda: loads(open_folder), "it is being loaded")
    began = time.monotonic()
    for _ in range(5):
        assert live.ended(live.submit("true"))["exit_status"] == 0
    assert live.client.call("exits_list")["exits"][0]["name"] == "gate"
    assert time.monotonic() - began < 5
    assert manager.poll() is None, "only whoever asked for it waits"
    out, err = manager.communicate(timeout=40)
    assert manager.returncode == 1
    assert not out
    line = "exits/hangs.py: loading failed: it was not loaded within 10 s; the exits loaded"
    assert line in err
    assert len(err.splitlines()) == 1
    assert live.job(gated)["reason"]["text"] == "gate closed"
    snap = live.qmgr("snap").out
    assert "run_limit=3" in snap
    assert "user_limit=2" in snap


def loads(folder):
    """Return the pid of the process that loads such an exit; 0: none."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(link) == str(folder / "loads"):
                return int(link.parts[2])
    return 0


def test_what_happened_while_they_were_loaded_is_known_to_the_new_set(make_live, open_folder):
    live = make_live().site(ONE_QUEUE, {"gate": GATE.format(text="gate closed")}).start()
    gated = live.submit("true", name="gated")
    wait = f"{_opens(open_folder)}while not os.path.exists('{open_folder}/go'):\n    time.sleep(0.02)\n"
    live.exit("gate", wait + GATE.format(text="another gate"))
    manager = live.spawn("qmgr", "-c", "reload exits")
    until(lambda: loads(open_folder), "it is being loaded")
    late = live.submit("true", name="gated")
    assert live.ended(live.submit("true"))["exit_status"] == 0
    (open_folder / "go").touch()
    assert manager.wait(40) == 0
    assert "1 exit loaded: gate" in manager.communicate()[0]
    for id in (gated, late):
        live.until(id, lambda job: job["reason"]["text"] == "another gate", "be refused by the new set")
    assert live.ended(live.submit("true"))["exit_status"] == 0
    assert "lost" not in live.client.call("status")["decider"]


def test_at_the_start_a_file_that_hangs_delays_nobody_who_asks(make_live, open_folder):
    exits = {"gate": GATE.format(text="gate closed"), "hangs": _hangs(open_folder)}
    live = make_live().site(ONE_QUEUE, exits)
    began = time.monotonic()
    message = live.run("nqsd", "start").ok()
    assert "still being loaded" in message.err
    assert live.client.call("status")["pes"]
    assert time.monotonic() - began < 9, "the counter is open before the file is given up"
    live.write("job.sh", "true\n")
    late = live.spawn("qsub", "-N", "gated", "job.sh")
    out, err = late.communicate(timeout=40)
    assert late.returncode == 0, err
    live.until(out.strip(), lambda job: job["reason"]["text"] == "gate closed", "be refused")
    assert live.ended(live.submit("true"))["exit_status"] == 0
    [problem] = [each for each in live.client.call("status")["alarms"] if "hangs.py" in each]
    assert "left out: " in problem
    assert "within 10 s" in problem
    assert "still being loaded" not in str(live.client.call("status")["alarms"])
    live.stop()
    live.run("nqsd", "start").ok()
    live.stop()
    assert not live.leftovers(), "one that stops while they are loaded leaves nothing behind"


def test_two_at_a_time_are_served_one_after_the_other_and_a_shift_reloads_them_beside_too(make_live):
    live = make_live().site(ONE_QUEUE, {"gate": GATE.format(text="gate closed")}).start()
    many = [live.spawn("qmgr", "-c", "reload exits") for _ in range(4)]
    assert [each.communicate(timeout=40)[0] for each in many] == ["1 exit loaded: gate\n"] * 4
    os.mkfifo(live.home / "exits" / "pipe.py", 0o644)
    live.qmgr("reload exits").refused("pipe.py", "is not a file", "stay in force")
    (live.home / "exits" / "pipe.py").unlink()
    gated = live.submit("true", name="gated")
    live.exit("gate", GATE.format(text="another gate"))
    live.set('define shift day when=("30 8 * * *")\nreload exits\nend', "switch shift day")
    live.until(gated, lambda job: job["reason"]["text"] == "another gate", "be refused by the new set")
    live.exit("gate", "def jobselect(:\n")
    live.set("switch shift day")
    until(lambda: [each for each in live.events("alarm") if "gate.py, line 1" in each["text"]], "an alarm")
    assert live.job(gated)["reason"]["text"] == "another gate"
