"""How many requests a user, the site and a queue may have: refused at submission, a list as a whole."""

import pytest
from engine.harness import ANNE, MAX, PLAIN, Centre, item
from engine.story import play

from nqspy.model import commands as cm
from nqspy.model.errors import Refusal

SMALL = "qmgr stop queue batch | create batch_queue small | enable queue small; qmgr"
STORIES = {
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
def test_quotas(title):
    play(STORIES[title])


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


def test_the_limit_counts_by_owner_whoever_hands_in():
    centre = centre_with("set global queued_limit user=2")
    centre.ask(hand_in(centre, 2, user="ben"), MAX)
    assert "whoever has 2 requests" in str(centre.refused(hand_in(centre, 1, user="ben"), MAX))
    centre.submit("max", "max", "anne")
    centre.is_sound()


def test_what_a_key_repeats_is_no_more_and_a_dry_run_is_told_too():
    centre = centre_with("set global queued_limit user=1")
    one = item("anne", centre.sim.now)
    first = centre.ask(cm.Submit((one,), "k"), ANNE)
    assert centre.ask(cm.Submit((one,), "k"), ANNE)["ids"] == first["ids"]
    with pytest.raises(Refusal, match="anne has 1 requests"):
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
    gone, waiting = centre.submit("anne", "anne")
    centre.ask(cm.Delete((centre.id(gone),)), ANNE)
    ended = centre.journal.ended
    monkeypatch.setattr(centre.journal, "ended", lambda seqs: asked.append(seqs) or ended(seqs))
    failed = centre.ask(cm.Delete(tuple(str(n) for n in range(1, 500))), ANNE)["failed"]
    assert {each["code"] for each in failed} == {"has_ended", "unknown_request"}
    [seqs] = asked
    assert waiting not in seqs
