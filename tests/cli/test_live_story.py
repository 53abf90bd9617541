"""``nqspy story ID``: all that happened to one request, and nothing of others."""

import json


def told(live, id):
    return [json.loads(line) for line in live.run("nqspy", "story", id, "--json").ok().lines]


def test_a_story_is_what_the_journal_says_of_one_request(live):
    first, second = live.submit("true", held=True), live.submit("true", held=True)
    live.qmgr(f"modify request {second} priority=3").ok()
    live.run("qrls", first, second).ok()
    live.ended(first), live.ended(second)
    story = told(live, first)
    kinds = [each["kind"] for each in story if each["kind"] != "decided"]
    assert kinds == ["submitted", "released", "starting", "started", "ended"]
    assert [each["n"] for each in story] == sorted(each["n"] for each in story)
    assert second not in json.dumps(story)
    assert "modified" in [each["kind"] for each in told(live, second)]
    seq = first.partition(".")[0]
    lines = live.run("nqspy", "story", seq).ok().lines
    assert [line.split()[2] for line in lines] == [each["kind"] for each in story]
    live.run("nqspy", "story", "99").refused("Unknown Job Id 99")
    live.run("nqspy", "story", "night").refused("illegally formed job identifier: night")
