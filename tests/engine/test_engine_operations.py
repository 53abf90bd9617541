"""Altering, signalling, messages and ordering: effect and answer in each state of a request."""

import pytest
from engine.harness import ANNE, BEN, OLGA, PLAIN, Centre
from engine.story import Story, play

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
OTHER = (
    PLAIN + "create batch_queue other priority=1\nset per_request cpu_limit=60 other\nenable queue other\n"
)
STORIES |= {
    "an order does all it can and names each failure": """site pes=1; submit anne, anne, ben
        delete 1+2.sim+3 by anne -> 2 1:wrong_state 3:not_permitted
        delete 4+x9+2.elsewhere by anne -> 4:unknown_request x9:bad_id 2.elsewhere:unknown_request
        state 1 running; end 2 dropped anne""",
    "a running one that is deleted": """site pes=1; submit anne; later 90s; delete 1 force by olga
        end 1 deleted None deleted by olga; ran 1 90""",
    "one that cannot be run again": "submit anne once; rerun 1 by anne -> 1:not_rerunnable",
    "rerun it is queued again with its date and starts anew": """submit anne; later 90s; rerun 1 by anne
        state 1 running; has 1 attempts=2 used.cpu=0 used.wall=0; moved 1 90; events requeued 1; later 10m
        ran 1 600""",
    "held until everyone who held it lets go": """qmgr stop queue batch; submit anne; hold 1 by anne
        hold 1 by olga; holds 1 ou; release 1 by anne; state 1 held; holds 1 o
        release 1 by anne -> 1:not_permitted; release 1 by olga; state 1 queued; holds 1 -
        release 1 by olga -> 1:wrong_state""",
    "a whole queue moves but for what runs": """site pes=1; qmgr create batch_queue other | enable queue other
        submit anne, ben, cleo held; qmgr move queue batch other by olga; queue 1 batch 2 other 3 other""",
    "another account is another group": """qmgr create group d1 share=1 members=(anne)
        qmgr create group d2 share=1 | stop queue batch; submit anne
        modify 1 account=d2 by anne -> 1:not_permitted
        modify 1 account=d2 by max; has 1 group=d2""",
    "suspended time is no running time": """site length=100; submit anne; later 40s; suspend 1 by olga
        state 1 suspended; suspend 1 by olga -> 1:wrong_state; later 1h; pes 1 0; resume 1 by olga
        later 59s; state 1 running; later 1s; ran 1 100""",
    "scheduled first in its queue, and next of all": """site pes=1
        qmgr create batch_queue urgent priority=60 | enable queue urgent | start queue urgent
        qmgr set queue batch run_limit=1; submit anne, anne, anne, anne, anne queue=urgent
        schedule 4 place=first by olga; schedule 3 place=next by olga; later 2h; starts 1 3 5 4 2""",
    "scheduled now past a run limit": """qmgr set queue batch run_limit=1; submit anne, ben; state 2 queued
        schedule 2 place=now by olga; state 2 running""",
    "abort ends what runs and purge what waits": """site pes=1; submit anne, ben, ben held
        qmgr purge queue batch by olga; state 1 running 2 ended 3 ended
        end 3 dropped olga queue batch was purged; submit ben; qmgr abort queue batch by olga
        state 1 ended 4 running; deny purge queue nowhere by olga -> unknown_queue""",
    "deleted with its owner named": """qmgr stop queue batch; submit anne
        delete 1 owner=ben by olga -> 1:not_permitted; delete 1 owner=anne by olga""",
}
MOVES = {
    "where its limits fit": """submit eva, anne cpu=600, anne cpu=60
        move 2+3 to=other by anne -> 3 2:above_limit; queue 2 batch 3 other""",
    "a user into open queues, an operator into any": """submit eva, anne, anne; qmgr disable queue other
        move 2 to=other by anne -> 2:queue_disabled; qmgr enable queue other | set users=(ben) other
        move 2 to=other by anne -> 2:no_access; move 2 to=other by olga
        move 3 to=nowhere by anne -> !unknown_queue""",
    "modified while it waits within the limits of its queue": """qmgr stop queue all
        submit anne queue=other cpu=30; modify 1 ask.cpu=61000 by anne -> 1:above_limit
        modify 1 ask.cpu=50000 name=new priority=5 ask.per_process.stack_limit=8192 by anne
        has 1 spec.ask.cpu=50000 name=new spec.name_given=true spec.priority=5
        has 1 spec.ask.others=[["per_process/stack_limit",8192]]""",
    "a new date makes it wait, and none lets it go": """qmgr stop queue all; submit anne
        modify 1 eligible=1772478060000 by anne; state 1 waiting; later 30s; modify 1 eligible=null by anne
        state 1 queued; moved 1 0""",
}


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


@pytest.mark.parametrize("title", MOVES)
def test_moves(title):
    play(MOVES[title], settings=OTHER, pes=1)


ENDINGS = {"rerun 1": "rerun by anne", "delete 1 kill": "deleted by anne"}


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_being_ended_is_neither_suspended_nor_let_go_on(ending, resume):
    story = Story(Centre())
    story.play("submit anne; later 40s" + "; suspend 1" * resume)
    state, story.centre.ask = story.centre.state(1), story.centre.sim.ask  # processes still run
    story.play(f"{ending} by anne; {'resume' if resume else 'suspend'} 1 by olga -> 1:wrong_state")
    assert ENDINGS[ending] in story.answer["failed"][0]["text"]
    assert story.centre.state(1) == state
    story.play("later 1m")
    story.centre.is_sound()


def test_mail_goes_out_where_it_was_asked_for():
    centre = Centre(length=60)
    centre.submit("anne mail=begin+end", "ben", "anne mail=abort held")
    centre.later(seconds=61)
    centre.ask(cm.Delete(("3",)), OLGA)
    mails = [(n.to, n.subject) for n in centre.sim.notices]
    assert mails == [
        ("anne", "nqspy: 1.sim has started"),
        ("anne", "nqspy: 1.sim ended"),
        ("anne", "nqspy: 3.sim is deleted"),
    ]


def test_a_command_the_engine_does_not_know_is_refused():
    assert Centre().refused(cm.Shutdown(), BEN).code == "not_offered"
