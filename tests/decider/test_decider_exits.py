"""User exits under a running daemon: dropped in, broken, endless."""

from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, until

from nqspy.model.errors import Refusal

ROOT = Path(__file__).parents[2]

PICKY = """\
from nqspy.userexit import refuse, setting, userexit

word = setting("word", "text", "never", "names that may not start")


@userexit
def jobselect(request):
    return refuse(f"not {word.value}") if request.name == word.value else None
"""


def test_a_new_exit_counts_from_the_next_pass_on(live):
    live.set("stop queue batch")
    id = live.submit("true", name="never")
    live.exit("picky", PICKY)
    assert "picky" in live.qmgr("reload exits").ok().out
    live.set("start queue batch")
    other = live.submit("true", name="other")
    assert live.ended(other)["exit_status"] == 0
    reason = live.job(id)["reason"]
    assert (reason["code"], reason["who"], reason["text"]) == ("EXIT", "picky", "not never")
    live.set("set exit picky word=now")
    assert live.ended(id)["exit_status"] == 0
    third = live.submit("true", name="now")
    live.waits(third, "not now")
    live.set("disable exit picky")
    assert live.ended(third)["exit_status"] == 0
    [listed] = live.client.call("exits_list")["exits"]
    assert (listed["name"], listed["enabled"]) == ("picky", False)
    assert listed["calls"] >= 3


def test_a_redating_is_told_with_its_cause_also_after_a_restart(make_live):
    gun = (ROOT / "exits" / "machine_gun.py").read_text()
    live = make_live().site(ONE_QUEUE + "set run_limit=1 batch\n", {"machine_gun": gun}).start()
    live.set("stop queue batch")
    first, second = live.submit("sleep 100"), live.submit("true")
    assert live.why(second)["redated"] is None
    live.set("start queue batch")
    live.running(first)
    redated = live.why(second)["redated"]
    assert (redated["who"], redated["cause"]) == ("machine_gun", first)
    assert redated["at"] >= live.job(second)["date_in_queue"], "told once it was decided"
    [event] = live.events("redated")
    assert (event["requests"], event["cause"]) == ([second], first)
    assert event["at"] == redated["at"], "the very instant of the event"
    live.restart()
    assert live.why(second)["redated"] == redated
    assert f"when {first} was started" in live.run("qstat", "--why", second).ok().out


def test_a_broken_file_or_a_folder_that_is_gone_leaves_the_old_set_in_force(make_live):
    live = make_live().site(ONE_QUEUE, {"picky": PICKY}).start()
    live.exit("another", PICKY.replace("never", "other"))
    live.exit("picky", PICKY.replace("def jobselect", "def jobselekt"))
    live.qmgr("reload exits").refused("picky.py", "line 7", "jobselekt", "stay in force")
    never, other = live.submit("true", name="never"), live.submit("true", name="other")
    assert live.ended(other)["exit_status"] == 0, "nothing of the new set is in force"
    live.waits(never, "not never")
    (live.home / "exits").rename(live.home / "elsewhere")
    live.qmgr("reload exits").refused("exits is not a folder", "stay in force")
    live.waits(live.submit("true", name="never"), "not never")
    (live.home / "exits").mkdir()
    assert "no exits loaded" in live.qmgr("reload exits").ok().out


TELLING = """\
from nqspy.userexit import userexit


def _note(text):
    with open("{log}", "a") as log:
        log.write(text + "\\n")


@userexit
def jobinit(request):
    _note(f"begin {{request.id}} {{request.name}}")


@userexit
def jobend(request):
    _note(f"end {{request.id}} {{request.owner}}")
"""


def test_notices_are_told_of_starts_and_ends_after_the_commit(make_live, open_folder):
    log = open_folder / "told"
    live = make_live().site(ONE_QUEUE, {"telling": TELLING.format(log=log)}).start()
    id = live.submit("true", name="told")
    owner = live.ended(id)["owner"]
    until(lambda: log.exists() and len(log.read_text().splitlines()) == 2, "two notices")
    assert log.read_text().splitlines() == [f"begin {id} told", f"end {id} {owner}"]


CHANGING = """\
from nqspy.userexit import changes, refuse, userexit

CHANGES = {
    "later": lambda request, now: changes(date=now + 3_600_000),
    "kept": lambda request, now: changes(hold=True),
    "small": lambda request, now: changes(cpu="5:00", memory="8mb", wall=90_000, pes=1, attributes=["x"]),
    "files": lambda request, now: changes(output="told", error=request.arguments[0]),
    "large": lambda request, now: changes(memory="1tb"),
    "wide": lambda request, now: changes(pes=5000),
    "lost": lambda request, now: changes(group="nowhere"),
    "shelled": lambda request, now: changes(shell="sh"),
    "astray": lambda request, now: changes(queue="nope"),
    "sideways": lambda request, now: changes(queue="other"),
    "many": lambda request, now: changes(attributes=["a\\nb"]),
    "read": lambda request, now: refuse(f"{len(request.script)} {request.script[-7:]!r}"),
}


@userexit
def submit(request, view, now):
    return CHANGES[request.name](request, now) if request.name in CHANGES else None
"""


REFUSED = {
    "large": "above the limit of 1gb (as changed by exit changing)",
    "wide": "(as changed by exit changing)",
    "lost": "there is no group nowhere; groups: none (as changed by exit changing)",
    "many": "must be one word",
    "shelled": "'sh' is not a shell; give its whole path, such as /bin/sh (as changed by exit changing)",
    "astray": "Unknown queue nope; queues: batch, other (as changed by exit changing)",
    "read": "65536 '#######' (exit changing)",  # it sees the beginning of a script
}


def test_a_submit_exit_changes_date_hold_limits_attributes_and_output_and_that_is_checked(make_live):
    live = make_live().site(ONE_QUEUE, {"changing": CHANGING}).start()
    live.set("set queue batch per_request memory_limit=1gb", "create batch_queue other", "enable queue other")
    for name, said in REFUSED.items():
        with pytest.raises(Refusal) as refused:
            live.submit("#" * 300_000, name=name)
        assert said in str(refused.value)
    assert not live.client.requests()
    assert live.job(live.submit("true", name="sideways"))["queue"] == "other"
    assert live.job(live.submit("true", name="later"))["state"] == "waiting"
    assert live.job(live.submit("true", name="kept"))["state"] == "held"
    live.set("stop queue batch")
    small = live.job(live.submit("true", name="small", pes=2))
    asked = {"cpu_s": 300, "wall_s": 90, "memory_bytes": 8 << 20, "pes": 1}
    assert small["requested"].items() >= asked.items()
    live.set("start queue batch")
    id = live.submit("echo out; echo err >&2", str(live.work / "said"), name="files", join=True)
    live.ended(id)
    assert live.text("told") == "out\n"
    assert live.text("said") == "err\n"


MANY = """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request, view):
    if view.running(owner=request.owner, name=request.name):
        return refuse("one at a time", alike=("owner", "group", "name"))
"""


def test_a_trace_shows_what_was_said_of_another_request_alike(make_live):
    live = make_live().site(ONE_QUEUE, exits={"one": MANY}).start()
    live.running(live.submit("exec sleep 60", name="burst"))
    waiting = [live.submit("true", name="burst") for _ in range(3)]
    until(lambda: all("one at a time" in live.why(id)["reason"]["text"] for id in waiting), "their reason")
    asked, reached = (live.client.call("exits_trace", request=id)["trace"][-1] for id in waiting[:2])
    assert asked["answer"] == reached["answer"] == "refuse('one at a time')"
    assert (asked.get("alike"), reached["alike"]) == (None, ["owner", "group", "name"])
    assert "alike in owner, group" in live.run("nqspy", "exits", "trace", waiting[2]).ok().out
