"""The decider in a process of its own decides what it decides at once: the same night, start by start."""

import queue
from pathlib import Path

import pytest
from scenarios.computing_centre import ROOT, Site, lists_for, seconds_in_name, until_all_ended
from store.conftest import observable

from nqspy.decider import loading
from nqspy.decider.client import DeciderClient
from nqspy.decider.process import FromWorker
from nqspy.decider.remote_exits import RemoteExits
from nqspy.engine.lifecycle import apply
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant
from nqspy.model.site import Site as State

FIVE = {"d1": 29, "d2": 29, "d3": 22, "d4": 15, "d5": 5}


class Waiting(DeciderClient):
    """A decider with a real child, each plan of which is waited for: time stands still meanwhile, as it
    does where passes run at once."""

    def __init__(self, folder: Path) -> None:
        self.heard: queue.SimpleQueue[FromWorker] = queue.SimpleQueue()
        self.troubles = []
        self.plans = 0
        super().__init__(State(), folder, self.heard.put, lambda: Instant(0), self.troubles.append)
        loading.load(self)

    def ask(self, site, now, samples):
        plan = super().ask(site, now, samples)
        while plan is None:
            decision = self.receive(self.heard.get(timeout=180))
            if decision is not None:
                assert decision.plan is not None, self.troubles
                plan = decision.plan
                self.plans += 1
        return plan


def history(site):
    """What a night's journal says, without the clock's times of nothing but itself."""
    return [(each.n, each.at, each.event) for each in site.journal.events()]


@pytest.fixture
def child():
    decider = Waiting(ROOT / "exits")
    yield decider
    decider.close()


def test_a_night_is_decided_the_same_in_a_child_and_at_once(child):
    here = Site(seconds_in_name, pes=4)
    there = Site(seconds_in_name, pes=4, decided=(RemoteExits(child), child))
    for site in (here, there):
        lists_for(site, FIVE, 60, seed=5)
        site.submit("ann queue=normal cpu=300 name=day-120", "ben queue=normal cpu=300 name=day-150")
        until_all_ended(site)
        site.is_sound()
    assert child.plans > 60
    assert not child.troubles
    assert len(there.events(ev.Starting)) >= 60
    assert history(there) == history(here), "the same events, each at the same instant"


def test_a_journal_made_with_the_child_replays_to_the_same_site(child):
    site = Site(seconds_in_name, pes=2, decided=(RemoteExits(child), child))
    lists_for(site, FIVE, 40, seed=2)
    site.until("2026-03-02T23:00:00+01:00")
    again = State()
    for recorded in site.journal.events():
        apply(again, recorded)
    assert observable(again) == observable(site.site)


def test_a_child_forked_in_the_middle_of_a_night_goes_on_as_the_former_would(child):
    here = Site(seconds_in_name, pes=2)
    there = Site(seconds_in_name, pes=2, decided=(RemoteExits(child), child))
    for site in (here, there):
        lists_for(site, FIVE, 40, seed=7)
        site.until("2026-03-02T22:30:00+01:00")
        if site is there:
            former = child.worker.pid
            child.drop("to be forked anew")
        until_all_ended(site)
    assert child.worker.pid != former
    assert there.starts() == here.starts()


def test_after_a_commit_that_failed_the_child_is_forked_from_the_rows(child):
    site = Site(lambda r: 600, decided=(RemoteExits(child), child))
    site.list_of("d1", "name=a mem=4mw", "name=b mem=4mw")
    former = child.worker.pid

    def full():
        site.journal.failpoint = None
        raise OSError(28, "No space left on device")

    site.journal.failpoint = full
    with pytest.raises(Refusal, match="nothing was changed"):
        site.list_of("d1", "name=lost mem=4mw")
    site.until("2026-03-02T21:30:00+01:00")
    assert len(site.starts()) == 2
    assert child.worker.pid != former
    assert not child.troubles
    site.is_sound()
