"""Submissions: what is accepted, what is refused and how it is said."""

import pytest
from engine.harness import ANNE, BEN, MAX, OLGA, PLAIN, ROOT, Centre, item
from engine.story import play
from msgspec.structs import replace

from nqspy.core.no_exits import NoExits
from nqspy.engine.zones import local
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.people import Caller
from nqspy.model.requests import Ask, MailWishes, Output
from nqspy.ports import SubmitAnswer


def refused(centre: Centre, *lines: str, by: Caller = ANNE, **more) -> Refusal:
    items = tuple(item(line, centre.sim.now, number=n, **more) for n, line in enumerate(lines, 1))
    return centre.refused(cm.Submit(items), by)


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


@pytest.mark.parametrize("title", STORIES)
def test_submissions(title):
    play(STORIES[title])


def with_spec(**changes: object) -> cm.Submit:
    one = item("anne", Centre().sim.now)
    return cm.Submit((replace(one, spec=replace(one.spec, **changes)),))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"name": "é" * 116}, "bad_name"),
        ({"output": Output(stdout="/tmp/" + "é" * 128)}, "bad_value"),
        ({"output": Output(stderr="/" + "d" * 256 + "/x")}, "bad_value"),
        ({"output": Output(stdout="/tmp/%x%x"), "name": "n" * 130}, "bad_value"),
    ],
)
def test_an_output_that_no_file_can_be_named_like_is_refused(changes, code):
    assert Centre().refused(with_spec(**changes), ANNE).code == code


def test_the_longest_names_are_accepted():
    fits = Output(stdout="/tmp/" + "é" * 127, stderr="/tmp/%x.e")
    assert Centre().ask(with_spec(name="é" * 115, output=fits), ANNE)


# ---------------------------------------------------------------- keys


def test_the_same_key_again_gives_the_same_answer_and_no_second_request():
    centre = Centre()
    first = centre.hand_in("anne name=a", "anne name=b", key="k1")
    again = centre.hand_in("anne name=a", "anne name=b", key="k1")
    assert again["ids"] == first["ids"]
    centre.later(hours=1)
    assert not centre.site.requests
    assert centre.hand_in("anne name=a", "anne name=b", key="k1")["ids"] == first["ids"], (
        "after their end too"
    )
    assert len(centre.events(ev.Submitted)) == 2


def test_a_key_twice_in_one_group_is_one_submission():
    from engine.harness import asked, replies_to

    centre = Centre()
    one, two = object(), object()
    command = cm.Submit((item("anne", centre.sim.now),), "k1")
    outcome = centre.engine.feed([asked(command, ANNE, one), asked(command, ANNE, two)], centre.sim.now)
    first, second = replies_to((one, two), outcome.replies)
    assert first.value["ids"] == second.value["ids"] == ["1.sim"]


def test_a_key_is_refused_with_another_content_and_is_each_users_own():
    centre = Centre()
    centre.hand_in("anne name=a", key="k1")
    with pytest.raises(Refusal, match="key k1 was used already for another submission"):
        centre.hand_in("anne name=other", key="k1")
    assert centre.hand_in("ben name=other", by=BEN, key="k1")["ids"] == ["2.sim"]


def test_a_keyed_list_for_several_users_is_repeated_whole():
    centre = Centre()
    items = []
    for owner in ("anne", "ben", "anne"):
        one = item(owner, centre.sim.now, user=owner)
        items.append(cm.Submission(cm.Spec(owner, 1, "x", "", "", "", "/h"), one.script, user=owner))
    command = cm.Submit(tuple(items), "k")
    first = centre.ask(command, MAX)
    assert centre.ask(command, MAX)["ids"] == first["ids"] == ["1.sim", "2.sim", "3.sim"]


# ---------------------------------------------------------------- people


def test_only_a_manager_submits_for_somebody_else():
    centre = Centre()
    spec = cm.Spec("ben", 1002, "x", "", "", "", "/home")
    command = cm.Submit((cm.Submission(spec, "true", user="ben"),))
    assert [centre.refused(command, by).kind for by in (ANNE, OLGA)] == ["needs_role"] * 2
    centre.ask(command, MAX)
    assert centre.request(1).owner == "ben"


# ---------------------------------------------------------------- exits, dry run, sizes


class Door(NoExits):
    """A submit exit from a function."""

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
    assert found["estimate"]["start"] == local(centre.sim.now + 600_000, "Europe/Paris").isoformat(
        timespec="milliseconds"
    )
    assert centre.count() == n
    assert centre.submit("ben") == [2]


def test_what_is_too_large_or_no_text_or_empty_is_refused():
    centre = Centre()
    spec = cm.Spec("anne", 1, "x", "", "", "", "/home")
    for code, *given in (
        ("too_large", "true", "A=" + "x" * (1 << 20)),
        ("bad_value", "echo \u20ac"),
        ("bad_value", "true", "A=x\0y"),
    ):
        assert centre.refused(cm.Submit((cm.Submission(spec, *given),)), ANNE).code == code
    assert centre.refused(cm.Submit(()), ANNE).code == "empty_list"


@pytest.mark.parametrize("field", ["cpu", "wall", "memory", "memory_process", "nice"])
@pytest.mark.parametrize("value", [-5, 2**70])
def test_amounts_that_are_none_are_refused(field, value):
    centre = Centre()
    spec = cm.Spec("anne", 1, "x", "", "", "", "/home", ask=Ask(**{field: value}))
    assert field in str(centre.refused(cm.Submit((cm.Submission(spec, "true"),)), ROOT))


@pytest.mark.parametrize(
    ("to", "good"),
    [
        ("anne, chief@example.org", True),
        ("|/bin/sh", False),
        ("anne,-oQ/tmp", False),
        ("a b", False),
        (",".join(f"a{number}@b" for number in range(21)), False),
    ],
)
def test_mail_goes_to_a_few_addresses_and_to_no_program(to: str, good: bool) -> None:
    centre = Centre()
    plain = item("anne", centre.sim.now)
    spec = replace(plain.spec, mail=MailWishes(to=to))
    command = cm.Submit((replace(plain, spec=spec),))
    if good:
        assert centre.ask(command, ANNE)["ids"]
    else:
        assert centre.refused(command, ANNE).kind in ("bad_address", "many_addresses")
