"""Observations of the executor, and their effects."""

import pytest
from engine.harness import PLAIN, Centre, goes_on, submit
from engine.story import Story, value
from msgspec.structs import replace

from nqspy.core.passes import explain
from nqspy.model import actions as ac
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.people import Caller
from nqspy.model.reasons import Reasons
from nqspy.model.requests import Ending, Request, Used


class Recorder:
    """An executor that only records its orders; the test supplies the observations."""

    def __init__(self):
        self.done: list[ac.Action] = []
        self.given: list[Request | None] = []

    def do(self, action, request, site, now):
        self.done.append(action)
        self.given.append(request)

    def told(self, *kinds):
        found, self.done = [each for each in self.done if isinstance(each, kinds)], []
        return found


def centre_with_one(pes: int = 2) -> Centre:
    centre = Centre(pes=pes)
    centre.engine.executor = Recorder()
    centre.submit("anne")
    return centre


def see(centre: Centre, *observations: ob.Observation) -> None:
    centre.sim.feed(observations)
    centre.is_sound()


SEEN = {
    "running": ob.ObservedRunning, "ended": ob.ObservedEnded, "lost": ob.ObservedLost,
    "void": ob.ObservedVoid, "not_started": ob.ObservedNotStarted, "use": ob.ObservedUse,
    "exiting": ob.ObservedExiting,
}  # fmt: skip


class HandsStory(Story):
    """A test with a `Recorder`: the test says what the executor observes."""

    def __init__(self, centre: Centre) -> None:
        super().__init__(centre)
        centre.engine.executor = self.hands = Recorder()

    def see(self, words: str) -> None:
        """Report an observation of an attempt: kind, request, attempt, further values."""
        kind, seq, attempt, *more = words.split()
        fields = {name: value(text) for name, _, text in (each.partition("=") for each in more)}
        if "used" in fields:
            fields["used"] = Used(*fields["used"])
        fields = {"ending": Ending(**fields)} if kind == "ended" else fields
        see(self.centre, SEEN[kind](self.seq(seq), int(attempt), **fields))

    def orders(self, words: str) -> None:
        """Check the orders to the executor since the last check, in order."""
        found = []
        for each in self.hands.told(ac.Action):
            more = (each.reason, each.grace, each.signal) if isinstance(each, ac.Kill) else ()
            more = (each.signal,) if isinstance(each, ac.Signal) else more
            more = (repr(each.text), *each.streams) if isinstance(each, ac.WriteOutput) else more
            name = type(each).__name__.lower()
            found.append(":".join(map(str, (name, self.centre.id(each.seq)[:-4], each.attempt, *more))))
        assert found == words.strip("-").split(), found

    def retries(self, *causes: str) -> None:
        """Check the causes for which attempts are tried again, with numbers of requests: ``gone=2``."""
        found = {f"{cause}={count}" for cause, count in self.centre.site.causes_of_retries().items()}
        assert found == set(causes[0].split()), found

    def alarms(self, number: str) -> None:
        """Check how many alarms there were."""
        assert len(self.centre.events(ev.Alarm)) == int(number)


STORIES = {
    "it is starting until the hands say that it runs": """has 1 attempt.starting=true; later 1s
        see running 1 1; has 1 attempt.starting=false; moved 1 1; see running 1 1; events started 1""",
    "attempts no longer in force change nothing": """see ended 1 1 reason=exit; orders start:1:1 forget:1:1
        known 0
        see ended 1 1 reason=exit; see lost 1 1; see void 1 1; see not_started 1 1 text=x
        see use 1 1 used=[5,5]
        see ended 77 1 reason=exit; orders forget:1:1 forget:1:1 forget:1:1 forget:1:1 forget:77:1
        see running 1 1; orders kill:1:1:deleted:0:9; events ended 1; events requeued 0""",
    "the end of an earlier attempt ends no later one": """see running 1 1; see lost 1 1
        orders start:1:1 forget:1:1 start:1:2; see ended 1 1 reason=exit; see running 1 1
        see use 1 1 used=[9,9]
        state 1 running; has 1 attempts=2; orders forget:1:1 kill:1:1:deleted:0:9; events ended 0""",
    "what could not be started is held until that is mended": """see not_started 1 1 text=gone; state 1 held
        has 1 hold_text=gone; orders start:1:1 forget:1:1; release 1 by anne; orders start:1:2""",
    "an attempt that never began is started anew": """see void 1 1; orders start:1:1 forget:1:1 start:1:2
        see void 1 2 text=full; orders forget:1:2 start:1:3""",
    "deleted before it began": "delete 1 force by anne; see void 1 1; end 1 dropped anne",
    "deleted, and it could not be started": """delete 1 force by anne; see not_started 1 1 text=x
        end 1 dropped anne""",
    "a lost end is run again": """see running 1 1; see use 1 1 used=[40000,50000,7]; see lost 1 1
        orders start:1:1 forget:1:1 start:1:2; events requeued 1; alarms 1""",
    "a lost end fails where the site says so": "qmgr set lost_request fail; see lost 1 1; end 1 lost",
    "an attempt that ran is lost and never void": """qmgr set lost_request fail; see running 1 1; see void 1 1
        end 1 lost None its folder in the spool is gone""",
    "one whose processes may run on is held": """see running 1 1; see use 1 1 used=[40000,50000,7]
        see lost 1 1 unsure=true; orders start:1:1 forget:1:1; state 1 held; alarms 1
        says 1 may still run; release 1 by anne; orders start:1:2""",
    "three times lost in a row at once it is held": """see running 1 1; see lost 1 1 brief=true
        see running 1 2; see lost 1 2 brief=true; see void 1 3; see running 1 4
        see lost 1 4 text=restarted; state 1 running
        see running 1 5; see lost 1 5 brief=true; state 1 held; has 1 attempts=5
        says 1 killed 3 times in a row; release 1 by anne; see running 1 6; see lost 1 6 brief=true
        see running 1 7; see lost 1 7; see running 1 8; see lost 1 8 brief=true; see running 1 9
        see lost 1 9 brief=true; state 1 running; see lost 1 10 brief=true; state 1 held""",
    "a lost end of one that was to be deleted": "delete 1 force by anne; see lost 1 1; end 1 lost",
    "a lost end of one that was to be rerun": """qmgr set lost_request fail; rerun 1 by anne; see lost 1 1
        has 1 attempts=2""",
    "a deletion orders the end with the site's grace": """qmgr set grace 20; see running 1 1
        delete 1 force by anne; delete 1 kill by anne; delete 1 signal=10 by anne
        orders start:1:1 kill:1:1:deleted:20000:15 kill:1:1:deleted:0:9 signal:1:1:10; state 1 running""",
    "a rerun after a deletion": "delete 1 force by anne; rerun 1 by anne -> 1:wrong_state",
    "a deletion after a rerun counts": """rerun 1 by anne; delete 1 force by anne
        see ended 1 1 reason=requeued signal=15; end 1 deleted None deleted by anne""",
    "an end told with less takes nothing back": """see running 1 1; see use 1 1 used=[30000,40000,9]
        see ended 1 1 reason=exit status=0 used=[10,10,1]; ran 1 40""",
    "what is exiting has given its PEs back": """qmgr set machine pes=1; submit ben; see running 1 1
        orders start:1:1; see exiting 1 1 used=[5,7]; has 1 state=exiting; pes 1 -; orders start:2:1
        see exiting 1 1 used=[5,7]; events exiting 1; see ended 1 1 reason=exit status=0; end 1 exit 0""",
    "a delivery can be ended and not run again": """see exiting 1 1; events started 1; delete 1 kill by anne
        orders start:1:1 kill:1:1:deleted:0:9; rerun 1 by anne -> 1:wrong_state
        see ended 1 1 reason=exit status=3; end 1 exit 3""",
    "what a cause outside hinders backs off, and keeps its place": """see void 1 1 text=gone later=true
        state 1 waiting; retries gone=1; orders start:1:1 forget:1:1; later 1.9s; orders -; later 0.1s
        orders start:1:2; see void 1 2 text=gone later=true; later 3.9s; orders forget:1:2; later 0.1s
        orders start:1:3; see void 1 3 text=gone later=true; later 7.9s; orders forget:1:3; later 0.1s
        orders start:1:4; see running 1 4; has 1 retry=null; moved 1 14; alarms 1""",
    "others start meanwhile and share the alarm": """qmgr set machine pes=1; submit anne, ben
        see void 1 1 text=gone later=true; see void 2 1 text=gone later=true; state 3 running
        retries gone=2; alarms 1; delete 1 by anne; state 1 ended""",
    "output that cannot be delivered for now": """see running 1 1; see exiting 1 1 used=[5,5] text=gone
        retries gone=1; alarms 1; see ended 1 1 reason=exit status=0; end 1 exit 0; retries""",
    "one whose output is being delivered is altered no more": """see exiting 1 1
        modify 1 name=x by anne -> 1:wrong_state""",
    "a signal goes to what runs, and 0 only looks": """qmgr set machine pes=1; submit anne, ben
        orders start:1:1; signal 1 number=0; orders -
        signal 1+2+3+9 number=0 by anne -> 1 2:wrong_state 3:not_permitted 9:unknown_request
        signal 1 number=10; orders signal:1:1:10; signal 1 number=65 by anne -> !bad_signal""",
    "a rerun by force is a kill at once": "rerun 1 force; orders start:1:1 kill:1:1:requeued:0:9",
    "messages are written in the order in which they came": """message 1 text=one by anne
        message 1 text=two streams=["stdout","stderr"] by olga
        orders start:1:1 writeoutput:1:1:'one\\n':stderr writeoutput:1:1:'two\\n':stdout:stderr""",
    "lost while it exits it is run again": """see exiting 1 1 used=[5,7]; see lost 1 1; events requeued 1
        has 1 attempts=2""",
}
ONCE = {
    "a lost end fails where the request says so": "see lost 1 1; end 1 lost",
    "lost and never void": "see running 1 1; see void 1 1; end 1 lost",
    "its shepherd is told what changes while it runs": """see running 1 1
        modify 1 name=other mail.end=true mail.to=ben rerunnable=true output.stdout=/tmp/x by anne
        orders start:1:1 adjust:1:1; has 1 name=other spec.name_given=true spec.mail.end=true spec.mail.to=ben
        has 1 spec.rerunnable=true spec.output.stdout=/tmp/x; pes 1 0""",
    "not run again it is ended, with an alarm": """see running 1 1; see lost 1 1 unsure=true; end 1 lost
        alarms 1""",
}  # fmt: skip


@pytest.mark.parametrize(("line", "text"), [
    *(("anne", text) for text in STORIES.values()), *(("anne once", text) for text in ONCE.values())
], ids=[*STORIES, *ONCE])  # fmt: skip
def test_what_becomes_of_what_is_seen(line, text):
    story = HandsStory(Centre())
    story.play(f"submit {line}; {text}")
    story.centre.is_sound()


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
    centre = centre_with_one()
    ordered = centre.request(1).started
    centre.sim.now += 60_000
    see(centre, ob.ObservedEnded(1, 1, Ending("exit", 0, None, Used(20_000, 40_000))))
    [started] = centre.events(ev.Started)
    assert started.began == centre.sim.now - 40_000
    [row] = centre.engine.journal.ended((1,))
    assert row["request"].started == started.began > ordered


def test_one_that_ran_longer_than_it_can_have_began_when_it_was_ordered():
    centre = centre_with_one()
    ordered = centre.request(1).started
    centre.sim.now += 1_000
    see(centre, ob.ObservedExiting(1, 1, Used(20_000, 40_000)))
    assert [each.began for each in centre.events(ev.Started)] == [ordered]


def test_what_an_earlier_attempt_used_is_not_charged_to_the_next():
    centre = centre_with_one()
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedUse(1, 1, Used(30_000, 30_000)), ob.ObservedLost(1, 1))
    see(centre, ob.ObservedRunning(1, 2))
    centre.submit("ben")
    assert round(centre.site.accounts["g:default"].value) == 30_000
    assert centre.request(1).used == Used()


GONE = "the user database has no entry for anne (uid 1001)"


def test_one_that_cannot_start_for_a_day_is_held_and_a_release_tries_it_again():
    centre = centre_with_one(pes=1)
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


def test_a_submission_of_a_uid_without_a_name_is_refused():
    centre = Centre(PLAIN)
    nameless = Caller("1003", 1003, 1003, ("1003",))
    assert centre.refused(submit("1003", centre), nameless).code == "unknown_user"
    assert centre.ask(submit("1003", centre), replace(nameless, trusted=True))["ids"]


def test_sampled_use_is_charged_when_a_pass_acts_and_at_the_end():
    centre = centre_with_one()
    see(centre, ob.ObservedRunning(1, 1), ob.ObservedUse(1, 1, Used(30_000, 30_000)))
    assert not centre.site.accounts["g:default"].value, "nothing was decided: nothing is journaled"
    centre.submit("ben")
    assert round(centre.site.accounts["g:default"].value) == 30_000
    see(centre, ob.ObservedEnded(1, 1, Ending("exit", 0, None, Used(50_000, 50_000))))
    assert round(centre.site.accounts["g:default"].value) == 50_000
    assert centre.site.accounts["g:default"].recent == [50_000]


def test_an_executor_that_fails_leaves_the_request_held_and_the_engine_alive():
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
