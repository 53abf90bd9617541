"""What the events of dependencies do to a site: one about something that is gone changes nothing."""

import pytest

from nqspy.engine.lifecycle import apply
from nqspy.model import events as ev
from nqspy.model.errors import BrokenSite
from nqspy.model.ids import Instant
from nqspy.model.requests import Dependency, Spec, State
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site


def site_with(*after):
    """Request 1, and request 2 that waits for it by these words; 3 waits for nothing."""
    site = Site()
    tell(site, ev.SettingsChanged((ev.Change("create", "queue/q", {}),)))
    for seq, words in ((1, ()), (2, after), (3, ())):
        waits = tuple(Dependency(1, word) for word in words)
        spec = Spec("anne", 1, "x", "q", "s", "e", "/home", after=waits)
        tell(site, ev.Submitted(seq, spec, "q", "held" if waits else "queued"))
    return site


def tell(site, event):
    apply(site, ev.Recorded(site.n + 1, Instant(site.n), event))
    check_site(site)


def test_it_is_held_without_a_letter_of_anybody_s_until_all_is_met():
    site = site_with("ok", "start")
    request = site.requests[2]
    assert (request.state, request.holds, request.letters) == (State.HELD, "", "s")
    assert site.dependants == {1: {2}}
    tell(site, ev.DependencyMet((2, 99), 1, ("start",)))
    assert (request.state, request.unmet) == (State.HELD, (Dependency(1, "ok"),))
    tell(site, ev.DependencyMet((2,), 7, ("ok",)))
    assert request.state is State.HELD, "that was another one's end"
    tell(site, ev.DependencyMet((2,), 1, ("ok", "any", "start")))
    assert (request.state, site.dependants) == (State.QUEUED, {})


def test_a_dependency_that_failed_keeps_it_held_until_the_system_s_hold_is_released():
    site = site_with("ok")
    request = site.requests[2]
    tell(site, ev.DependencyFailed((2,), 1, ("ok",), "it failed"))
    assert (request.state, request.never) == (State.HELD, "it failed")
    tell(site, ev.Released((2,), "u", "anne"))
    assert request.state is State.HELD
    tell(site, ev.Released((2,), "s", "olga"))
    assert (request.state, request.never, request.unmet, site.dependants) == (State.QUEUED, "", (), {})


def test_one_that_is_deleted_waits_for_nobody():
    site = site_with("ok")
    tell(site, ev.Deleted(2, "anne"))
    assert site.dependants == {}
    tell(site, ev.DependencyMet((2,), 1, ("ok",)))
    assert 2 not in site.requests


def forget_the_index(site):
    site.dependants.clear()


def wait_for_a_later_one(site):
    site.requests[2].unmet = (Dependency(3),)
    site.dependants = {3: {2}}


def hopeless_without_cause(site):
    site.requests[3].never = "for no reason"


@pytest.mark.parametrize("broken", [forget_the_index, wait_for_a_later_one, hopeless_without_cause])
def test_the_check_finds_what_is_broken(broken):
    site = site_with("ok")
    broken(site)
    with pytest.raises(BrokenSite):
        check_site(site)
