"""The judge of the fault harness finds what it is there to find: each lie about a small true story."""

import pytest
from chaos.jobs import Job, furnish
from chaos.judge import NEVER_BEGAN, History, StormJudge
from chaos.ledger import Bar, Ledger, Promise, Strike
from msgspec.structs import replace

from nqspy.model import events as ev
from nqspy.model.accounts import Account
from nqspy.model.ids import Instant
from nqspy.model.requests import Spec, Used
from nqspy.model.site import Site

MARKS = "a begin 11\na end 0\nb begin 12\nb end 3\n"


def promise(token, id, **more):
    status = {"a": 0, "b": 3}.get(token, 0)
    job = Job(token, "plain", "", status, None, "exit", f"{token}\n")
    return Promise(job, 1, "acknowledged", f"{id}.ymp", **more)


def submitted(seq, name):
    return ev.Submitted(seq, Spec("anne", 1001, name, "fast", "", "", "/home"), "fast", "queued")


def ran(seq, status, attempt=1):
    ended = ev.Ended(seq, attempt, "exit", status, None, Used(cpu=5))
    return [ev.Starting(seq, attempt, (0,)), ev.Started(seq, attempt, (0,)), ended]


def redated(seq, date):
    return ev.Redated((seq,), Instant(date), None, "machine_gun")


class Trial:
    """Two requests, the second of which waited for the first; both are in one list. Tests tell it otherwise
    before they ask for the verdict."""

    def __init__(self, work):
        furnish(work)
        self.ledger = Ledger(work)
        self.marks = MARKS
        self.outputs = {"a": "a\n", "b": "b\n"}
        self.events = [submitted(1, "a"), submitted(2, "b"), *ran(1, 0), *ran(2, 3)]
        self.site = Site()
        self.site.accounts = {"g:default": Account(10.0), "u:default:anne": Account(10.0)}
        for each in (promise("a", 1, line=("a", 0)), promise("b", 2, line=("a", 1), after=("a", "ok"))):
            self.ledger.enter(each)

    def promise(self, token):
        return self.ledger.promises[token]

    def verdict(self):
        work = self.ledger.work
        (work / "marks").write_text(self.marks)
        for name, text in self.outputs.items():
            (work / "out" / name).write_text(text)
        events = [ev.Recorded(n, Instant(n), event) for n, event in enumerate(self.events, 1)]
        StormJudge(self.ledger, History(events), self.site).all()
        return {violation.what for violation in self.ledger.violations}


@pytest.fixture
def trial(tmp_path):
    return Trial(tmp_path)


def test_a_true_story_is_believed_and_counted(trial):
    assert trial.verdict() == set()
    assert (trial.ledger.counts["ran"], trial.ledger.counts["ended exit"]) == (2, 2)
    assert "BROKEN" not in trial.ledger.report(1)


def swap_places(trial):
    trial.promise("a").line, trial.promise("b").line = ("a", 1), ("a", 0)


def other_end(trial):
    trial.events[-1] = replace(trial.events[-1], exit_status=0)
    trial.outputs["a"] = "a\na\n"


LIES = {
    "lost": lambda trial: trial.ledger.enter(promise("c", 3)),
    "refused and there": lambda trial: setattr(trial.promise("b"), "standing", "refused"),
    "twice": lambda trial: trial.events.extend([submitted(3, "b"), ev.Deleted(3, "anne")]),
    "ran wrongly often": lambda trial: setattr(trial, "marks", MARKS + "b begin 13\nb end 3\n"),
    "ran wrongly often ": lambda trial: setattr(trial, "marks", "a begin 11\na end 0\n"),
    "two at once": lambda trial: setattr(trial, "marks", MARKS + "b overlap 12\n"),
    "ended otherwise, output": other_end,
    "not deleted": lambda trial: trial.promise("a").done.add("delete"),
    "order": swap_places,
    "dependency": lambda trial: setattr(trial.promise("b"), "after", ("a", "fail")),
    "usage": lambda trial: trial.site.accounts.update({"g:default": Account(15.0)}),
    "not ended": lambda trial: trial.events.pop(),
    "nobody's": lambda trial: setattr(trial, "marks", MARKS + "z begin 99\n"),
}
"""Lies about the story, by what the judge finds."""
ALONE = {"lost", "ended otherwise, output", "order", "usage", "nobody's"}
"""Lies of which the judge finds no more than that."""


@pytest.mark.parametrize("kinds", LIES)
def test_a_lie_is_told(trial, kinds):
    LIES[kinds](trial)
    found, wanted = trial.verdict(), set(kinds.strip().split(", "))
    assert found == wanted if kinds in ALONE else found >= wanted


def test_a_request_that_began_right_after_its_release_is_believed(trial):
    trial.promise("a").bars.append(Bar("held at submission", 0, 0))
    assert trial.verdict() == set()


def test_half_an_output_is_forgiven_only_where_the_disk_was_full(trial):
    trial.outputs["b"] = ""
    trial.ledger.strikes.append(Strike("disk full", 0.0, 1.0, len("a begin 11\n"), len(MARKS)))
    assert trial.verdict() == set()


@pytest.mark.parametrize("why", ["held", "parked", "deleted"])
def test_one_that_began_while_it_must_not_is_told(trial, why):
    trial.promise("b").bars.append(Bar(why, MARKS.index("b begin"), len(MARKS)))
    trial.promise("b").asked.add("delete")
    assert f"began although {why}" in trial.verdict()


def test_an_exit_that_dates_what_waits_after_the_clock_was_set_back_excuses_the_order_of_a_list(trial):
    swap_places(trial)
    trial.promise("b").after = None
    never = [ev.Starting(2, 1, (1,)), redated(1, -60), ev.Requeued(2, 1, NEVER_BEGAN)]
    trial.events[2:] = [*never, *ran(1, 0), *ran(2, 3, attempt=2)]
    assert trial.verdict() == set()


@pytest.mark.parametrize(("seq", "date"), [(1, 3), (2, 3), (2, -60)])
def test_no_other_date_excuses_it(trial, seq, date):
    swap_places(trial)
    trial.events.insert(2, redated(seq, date))
    assert trial.verdict() == {"order"}
