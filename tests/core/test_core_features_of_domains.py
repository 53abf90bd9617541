"""The features that a domain lists: only these have its running requests give way, or stay away."""

import pytest
from core.harness import House
from core.test_core_shift_end import closes, day

from nqspy.core import features
from nqspy.core.timeline.lengths import end_of, is_suspended
from nqspy.model import events as ev
from nqspy.model.actions import Requeue, Suspend
from nqspy.model.cause import cause_of
from nqspy.model.configure import dump, load
from nqspy.model.errors import BadValue
from nqspy.model.ids import HOUR
from nqspy.model.reasons import ReasonCode
from nqspy.model.tree import declared

MW = 8 * 2**20


@pytest.fixture
def both() -> House:
    """Two requests run: 1 in domain application, 2 in domain wide."""
    house = House().machine(pes=4)
    house.change(ev.Change("create", "domain/wide", {"pes": ["2-3"]}))
    house.queue("day").queue("night", domain="wide")
    house.run("anne queue=day wall=9:00:00", "ben queue=night wall=9:00:00")
    return house.later(hours=1)


def gives_way(house: House) -> list[int]:
    """Requests that a pass has give way."""
    return [each.seq for each in house.run_pass().actions if isinstance(each, Suspend | Requeue)]


def memory(house: House, level: str, used: float, *resident: int) -> None:
    """A reading of the memory: 1000 Mw, so much of it in use, of which requests 1, 2, ... hold so much."""
    house.set("swap_control/enabled", True)
    held = tuple((seq, size * MW) for seq, size in enumerate(resident, 1))
    house._event(ev.PressureChanged(level, used, f"{used:.0f} % in use", held, 1000 * MW))


def test_a_domain_lists_what_may_give_way_and_nothing_that_starts_requests(both):
    known = declared(type(both.site.domain("wide")))["features"]
    assert known.words == ("health", "shift_end", "swap")
    assert {*known.words, *known.fixed} == {*features.BY_NAME}
    for word, said in (
        ("route", "route is always on; features is a list of"),
        ("sawp", "'sawp' is not known"),
    ):
        with pytest.raises(BadValue, match=said):
            both.set("domain/wide/features", [word])


@pytest.mark.parametrize(
    ("listed", "leaves"), [(None, 2), (["swap"], 2), (["health", "shift_end"], 1), ([], 1)]
)
def test_without_swap_the_requests_of_a_domain_run_on_while_memory_is_short(both, listed, leaves):
    both.set("domain/wide/features", listed).submit("cleo queue=night")
    memory(both, "high", 91, 20, 60)
    assert gives_way(both) == [leaves]
    assert both.run_pass().starts == []
    assert both.why(3).code is ReasonCode.MEMORY


@pytest.mark.parametrize(("listed", "leaves"), [(["swap"], [2]), ([], [1])])
def test_the_memory_of_a_domain_without_swap_counts_as_that_of_other_programs(both, listed, leaves):
    """The last large request stays only where requests that may give way fill the memory."""
    both.set("domain/wide/features", listed)
    memory(both, "high", 91, 100, 700)
    assert gives_way(both) == leaves


def test_a_request_that_gave_way_to_memory_comes_back_when_its_domain_lists_swap_no_more(both):
    memory(both, "high", 91, 20, 60)
    both.go()
    both.set("domain/wide/features", [])
    assert both.run_pass().actions == ()
    assert both.why(2).code is ReasonCode.MEMORY
    memory(both, "calm", 20, 20)
    assert [each.seq for each in both.go().actions] == [2]
    assert both.request(2).pause is None


def test_without_shift_end_the_requests_of_a_domain_run_on_when_a_shift_stops_their_queue(both):
    day(both, "suspend", "stop day", "stop night")
    assert gives_way(both) == [1, 2]
    both.set("domain/wide/features", ["health", "swap"])
    assert gives_way(both) == [1]


def test_a_suspended_request_goes_on_once_its_domain_lists_the_feature_no_more(both):
    day(both, "suspend", "stop day", "stop night")
    both.go()
    assert both.run_pass().actions == ()
    assert both.why(2).code is ReasonCode.SHIFT
    told = both.set("domain/wide/features", []).go()
    assert [each.seq for each in told.actions] == [2]
    assert both.request(1).pause is not None
    assert both.request(2).pause is None


def test_nothing_is_told_or_reckoned_of_a_shift_that_lets_the_requests_of_a_domain_run_on(both):
    closes(both, 2, "suspend", "night")
    one, begin = both.request(2), both.now
    assert features.outlook(both.site, one, begin) is not None
    assert end_of(both.site, begin, one) == begin + 2 * HOUR
    assert is_suspended(both.site, one, begin, begin + 3 * HOUR)
    both.set("domain/wide/features", ["health"])
    assert features.outlook(both.site, one, begin) is None
    assert end_of(both.site, begin, one) == begin + 8 * HOUR
    assert not is_suspended(both.site, one, begin, begin + 3 * HOUR)


@pytest.mark.parametrize(("running", "kind"), [("suspend", Suspend), ("requeue", Requeue)])
def test_without_health_what_runs_goes_on_and_what_waits_still_waits(both, running, kind):
    both.probe("nfs", "broken", running=running).set("queue/day/needs", ["nfs"]).set(
        "queue/night/needs", ["nfs"]
    )
    both.submit("cleo queue=night")
    assert gives_way(both) == [1, 2]
    told = both.set("domain/wide/features", ["swap", "shift_end"]).run_pass()
    assert [(type(each), each.seq) for each in told.actions] == [(kind, 1)]
    assert told.starts == []
    assert told.reason(3).code is ReasonCode.RESOURCE


def test_an_action_from_before_the_setting_changed_falls(both):
    day(both, "suspend", "stop day", "stop night")
    actions = both.run_pass().actions
    assert [features.stands(both.site, each) for each in actions] == [True, True]
    both.set("domain/wide/features", ["health"])
    assert [features.stands(both.site, each) for each in actions] == [True, False]


def test_a_feature_that_a_domain_does_not_list_keeps_none_of_its_suspended_requests(both):
    day(both, "suspend", "stop day", "stop night")
    both.go()
    assert features.keeping(both.site, both.request(2)) is not None
    both.set("domain/wide/features", [])
    assert features.keeping(both.site, both.request(2)) is None
    assert features.keeping(both.site, both.request(1)) is not None
    assert both.request(1).pause.cause == cause_of("shift day")


def test_domain_application_has_the_setting_too(both):
    day(both, "requeue", "stop day")
    both.set("domain/application/features", ["swap"])
    assert gives_way(both) == []
    both.set("domain/application/features", None)
    assert gives_way(both) == [1]


def test_rows_keep_the_list_without_words_of_features_that_are_gone(both):
    assert "features" not in dump(both.site.settings)["domain/wide"]
    both.set("domain/wide/features", ["health", "swap"])
    rows = dump(both.site.settings)
    assert load(rows).domains["wide"].features == ("health", "swap")
    rows["domain/wide"]["features"] = ["health", "gone"]
    assert load(rows).domains["wide"].features == ("health",)
    both.set("domain/wide/features", [])
    assert load(dump(both.site.settings)).domains["wide"].features == ()
