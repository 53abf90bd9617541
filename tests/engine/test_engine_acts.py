"""Altering, signalling, telling and ordering requests: what each does in each state, and what it answers."""

import pytest
from engine.harness import ANNE, Centre
from engine.story import play

from nqspy.model import commands as cm
from nqspy.model.actions import Adjust

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
        signal 1 number=15 by anne -> 1:has_ended; rerun 1 by anne -> 1:has_ended""",
    "two exchange their dates and priorities": f"""{WAITS} anne; later 10s; submit anne; later 10s
        submit anne; modify 3 priority=5 by anne; exchange 1+3 by anne -> 1 3; moved 1 0 2 10 3 20
        has 1 spec.priority=5; has 2 spec.priority=null; has 3 spec.priority=null
        qmgr start queue batch; later 1h; starts 1 3 2""",
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
} | {
    f"so many mails about deletions go out at most: {most}": f"""{WAITS} ben, anne mail=abort
        submit anne mail=abort, anne mail=abort; delete 1+2+3+4 force {most} by olga; mails {mails}
        known 0"""
    for most, mails in (("", 3), ("mails=0", 0), ("mails=2", 2))
} | {
    f"of one that runs nobody alters what cannot matter any more: {change}": f"""submit anne wall=600
        modify 1 {change} by anne -> 1:cannot_alter; events modified 0"""
    for change in (
        "ask.cpu=1000", "ask.pes=2", "ask.memory=1048576", "priority=3", "eligible=null", "account=x",
        "shell=/bin/sh", "output.join=true", "holds=u", "queue=batch", "attributes.project=x", "umask=0",
    )
} | {
    f"no request can be altered to this: {change}": f"""{WAITS} anne; modify 1 {change} by {who} -> 1:{code}
        events modified 0"""
    for who, code, changes in (
        ("anne", "bad_value", (
            "attributes.after=1:ok", "attributes.=x", "output.nowhere=x", "output.join=maybe", "uid=0",
            "mail.to=-oops", "umask=-1", "ask.cpu=much", "ask=3", "ask.pes=0", "ask.pes=null",
            "ask.memory=-7", "group=d1", "ask.nonsense=1", "rerunnable=perhaps", "output.stdout=relative",
        )),
        ("anne", "bad_name", ("name=a/b",)), ("anne", "above_limit", ("ask.pes=99",)),
        ("olga", "not_permitted", ("script=x", "owner=ben")),
    )
    for change in changes
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_acts(title):
    play(STORIES[title])


def test_a_lowered_wall_time_reaches_its_shepherd_again_after_a_restart(monkeypatch):
    centre, seen = Centre(), []
    centre.submit("anne wall=1200", "anne wall=1200")
    centre.ask(cm.ModifyRequest(("1",), {"ask/wall": 90_000}), ANNE)
    monkeypatch.setattr(centre.sim.executor, "do", lambda action, *_: seen.append(action))
    centre.sim.restart()
    assert [each for each in seen if isinstance(each, Adjust)] == [Adjust(1, 1)], "the altered one alone"


@pytest.mark.parametrize("text", ["", "\n", "x" * 4001, "a\x1b[2J", "a\0"])
def test_a_message_is_a_line_that_does_nothing_to_a_terminal(text):
    centre = Centre()
    centre.submit("anne")
    assert centre.refused(cm.WriteMessage(("1",), text), ANNE).status == 166
