"""What each event does to the site; events are facts: one about something that is gone changes nothing."""

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

T0 = 1_000_000


class Story:
    """A site that events happen to."""

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
        spec = replace(Spec("anne", 1, "x", "q", "s", "e", "/home", group="d1"), **more)
        self.tell(ev.Submitted(seq, spec, "q", state))  # type: ignore[arg-type]
        return self.site.requests[seq]

    def start(self, request: Request, pes: tuple[int, ...] = (0,)) -> Request:
        self.tell(ev.Starting(request.seq, request.attempts + 1, pes))
        self.tell(ev.Started(request.seq, request.attempts, pes), later=100)
        return request


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_submitted_request_waits_in_its_queue(story):
    request = story.submit()
    assert (request.state, request.date_in_queue, request.submitted) == (State.QUEUED, T0, T0)
    assert story.site.columns("q").seqs() == [1]
    assert story.site.next_seq == 2


def test_a_held_one_is_held_by_its_owner_and_a_dated_one_is_watched(story):
    held, dated = story.submit("held", held=True), story.submit("waiting", eligible=Instant(T0 + 50))
    assert (held.state, held.holds) == (State.HELD, "u")
    assert held.hold_text
    assert dated.state is State.WAITING
    assert story.site.next_date() == T0 + 50
    assert story.site.due(Instant(T0 + 49)) == ()
    assert story.site.due(Instant(T0 + 50)) == (dated.seq,)


def test_when_its_date_has_come_it_is_queued_from_then_on(story):
    dated = story.submit("waiting", eligible=Instant(T0 + 50))
    story.tell(ev.Eligible((dated.seq,)), later=60)
    assert (dated.state, dated.date_in_queue) == (State.QUEUED, T0 + 60)
    assert story.site.next_date() is None


def test_routed_and_moved_requests_begin_anew_in_the_other_queue(story):
    for event in (ev.Routed(1, "r", "q"), ev.Moved((1,), "r", "olga")):
        story.__init__()
        request = story.submit()
        story.tell(event, later=5)
        assert (request.queue, request.date_in_queue) == ("r", T0 + 5)
        assert (len(story.site.columns("q")), story.site.columns("r").seqs()) == (0, [1])


def test_holds_add_up_and_the_last_release_lets_go(story):
    request = story.submit()
    story.tell(ev.Held((1,), "u", "anne"))
    story.tell(ev.Held((1,), "o", "olga", "not today"))
    assert (request.holds, request.hold_text, len(story.site.columns("q"))) == ("ou", "not today", 0)
    story.tell(ev.Released((1,), "u", "anne"))
    assert request.state is State.HELD
    story.tell(ev.Released((1,), "o", "olga"))
    assert (request.state, request.holds, request.hold_text) == (State.QUEUED, "", "")
    assert request.date_in_queue == T0


def test_a_released_one_still_waits_for_its_date_and_counts_from_it(story):
    request = story.submit("held", held=True, eligible=Instant(T0 + 50))
    story.tell(ev.Released((1,), "u", "anne"), later=10)
    assert request.state is State.WAITING
    story.tell(ev.Held((1,), "u", "anne"))
    story.tell(ev.Released((1,), "u", "anne"), later=90)
    assert (request.state, request.date_in_queue) == (State.QUEUED, T0 + 50)


def test_redated_requests_have_a_new_date_in_their_rows_too(story):
    requests = [story.submit() for _ in range(3)]
    story.tell(ev.Redated((1, 3, 99), Instant(T0 + 7), 2, "gun"))
    assert [r.date_in_queue for r in requests] == [T0 + 7, T0, T0 + 7]
    assert sorted(story.site.columns("q").date.tolist()) == [T0, T0 + 7, T0 + 7]


def test_who_redated_a_request_is_known_until_its_queue_gives_it_another_date(story):
    first, second = story.submit(), story.submit()
    recorded = story.tell(ev.Redated((1,), Instant(T0), 2, "gun"), later=10)
    assert first.redated == Redating(Instant(T0 + 10), "gun", 2), recorded
    assert second.redated is None
    story.tell(ev.Moved((1,), "q", "olga"))
    assert first.redated is None


def test_ranked_and_modified_requests_change_their_rows(story):
    request = story.submit()
    story.tell(ev.Ranked(1, 2, "olga"))
    story.tell(ev.Modified(1, replace(request.spec, ask=Ask(cpu=5, pes=3)), "anne"))
    columns = story.site.columns("q")
    assert (columns.rank.tolist(), columns.cpu.tolist(), columns.pes.tolist()) == ([2], [5.0], [3])


def test_what_a_running_request_asks_for_changes_and_it_stays_where_it_is(story):
    request = story.start(story.submit())
    story.tell(ev.Modified(1, replace(request.spec, ask=replace(request.spec.ask, wall=5)), "anne"))
    assert (request.state, request.spec.ask.wall, request.run.adjusted) == (State.RUNNING, 5, True)
    assert list(story.site.started) == [1]
    check_site(story.site)


def test_a_start_takes_pes_and_the_request_out_of_its_queue(story):
    request = story.submit()
    story.tell(ev.Ranked(1, 2, "olga"))
    story.tell(ev.Starting(1, 1, (2,)), later=5)
    assert (request.state, request.pes, request.run.starting, request.rank) == (State.RUNNING, (2,), True, 0)
    assert (list(story.site.started), len(story.site.columns("q"))) == ([1], 0)
    story.tell(ev.Started(1, 1, (2,)), later=5)
    assert (request.run.starting, request.started) == (False, T0 + 10)


def test_events_of_another_attempt_or_of_what_is_gone_change_nothing(story, lenient):
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
    assert story.site.misfit.startswith("request 1 is running, attempt 1: event redated ")


def test_a_suspended_one_keeps_its_pes(story):
    request = story.start(story.submit())
    story.tell(ev.Suspended(1, 1, "olga"))
    assert (request.state, str(request.pause.cause), request.pes) == (State.SUSPENDED, "olga", (0,))
    story.tell(ev.Resumed(1, 1, "olga"))
    assert (request.state, request.pause) == (State.RUNNING, None)


def test_an_end_charges_group_and_owner_and_remembers_the_length(story):
    for n in range(RECENT + 2):
        story.start(story.submit())
        story.tell(ev.Ended(n + 1, 1, "exit", 0, None, Used(1000 + n, 2000)))
    accounts = story.site.accounts
    assert accounts["g:d1"].recent == [1002 + n for n in range(RECENT)]
    assert accounts["g:d1"].value == pytest.approx(sum(1000 + n for n in range(RECENT + 2)), rel=1e-4)
    assert accounts["u:d1:anne"].value == accounts["g:d1"].value
    assert not story.site.requests
    assert story.site.touched.ended[1][0].state is State.ENDED


def test_use_is_charged_as_it_accrues_and_once(story):
    story.start(story.submit())
    story.tell(ev.Decided(0, ((1, Used(400, 500)), (9, Used(7, 7)))))
    assert story.site.accounts["g:d1"].value == 400
    story.tell(ev.Decided(0, ((1, Used(400, 900)),)))
    assert story.site.accounts["g:d1"].value == 400
    story.tell(ev.Ended(1, 1, "exit", 0, None, Used(1000, 1000)))
    assert story.site.accounts["g:d1"].value == 1000


def test_half_of_a_use_is_forgotten_after_a_half_life(story):
    story.start(story.submit())
    story.tell(ev.Ended(1, 1, "exit", 0, None, Used(1000, 1000)))
    account = story.site.accounts["g:d1"]
    assert account.at_time(Instant(account.at + DAY), DAY) == pytest.approx(500)
    assert account.at_time(Instant(account.at - DAY), DAY) == 1000, "a clock set back brings nothing back"
    story.start(story.submit())
    story.tell(ev.Ended(2, 1, "exit", 0, None, Used(1000, 1000)), later=DAY)
    assert account.value == pytest.approx(1500, rel=1e-3)


def test_another_half_life_counts_from_now_on(story):
    story.start(story.submit())
    story.tell(ev.Ended(1, 1, "exit", 0, None, Used(1000, 1000)))
    story.tell(ev.SettingsChanged((ev.Change("set", "usage/half_life", 2 * DAY),)), later=DAY)
    account = story.site.accounts["g:d1"]
    assert account.value == pytest.approx(500, rel=1e-3)
    assert account.at_time(Instant(story.now + 2 * DAY), 2 * DAY) == pytest.approx(250, rel=1e-3)


def test_pe_time_is_charged_where_the_site_says_so(story):
    story.tell(ev.SettingsChanged((ev.Change("set", "usage/charge", "pe_wall"),)))
    story.start(story.submit(ask=Ask(pes=3)), (0, 1, 2))
    story.tell(ev.Ended(1, 1, "exit", 0, None, Used(10, 500)))
    assert story.site.accounts["g:d1"].value == 1500


def test_a_requeued_one_waits_as_before_and_pays_for_what_it_used(story):
    request = story.start(story.submit())
    story.tell(ev.Deleting(1, 1, "anne", rerun=True))
    assert str(request.ending) == "rerun by anne"
    story.tell(ev.Requeued(1, 1, "rerun by anne", Used(300, 300)))
    assert (request.state, request.attempt, request.used) == (State.QUEUED, None, Used())
    assert (request.attempts, request.date_in_queue) == (1, T0)
    assert story.site.accounts["g:d1"].value == 300
    story.start(request, (1,))
    story.tell(ev.Ended(1, 2, "exit", 0, None, Used(200, 200)))
    assert story.site.accounts["g:d1"].value == pytest.approx(500, rel=1e-6)


def test_a_deleted_one_is_gone(story):
    story.submit()
    story.tell(ev.Deleted(1, "anne"))
    assert not story.site.requests
    assert len(story.site.columns("q")) == 0


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
    ],
)
def test_a_broken_link_is_found(story, broken):
    story.start(story.submit())
    story.submit()
    story.submit("waiting", eligible=Instant(T0 + 9999))
    story.start(story.submit(), (1,))
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


def site_with(*after):
    """Request 1, and request 2 that waits for it by these words; 3 waits for nothing."""
    site = Site()
    tell_site(site, ev.SettingsChanged((ev.Change("create", "queue/q", {}),)))
    for seq, words in ((1, ()), (2, after), (3, ())):
        waits = tuple(Dependency(1, word) for word in words)
        spec = Spec("anne", 1, "x", "q", "s", "e", "/home", after=waits)
        tell_site(site, ev.Submitted(seq, spec, "q", "held" if waits else "queued"))
    return site


def tell_site(site, event):
    apply(site, ev.Recorded(site.n + 1, Instant(site.n), event))
    check_site(site)


def test_it_is_held_without_a_letter_of_anybody_s_until_all_is_met():
    site = site_with("ok", "start")
    request = site.requests[2]
    assert (request.state, request.holds, request.letters) == (State.HELD, "", "s")
    assert site.dependants == {1: {2: None}}
    tell_site(site, ev.DependencyMet((2, 99), 1, ("start",)))
    assert (request.state, request.unmet) == (State.HELD, (Dependency(1, "ok"),))
    tell_site(site, ev.DependencyMet((2,), 7, ("ok",)))
    assert request.state is State.HELD, "that was another one's end"
    tell_site(site, ev.DependencyMet((2,), 1, ("ok", "any", "start")))
    assert (request.state, site.dependants) == (State.QUEUED, {})


def test_a_dependency_that_failed_keeps_it_held_until_the_system_s_hold_is_released():
    site = site_with("ok")
    request = site.requests[2]
    tell_site(site, ev.DependencyFailed((2,), 1, ("ok",), "it failed"))
    assert (request.state, request.never) == (State.HELD, "it failed")
    tell_site(site, ev.Released((2,), "u", "anne"))
    assert request.state is State.HELD
    tell_site(site, ev.Released((2,), "s", "olga"))
    assert (request.state, request.never, request.unmet, site.dependants) == (State.QUEUED, "", (), {})


def test_one_that_is_deleted_waits_for_nobody():
    site = site_with("ok")
    tell_site(site, ev.Deleted(2, "anne"))
    assert site.dependants == {}
    tell_site(site, ev.DependencyMet((2,), 1, ("ok",)))
    assert 2 not in site.requests


def forget_the_index(site):
    site.dependants.clear()


def wait_for_a_later_one(site):
    site.requests[2].unmet = (Dependency(3),)
    site.dependants = {3: {2: None}}


def hopeless_without_cause(site):
    site.requests[3].never = "for no reason"


@pytest.mark.parametrize("broken", [forget_the_index, wait_for_a_later_one, hopeless_without_cause])
def test_the_check_finds_what_is_broken(broken):
    site = site_with("ok")
    broken(site)
    with pytest.raises(BrokenSite):
        check_site(site)
