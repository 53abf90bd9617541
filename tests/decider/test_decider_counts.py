"""What exits did wrong is counted alike by the journal's alarms, the night's report and show exits."""

import os

import pytest
from daemon.live import ONE_QUEUE, until
from daemon.person import submit_as

MINE = """\
import os
from nqspy.userexit import userexit


@userexit
def jobselect(request):
    if request.name == "raises":
        raise RuntimeError("no way")
    if request.name == "nonsense":
        return 17
    if request.name == "loops":
        while True:
            pass
    if request.name == "leaves":
        os._exit(3)


@userexit
def submit(request):
    if request.name == "door":
        raise ValueError("no door")


@userexit
def route(request, destinations):
    if request.name == "lost":
        raise LookupError("no road")
"""

PIPE = """\
create pipe_queue pipe priority=10 destination=(batch)
enable queue pipe
start queue pipe
"""


@pytest.fixture
def live(make_live):
    live = make_live()
    live.accepts_trouble = True
    return live.site(ONE_QUEUE + PIPE, {"mine": MINE}).start()


def alarms(live):
    return [each for each in live.events("alarm") if each["who"] == "exit mine"]


def reported(live):
    rows = live.run("nqspy", "report", "night", "--json").ok().data["exits"]
    return rows[0] if rows else {"count": 0, "requests": {}}


def counts(live):
    shown = live.client.call("exits_list")["exits"][0]["failures"]
    return len(alarms(live)), reported(live)["count"], shown


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may speak as other users")
def test_all_that_an_exit_did_wrong_is_in_the_report_and_counted_alike(live):
    ids = []
    for name in ("raises", "nonsense", "loops"):
        ids.append(live.submit("true", name=name))
        live.until(ids[-1], lambda job: "exit mine" in str(job["reason"]), "be refused")
    ids.append(live.submit("true", name="door"))
    live.ended(ids[-1])
    assert counts(live) == (4, 4, 4)
    ids.append(live.submit("true", name="leaves"))
    until(lambda: "ended the process" in str(alarms(live)), "it is lost")
    ids.append(submit_as(live, 1, "leaves"))
    until(lambda: live.events("exit_off"), "it is switched off")
    told = reported(live)
    assert len(set(counts(live))) == 1, counts(live)
    assert told["count"] >= 6, "what was asked about again after a loss may have failed again"
    assert set(told["requests"]["default"]) == set(ids)
    assert "ended the process" in told["text"]
    assert told["off"]
    text = live.run("nqspy", "report", "night").ok().out
    assert f"mine {told['count']} " in text
    assert f"{told['count']} failures" in live.qmgr("show exits").ok().out


def test_failures_at_the_door_name_their_requests_and_are_counted_alike(live):
    """A refused submission names no request, the next one is not blamed; each of a list has its number."""
    for name in ("nowhere", "batch"):
        live.run("qsub", "-q", name, "-N", "door", stdin="true\n")
    assert counts(live) == (2, 2, 2)
    live.write("job", "true\n")
    lines = "".join(f"-N {name} job\n" for name in ("fine", "door", "fine", "door"))
    live.run("qsub", "--list", "-", stdin=lines).ok()
    id = live.run("qsub", "-q", "pipe", "-N", "lost", stdin="true\n").ok().lines[-1]
    assert live.ended(id)["exit_status"] == 0
    failures = [each for alarm in alarms(live) for each in alarm["failures"]]
    assert [str(each["request"]).partition(".")[0] for each in failures] == ["None", "1", "3", "5", "6"]
    assert "ValueError: no door" in alarms(live)[0]["text"]
    last = alarms(live)[-1]["text"]
    assert "no road" in last
    assert id in last
    assert counts(live)[0] == counts(live)[1] == counts(live)[2] == 5
