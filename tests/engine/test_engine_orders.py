"""Orders about single requests: what each does in each state, and what it answers."""

import pytest
from engine.harness import ANNE, BEN, MAX, OLGA, PLAIN, Centre

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.requests import Used

OTHER = (
    PLAIN + "create batch_queue other priority=1\nset per_request cpu_limit=60 other\nenable queue other\n"
)


def failures(answer) -> dict[str, str]:
    return {each["id"]: each["text"] for each in answer["failed"]}


def test_an_order_does_all_it_can_and_names_each_failure():
    centre = Centre(pes=1)
    running, waiting = centre.submit("anne", "anne")
    centre.submit("ben")
    answer = centre.ask(cm.Delete(("1", "2.sim", "3", "4", "x9", "2.elsewhere")), ANNE)
    assert answer["done"] == ["2.sim"]
    assert failures(answer) == {
        "1": "Request invalid for state of job 1.sim: it is running, end it with -k or a signal",
        "3": "Unauthorized Request 3.sim: only its owner or an operator may delete it",
        "4": "Unknown Job Id 4.sim",
        "x9": "illegally formed job identifier: x9",
        "2.elsewhere": "Unknown Job Id 2.elsewhere",
    }
    assert centre.state(running) == "running"
    assert centre.end_of(waiting) == ev.Deleted(waiting, "anne")


def test_a_running_request_that_is_deleted_ends_with_what_it_used_and_who_asked():
    centre = Centre()
    [seq] = centre.submit("anne")
    centre.later(seconds=90)
    centre.ask(cm.Delete(("1",), force=True), OLGA)
    ended = centre.end_of(seq)
    assert (ended.end_reason, ended.exit_signal, ended.used.cpu) == ("deleted", 15, 90_000)
    assert ended.text == "deleted by olga"
    centre.is_sound()


def test_a_request_rerun_is_queued_again_with_its_date_and_starts_anew():
    centre = Centre()
    [seq] = centre.submit("anne")
    date = centre.request(seq).date_in_queue
    centre.later(seconds=90)
    centre.ask(cm.RerunRequests(("1",)), ANNE)
    assert centre.state(seq) == "running"
    request = centre.request(seq)
    assert (request.attempts, request.date_in_queue, request.used) == (2, date, Used())
    [requeued] = centre.events(ev.Requeued)
    assert requeued.used.cpu == 90_000
    assert centre.site.accounts["g:default"].value == pytest.approx(90_000, rel=1e-3)
    centre.later(minutes=10)
    assert centre.state(seq) == "ended"
    centre.is_sound()


def test_one_that_cannot_be_run_again_or_is_being_deleted_is_not_rerun():
    centre = Centre()
    centre.submit("anne once")
    assert failures(centre.ask(cm.RerunRequests(("1",)), ANNE)) == {"1": "job is not rerunnable 1.sim"}


def test_a_hold_keeps_a_request_back_until_everyone_who_held_it_lets_go():
    centre = Centre(PLAIN + "stop queue batch\n")
    [seq] = centre.submit("anne")
    centre.ask(cm.HoldRequests(("1",)), ANNE)
    centre.ask(cm.HoldRequests(("1",)), OLGA)
    assert centre.request(seq).holds == "ou"
    centre.ask(cm.ReleaseRequests(("1",)), ANNE)
    assert (centre.state(seq), centre.request(seq).holds) == ("held", "o")
    assert "not yours to release" in failures(centre.ask(cm.ReleaseRequests(("1",)), ANNE))["1"]
    centre.ask(cm.ReleaseRequests(("1",)), OLGA)
    assert (centre.state(seq), centre.request(seq).holds) == ("queued", "")
    assert "it is not held" in failures(centre.ask(cm.ReleaseRequests(("1",)), OLGA))["1"]
    centre.is_sound()


def test_a_request_moves_where_its_limits_fit():
    centre = Centre(OTHER, pes=1)
    centre.submit("eva")
    long, short = centre.submit("anne cpu=600", "anne cpu=60")
    answer = centre.ask(cm.MoveRequests(("2", "3"), "other"), ANNE)
    assert answer["done"] == ["3.sim"]
    assert "above the limit of 60 s" in failures(answer)["2"]
    assert (centre.request(long).queue, centre.request(short).queue) == ("batch", "other")
    centre.is_sound()


def test_a_user_moves_into_open_queues_only_and_an_operator_into_any():
    centre = Centre(OTHER + "disable queue other\n", pes=1)
    centre.submit("eva", "anne", "anne")
    assert "not enabled" in failures(centre.ask(cm.MoveRequests(("2",), "other"), ANNE))["2"]
    centre.qmgr("enable queue other\nset users=(ben) other")
    assert "Access" in failures(centre.ask(cm.MoveRequests(("2",), "other"), ANNE))["2"]
    assert centre.ask(cm.MoveRequests(("2",), "other"), OLGA)["done"] == ["2.sim"]
    assert centre.refused(cm.MoveRequests(("3",), "nowhere"), ANNE).code == "unknown_queue"


def test_a_whole_queue_moves_but_for_what_runs():
    centre = Centre(OTHER, pes=1)
    running, *others = centre.submit("anne", "ben", "cleo held")
    assert centre.ask(cm.MoveRequests((), "other", "batch"), OLGA)["done"] == ["2.sim", "3.sim"]
    assert centre.request(running).queue == "batch"
    assert {centre.request(seq).queue for seq in others} == {"other"}


def test_a_waiting_request_is_modified_within_its_queues_limits():
    centre = Centre(OTHER + "stop queue all\n")
    [seq] = centre.submit("anne queue=other cpu=30")
    values = {"ask/cpu": 50_000, "name": "new", "priority": 5, "ask/per_process/stack_limit": 8192}
    centre.ask(cm.ModifyRequest(("1",), values), ANNE)
    spec = centre.request(seq).spec
    assert (spec.ask.cpu, spec.name, spec.name_given, spec.priority) == (50_000, "new", True, 5)
    assert spec.ask.others == (("per_process/stack_limit", 8192),)
    assert (
        "above the limit of 60 s"
        in failures(centre.ask(cm.ModifyRequest(("1",), {"ask/cpu": 61_000}), ANNE))["1"]
    )
    assert centre.site.columns("other").cpu.tolist() == [50_000]
    centre.is_sound()


def test_another_account_is_another_group_if_its_owner_is_a_member():
    groups = "create group d1 share=1\nadd members=(anne) d1\ncreate group d2 share=1\n"
    centre = Centre(PLAIN + groups + "stop queue batch\n")
    [seq] = centre.submit("anne")
    assert (
        "no member of group d2"
        in failures(centre.ask(cm.ModifyRequest(("1",), {"account": "d2"}), ANNE))["1"]
    )
    centre.ask(cm.ModifyRequest(("1",), {"account": "d2"}), MAX)
    assert centre.request(seq).group == "d2"
    centre.is_sound()


def test_a_new_date_makes_a_queued_request_wait_and_none_lets_it_go():
    centre = Centre(PLAIN + "stop queue batch\n")
    [seq] = centre.submit("anne")
    centre.ask(cm.ModifyRequest(("1",), {"eligible": centre.sim.now + 60_000}), ANNE)
    assert centre.state(seq) == "waiting"
    centre.later(seconds=30)
    centre.ask(cm.ModifyRequest(("1",), {"eligible": None}), ANNE)
    assert centre.state(seq) == "queued"
    assert centre.request(seq).date_in_queue == centre.sim.now
    centre.is_sound()


def test_suspended_time_is_no_running_time():
    centre = Centre(length=100)
    [seq] = centre.submit("anne")
    centre.later(seconds=40)
    centre.ask(cm.SuspendRequests(("1",)), OLGA)
    assert centre.state(seq) == "suspended"
    assert "only a running one" in failures(centre.ask(cm.SuspendRequests(("1",)), OLGA))["1"]
    centre.later(hours=1)
    assert centre.request(seq).pes == (0,), "its PEs stay its own"
    centre.ask(cm.SuspendRequests(("1",), resume=True), OLGA)
    centre.later(seconds=59)
    assert centre.state(seq) == "running"
    centre.later(seconds=1)
    assert centre.end_of(seq).used.wall == 100_000


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (cm.RerunRequests(("1",)), "it is to run again (rerun by anne)"),
        (cm.Delete(("1",), kill=True), "it is being deleted (deleted by anne)"),
    ],
)
@pytest.mark.parametrize("resume", [False, True])
def test_what_is_being_ended_is_neither_suspended_nor_let_go_on(ending, said, resume):
    centre = Centre()
    [seq] = centre.submit("anne")
    centre.later(seconds=40)
    if resume:
        centre.ask(cm.SuspendRequests(("1",)), OLGA)
    state = centre.state(seq)
    centre.sim.ask(ending, ANNE)  # its processes have not ended yet
    events = centre.site.n
    told = failures(centre.sim.ask(cm.SuspendRequests(("1",), resume=resume), OLGA))
    assert told == {"1": f"Request invalid for state of job 1.sim: it is {state}, and {said}"}
    assert (centre.state(seq), centre.site.n) == (state, events)
    centre.later(seconds=60)
    centre.is_sound()


def test_schedule_puts_first_in_the_queue_next_of_all_and_now_past_the_limits():
    two = PLAIN + "create batch_queue urgent priority=60\nenable queue urgent\nstart queue urgent\n"
    centre = Centre(two + "set queue batch run_limit=1\n", pes=1)
    running, a, b, c = centre.submit("anne", "anne", "anne", "anne")
    [d] = centre.submit("anne queue=urgent")
    centre.ask(cm.ScheduleRequest((centre.id(c),), "first"), OLGA)
    centre.ask(cm.ScheduleRequest((centre.id(b),), "next"), OLGA)
    centre.later(hours=2)
    assert centre.starts() == [running, b, d, c, a]


def test_schedule_now_starts_past_a_run_limit():
    centre = Centre(PLAIN + "set queue batch run_limit=1\n")
    _, waiting = centre.submit("anne", "ben")
    assert centre.state(waiting) == "queued"
    centre.ask(cm.ScheduleRequest(("2",), "now"), OLGA)
    assert centre.state(waiting) == "running"


def test_abort_ends_what_runs_and_purge_what_waits():
    centre = Centre(pes=1)
    running, waiting, held = centre.submit("anne", "ben", "ben held")
    centre.ask(cm.PurgeQueue("batch"), OLGA)
    assert [centre.state(seq) for seq in (running, waiting, held)] == ["running", "ended", "ended"]
    assert centre.end_of(held).text == "queue batch was purged"
    [other] = centre.submit("ben")
    centre.ask(cm.AbortQueue("batch", 5), OLGA)
    assert centre.state(running) == "ended"
    assert centre.state(other) == "running"
    assert centre.refused(cm.PurgeQueue("nowhere"), OLGA).code == "unknown_queue"


def test_mail_goes_out_where_it_was_asked_for():
    centre = Centre(length=60)
    centre.submit("anne mail=begin+end", "ben", "anne mail=abort held")
    centre.later(seconds=61)
    centre.ask(cm.Delete(("3",)), OLGA)
    said = [(n.to, n.subject) for n in centre.sim.notices]
    assert said == [
        ("anne", "nqspy: 1.sim has begun"),
        ("anne", "nqspy: 1.sim ended"),
        ("anne", "nqspy: 3.sim deleted"),
    ]


def test_a_request_deleted_with_its_owner_named_must_be_that_owners():
    centre = Centre(PLAIN + "stop queue batch\n")
    centre.submit("anne")
    assert "not owned by ben" in failures(centre.ask(cm.Delete(("1",), owner="ben"), OLGA))["1"]
    assert centre.ask(cm.Delete(("1",), owner="anne"), OLGA)["done"] == ["1.sim"]


def test_a_command_the_engine_does_not_know_is_refused():
    assert Centre().refused(cm.Shutdown(), BEN).code == "not_offered"
