"""A pass offers so many candidates to jobselect and no more; the next one goes on where it stopped."""

import pytest
from engine.harness import PLAIN, Centre, asked, exits_of, item

from nqspy.model import commands as cm

EXIT = """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request):
    return refuse("not tonight") if request.name == "x" else None
"""


@pytest.fixture
def choosy(tmp_path):
    return exits_of(tmp_path / "exits", choosy=EXIT)


BY_CLASS = "create class production\nset queue batch order=class\n"


@pytest.mark.parametrize("order", ["", BY_CLASS])
def test_those_behind_more_refused_ones_than_a_pass_offers_start_on_idle_pes(choosy, order):
    centre = Centre(f"{PLAIN}{order}set global offers_per_pass=3\n", exits=choosy, length=36_000)
    refused = centre.submit(*["anne name=x"] * 20)
    [fits] = centre.submit("ben name=y")
    centre.later(seconds=1)
    assert centre.state(fits) == "running"
    centre.is_sound()
    calls = sum(row["calls"] for row in choosy.listing())
    centre.later(hours=1)
    assert sum(row["calls"] for row in choosy.listing()) == calls, "nothing has happened: no exit is asked"
    assert {centre.engine.plan.reasons.of(seq, "batch").text for seq in refused} == {"not tonight"}


@pytest.mark.parametrize("order", ["", BY_CLASS])
def test_with_no_pe_free_a_pass_does_not_go_on(choosy, order):
    centre = Centre(f"{PLAIN}{order}set global offers_per_pass=3\n", exits=choosy, pes=1, length=3600)
    centre.submit("ben name=y")
    centre.submit(*["anne name=x"] * 20)
    before = sum(row["calls"] for row in choosy.listing())
    centre.later(minutes=30)
    assert sum(row["calls"] for row in choosy.listing()) == before


# ---------------------------------------------------------------- the walk goes on, whatever happens

BUSY = """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request, view):
    if request.name.startswith("x"):
        return refuse(f"{len(view.running())} are running")
"""


def test_events_that_keep_coming_do_not_keep_a_pe_idle_behind_three_hundred_refused(tmp_path):
    """Every event changes what the refusals rest on, and comes before the walk is at its end."""
    exits = exits_of(tmp_path / "exits", busy=BUSY)
    centre = Centre(f"{PLAIN}set global offers_per_pass=100\n", exits=exits, pes=2, length=36_000)
    engine, now = centre.engine, centre.sim.now
    centre.submit("zoe name=y")
    centre.qmgr("stop queue batch")
    centre.submit(*["anne name=x"] * 300)
    [fits] = centre.submit("ben name=y")
    centre.qmgr("set global run_limit=2")
    engine.feed([asked(centre.command("start queue batch"))], now)
    for _ in range(12):
        now += 1
        engine.feed([asked(cm.Submit((item("cleo name=x", now),)))], now)
        engine.feed([], now)
        if centre.state(fits) == "running":
            break
    assert centre.state(fits) == "running", "the walk begins again at each event"
    assert max(row["calls"] for row in exits.listing()) <= 2 * 12 * 100


WAITS = """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request, view):
    if request.name == "x" or (request.name == "z" and view.queue("batch").priority < 60):
        return refuse("not yet")
"""


def test_a_refusal_from_before_a_change_is_asked_about_again_after_the_round(tmp_path):
    """The fourth in line is refused in the first pass of a round, and a setting changes before the second."""
    exits = exits_of(tmp_path / "exits", waits=WAITS)
    centre = Centre(f"{PLAIN}set global offers_per_pass=4\n", exits=exits, pes=2, length=36_000)
    engine, now = centre.engine, centre.sim.now
    centre.qmgr("stop queue batch")
    *_, freed = centre.submit(*["anne name=x"] * 3, "ben name=z")
    centre.submit(*["cleo name=x"] * 10)
    engine.feed([asked(centre.command("start queue batch"))], now)
    engine.feed([], now)
    assert centre.state(freed) == "queued"
    engine.feed([asked(centre.command("set queue batch priority=60"))], now)
    for at in range(now, now + 10):
        engine.feed([], at)
    assert centre.state(freed) == "running"
    centre.is_sound()


@pytest.mark.parametrize("reserve", [0, 1])
def test_passes_come_to_rest_with_a_wide_request_behind_refused_ones(choosy, reserve):
    lines = f"{PLAIN}set global offers_per_pass=3\nset queue batch order=fcfs reserve={reserve}\n"
    centre = Centre(lines, exits=choosy, pes=4, length=36_000)
    centre.submit("zoe name=y wall=36000")
    centre.submit(*["anne name=x"] * 20, "ben name=y pes=4 wall=60", *["anne name=x"] * 5)
    centre.later(seconds=1)
    calls = sum(row["calls"] for row in choosy.listing())
    centre.later(hours=1)
    assert sum(row["calls"] for row in choosy.listing()) == calls


def test_a_look_ahead_neither_uses_nor_keeps_refusals(choosy):
    centre = Centre(f"{PLAIN}set global offers_per_pass=2\n", exits=choosy, pes=2)
    seqs = centre.submit(*["anne name=x"] * 3)
    centre.estimate(seqs[1])
    [fits] = centre.submit("ben name=y")
    centre.later(seconds=1)
    assert centre.state(fits) == "running"
    centre.is_sound()
