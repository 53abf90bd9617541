"""Orders about single requests: what each does in each state, and what it answers."""

import pytest
from engine.harness import ANNE, BEN, OLGA, PLAIN, Centre
from engine.story import Story, play

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.requests import Used

OTHER = (
    PLAIN + "create batch_queue other priority=1\nset per_request cpu_limit=60 other\nenable queue other\n"
)
STORIES = {
    "an order does all it can and names each failure": """site pes=1; submit anne, anne, ben
        delete 1+2.sim+3 by anne -> 2 1:wrong_state 3:not_permitted
        delete 4+x9+2.elsewhere by anne -> 4:unknown_request x9:bad_id 2.elsewhere:unknown_request
        state 1 running; end 2 dropped anne""",
    "a running one that is deleted": """site pes=1; submit anne; later 90s; delete 1 force by olga
        end 1 deleted None deleted by olga; ran 1 90""",
    "one that cannot be run again": "submit anne once; rerun 1 by anne -> 1:not_rerunnable",
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
def test_orders(title):
    play(STORIES[title])


@pytest.mark.parametrize("title", MOVES)
def test_moves(title):
    play(MOVES[title], settings=OTHER, pes=1)


ENDINGS = {"rerun 1": "rerun by anne", "delete 1 kill": "deleted by anne"}


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_being_ended_is_neither_suspended_nor_let_go_on(ending, resume):
    story = Story(Centre())
    story.play("submit anne; later 40s" + "; suspend 1" * resume)
    state, story.centre.ask = story.centre.state(1), story.centre.sim.ask  # its processes have not ended yet
    story.play(f"{ending} by anne; {'resume' if resume else 'suspend'} 1 by olga -> 1:wrong_state")
    assert ENDINGS[ending] in story.answer["failed"][0]["text"]
    assert story.centre.state(1) == state
    story.play("later 1m")
    story.centre.is_sound()


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


def test_a_command_the_engine_does_not_know_is_refused():
    assert Centre().refused(cm.Shutdown(), BEN).code == "not_offered"
