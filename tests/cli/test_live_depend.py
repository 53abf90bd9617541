"""What waits for what, and what is told of it: ``qsub --after`` and ``nqspy story`` with a real daemon."""

import json


def test_a_request_waits_for_another_and_says_so_everywhere(office):
    gate = office.work / "one"
    first = office.submit(f"while [ ! -e {gate} ]; do sleep 0.02; done", name="first")
    script = office.write("second.sh", "echo second\n")
    second = office.run("qsub", "-s", "/bin/sh", "--after", first, str(script)).ok().lines[0]
    third = office.run("qsub", "-s", "/bin/sh", "--after", f"{second}:any", str(script)).ok().lines[0]
    job = office.job(third)
    assert (job["state"], job["held"], job["depends_on"]) == ("held", ["s"], [second])
    assert job["reason"]["code"] == "DEPENDENCY"
    assert [(link["needed_by"], link["id"], link["word"]) for link in office.why(third)["chain"]] == [
        (third, second, "any"), (second, first, "ok"),
    ]  # fmt: skip
    text = office.run("qstat", "--why", third).ok().out
    assert f"{third} waits until {second} has ended; {second} is held" in text
    gate.touch()
    assert office.ended(third)["exit_status"] == 0
    order = [event["request"] for event in office.events("starting")]
    assert order.index(first) < order.index(second) < order.index(third)


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


# ---------------------------------------------------------------- nqspy story ID
def told(live, id):
    return [json.loads(line) for line in live.run("nqspy", "story", id, "--json").ok().lines]


def test_a_story_is_what_the_journal_says_of_one_request(shared):
    first, second = shared.submit("true", held=True), shared.submit("true", held=True)
    shared.qmgr(f"modify request {second} priority=3").ok()
    shared.run("qrls", first, second).ok()
    shared.ended(first), shared.ended(second)
    story = told(shared, first)
    kinds = [each["kind"] for each in story if each["kind"] != "decided"]
    assert kinds == ["submitted", "released", "starting", "started", "ended"]
    assert [each["n"] for each in story] == sorted(each["n"] for each in story)
    assert second not in json.dumps(story)
    assert "modified" in [each["kind"] for each in told(shared, second)]
    seq = first.partition(".")[0]
    lines = shared.run("nqspy", "story", seq).ok().lines
    assert [line.split()[2] for line in lines] == [each["kind"] for each in story]
    shared.run("nqspy", "story", "99").refused("Unknown Job Id 99")
    shared.run("nqspy", "story", "night").refused("illegally formed job identifier: night")
