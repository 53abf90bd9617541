"""Altering, signalling, telling and ordering requests: what each does in each state, and what it answers."""

import pytest
from engine.harness import ANNE, MAX, OLGA, PLAIN, ROOT, Centre

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Action, Adjust, Kill, Signal, WriteOutput
from nqspy.model.ids import member
from nqspy.model.observations import ObservedExiting
from nqspy.model.requests import Used

OTHER = PLAIN + "create batch_queue other priority=1\nenable queue other\n"
NOT_WHILE_RUNNING = (
    {"ask/cpu": 1000}, {"ask/pes": 2}, {"ask/memory": 1 << 20}, {"priority": 3}, {"eligible": None},
    {"account": "x"}, {"shell": "/bin/sh"}, {"output/join": True}, {"holds": "u"}, {"queue": "batch"},
    {"attributes/project": "x"}, {"umask": 0},
)  # fmt: skip


def failures(answer) -> dict[str, tuple[str, int]]:
    return {each["id"]: (each["text"], each["status"]) for each in answer["failed"]}


def told(centre, command, by=ANNE) -> list[Action]:
    """What the executor is told when a command is done."""
    seen, do = [], centre.sim.executor.do
    centre.sim.executor.do = lambda action, *rest: (seen.append(action), do(action, *rest))[1]
    centre.ask(command, by)
    centre.sim.executor.do = do
    return seen


def alter(centre, values, *ids, by=ANNE):
    return centre.ask(cm.ModifyRequest(ids or ("1",), values), by)


# ---------------------------------------------------------------- altering what runs


@pytest.mark.parametrize("values", NOT_WHILE_RUNNING, ids=lambda values: next(iter(values)))
def test_what_cannot_matter_any_more_is_refused_with_167_and_nothing_is_changed(values):
    centre = Centre()
    [seq] = centre.submit("anne wall=600")
    before = centre.request(seq).spec
    [(said, status)] = failures(alter(centre, values)).values()
    assert status == 167
    assert said.startswith("Cannot modify attribute while job running 1.sim: ")
    assert centre.request(seq).spec is before
    assert not centre.events(ev.Modified)
    centre.is_sound()


def test_its_owner_lowers_the_wall_time_of_a_running_request_and_it_ends_then():
    centre = Centre(length=600)
    [seq] = centre.submit("anne wall=1200")
    centre.later(seconds=60)
    assert alter(centre, {"ask/wall": 90_000})["done"] == ["1.sim"]
    centre.later(seconds=29)
    assert centre.state(seq) == "running"
    centre.later(seconds=2)
    assert centre.end_of(seq).end_reason == "wall_limit"
    assert centre.end_of(seq).used.wall == 90_000
    centre.is_sound()


def test_only_an_operator_raises_it_and_the_queues_limit_holds_for_him_too():
    centre = Centre(PLAIN + "set per_request wall_limit=1000 batch\n", length=600)
    [seq] = centre.submit("anne wall=300")
    [(said, status)] = failures(alter(centre, {"ask/wall": 900_000})).values()
    assert (status, "only lower the wall time" in said, "from 5:00" in said) == (159, True, True)
    [(said, status)] = failures(alter(centre, {"ask/wall": None})).values()
    assert status == 159, "without a limit of its own it would have its queue's"
    [(said, status)] = failures(alter(centre, {"ask/wall": 1_001_000}, by=OLGA)).values()
    assert status == 188
    assert alter(centre, {"ask/wall": 900_000}, by=OLGA)["done"] == ["1.sim"]
    centre.later(seconds=301)
    assert centre.state(seq) == "running"
    centre.later(seconds=300)
    assert centre.end_of(seq).end_reason == "exit"


def test_name_mail_rerunnable_and_output_of_a_running_request_change_and_its_shepherd_is_told():
    centre = Centre()
    [seq] = centre.submit("anne once")
    values = {
        "name": "other",
        "mail/end": True,
        "mail/to": "ben",
        "rerunnable": True,
        "output/stdout": "/tmp/x",
    }
    assert told(centre, cm.ModifyRequest(("1",), values)) == [Adjust(seq, 1)]
    spec = centre.request(seq).spec
    assert (spec.name, spec.name_given, spec.mail.end, spec.mail.to) == ("other", True, True, "ben")
    assert (spec.rerunnable, spec.output.stdout) == (True, "/tmp/x")
    assert centre.request(seq).pes == (0,), "it holds what it held"
    centre.is_sound()


def test_where_output_is_written_in_place_it_stays():
    centre = Centre()
    [seq] = centre.submit("anne held")
    alter(centre, {"output/direct_stderr": True, "output/stderr": "/tmp/e"})
    centre.ask(cm.ReleaseRequests(("1",)), ANNE)
    [(said, status)] = failures(alter(centre, {"output/stderr": "/tmp/f"})).values()
    assert (status, "its stderr is written in place" in said) == (167, True)
    assert alter(centre, {"output/stdout": "/tmp/o"})["done"] == ["1.sim"]
    assert centre.request(seq).spec.output.stderr == "/tmp/e"


def test_one_whose_output_is_being_delivered_is_altered_no_more():
    centre = Centre()
    [seq] = centre.submit("anne")
    centre.engine.feed([ObservedExiting(seq, 1, Used())], centre.sim.now)
    [(said, status)] = failures(alter(centre, {"name": "x"})).values()
    assert (status, "its output is being delivered" in said) == (168, True)


def test_a_lowered_wall_time_reaches_its_shepherd_again_after_a_restart():
    centre = Centre(length=600)
    centre.submit("anne wall=1200", "anne wall=1200")
    alter(centre, {"ask/wall": 90_000})
    seen, do = [], centre.sim.executor.do
    centre.sim.executor.do = lambda action, *rest: (seen.append(action), do(action, *rest))[1]
    centre.sim.restart()
    assert [each for each in seen if isinstance(each, Adjust)] == [Adjust(1, 1)], "the altered one alone"


# ---------------------------------------------------------------- altering what waits


def test_output_mail_umask_and_notes_of_a_waiting_request_change():
    centre = Centre(PLAIN + "stop queue batch\n")
    [seq] = centre.submit("anne")
    alter(centre, {"output/join": True, "output/keep_stdout": True, "mail/abort": True, "umask": 0o77})
    alter(
        centre, {"attributes/project": ["p1"], "attributes/checkpoint": "c=5", "attributes/exclusive": [True]}
    )
    alter(centre, {"attributes/project": "p2", "attributes/checkpoint": None})
    spec = centre.request(seq).spec
    assert (spec.output.join, spec.output.keep_stdout, spec.mail.abort, spec.umask) == (
        True,
        True,
        True,
        0o77,
    )
    assert spec.attributes == ("exclusive", "project:p2")
    centre.is_sound()


NONSENSE = [
    ("attributes/after", "1:ok"), ("attributes/", "x"), ("output/nowhere", "x"), ("name", "a/b"),
    ("output/join", "maybe"), ("uid", 0), ("mail/to", "-oops"), ("umask", -1), ("ask/cpu", "much"),
    ("ask", 3), ("ask/pes", 0), ("ask/pes", None), ("ask/pes", 99), ("ask/memory", -7), ("group", "d1"),
    ("ask/nonsense", 1), ("rerunnable", "perhaps"), ("output/stdout", "relative"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), [*NONSENSE, ("script", "x"), ("owner", "ben")])
def test_what_no_request_can_be_is_refused(path, value):
    centre = Centre(PLAIN + "stop queue batch\n")
    centre.submit("anne")
    by_owner = (path, value) in NONSENSE
    [(said, status)] = failures(alter(centre, {path: value}, by=ANNE if by_owner else OLGA)).values()
    assert status != 159 if by_owner else status == 159, said
    assert not centre.events(ev.Modified)


def test_an_operator_does_not_say_where_somebodys_output_goes():
    centre = Centre(PLAIN + "stop queue batch\n")
    centre.submit("anne")
    assert failures(alter(centre, {"output/stdout": "/x"}, by=OLGA))["1"][1] == 159
    assert alter(centre, {"output/stdout": "/x"}, by=MAX)["done"] == ["1.sim"]


def test_the_holds_are_those_that_are_named_from_then_on():
    centre = Centre(PLAIN + "stop queue batch\n")
    [seq] = centre.submit("anne")
    alter(centre, {"holds": "uo"}, by=OLGA)
    assert (centre.state(seq), centre.request(seq).holds) == ("held", "ou")
    assert failures(alter(centre, {"holds": "u"}))["1"][1] == 159, "o is not hers to take off"
    alter(centre, {"holds": "o"}, by=OLGA)
    assert centre.request(seq).holds == "o"
    alter(centre, {"holds": "n"}, by=OLGA)
    assert (centre.state(seq), centre.request(seq).holds) == ("queued", "")
    assert centre.refused(cm.ModifyRequest(("1",), {"holds": "s"}), ANNE).status == 159
    assert centre.refused(cm.ModifyRequest(("1",), {"holds": "un"}), ANNE).status == 166
    centre.is_sound()


# ---------------------------------------------------------------- holds


def test_letters_of_holds_come_joined_and_n_is_none():
    centre = Centre(PLAIN + "stop queue batch\n")
    [seq] = centre.submit("anne")
    centre.ask(cm.HoldRequests(("1",), "uso"), OLGA)
    assert centre.request(seq).holds == "osu"
    centre.ask(cm.HoldRequests(("1",), "n"), OLGA)
    centre.ask(cm.ReleaseRequests(("1",), "n"), OLGA)
    assert centre.request(seq).holds == "osu"
    centre.ask(cm.ReleaseRequests(("1",), "so"), OLGA)
    assert centre.request(seq).holds == "u"
    assert failures(centre.ask(cm.HoldRequests(("1", "9"), "us"), OLGA)) == {
        "9": ("Unknown Job Id 9.sim", 153)
    }
    assert centre.refused(cm.HoldRequests(("1",), "us"), ANNE).status == 159
    assert centre.request(seq).holds == "su", "a user's is refused whole"


def test_to_release_what_is_not_held_is_no_failure_for_the_command_that_says_so():
    centre = Centre(PLAIN, pes=1)
    centre.submit("anne", "anne")
    answer = centre.ask(cm.ReleaseRequests(("1", "2"), lenient=True), ANNE)
    assert answer["done"] == ["2.sim"]
    assert failures(answer)["1"][1] == 168, "it runs"
    assert failures(centre.ask(cm.ReleaseRequests(("2",)), ANNE))["2"][1] == 168


# ---------------------------------------------------------------- signals, messages, reruns


def test_a_signal_goes_to_what_runs_and_null_only_looks():
    centre = Centre(pes=1)
    centre.submit("anne", "anne", "ben")
    assert told(centre, cm.SignalRequests(("1",), 0)) == []
    answer = centre.ask(cm.SignalRequests(("1", "2", "3", "9"), 0), ANNE)
    assert answer["done"] == ["1.sim"]
    assert {id: status for id, (_, status) in failures(answer).items()} == {"2": 168, "3": 159, "9": 153}
    assert told(centre, cm.SignalRequests(("1",), 10))[0] == Signal(1, 1, 10)
    assert centre.refused(cm.SignalRequests(("2",), 65), ANNE).status == 165


def test_a_signal_to_one_that_has_just_ended_is_no_harm_and_then_says_so():
    centre = Centre(length=10)
    [seq] = centre.submit("anne")
    centre.later(seconds=10)
    assert centre.state(seq) == "ended"
    assert failures(centre.ask(cm.SignalRequests(("1",), 15), ANNE)) == {"1": ("Job has finished 1.sim", 35)}
    centre.sim.executor.do(Signal(seq, 1, 15), None, centre.site, centre.sim.now)
    centre.is_sound()


def test_messages_are_written_in_the_order_in_which_they_came():
    centre = Centre()
    centre.submit("anne")
    seen, do = [], centre.sim.executor.do
    centre.sim.executor.do = lambda action, *rest: (seen.append(action), do(action, *rest))[1]
    centre.ask(cm.WriteMessage(("1",), "one"), ANNE)
    centre.ask(cm.WriteMessage(("1",), "two\n", ("stdout", "stderr")), OLGA)
    assert seen == [
        WriteOutput(1, 1, "one\n", ("stderr",)),
        WriteOutput(1, 1, "two\n", ("stdout", "stderr")),
    ]


@pytest.mark.parametrize("text", ["", "\n", "x" * 4001, "a\x1b[2J", "a\0"])
def test_a_message_is_a_line_that_does_nothing_to_a_terminal(text):
    centre = Centre()
    centre.submit("anne")
    assert centre.refused(cm.WriteMessage(("1",), text), ANNE).status == 166


def test_a_rerun_by_force_is_a_kill_at_once():
    centre = Centre()
    [seq] = centre.submit("anne")
    assert Kill(seq, 1, "requeued", 0, 9) in told(centre, cm.RerunRequests(("1",), force=True))


def test_a_rerun_of_one_that_exits_at_that_moment_ends_it_or_runs_it_again_and_never_both():
    centre = Centre(length=10)
    [seq] = centre.submit("anne")
    centre.engine.feed([ObservedExiting(seq, 1, Used())], centre.sim.now)
    assert failures(centre.ask(cm.RerunRequests(("1",)), ANNE))["1"][1] == 168
    centre.later(seconds=11)
    assert centre.end_of(seq).end_reason == "exit"
    assert centre.starts() == [seq]
    assert failures(centre.ask(cm.RerunRequests(("1",)), ANNE))["1"] == ("Job has finished 1.sim", 35)
    centre.is_sound()


# ---------------------------------------------------------------- mails about deletions


@pytest.mark.parametrize(("most", "expected"), [(None, 3), (0, 0), (2, 2)])
def test_so_many_mails_about_deletions_go_out_at_most(most, expected):
    centre = Centre(PLAIN + "stop queue batch\n")
    centre.submit("ben", *["anne mail=abort"] * 3)
    centre.ask(cm.Delete(("1", "2", "3", "4"), force=True, mails=most), OLGA)
    assert [mail.to for mail in centre.sim.notices] == ["anne"] * expected
    assert not centre.site.requests


# ---------------------------------------------------------------- places in a queue


def test_two_requests_exchange_their_dates_and_priorities():
    centre = Centre(PLAIN + "stop queue batch\n")
    first = centre.submit("anne")[0]
    centre.later(seconds=10)
    second = centre.submit("anne")[0]
    centre.later(seconds=10)
    third = centre.submit("anne")[0]
    alter(centre, {"priority": 5}, str(third))
    dates = [centre.request(seq).date_in_queue for seq in (first, second, third)]
    assert centre.ask(cm.ExchangeRequests(("1", "3.sim")), ANNE)["done"] == ["1.sim", "3.sim"]
    assert [centre.request(seq).date_in_queue for seq in (first, second, third)] == dates[::-1]
    assert [centre.request(seq).spec.priority for seq in (first, second, third)] == [5, None, None]
    centre.qmgr("set machine pes=1\nstart queue batch\n")
    centre.later(hours=1)
    assert centre.starts() == [first, third, second], "the priority went along"
    centre.is_sound()


def test_nobody_of_the_same_instant_as_one_of_them_comes_between():
    centre = Centre(PLAIN + "stop queue batch\n", pes=1)
    first = centre.submit("anne")[0]
    centre.later(seconds=1)
    left, middle, right = centre.submit("anne", "anne", "anne")
    centre.later(seconds=1)
    for pair in ((first, right), (right, middle), (left, middle)):
        centre.ask(cm.ExchangeRequests(tuple(map(str, pair))), ANNE)
    centre.qmgr("start queue batch")
    centre.later(hours=1)
    assert centre.starts() == [left, middle, right, first]


def test_indices_of_an_array_that_was_given_a_place_share_it_and_go_in_their_order():
    centre = Centre(PLAIN + "stop queue batch\n", pes=1)
    array, other = centre.submit("anne array=1-3", "anne")
    centre.later(seconds=1)
    centre.ask(cm.ExchangeRequests((centre.id(array), "2")), ANNE)
    centre.qmgr("start queue batch")
    centre.later(minutes=11)
    assert centre.starts() == [other, member(1, 1)]
    centre.ask(cm.RerunRequests((centre.id(member(1, 1)),)), ANNE)
    centre.later(hours=1)
    assert centre.starts()[2:] == [member(1, index) for index in (1, 2, 3)]
    centre.is_sound()


def test_who_had_a_date_of_his_own_keeps_the_place_that_he_exchanged():
    centre = Centre(PLAIN + "stop queue batch\n", pes=1)
    first, second, dated = centre.submit("anne", "ben", "anne at=+30")
    alter(centre, {"priority": -3}, str(dated))
    centre.later(minutes=1)
    centre.ask(cm.ExchangeRequests((str(dated), str(first))), ANNE)
    alter(centre, {"name": "mine"}, str(dated))
    centre.qmgr("start queue batch")
    centre.later(hours=1)
    assert centre.starts() == [dated, second, first]
    centre.is_sound()


def test_an_exchange_is_done_for_both_or_for_none():
    centre = Centre(OTHER, pes=1)
    centre.submit("eva", "anne", "ben", "anne queue=other", "anne")
    count = centre.count()
    cases = {
        ("1", "2"): {"1": 159},
        ("2", "3"): {"3": 159},
        ("2", "9"): {"9": 153},
    }
    for ids, expected in cases.items():
        answer = centre.ask(cm.ExchangeRequests(ids), ANNE)
        assert {id: status for id, (_, status) in failures(answer).items()} == expected
        assert answer["done"] == []
    assert centre.refused(cm.ExchangeRequests(("2", "4")), ANNE).kind == "other_queue"
    assert centre.refused(cm.ExchangeRequests(("2",)), ANNE).kind == "two_requests"
    assert centre.ask(cm.ExchangeRequests(("2", "2")), ANNE)["failed"] == []
    centre.ask(cm.ScheduleRequest(("2",), "first"), OLGA)
    assert centre.refused(cm.ExchangeRequests(("2", "5")), ANNE).kind == "other_rank"
    assert centre.count() == count + 1
    assert centre.ask(cm.ExchangeRequests(("3", "5")), OLGA)["done"] == ["3.sim", "5.sim"]
    assert failures(centre.ask(cm.ExchangeRequests(("1", "5")), ROOT))["1"][1] == 168


# ---------------------------------------------------------------- what the history is asked
