"""Effect of each event on the site; an event about a request that no longer exists changes nothing."""

from operator import attrgetter
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from nqspy.engine.lifecycle import apply
from nqspy.model import events as ev
from nqspy.model.accounts import RECENT
from nqspy.model.errors import BrokenSite
from nqspy.model.ids import DAY, Instant, request_named
from nqspy.model.requests import Ask, Attempt, Dependency, Redating, Request, Spec, State, Used
from nqspy.model.shifts import ShiftState
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.model.transitions import HELD_AT_SUBMISSION

T0 = 1_000_000
QUEUED, HELD, WAITING, RUNNING, SUSPENDED = (
    State.QUEUED, State.HELD, State.WAITING, State.RUNNING, State.SUSPENDED
)  # fmt: skip
SPEC = Spec("anne", 1, "x", "q", "s", "e", "/home", group="d1")


class Story:
    """A site to which events are applied."""

    def __init__(self) -> None:
        self.site, self.now = Site(), T0
        self.tell(ev.MachineFound((0, 1, 2, 3), 1 << 30, "ymp", "Europe/Paris"))
        self.tell(ev.SettingsChanged(tuple(ev.Change("create", f"queue/{name}", {}) for name in "qr")))

    def tell(self, event: ev.Event, later: int = 0) -> None:
        self.now += later
        apply(self.site, ev.Recorded(self.site.n + 1, Instant(self.now), event))
        check_site(self.site)

    def submit(self, state: str = "queued", **more: Any) -> Request:
        seq = self.site.next_seq
        self.tell(ev.Submitted(seq, replace(SPEC, **more), "q", state))  # type: ignore[arg-type]
        return self.site.requests[seq]

    def start(self, request: Request, pes: tuple[int, ...] = (0,)) -> Request:
        self.tell(ev.Starting(request.seq, request.attempts + 1, pes))
        self.tell(ev.Started(request.seq, request.attempts, pes), later=100)
        return request

    def rows(self, name: str, queue: str = "q") -> list[Any]:
        found: list[Any] = getattr(self.site.columns(queue), name).tolist()
        return found


@pytest.fixture
def story() -> Story:
    return Story()


class New(dict[str, Any]):
    """A submission: its state, and fields of its specification."""

    def __init__(self, state: str = "queued", **more: Any) -> None:
        super().__init__(more)
        self.state = state


def begun(*pes: int, attempt: int = 1) -> tuple[Any, ...]:
    """Return the events of attempt of request 1: started, and reported 100 ms later."""
    return ev.Starting(1, attempt, pes or (0,)), 100, ev.Started(1, attempt, pes or (0,))


def ended(cpu: int, wall: int, seq: int = 1, attempt: int = 1) -> ev.Ended:
    return ev.Ended(seq, attempt, "exit", 0, None, Used(cpu, wall))


def charged(ms: float) -> Any:
    return lambda story: story.site.accounts["g:d1"].value == pytest.approx(ms, rel=1e-3)


def set_to(path: str, value: Any) -> ev.SettingsChanged:
    return ev.SettingsChanged((ev.Change("set", path, value),))


STORIES: dict[str, tuple[Any, ...]] = {
    "a submitted request waits in its queue": (
        New(), {"state": QUEUED, "date_in_queue": T0, "submitted": T0},
        lambda story: (story.rows("seq"), story.site.next_seq) == ([1], 2),
    ),
    "a held one is held by its owner": (
        New("held", held=True), {"state": HELD, "holds": "u", "hold_text": HELD_AT_SUBMISSION},
    ),
    "a dated one is watched, and queued from when its date has come": (
        New("waiting", eligible=Instant(T0 + 50)), {"state": WAITING},
        lambda story: [story.site.due(Instant(T0 + at)) for at in (49, 50)] == [(), (1,)],
        lambda story: story.site.next_date() == T0 + 50, 60, ev.Eligible((1,)),
        {"state": QUEUED, "date_in_queue": T0 + 60}, lambda story: story.site.next_date() is None,
    ),
    **{f"one that is {event.kind} begins anew in the other queue": (
        New(), 5, event, {"queue": "r", "date_in_queue": T0 + 5},
        lambda story: (story.rows("seq"), story.rows("seq", "r")) == ([], [1]),
    ) for event in (ev.Routed(1, "r", "q"), ev.Moved((1,), "r", "olga"))},
    "holds add up and the last release lets go": (
        New(), ev.Held((1,), "u", "anne"), ev.Held((1,), "o", "olga", "not today"),
        {"holds": "ou", "hold_text": "not today", "slot": -1},
        ev.Released((1,), "u", "anne"), {"state": HELD},
        ev.Released((1,), "o", "olga"), {"state": QUEUED, "holds": "", "hold_text": "", "date_in_queue": T0},
    ),
    "a released one still waits for its date and counts from it": (
        New("held", held=True, eligible=Instant(T0 + 50)), 10, ev.Released((1,), "u", "anne"),
        {"state": WAITING}, ev.Held((1,), "u", "anne"), 90, ev.Released((1,), "u", "anne"),
        {"state": QUEUED, "date_in_queue": T0 + 50},
    ),
    "redated requests have a new date in their rows too": (
        New(), New(), New(), ev.Redated((1, 3, 99), Instant(T0 + 7), 2, "gun"), {"date_in_queue": T0 + 7},
        lambda story: sorted(story.rows("date")) == [T0, T0 + 7, T0 + 7],
    ),
    "what redated a request is known until its queue gives it another date": (
        New(), 10, ev.Redated((1,), Instant(T0), 2, "gun"),
        {"redated": Redating(Instant(T0 + 10), "gun", 2)}, ev.Moved((1,), "q", "olga"), {"redated": None},
    ),
    "ranked and modified requests change their rows": (
        New(), ev.Ranked(1, 2, "olga"), ev.Modified(1, replace(SPEC, ask=Ask(cpu=5, pes=3)), "anne"),
        lambda story: [story.rows(name) for name in ("rank", "cpu", "pes")] == [[2], [5.0], [3]],
    ),
    "what a running request asks for changes and it stays where it is": (
        New(), *begun(), ev.Modified(1, replace(SPEC, ask=Ask(wall=5)), "anne"),
        {"state": RUNNING, "spec.ask.wall": 5, "run.adjusted": True},
        lambda story: list(story.site.started) == [1],
    ),
    "a start takes PEs and the request out of its queue": (
        New(), ev.Ranked(1, 2, "olga"), 5, ev.Starting(1, 1, (2,)),
        {"state": RUNNING, "pes": (2,), "run.starting": True, "rank": 0, "slot": -1},
        lambda story: (list(story.site.started), story.rows("seq")) == ([1], []), 5, ev.Started(1, 1, (2,)),
        {"run.starting": False, "started": T0 + 10},
    ),
    "a suspended one keeps its PEs": (
        New(), *begun(), ev.Suspended(1, 1, "olga"),
        {"state": SUSPENDED, "pause.cause.name": "olga", "pes": (0,)}, ev.Resumed(1, 1, "olga"),
        {"state": RUNNING, "pause": None},
    ),
    "a deleted one is gone": (
        New(), ev.Deleted(1, "anne"), lambda story: not story.site.requests and story.rows("seq") == [],
    ),
    "a requeued one waits as before and pays for what it used": (
        New(), *begun(), ev.Deleting(1, 1, "anne", rerun=True), {"ending.rerun": True},
        ev.Requeued(1, 1, "rerun by anne", Used(300, 300)), charged(300),
        {"state": QUEUED, "attempt": None, "used": Used(), "attempts": 1, "date_in_queue": T0},
        *begun(1, attempt=2), ended(200, 200, attempt=2), charged(500),
    ),
    "use is charged as it accrues and once": (
        New(), *begun(), ev.Decided(0, ((1, Used(400, 500)), (9, Used(7, 7)))), charged(400),
        ev.Decided(0, ((1, Used(400, 900)),)), charged(400), ended(1000, 1000), charged(1000),
    ),
    "half of a use is forgotten after a half-life": (
        New(), *begun(), ended(1000, 1000), New(), ev.Starting(2, 1, (0,)), DAY, ended(1000, 1000, seq=2),
        charged(1500),
        lambda story: story.site.accounts["g:d1"].at_time(Instant(0), DAY) == pytest.approx(1500, rel=1e-3),
    ),
    "another half-life counts from now on": (
        New(), *begun(), ended(1000, 1000), DAY, set_to("usage/half_life", 2 * DAY), charged(500),
        lambda story: story.site.accounts["g:d1"].at_time(Instant(story.now + 2 * DAY), 2 * DAY)
        == pytest.approx(250, rel=1e-3),
    ),
    "PE time is charged where the site says so": (
        set_to("usage/charge", "pe_wall"), New(ask=Ask(pes=3)), *begun(0, 1, 2), ended(10, 500),
        charged(1500),
    ),
    "it is held without a letter until all that it waits for is met": (
        New(), New("held", after=(Dependency(1, "ok"), Dependency(1, "start"))),
        {"state": HELD, "holds": "", "letters": "s"}, lambda story: story.site.dependants == {1: {2: None}},
        ev.DependencyMet((2, 99), 1, ("start",)), {"state": HELD, "unmet": (Dependency(1, "ok"),)},
        ev.DependencyMet((2,), 7, ("ok",)), {"state": HELD},
        ev.DependencyMet((2,), 1, ("ok", "any", "start")), {"state": QUEUED},
        lambda story: story.site.dependants == {},
    ),
    "a dependency that failed keeps it held until the system's hold is released": (
        New(), New("held", after=(Dependency(1, "ok"),)), ev.DependencyFailed((2,), 1, ("ok",), "it failed"),
        {"state": HELD, "never": "it failed"}, ev.Released((2,), "u", "anne"), {"state": HELD},
        ev.Released((2,), "s", "olga"), {"state": QUEUED, "never": "", "unmet": ()},
        lambda story: story.site.dependants == {},
    ),
    "one that is deleted waits for no other": (
        New(), New("held", after=(Dependency(1, "ok"),)), ev.Deleted(2, "anne"),
        ev.DependencyMet((2,), 1, ("ok",)), lambda story: (story.site.dependants, list(story.site.requests))
        == ({}, [1]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_what_events_make_of_a_request(story, title):
    """Each step is a submission, an event, a time that passes (ms), a condition, or expected fields of the
    request submitted last."""
    for step in STORIES[title]:
        if isinstance(step, New):
            request = story.submit(step.state, **step)
        elif isinstance(step, ev.Event):
            story.tell(step)
        elif isinstance(step, int):
            story.now += step
        elif callable(step):
            assert step(story)
        else:
            assert {name: attrgetter(name)(request) for name in step} == step


def test_an_account_remembers_the_last_lengths_of_its_group_alone(story):
    for n in range(RECENT + 2):
        story.start(story.submit())
        story.tell(ended(1000 + n, 2000, seq=n + 1))
    accounts = story.site.accounts
    assert accounts["g:d1"].recent == [1002 + n for n in range(RECENT)]
    assert accounts["g:d1"].value == pytest.approx(sum(1000 + n for n in range(RECENT + 2)), rel=1e-4)
    assert accounts["u:d1:anne"].value == accounts["g:d1"].value
    assert not story.site.requests
    assert story.site.touched.ended[1][0].state is State.ENDED


def test_events_of_another_attempt_or_of_an_ended_request_change_nothing(story, lenient):
    request = story.start(story.submit())
    before = structs.replace(request)
    for event in (
        ev.Started(1, 2, (0,)), ev.Suspended(1, 2, "x"), ev.Resumed(1, 2, "x"), ev.Deleting(1, 2, "x"),
        ev.Exiting(1, 2), ev.Ended(1, 2, "exit"), ev.Requeued(1, 2, "x"), ev.Deleted(9, "x"),
        ev.Held((1, 9), "u", "x"), ev.Routed(9, "r", "q"), ev.Moved((1,), "r", "x"), ev.Eligible((1,)),
        ev.Modified(9, request.spec, "x"), ev.Ranked(9, 1, "x"), ev.Alarm("x", "y"),
        ev.Redated((1,), Instant(3), None, "x"),
    ):  # fmt: skip
        story.tell(event)
    assert story.site.requests[1] == before
    assert story.site.misfits == 11, "those that name a request which is there, in another state or attempt"
    assert "event redated" in story.site.misfit


def test_shift_machine_exit_and_files_are_noted(story):
    story.tell(ev.ShiftFailed("night", "x"))
    assert story.site.shift.failed == "night"
    story.tell(ev.ShiftChanged("night", "day", Instant(5), True, Instant(9)))
    assert story.site.shift == ShiftState("night", Instant(5), True, Instant(9), None, story.site.at)
    story.tell(ev.ExitOff("gun", "x"))
    assert not story.site.settings.exits["gun"].enabled
    story.tell(ev.FilesApplied((("10", "abc"),)))
    assert story.site.files == {"10": "abc"}
    story.tell(ev.LoadedExits((("gun", "abc"),)))
    assert story.site.loaded_exits == {"gun": "abc"}
    assert (story.site.pes(), story.site.name, story.site.timezone) == (4, "ymp", "Europe/Paris")
    changes = ev.Change("set", "machine/pes", 7), ev.Change("set", "server/name", "big")
    story.tell(ev.SettingsChanged(changes))
    assert (story.site.pes(), story.site.id_of(3)) == (7, "3.big")


def test_what_was_touched_is_what_the_store_must_write(story):
    touched = story.site.touched
    touched.clear()
    story.submit()
    assert (touched.requests, touched.state) == ({1}, True)
    touched.clear()
    story.start(story.site.requests[1])
    story.tell(ev.Ended(1, 1, "exit", 0, None, Used(5, 5)))
    assert (touched.requests, set(touched.ended), touched.accounts) == (set(), {1}, {"g:d1", "u:d1:anne"})
    touched.clear()
    changes = ev.Change("set", "queue/*/enabled", True), ev.Change("set", "global/run_limit", 1)
    story.tell(ev.SettingsChanged(changes))
    assert touched.settings == {"queue/q", "queue/r", "global"}


@pytest.mark.parametrize(
    "broken",
    [
        lambda site: setattr(site.requests[1], "attempt", structs.replace(site.requests[1].run, pes=(1, 1))),
        lambda site: site.started.clear(),
        lambda site: setattr(site.requests[2], "slot", 5),
        lambda site: setattr(site.requests[2], "date_in_queue", 3),
        lambda site: setattr(site.requests[2], "holds", "u"),
        lambda site: setattr(site.requests[1], "attempts", 0),
        lambda site: setattr(site, "next_seq", 2),
        lambda site: site.dates.clear(),
        lambda site: site.waiting.clear(),
        lambda site: setattr(site.requests[4], "attempt", Attempt(1, (0,), Instant(1))),
        lambda site: site.requests.pop(2),
        lambda site: setattr(site.requests[2], "state", State.ENDED),
        lambda site: site.dependants.clear(),
        lambda site: (
            setattr(site.requests[5], "unmet", (Dependency(6),)),
            site.dependants.update({6: {5: None}}),
        ),
        lambda site: setattr(site.requests[2], "never", "for no reason"),
    ],
)
def test_a_broken_link_is_found(story, broken):
    story.start(story.submit())
    story.submit()
    story.submit("waiting", eligible=Instant(T0 + 9999))
    story.start(story.submit(), (1,))
    story.submit("held", after=(Dependency(1, "ok"),))
    broken(story.site)
    with pytest.raises(BrokenSite):
        check_site(story.site)


def test_identifiers_with_a_host_name_that_the_machine_had_before_resolve(story):
    seq = story.submit().seq
    story.tell(ev.MachineFound((0, 1, 2, 3), 1 << 30, "new.example.org", "Europe/Paris"))
    story.tell(ev.MachineFound((0, 1, 2, 3), 1 << 30, "third", "Europe/Paris"))
    assert story.site.id_of(seq) == f"{seq}.third"
    for host in ("ymp", "new.example.org", "third"):
        assert request_named(f"{seq}.{host}", story.site.names) == seq, host
    assert request_named(f"{seq}.never", story.site.names) is None
    assert story.site.former.count("ymp") == 1
