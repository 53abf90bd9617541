"""What the executor tells, and what becomes of it."""

from engine.harness import ANNE, PLAIN, Centre, goes_on, submit
from msgspec.structs import replace

from nqspy.core.passes import explain
from nqspy.model import actions as ac
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.people import Caller
from nqspy.model.reasons import Reasons
from nqspy.model.requests import Ending, Request, State, Used


class Recorder:
    """One that only notes what it is told; the test says what is seen."""

    def __init__(self):
        self.done: list[ac.Action] = []
        self.given: list[Request | None] = []

    def do(self, action, request, site, now):
        self.done.append(action)
        self.given.append(request)

    def told(self, *kinds):
        found, self.done = [each for each in self.done if isinstance(each, kinds)], []
        return found


def centre_with_one(line: str = "anne", settings: str = PLAIN, pes: int = 2) -> tuple[Centre, Recorder]:
    centre = Centre(settings, pes=pes)
    centre.engine.executor = executor = Recorder()
    centre.submit(line)
    return centre, executor


def see(centre: Centre, *observations: ob.Observation) -> None:
    centre.sim.feed(observations)
    centre.is_sound()


def test_a_start_is_handed_out_after_its_commit_with_the_request_it_is_about():
    centre = Centre()
    seen = []

    class Watching(Recorder):
        def do(self, action, request, site, now):
            seen.append((action, request.seq, len(centre.events(ev.Starting))))

    centre.engine.executor = Watching()
    centre.submit("anne")
    assert seen == [(ac.Start(1, 1, (0,)), 1, 1)]


def test_one_whose_end_is_seen_without_its_start_began_as_long_ago_as_it_ran():
    centre, _ = centre_with_one()
    ordered = centre.request(1).started
    centre.sim.now += 60_000
    see(centre, ob.ObservedEnded(1, 1, Ending("exit", 0, None, Used(20_000, 40_000))))
    [started] = centre.events(ev.Started)
    assert started.began == centre.sim.now - 40_000
    [row] = centre.engine.journal.ended((1,))
    assert row["request"].started == started.began > ordered


def test_one_that_ran_longer_than_it_can_have_began_when_it_was_ordered():
    centre, _ = centre_with_one()
    ordered = centre.request(1).started
    centre.sim.now += 1_000
    see(centre, ob.ObservedExiting(1, 1, Used(20_000, 40_000)))
    assert [each.began for each in centre.events(ev.Started)] == [ordered]


def test_a_request_is_starting_until_the_hands_say_that_it_runs():
    centre, _ = centre_with_one()
    assert centre.request(1).run.starting
    centre.sim.now += 250
    see(centre, ob.ObservedRunning(1, 1))
    assert not centre.request(1).run.starting
    assert centre.request(1).started == centre.sim.now
    see(centre, ob.ObservedRunning(1, 1))
    assert centre.events(ev.Started) == [ev.Started(1, 1, (0,))]


def test_sightings_of_attempts_no_longer_in_force_change_nothing():
    centre, executor = centre_with_one()
    see(centre, ob.ObservedEnded(1, 1))
    n = centre.count()
    executor.told()
    see(
        centre,
        ob.ObservedEnded(1, 1),
        ob.ObservedLost(1, 1),
        ob.ObservedVoid(1, 1),
        ob.ObservedNotStarted(1, 1, "x"),
        ob.ObservedUse(1, 1, Used(5, 5)),
        ob.ObservedEnded(77, 1),
    )
    assert centre.count() == n
    assert executor.told(ac.Action) == [ac.Forget(1, 1)] * 4 + [ac.Forget(77, 1)]
    see(centre, ob.ObservedRunning(1, 1))
    assert executor.told(ac.Kill) == [ac.Kill(1, 1, "deleted", 0, 9)], "nobody knows it: it must not run on"
    assert centre.count() == n


def test_the_end_of_an_earlier_attempt_does_not_end_the_one_in_force():
    centre, executor = centre_with_one()
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedLost(1, 1))
    assert centre.request(1).attempts == 2
    n = centre.count()
    executor.told()
    see(centre, ob.ObservedEnded(1, 1), ob.ObservedRunning(1, 1), ob.ObservedUse(1, 1, Used(9, 9)))
    assert centre.state(1) == "running"
    assert centre.count() == n
    assert executor.told(ac.Action) == [ac.Forget(1, 1), ac.Kill(1, 1, "deleted", 0, 9)]


def test_what_an_earlier_attempt_used_is_not_charged_to_the_next():
    centre, _ = centre_with_one()
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedUse(1, 1, Used(30_000, 30_000)), ob.ObservedLost(1, 1))
    see(centre, ob.ObservedRunning(1, 2))
    centre.submit("ben")
    assert round(centre.site.accounts["g:default"].value) == 30_000
    assert centre.request(1).used == Used()


def test_what_could_not_be_started_is_held_until_its_owner_has_mended_it():
    centre, executor = centre_with_one()
    see(centre, ob.ObservedNotStarted(1, 1, "its folder /home/anne/run is gone"))
    assert centre.state(1) == "held"
    assert centre.request(1).hold_text == "its folder /home/anne/run is gone"
    assert "folder" in centre.sim.notices[-1].text
    assert ac.Forget(1, 1) in executor.done
    centre.ask(cm.ReleaseRequests(("1",)), ANNE)
    assert executor.told(ac.Start)[-1] == ac.Start(1, 2, (0,))


def test_an_attempt_that_never_began_is_started_anew():
    centre, executor = centre_with_one()
    executor.told()
    see(centre, ob.ObservedVoid(1, 1))
    assert executor.told(ac.Forget, ac.Start) == [ac.Forget(1, 1), ac.Start(1, 2, (0,))]
    see(centre, ob.ObservedVoid(1, 2, "No space left on device"))
    assert centre.events(ev.Requeued)[-1].text == "never begun: No space left on device"
    assert executor.told(ac.Start) == [ac.Start(1, 3, (0,))]


GONE = "the user database has no entry for anne (uid 1001)"


def test_attempts_that_a_cause_outside_hinders_back_off_and_lose_no_place():
    centre, executor = centre_with_one("anne name=first", pes=1)
    date = centre.request(1).date_in_queue
    for number, wait in ((1, 2), (2, 4), (3, 8)):
        see(centre, ob.ObservedVoid(1, number, GONE, later=True))
        executor.told()
        assert (centre.state(1), centre.request(1).eligible) == ("waiting", centre.sim.now + wait * 1000)
        reason = explain(centre.site, (1,), Reasons())[1]
        assert (reason.text, centre.site.causes_of_retries()) == (
            f"{GONE}; the next attempt comes later", {GONE: 1},
        )  # fmt: skip
        centre.later(seconds=wait)
        assert executor.told(ac.Start) == [ac.Start(1, number + 1, (0,))]
    see(centre, ob.ObservedRunning(1, 4))
    assert (centre.request(1).retry, centre.request(1).date_in_queue) == (None, date)
    assert len(centre.events(ev.Alarm)) == 1


def test_one_that_cannot_start_for_a_day_is_held_and_a_release_tries_it_again():
    centre, _ = centre_with_one(pes=1)
    began = centre.sim.now
    while centre.state(1) != "held":
        centre.sim.feed([ob.ObservedVoid(1, centre.request(1).attempts, GONE, later=True)])
        assert centre.sim.now - began <= 24 * 3_600_000
        centre.later(minutes=5)
    assert centre.sim.now - began > 23 * 3_600_000
    assert GONE in explain(centre.site, (1,), Reasons())[1].text
    centre.is_sound()
    assert [each.text.count("for a day") for each in centre.events(ev.Alarm)] == [0, 1]
    centre.ask(cm.ReleaseRequests(("1",)))
    assert centre.request(1).run.starting
    see(centre, ob.ObservedVoid(1, centre.request(1).attempts, GONE, later=True))
    assert (centre.state(1), centre.request(1).retry.times) == ("waiting", 1)


def test_others_start_meanwhile_and_share_the_alarm():
    centre, _ = centre_with_one(pes=1)
    centre.submit("anne name=second", "ben")
    for seq in (1, 2):
        see(centre, ob.ObservedVoid(seq, 1, GONE, later=True))
    assert centre.state(3) == "running"
    assert centre.site.causes_of_retries() == {GONE: 2}
    assert len(centre.events(ev.Alarm)) == 1
    centre.ask(cm.Delete(("1",)), ANNE)
    assert centre.state(1) == "ended"


def test_output_that_cannot_be_delivered_for_now_raises_an_alarm_while_it_lasts():
    centre, _ = centre_with_one()
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedExiting(1, 1, Used(5, 5), GONE))
    assert centre.site.causes_of_retries() == {GONE: 1}
    assert [GONE in each.text for each in centre.events(ev.Alarm)] == [True]
    see(centre, ob.ObservedEnded(1, 1, Ending("exit", 0)))
    assert (centre.end_of(1).exit_status, centre.site.causes_of_retries()) == (0, {})


def test_a_submission_of_a_uid_without_a_name_is_refused():
    centre = Centre(PLAIN)
    nameless = Caller("1003", 1003, 1003, ("1003",))
    assert centre.refused(submit("1003", centre), nameless).code == "unknown_user"
    assert centre.ask(submit("1003", centre), replace(nameless, trusted=True))["ids"]


def test_deleted_before_it_began_it_never_begins():
    for observation in (ob.ObservedVoid(1, 1), ob.ObservedNotStarted(1, 1, "no shell")):
        centre, _ = centre_with_one()
        centre.ask(cm.Delete(("1",), force=True), ANNE)
        see(centre, observation)
        assert centre.state(1) == "ended"
        assert centre.end_of(1) == ev.Deleted(1, "anne")


def test_a_lost_end_is_run_again_with_what_was_seen_of_its_use_charged():
    centre, executor = centre_with_one()
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedUse(1, 1, Used(40_000, 50_000, 7)))
    executor.told()
    see(centre, ob.ObservedLost(1, 1))
    assert centre.events(ev.Requeued)[-1].used == Used(40_000, 50_000, 7)
    assert executor.told(ac.Start) == [ac.Start(1, 2, (0,))]
    assert "run again" in centre.events(ev.Alarm)[-1].text
    assert "lost" in centre.sim.log[-1]
    assert centre.sim.notices[-1].to == ""


def test_a_lost_end_fails_where_the_site_or_the_request_says_so():
    for line, settings in (("anne once", PLAIN), ("anne", PLAIN + "set lost_request fail\n")):
        centre, _ = centre_with_one(line, settings)
        see(centre, ob.ObservedLost(1, 1))
        assert centre.end_of(1).end_reason == "lost"


def test_an_attempt_that_ran_is_lost_and_never_void():
    centre, _ = centre_with_one("anne once")
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedVoid(1, 1))
    assert centre.end_of(1).end_reason == "lost"
    assert "its folder in the spool is gone" in centre.end_of(1).text
    centre, _ = centre_with_one("anne", PLAIN + "set lost_request fail\n")
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedVoid(1, 1))
    assert centre.end_of(1).end_reason == "lost"


def test_a_request_whose_processes_may_run_on_is_held_and_not_run_again():
    centre, executor = centre_with_one()
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedUse(1, 1, Used(40_000, 50_000, 7)))
    executor.told()
    see(centre, ob.ObservedLost(1, 1, unsure=True))
    assert centre.events(ev.Requeued)[-1].used == Used(40_000, 50_000, 7)
    assert executor.told(ac.Start) == []
    assert centre.state(1) == "held"
    assert "may still run" in centre.events(ev.Held)[-1].text
    assert "may still run" in centre.events(ev.Alarm)[-1].text
    centre.ask(cm.ReleaseRequests(("1",)), ANNE)
    assert executor.told(ac.Start) == [ac.Start(1, 2, (0,))]


def test_one_that_is_lost_three_times_in_a_row_at_once_is_held():
    centre, executor = centre_with_one()
    for attempt in (1, 2):
        see(centre, ob.ObservedRunning(1, attempt), ob.ObservedLost(1, attempt, brief=True))
    see(centre, ob.ObservedVoid(1, 3))
    see(centre, ob.ObservedRunning(1, 4), ob.ObservedLost(1, 4, Used(), "the machine was restarted"))
    assert centre.state(1) == "running"
    executor.told()
    see(centre, ob.ObservedRunning(1, 5), ob.ObservedLost(1, 5, brief=True))
    assert executor.told(ac.Start) == []
    assert centre.state(1) == "held"
    assert "killed 3 times in a row; release runs it again" in centre.events(ev.Held)[-1].text
    assert "killed 3 times in a row" in centre.events(ev.Alarm)[-1].text
    assert any(each.to == "anne" and "is held: its shepherd" in each.text for each in centre.sim.notices)
    centre.ask(cm.ReleaseRequests(("1",)), ANNE)
    for attempt in (6, 7, 8, 9):
        see(centre, ob.ObservedRunning(1, attempt), ob.ObservedLost(1, attempt, brief=attempt != 7))
    assert centre.state(1) == "running"
    see(centre, ob.ObservedLost(1, 10, brief=True))
    assert centre.state(1) == "held"


def test_one_that_is_not_run_again_is_ended_and_told_that_processes_may_run_on():
    centre, _ = centre_with_one("anne once")
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedLost(1, 1, unsure=True))
    assert centre.end_of(1).end_reason == "lost"
    assert "may still run" in centre.events(ev.Alarm)[-1].text


def test_a_lost_end_of_one_that_was_to_be_deleted_or_rerun_is_that():
    centre, _ = centre_with_one()
    centre.ask(cm.Delete(("1",), force=True), ANNE)
    see(centre, ob.ObservedLost(1, 1))
    assert centre.end_of(1).end_reason == "lost"
    centre, _ = centre_with_one("anne", PLAIN + "set lost_request fail\n")
    centre.ask(cm.RerunRequests(("1",)), ANNE)
    see(centre, ob.ObservedLost(1, 1))
    assert centre.request(1).attempts == 2


def test_a_deletion_orders_the_end_with_the_sites_grace_and_kill_orders_it_at_once():
    centre, executor = centre_with_one("anne", PLAIN + "set grace 20\n")
    see(centre, ob.ObservedRunning(1, 1))
    executor.told()
    centre.ask(cm.Delete(("1",), force=True), ANNE)
    assert executor.told(ac.Kill) == [ac.Kill(1, 1, "deleted", 20_000, 15)]
    centre.ask(cm.Delete(("1",), kill=True), ANNE)
    assert executor.told(ac.Kill) == [ac.Kill(1, 1, "deleted", 0, 9)]
    centre.ask(cm.Delete(("1",), signal=10), ANNE)
    assert executor.told(ac.Signal) == [ac.Signal(1, 1, 10)]
    assert centre.state(1) == "running"


def test_rerun_after_a_deletion_is_refused_and_a_deletion_after_a_rerun_counts():
    centre, _ = centre_with_one()
    centre.ask(cm.Delete(("1",), force=True), ANNE)
    assert "is being deleted" in centre.ask(cm.RerunRequests(("1",)), ANNE)["failed"][0]["text"]
    centre, _ = centre_with_one()
    centre.ask(cm.RerunRequests(("1",)), ANNE)
    centre.ask(cm.Delete(("1",), force=True), ANNE)
    see(centre, ob.ObservedEnded(1, 1, Ending("deleted", None, 15)))
    assert centre.state(1) == "ended"


def test_one_that_is_deleted_while_it_ends_to_be_run_again_has_ended_as_deleted():
    centre, _ = centre_with_one()
    centre.ask(cm.RerunRequests(("1",)), ANNE)
    centre.ask(cm.Delete(("1",), force=True), ANNE)
    see(centre, ob.ObservedEnded(1, 1, Ending("requeued", None, 15)))
    assert (centre.end_of(1).end_reason, centre.end_of(1).text) == ("deleted", "deleted by anne")


def test_use_that_was_told_is_charged_when_a_pass_acts_and_at_the_end():
    centre, _ = centre_with_one()
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedUse(1, 1, Used(30_000, 30_000)))
    assert not centre.site.accounts["g:default"].value, "nothing was decided: nothing is journaled"
    centre.submit("ben")
    assert round(centre.site.accounts["g:default"].value) == 30_000
    see(centre, ob.ObservedEnded(1, 1, Ending("exit", 0, None, Used(50_000, 50_000))))
    assert round(centre.site.accounts["g:default"].value) == 50_000
    assert centre.site.accounts["g:default"].recent == [50_000]


def test_an_end_told_with_less_than_was_seen_before_takes_nothing_back():
    centre, _ = centre_with_one()
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedUse(1, 1, Used(30_000, 40_000, 9)))
    see(centre, ob.ObservedEnded(1, 1, Ending("exit", 0, None, Used(10, 10, 1))))
    assert centre.end_of(1).used == Used(30_000, 40_000, 9)


def test_hands_that_break_down_leave_the_request_held_and_the_engine_alive():
    centre = Centre(failed=goes_on)

    class Broken(Recorder):
        def do(self, action, request, site, now):
            if isinstance(action, ac.Start):
                raise RuntimeError("no hands")

    centre.engine.executor = Broken()
    centre.submit("anne")
    assert centre.state(1) == "held"
    assert "RuntimeError: no hands" in "".join(centre.sim.log)
    centre.is_sound()


def test_what_is_exiting_has_given_its_pes_back():
    centre, executor = centre_with_one(pes=1)
    centre.submit("ben")
    see(centre, ob.ObservedRunning(1, 1))
    assert executor.told(ac.Start) == [ac.Start(1, 1, (0,))]
    see(centre, ob.ObservedExiting(1, 1, Used(5, 7)))
    assert centre.events(ev.Exiting) == [ev.Exiting(1, 1, Used(5, 7))]
    assert (centre.request(1).state, centre.request(1).pes) == (State.EXITING, ())
    assert executor.told(ac.Start) == [ac.Start(2, 1, (0,))]
    see(centre, ob.ObservedExiting(1, 1, Used(5, 7)))
    assert len(centre.events(ev.Exiting)) == 1
    see(centre, ob.ObservedEnded(1, 1, Ending("exit", 0, None, Used(5, 7))))
    assert centre.end_of(1).exit_status == 0


def test_a_delivery_can_be_ended_and_not_run_again():
    centre, executor = centre_with_one()
    see(centre, ob.ObservedExiting(1, 1))
    assert [type(e) for e in centre.events(ev.Started, ev.Exiting)] == [ev.Started, ev.Exiting]
    centre.ask(cm.Delete(("1",), kill=True), ANNE)
    assert executor.told(ac.Kill) == [ac.Kill(1, 1, "deleted", 0, 9)]
    assert centre.ask(cm.RerunRequests(("1",)), ANNE)["failed"]
    see(centre, ob.ObservedEnded(1, 1, Ending("exit", 3)))
    assert (centre.end_of(1).end_reason, centre.end_of(1).exit_status) == ("exit", 3)


def test_an_attempt_that_is_lost_while_it_exits_is_run_again():
    centre, _ = centre_with_one()
    see(centre, ob.ObservedExiting(1, 1, Used(5, 7)), ob.ObservedLost(1, 1))
    assert [type(e) for e in centre.events(ev.Exiting, ev.Requeued)] == [ev.Exiting, ev.Requeued]
    assert centre.request(1).attempts == 2
