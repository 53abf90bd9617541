"""qsub --after against a real daemon: what waits for what, what happens when it cannot come about, and that a
restart forgets nothing."""

import json

LONG = "while [ ! -e {} ]; do sleep 0.02; done"


def gate(office, name):
    """A script that runs until its file is made."""
    return LONG.format(office.work / name)


def open_gate(office, name):
    (office.work / name).write_text("")


def test_a_request_waits_for_another_and_says_so_everywhere(office):
    first = office.submit(gate(office, "one"), name="first")
    script = office.write("second.sh", "echo second\n")
    second = office.run("qsub", "-s", "/bin/sh", "--after", first, str(script)).ok().lines[0]
    third = office.run("qsub", "-s", "/bin/sh", "--after", f"{second}:any", str(script)).ok().lines[0]
    job = office.job(third)
    assert (job["state"], job["held"], job["depends_on"]) == ("held", ["s"], [second])
    assert job["reason"]["code"] == "DEPENDENCY"
    assert job["reason"]["text"] == f"it waits until {second} has ended"
    why = office.why(third)
    assert [(link["needed_by"], link["id"], link["word"]) for link in why["chain"]] == [
        (third, second, "any"), (second, first, "ok"),
    ]  # fmt: skip
    assert why["chain"][0]["reason"]["text"] == f"it waits until {first} has ended with exit status 0"
    text = office.run("qstat", "--why", third).ok().out
    assert f"{third} waits for {second}:any, held: it waits until {first}" in text
    assert f"{second} waits for {first}:ok, " in text
    assert "Hold_Types = s" in office.run("qstat", "-f", third).ok().out
    open_gate(office, "one")
    assert office.ended(third)["exit_status"] == 0
    order = [event["request"] for event in office.events("starting")]
    assert order.index(first) < order.index(second) < order.index(third)


def test_what_can_never_be_met_is_held_and_an_operator_releases_it(office):
    first = office.submit("exit 3")
    office.ended(first)
    second = office.submit("true", after=[first])
    why = office.why(second)
    assert (
        why["reason"]["text"] == f"{first} ended with exit status 3: what it waits for can never come about"
    )
    assert [(link["id"], link["state"], link["exit_status"]) for link in why["chain"]] == [
        (first, "ended", 3)
    ]
    told = office.run("qstat", "--why", second).ok().out
    assert "ended (exit, exit status 3)" in told
    assert "needed:   the owner must delete it (qdel), or an operator release it" in told
    office.run("qrls", "-h", "s", second).ok()
    assert office.ended(second)["exit_status"] == 0


def test_a_killed_daemon_forgets_no_dependency(live):
    first = live.submit(gate(live, "three"))
    second = live.submit("true", after=[first])
    live.running(first)
    live.kill()
    open_gate(live, "three")
    live.start()
    assert live.ended(second)["exit_status"] == 0
    events = [json.dumps(event) for event in live.events("dependency_met")]
    assert len(events) == 1


def test_a_dependant_sees_what_became_of_those_it_waited_for(office):
    bad, gone = office.submit("exit 3", held=True), office.submit("true", held=True)
    words = ("-W", f"depend=afternotok:{bad},afterany:{gone}", "-o", "became", "-V")
    office.write("became.sh", "#PBS -S /bin/sh\nenv | grep ^NQSPY_DEPENDENC | sort\n")
    id = office.run("qsub", *words, "became.sh").ok().lines[0]
    office.run("qdel", gone).ok()
    office.run("qrls", bad).ok()
    office.ended(id)
    assert office.text("became").splitlines() == [
        "NQSPY_DEPENDENCIES=2",
        f"NQSPY_DEPENDENCY_1={gone} deleted never_began",
        f"NQSPY_DEPENDENCY_2={bad} exit began",
    ]
