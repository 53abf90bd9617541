"""What exits answered, where they failed and which are left out: known to the next daemon too."""

import os
import signal

import pytest
from daemon.live import ONE_QUEUE, alive, until

POISONED = """\
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request):
    if request.name == "poison":
        raise RuntimeError("no antidote")
    return refuse("not now") if request.name == "gated" else None
"""


@pytest.fixture
def live(make_live):
    live = make_live()
    live.accepts_trouble = True  # the exit's own tracebacks
    return live.site(ONE_QUEUE, {"poisoned": POISONED}).start()


def fails(live, times):
    """Submit so many requests on which the exit fails, one after the other."""
    for _ in range(times):
        id = live.submit("true", name="poison")
        live.until(id, lambda job: "no antidote" in str(job["reason"]), "be failed on")


def resting(live):
    """True if the exit is not called for one owner's requests any more."""
    return any("five requests of" in each["text"] for each in live.events("alarm"))


def kept(live):
    """Return what the home stores about the exits' failures in a row."""
    path = live.home / "exits.memory"
    return path.read_bytes().count(b"no antidote") if path.exists() else 0


@pytest.mark.parametrize("end", ["stop", "kill", "lose its process"])
def test_five_failures_in_a_row_are_counted_over_ends_of_daemon_and_process(live, end):
    fails(live, 3)
    if end != "stop":  # which writes them down by itself
        until(lambda: kept(live) >= 3, "they are remembered")
    if end == "lose its process":
        pid = int(live.client.call("status")["decider"].partition("run in process ")[2].split()[0])
        os.kill(pid, signal.SIGKILL)
    else:
        getattr(live, end)()
        live.start()
    fails(live, 1)
    assert not resting(live)
    live.submit("true", name="poison")
    until(lambda: resting(live), "the fifth in a row counts")
    live.restart()
    late = live.submit("true")
    live.until(late, lambda job: "failed on five requests of" in str(job["reason"]), "be refused")
    assert not live.events("exit_off")


def test_traces_are_those_of_before_a_restart_and_of_after_it(live):
    gated = live.submit("true", name="gated")
    live.until(gated, lambda job: job["reason"]["text"] == "not now", "be refused")
    fails(live, 1)
    # A daemon that stops while a pass runs keeps what was written last.
    until(lambda: kept(live) >= 1, "the answers are written")
    before = live.client.call("exits_trace", request=gated)["trace"]
    assert [(row["exit"], row["answer"]) for row in before] == [("poisoned", "refuse('not now')")]
    live.set("stop queue batch")
    live.restart()
    assert live.client.call("exits_trace", request=gated)["trace"] == before
    live.set("start queue batch")
    until(
        lambda: live.client.call("exits_trace", request=gated)["trace"][0]["at"] > before[0]["at"],
        "asked anew",
    )
    assert (live.home / "exits.memory").stat().st_mode & 0o077 == 0


def test_rubbish_where_it_is_kept_harms_nobody(live):
    for rubbish in ("", "{}", "[1]", '{"out": 3}', "\x00\xff"):
        live.stop()
        for name in ("exits.memory", "exits.strikes"):
            (live.home / name).write_text(rubbish)
        live.start()
        assert live.ended(live.submit("true"))["exit_status"] == 0, rubbish


SLOW = """
import time
from nqspy.userexit import userexit

@userexit
def jobselect(request):
    print("looks at", request.name)
    time.sleep(0.7)
    raise ValueError("no way")
"""


def test_a_failure_in_a_pass_that_a_stop_cuts_off_is_told_after_the_start(make_live):
    live = make_live().site(exits={"slow": SLOW}).start()
    live.accepts_trouble = True
    live.set("set exit slow budget=10s")
    id = live.submit("true", name="first")
    until(lambda: "looks at first" in live.log, "the pass")
    pid = live.pid
    os.kill(pid, signal.SIGTERM)
    until(lambda: not alive(pid), "its end")
    live.hang_up()
    live.start()
    told = until(lambda: live.events("alarm"), "an alarm")
    assert id in told[0]["text"]
    assert "no way" in told[0]["text"]
