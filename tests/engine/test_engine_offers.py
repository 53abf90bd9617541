"""A pass offers so many candidates to jobselect and no more; the next one goes on where it stopped."""

import pytest
from engine.harness import PLAIN, Centre

from nqspy.userexit.site_exits import SiteExits

EXIT = """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request):
    return refuse("not tonight") if request.name == "x" else None
"""


@pytest.fixture
def choosy(tmp_path):
    folder = tmp_path / "exits"
    folder.mkdir()
    (folder / "choosy.py").write_text(EXIT)
    return SiteExits(folder)


def test_those_behind_more_refused_ones_than_a_pass_offers_start_on_idle_pes(choosy):
    centre = Centre(f"{PLAIN}set global offers_per_pass=3\n", exits=choosy)
    refused = centre.submit(*["anne name=x"] * 20)
    [fits] = centre.submit("ben name=y")
    centre.later(seconds=1)
    assert centre.state(fits) == "running"
    reasons = centre.engine.plan.reasons
    assert {reasons.of(seq, "batch").text for seq in refused[:3]} == {"not tonight"}
    centre.is_sound()


def test_once_all_were_offered_there_is_nothing_to_do(choosy):
    centre = Centre(f"{PLAIN}set global offers_per_pass=3\n", exits=choosy)
    refused = centre.submit(*["anne name=x"] * 20)
    centre.later(seconds=1)
    calls = sum(row["calls"] for row in choosy.listing())
    centre.later(hours=1)
    assert sum(row["calls"] for row in choosy.listing()) == calls, "nothing has happened: nobody is asked"
    assert {centre.engine.plan.reasons.of(seq, "batch").text for seq in refused} == {"not tonight"}


def test_with_no_pe_free_a_pass_does_not_go_on(choosy):
    centre = Centre(f"{PLAIN}set global offers_per_pass=3\n", exits=choosy, pes=1, length=3600)
    centre.submit("ben name=y")
    centre.submit(*["anne name=x"] * 20)
    before = sum(row["calls"] for row in choosy.listing())
    centre.later(minutes=30)
    assert sum(row["calls"] for row in choosy.listing()) == before
