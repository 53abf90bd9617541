"""Altering, signalling, telling and ordering requests: what each does in each state, and what it answers."""

import pytest
from engine.harness import ANNE, OLGA, PLAIN, Centre
from engine.story import play

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Action, Adjust, Kill, Signal, WriteOutput
from nqspy.model.observations import ObservedExiting
from nqspy.model.requests import Used

WAITS = "site pes=1; qmgr stop queue batch; submit"
STORIES = {
    "its owner lowers the wall time of a running one": """site length=600; submit anne wall=1200; later 60s
        modify 1 ask.wall=90000 by anne; later 29s; state 1 running; later 2s; end 1 wall_limit; ran 1 90""",
    "only an operator raises it, within the queue's limit": """site length=600
        qmgr set per_request wall_limit=1000 batch; submit anne wall=300
        modify 1 ask.wall=900000 by anne -> 1:not_permitted; modify 1 ask.wall=null by anne -> 1:not_permitted
        modify 1 ask.wall=1001000 by olga -> 1:above_limit; modify 1 ask.wall=900000 by olga
        later 301s; state 1 running; later 300s; end 1 exit""",
    "output that is written in place stays": """submit anne held
        modify 1 output.direct_stderr=true output.stderr=/tmp/e by anne; release 1 by anne
        modify 1 output.stderr=/tmp/f by anne -> 1:cannot_alter; modify 1 output.stdout=/tmp/o by anne
        has 1 spec.output.stderr=/tmp/e spec.output.stdout=/tmp/o""",
    "output, mail, umask and notes of one that waits": f"""{WAITS} anne
        modify 1 output.join=true output.keep_stdout=true mail.abort=true umask=63 by anne
        modify 1 attributes.project=["p1"] attributes.checkpoint=c=5 attributes.exclusive=[true] by anne
        modify 1 attributes.project=p2 attributes.checkpoint=null by anne
        has 1 spec.output.join=true spec.output.keep_stdout=true spec.mail.abort=true spec.umask=63
        has 1 spec.attributes=["exclusive","project:p2"]""",
    "an operator does not say where output goes": f"""{WAITS} anne
        modify 1 output.stdout=/x by olga -> 1:not_permitted; modify 1 output.stdout=/x by max""",
    "holds are those that are named from then on": f"""{WAITS} anne; modify 1 holds=uo by olga; state 1 held
        holds 1 ou; modify 1 holds=u by anne -> 1:not_permitted; modify 1 holds=o by olga; holds 1 o
        modify 1 holds=n by olga; state 1 queued; holds 1 -; modify 1 holds=s by anne -> !not_permitted
        modify 1 holds=un by anne -> !bad_hold""",
    "letters of holds come joined, n is none": f"""{WAITS} anne; hold 1 letter=uso by olga; holds 1 osu
        hold 1 letter=n by olga; release 1 letter=n by olga; holds 1 osu; release 1 letter=so by olga
        holds 1 u
        hold 1+9 letter=us by olga -> 1 9:unknown_request; hold 1 letter=us by anne -> !not_permitted
        holds 1 su""",
    "what is not held is no failure if that is said": """site pes=1; submit anne, anne
        release 1+2 lenient by anne -> 2 1:wrong_state; release 2 by anne -> 2:wrong_state""",
    "a signal to one that has just ended": """site length=10; submit anne; later 10s; state 1 ended
        signal 1 number=15 by anne -> 1:has_ended""",
    "none of the same instant comes between exchanged ones": f"""{WAITS} anne; later 1s
        submit anne, anne, anne; later 1s; exchange 1+4 by anne; exchange 4+3 by anne; exchange 2+3 by anne
        qmgr start queue batch; later 1h; starts 2 3 4 1""",
    "indices share a place that was exchanged": f"""{WAITS} anne array=1-3, anne; later 1s
        exchange 1[]+2 by anne; qmgr start queue batch; later 11m; starts 2 1[1]; rerun 1[1] by anne; later 1h
        starts 1[1] 1[2] 1[3]""",
    "one with a date of its own keeps an exchanged place": f"""{WAITS} anne, ben, anne at=+30
        modify 3 priority=-3 by anne; later 1m; exchange 3+1 by anne; modify 3 name=mine by anne
        qmgr start queue batch; later 1h; starts 3 2 1""",
    "an exchange is done for both or for none": """site pes=1
        qmgr create batch_queue other priority=1 | enable queue other
        submit eva, anne, ben, anne queue=other, anne; exchange 1+2 by anne -> 1:not_permitted
        exchange 2+3 by anne -> 3:not_permitted; exchange 2+9 by anne -> 9:unknown_request
        exchange 2+4 by anne -> !other_queue; exchange 2 by anne -> !two_requests; exchange 2+2 by anne
        schedule 2 place=first by olga; exchange 2+5 by anne -> !other_rank; events redated 0
        exchange 3+5 by olga; exchange 1+5 -> 1:wrong_state""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_acts(title):
    play(STORIES[title])


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


# ---------------------------------------------------------------- holds


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


# ---------------------------------------------------------------- what the history is asked
