"""The judge of applications finds what it is there to find: each lie about a small true story."""

import pytest
from chaos import gang_programs
from chaos.gang_judge import GangJudge
from chaos.gang_people import Call
from chaos.gang_programs import Wish
from chaos.jobs import Job, furnish
from chaos.judge import History
from chaos.ledger import Ledger, Promise

from nqspy.model import events as ev
from nqspy.model.requests import Spec, Used


class Story:
    """Two applications: ``low`` on PE 0 gives way to ``high`` and goes on, on PE 1. Tests tell it otherwise
    before they ask for the verdict."""

    def __init__(self, work):
        furnish(work)
        gang_programs.furnish(work)
        self.ledger = Ledger(work)
        self.events = [
            (0, submitted(1, "low")), (100, ev.Starting(1, 1, (0,))), (200, submitted(2, "high")),
            (300, ev.Suspended(1, 1, "bumper", leaving=True)), (400, ev.MovedOut(1, 1)),
            (400, ev.Starting(2, 1, (0,))), (500, ev.Resumed(1, 1, "bumper", (1,))), (900, ended(2, 3)),
            (900, ended(1, 0)),
        ]  # fmt: skip
        low = ("begin 150", "tick 350", "tick 600", "end 850")
        self.ticks = {
            "low": [f"{each} 1.vm 1 0 9" for each in low],
            "high": ["begin 450 2.vm 1 0 8", "end 850 2.vm 1 0 8"],
        }
        self.statuses = {"low": 0, "high": 3}

    def tell(self, events=None, ticks=None, statuses=None):
        """Tell it otherwise: events by (first, last), lines of ticks by (token, place)."""
        for (first, last), others in (events or {}).items():
            self.events[first:last] = others
        for (token, place), line in (ticks or {}).items():
            self.ticks[token][place : place + 1] = [line] if line else []
        self.statuses |= statuses or {}
        return self

    def verdict(self):
        """Return the kinds of what is broken."""
        calls = []
        for token, status in self.statuses.items():
            promise = Promise(Job(token, "mpprun", ""), 1)
            self.ledger.enter(promise)
            wish = Wish("plain", 1.0, {"low": 0, "high": 3}[token], 1, "production")
            calls.append(Call(promise, wish, None, status=status, over=1.0))
        for token, lines in self.ticks.items():
            (self.ledger.work / "ticks" / token).write_text("".join(f"{line}\n" for line in lines))
        events = [ev.Recorded(n, at, event) for n, (at, event) in enumerate(self.events, 1)]
        GangJudge(self.ledger, History(events), calls).all()
        return sorted({each.what for each in self.ledger.violations})


def submitted(seq, name):
    return ev.Submitted(seq, Spec("anne", 1001, name, "apps", "", "", "/home"), "apps", "queued")


def ended(seq, status, reason="exit"):
    return ev.Ended(seq, 1, reason, status, None, Used(cpu=5))


@pytest.fixture
def story(tmp_path):
    return Story(tmp_path)


LOST = {(8, 9): [(900, ended(1, None, "lost"))]}
TOLD = {
    "ran without its PEs": {"events": {(6, 7): []}},
    "frozen": {"events": {(8, 9): [(60_000, ended(1, 0))]}, "ticks": {("low", 3): "end 59000 1.vm 1 0 9"}},
    "a PE given twice": {"events": {(4, 5): []}},
    "run twice": {"ticks": {("high", 2): "begin 700 2.vm 1 0 7"}},
    "ran without its PEs, run twice": {"ticks": {("high", 2): "begin 700 2.vm 2 0 7"}},
    "other PEs": {"ticks": {("high", 0): "begin 450 2.vm 1 1 8"}},
    "told otherwise": {"statuses": {"high": 0}},
    "ends": {"events": {(8, 9): []}},
    "lost": {"events": LOST, "statuses": {"low": 1}},
}
"""Lies about the story, by what the judge finds."""


def test_the_true_story_breaks_nothing(story):
    assert story.verdict() == []
    assert story.ledger.counts["came back elsewhere"] == 1


@pytest.mark.parametrize("kinds", TOLD)
def test_a_lie_is_found(story, kinds):
    assert story.tell(**TOLD[kinds]).verdict() == kinds.split(", ")


def test_an_application_that_never_began_is_found(story):
    story.ticks["high"] = []
    assert story.verdict() == ["not run"]


def test_an_application_that_gave_way_and_is_deleted_has_its_grace_time(story):
    assert story.tell({(6, 7): [(550, ev.Deleting(1, 1, "anne"))]}).verdict() == []


def test_so_has_one_that_is_deleted_while_it_gives_way(story):
    [place] = [n for n, (_, event) in enumerate(story.events) if isinstance(event, ev.MovedOut)]
    deleting = (story.events[place][0], ev.Deleting(1, 1, "anne"))
    assert story.tell({(6, 7): []}).tell({(place, place): [deleting]}).verdict() == []


def test_what_a_daemon_finds_ended_may_have_run_until_it_decides(story):
    found = [(800, ev.DaemonStarted(0, False)), (800, ended(2, 3)), (800, ended(1, 0))]
    story.tell({(7, 9): [*found, (900, submitted(3, "third"))]}, {("low", 3): "end 880 1.vm 1 0 9"})
    story.ledger.enter(Promise(Job("third", "script", ""), 1))
    assert story.verdict() == ["ends"]  # of the third, which is there for its time


def test_an_application_whose_caller_went_with_its_request_need_not_begin(story):
    script = Promise(Job("script", "script", ""), 1, inner=[Wish("plain", 1.0, 0, 1, "rush")])
    script.asked.add("delete")
    story.ledger.enter(script)
    story.events += [
        (905, submitted(3, "script")), (910, ev.Starting(3, 1, ())), (920, submitted(4, "script-0-a1")),
        (930, ev.Starting(4, 1, (0,))), (940, ended(3, None, "deleted")), (950, ended(4, 1)),
    ]  # fmt: skip
    assert story.verdict() == []
    story.ledger.violations.clear()
    story.events[-2] = (940, ended(3, 0))
    assert "not run" in story.verdict()


@pytest.mark.parametrize(("ticks", "kinds"), [({}, []), ({("low", 3): ""}, ["told otherwise"])])
def test_a_shepherd_may_be_killed_only_when_its_program_has_told_its_end(story, ticks, kinds):
    story.ledger.counts["fault shepherd killed"] = 1
    assert story.tell(LOST, ticks).verdict() == kinds
