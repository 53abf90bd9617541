"""Submissions: which are accepted, which are refused, and with which codes."""

import re

import pytest
from engine.harness import ANNE, BEN, MAX, OLGA, PLAIN, Centre, asked, item, moment, replies_to
from engine.story import play
from msgspec.structs import replace

from nqspy.core.no_exits import NoExits
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.requests import Ask, MailWishes, Output
from nqspy.ports import SubmitAnswer


def refused(centre: Centre, *lines: str, key: str = "") -> Refusal:
    items = tuple(item(line, centre.sim.now, number=n) for n, line in enumerate(lines, 1))
    return centre.refused(cm.Submit(items, key), ANNE)


def test_a_request_gets_the_next_identifier_and_the_caller_as_its_owner():
    centre = Centre()
    answer = centre.hand_in("anne name=first", by=ANNE)
    assert answer == {"ids": ["1.sim"], "queues": ["batch"]}
    spec = centre.request(1).spec
    assert (spec.owner, spec.uid, spec.gid) == ("anne", ANNE.uid, ANNE.gid)
    assert centre.journal.blob(spec.script) == b"#!/bin/sh\ntrue\n"
    assert centre.journal.blob(spec.environment) == b"HOME=/home"
    centre.is_sound()


def test_a_list_is_accepted_whole_and_in_its_order_by_one_commit():
    centre = Centre(PLAIN + "stop queue batch\n")
    centre.hand_in("anne name=known")  # of one who has waited before a pass has nothing new to tell
    commits = centre.engine.commits
    answer = centre.hand_in("anne name=a", "anne name=b", "anne name=c")
    assert answer["ids"] == ["2.sim", "3.sim", "4.sim"]
    assert centre.engine.commits == commits + 1
    assert [centre.request(seq).name for seq in (2, 3, 4)] == ["a", "b", "c"]


def test_one_bad_line_refuses_the_whole_list_and_is_named():
    centre = Centre()
    refusal = refused(centre, "anne name=a", "anne queue=nowhere", "anne name=c")
    assert str(refusal).startswith("line 2: ")
    assert refusal.code == "unknown_queue"
    assert not centre.site.requests
    assert centre.submit("anne") == [1], "a number was given away by the refused list"


GROUPS = "qmgr create group d1 share=29 members=(anne) | create group d2 share=24 members=(anne, ben); submit"
PIPE = """qmgr create batch_queue express priority=50 | set per_request cpu_limit=30 express
    qmgr set per_request memory_limit=8mw express | create batch_queue normal priority=30
    qmgr set per_request cpu_limit=600 normal
    qmgr create pipe_queue day priority=20 destination=(express, normal)
    qmgr enable queue express, normal, day"""
STORIES = {
    "what cannot be accepted": """refuse anne queue=weekend -> no_such_queue; refuse anne pes=3 -> above_limit
        refuse anne pes=0 -> no_pe; refuse anne name=a/b -> bad_name; refuse anne workdir=here -> bad_path
        refuse anne workdir=/x\0y -> bad_path_character
        refuse anne cpu=0 -> asks_nothing; refuse anne mem=0 -> asks_nothing
        site; qmgr disable queue batch; refuse anne -> queue_disabled
        site; qmgr set users=(ben) batch; refuse anne -> no_access
        site; qmgr set no_default batch_request queue; refuse anne -> no_default_queue
        site; qmgr set queue batch pipeonly=yes; refuse anne -> pipe_only""",
    "a pipe queue passes on to the first that fits": f"""{PIPE}; qmgr set default cpu_limit=600
        qmgr start queue day; submit anne queue=day cpu=30 mem=1mw, anne queue=day cpu=31, anne queue=day
        queue 1 express 2 normal 3 normal; refuse anne queue=day cpu=601 -> no_destination""",
    "a stopped pipe queue keeps what it takes": f"""{PIPE}; submit anne queue=day cpu=30 mem=1mw; queue 1 day
        qmgr start queue day; queue 1 express""",
    "held until its release, dated until its date": """submit anne held, anne at=3600, anne at=-3600
        state 1 held 2 waiting 3 running; later 59m; state 2 waiting; later 1m; state 2 running
        release 1 by anne; state 1 running""",
    "an account charges a group of its owner": f"""{GROUPS} anne, anne account=d2, anne account=thesis, eva
        has 1 group=d1; has 2 group=d2; has 3 group=d1 spec.account=thesis; has 4 group=default
        refuse ben account=d1 -> no_member; submit olga account=d1; has 5 group=d1""",
}
SMALL = "qmgr stop queue batch | create batch_queue small | enable queue small; qmgr"
STORIES |= {
    "a user who submits too much, and others": """qmgr stop queue batch | set global queued_limit user=3
        submit anne, anne, anne; refuse anne -> user_queued_limit; submit ben; delete 1 by anne; submit anne
        state 4 queued""",
    "the site and each queue have their own": f"""{SMALL} set global queued_limit=4
        qmgr set queue small queued_limit=2 user=1; submit anne queue=small
        refuse anne queue=small -> user_queued_limit; submit ben queue=small
        refuse cleo queue=small -> queued_limit; submit anne, anne; refuse ben -> queued_limit""",
    "users do not get round it by moving": f"""{SMALL} set queue small queued_limit user=1
        submit anne queue=small, anne; move 2 to=small by anne -> 2:queued_limit; move 2 to=small by max""",
    "several in a pipe queue do not overrun it in one pass": f"""{SMALL} set queue small queued_limit user=2
        qmgr create pipe_queue pipe destination=(small) | enable queue pipe
        submit anne queue=pipe, anne queue=pipe, anne queue=pipe, anne queue=pipe, anne queue=pipe
        qmgr start queue pipe; later 1m; queue 1 small 2 small 3 pipe 4 pipe 5 pipe""",
}
STORIES |= {
    f"moved to where it is it needs no room: {limit}": f"""{SMALL} set queue small {limit}
        submit anne queue=small array=1-2; move 1[] to=small by anne"""
    for limit in ("queued_limit=2", "queued_limit user=2", "run_limit=2 loadonly=on")
}
STORIES |= {
    f"users do not get round loadonly: {act}{words}": f"""{SMALL} set queue small run_limit=3 loadonly=on
        submit anne queue=small array=1-{2 if words else 3}, anne{words}
        {act} by anne -> {name}:queue_full; {act} by max"""
    for words, name in (("", "2"), (" array=1-3", "2[]"))
    for act in (f"move {name} to=small", f"modify {name} queue=small")
}


@pytest.mark.parametrize("title", STORIES)
def test_submissions(title):
    play(STORIES[title])


def for_user(name: str, script: str = "true", environment: str = "") -> cm.Submission:
    return cm.Submission(cm.Spec(name, 1, "x", "", "", "", "/home"), script, environment, user=name)


def with_spec(**changes: object) -> cm.Submit:
    one = item("anne", Centre().sim.now)
    return cm.Submit((replace(one, spec=replace(one.spec, **changes)),))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"name": "é" * 116}, "bad_name"),
        ({"output": Output(stdout="/tmp/" + "é" * 128)}, "bad_value"),
        ({"output": Output(stderr="/" + "d" * 256 + "/x")}, "bad_value"),
        ({"output": Output(stdout="/tmp/%x%x"), "name": "n" * 130}, "bad_value"),
        *(
            ({"ask": Ask(**{field: amount})}, field)
            for field in ("cpu", "wall", "memory", "memory_process", "nice")
            for amount in (-5, 2**70)
        ),
        *(({"mail": MailWishes(to=to)}, "bad_address") for to in ("|/bin/sh", "anne,-oQ/tmp", "a b")),
        ({"mail": MailWishes(to=",".join(f"a{number}@b" for number in range(21)))}, "many_addresses"),
    ],
)
def test_values_that_are_none_are_refused(changes, text):
    refusal = Centre().refused(with_spec(**changes), ANNE)
    assert text in (refusal.code, refusal.kind) or text in str(refusal)


def test_the_longest_names_and_mail_to_several_are_accepted():
    fits = Output(stdout="/tmp/" + "é" * 127, stderr="/tmp/%x.e")
    mail = MailWishes(to="anne, chief@example.org")
    assert Centre().ask(with_spec(name="é" * 115, output=fits, mail=mail), ANNE)


# ---------------------------------------------------------------- keys
def test_the_same_key_again_gives_the_same_answer_and_no_second_request():
    centre = Centre()
    first = centre.hand_in("anne name=a", "anne name=b", key="k1")
    for hours in (0, 1):
        centre.later(hours=hours)
        assert centre.hand_in("anne name=a", "anne name=b", key="k1")["ids"] == first["ids"]
    assert not centre.site.requests
    assert len(centre.events(ev.Submitted)) == 2
    assert refused(centre, "anne name=other", key="k1").kind == "key_reused"
    assert centre.hand_in("ben name=other", by=BEN, key="k1")["ids"] == ["3.sim"]


def test_a_key_twice_in_one_group_is_one_submission():
    centre = Centre()
    one, two = object(), object()
    command = cm.Submit((item("anne", centre.sim.now),), "k1")
    outcome = centre.engine.feed([asked(command, ANNE, one), asked(command, ANNE, two)], centre.sim.now)
    first, second = replies_to((one, two), outcome.replies)
    assert first.value["ids"] == second.value["ids"] == ["1.sim"]


def test_a_keyed_list_for_several_users_is_repeated_whole():
    centre = Centre()
    command = cm.Submit(tuple(map(for_user, ("anne", "ben", "anne"))), "k")
    first = centre.ask(command, MAX)
    assert first["ids"] == ["1.sim", "2.sim", "3.sim"]
    centre.sim.run()
    assert centre.ask(command, MAX) == first | {"repeated": True}


def test_only_a_manager_submits_for_somebody_else():
    centre = Centre()
    command = cm.Submit((for_user("ben"),))
    assert [centre.refused(command, by).kind for by in (ANNE, OLGA)] == ["needs_role"] * 2
    centre.ask(command, MAX)
    assert centre.request(1).owner == "ben"


# ---------------------------------------------------------------- exits, dry run, sizes
class Door(NoExits):
    """A submit exit made of a function."""

    def __init__(self, answer):
        self.answer = answer

    def has(self, hook):
        return hook == "submit"

    def submit(self, request, view):
        return self.answer(request)


def test_a_submit_exit_may_refuse():
    centre = Centre(exits=Door(lambda r: SubmitAnswer("no jobs of that name", "names")))
    assert refused(centre, "anne name=x").code == "exit_refused"


def test_a_submit_exit_may_change_queue_and_priority():
    settings = PLAIN + "create batch_queue other priority=1\nenable queue other\n"
    centre = Centre(settings, exits=Door(lambda r: SubmitAnswer(changes={"queue": "other", "priority": 7})))
    [seq] = centre.submit("anne")
    assert (centre.request(seq).queue, centre.request(seq).spec.priority) == ("other", 7)


def test_a_dry_run_says_what_would_become_of_it_and_submits_nothing():
    centre = Centre(pes=1)
    centre.submit("anne wall=10:00")
    command = cm.Submit((item("ben wall=60", centre.sim.now),), dry_run=True)
    n = centre.count()
    [found] = centre.ask(command, BEN)["dry_run"]
    assert (found["queue"], found["group"]) == ("batch", "default")
    assert moment(found["estimate"]["start"]) == centre.sim.now + 600_000
    assert centre.count() == n
    assert centre.submit("ben") == [2]


def test_what_is_too_large_or_no_text_or_empty_is_refused():
    for code, *given in (
        ("too_large", "true", "A=" + "x" * (1 << 20)),
        ("bad_value", "echo \u20ac"),
        ("bad_value", "true", "A=x\0y"),
    ):
        assert Centre().refused(cm.Submit((for_user("anne", *given),)), ANNE).code == code
    assert Centre().refused(cm.Submit(()), ANNE).code == "empty_list"


# ---------------------------------------------------------------- how many there may be
STOPPED = PLAIN + "stop queue batch\n"


def centre_with(*lines: str) -> Centre:
    return Centre(STOPPED + "".join(f"{line}\n" for line in lines))


def hand_in(centre: Centre, count: int, **more) -> cm.Submit:
    return cm.Submit(tuple(item("x", centre.sim.now, number=n, **more) for n in range(1, count + 1)))


def test_a_list_fits_as_a_whole_or_not_at_all():
    centre = centre_with("set global queued_limit user=3")
    centre.submit("anne")
    refusal = centre.refused(hand_in(centre, 3), ANNE)
    assert (refusal.code, str(refusal)[:8]) == ("queued_limit", "line 3: ")
    assert len(centre.site.requests) == 1
    centre.ask(hand_in(centre, 2), ANNE)
    centre.is_sound()


def test_the_refusal_names_the_setting_as_qmgr_reads_it():
    centre = centre_with("set global queued_limit user=1")
    centre.submit("anne")
    setting = re.search(r"\((set .*?)\)", str(centre.refused(hand_in(centre, 1), ANNE)))[1]
    assert {each.path: each.value for each in centre.command(setting).changes} == {
        "global/user_queued_limit": 1
    }


def test_the_limit_counts_by_owner_whoever_hands_in():
    centre = centre_with("set global queued_limit user=2")
    centre.ask(hand_in(centre, 2, user="ben"), MAX)
    assert "whoever has 2 of" in str(centre.refused(hand_in(centre, 1, user="ben"), MAX))
    centre.submit("max", "max", "anne")
    centre.is_sound()


def test_what_a_key_repeats_is_no_more_and_a_dry_run_reports_it_too():
    centre = centre_with("set global queued_limit user=1")
    one = item("anne", centre.sim.now)
    first = centre.ask(cm.Submit((one,), "k"), ANNE)
    assert centre.ask(cm.Submit((one,), "k"), ANNE)["ids"] == first["ids"]
    with pytest.raises(Refusal, match="anne has 1 of"):
        centre.ask(cm.Submit((one,), dry_run=True), ANNE)


@pytest.mark.parametrize(
    ("written", "changes"),
    [
        ("set global queued_limit user=10000", {"global/user_queued_limit": 10_000}),
        ("set queue batch queued_limit=7", {"queue/batch/queued_limit": 7}),
        ("set queue batch queued_limit user = 3", {"queue/batch/user_queued_limit": 3}),
        ("set queued_limit=7 batch", {"queue/batch/queued_limit": 7}),
        ("set user_queued_limit=7 batch", {"queue/batch/user_queued_limit": 7}),
        ("set global queued_limit=20 user=5", {"global/queued_limit": 20, "global/user_queued_limit": 5}),
    ],
)
def test_how_the_limits_are_written(written, changes):
    assert {each.path: each.value for each in Centre().command(written).changes} == changes


def test_many_identifiers_that_name_nothing_cost_one_question_to_the_store(monkeypatch):
    centre, asked = centre_with(), []
    deleted, waiting = centre.submit("anne", "anne")
    centre.ask(cm.Delete((centre.id(deleted),)), ANNE)
    ended = centre.journal.ended
    monkeypatch.setattr(centre.journal, "ended", lambda seqs: asked.append(seqs) or ended(seqs))
    failed = centre.ask(cm.Delete(tuple(str(n) for n in range(1, 500))), ANNE)["failed"]
    assert {each["code"] for each in failed} == {"has_ended", "unknown_request"}
    [seqs] = asked
    assert waiting not in seqs
