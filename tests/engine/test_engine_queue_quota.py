"""How many requests a user, the site and a queue may have: refused at submission, a list as a whole."""

import pytest
from engine.harness import ANNE, BEN, MAX, PLAIN, Centre, item

from nqspy.model import commands as cm
from nqspy.model.errors import Refusal

STOPPED = PLAIN + "stop queue batch\n"


def centre_with(*lines: str) -> Centre:
    return Centre(STOPPED + "".join(f"{line}\n" for line in lines))


def hand_in(centre: Centre, by, count: int, **more) -> cm.Submit:
    return cm.Submit(tuple(item("x", centre.sim.now, number=n, **more) for n in range(1, count + 1)))


def test_a_user_who_submits_too_much_meets_the_limit_and_others_do_not():
    centre = centre_with("set global queued_limit user=3")
    centre.submit("anne", "anne", "anne")
    refusal = centre.refused(hand_in(centre, ANNE, 1), ANNE)
    assert (refusal.code, refusal.status) == ("queued_limit", 198)
    assert "anne has 3 requests that have not ended; a user may have 3" in str(refusal)
    assert "set global queued_limit user=3" in str(refusal)
    [bens] = centre.submit("ben")
    centre.ask(cm.Delete((centre.id(1),)), ANNE)
    centre.submit("anne")
    assert centre.state(bens) == "queued"
    centre.is_sound()


def test_a_list_fits_as_a_whole_or_not_at_all():
    centre = centre_with("set global queued_limit user=3")
    centre.submit("anne")
    refusal = centre.refused(hand_in(centre, ANNE, 3), ANNE)
    assert str(refusal).startswith("line 3: ")
    assert "anne has 3 requests" in str(refusal)
    assert len(centre.site.requests) == 1
    centre.ask(hand_in(centre, ANNE, 2), ANNE)
    centre.is_sound()


def test_the_limit_counts_by_owner_whoever_hands_in():
    centre = centre_with("set global queued_limit user=2")
    centre.ask(hand_in(centre, MAX, 2, user="ben"), MAX)
    assert "whoever has 2 requests" in str(centre.refused(hand_in(centre, MAX, 1, user="ben"), MAX))
    centre.submit("max", "max", "anne")
    centre.is_sound()


def test_the_site_and_each_queue_have_limits_of_their_own():
    centre = centre_with(
        "set global queued_limit=4", "create batch_queue small", "enable queue small",
        "set queue small queued_limit=2 user=1",
    )  # fmt: skip
    centre.submit("anne queue=small")
    told = str(centre.refused(hand_in(centre, ANNE, 1, queue="small"), ANNE))
    assert (
        "anne has 1 requests in queue small; a user may have 1 (set queue small queued_limit user=1)" in told
    )
    centre.submit("ben queue=small")
    told = str(centre.refused(hand_in(centre, MAX, 1, queue="small"), MAX))
    assert "there are 2 requests in queue small of 2 (set queue small queued_limit=2)" in told
    centre.submit("anne", "anne")
    assert "of 4 (set global queued_limit=4)" in str(centre.refused(hand_in(centre, BEN, 1), BEN))


def test_users_do_not_get_round_the_limit_of_a_queue_by_moving():
    centre = centre_with(
        "create batch_queue small", "enable queue small", "set queue small queued_limit user=1"
    )
    centre.submit("anne queue=small", "anne")
    failed = centre.ask(cm.MoveRequests((centre.id(2),), "small"), ANNE)["failed"]
    assert failed[0]["code"] == "queued_limit"
    assert not centre.ask(cm.MoveRequests((centre.id(2),), "small"), MAX)["failed"]
    centre.is_sound()


@pytest.mark.parametrize("command", ["move", "modify"])
@pytest.mark.parametrize("words", ["", " array=1-3"])
def test_users_do_not_get_round_loadonly_by_moving(command: str, words: str) -> None:
    centre = centre_with("create batch_queue small run_limit=2 loadonly=on", "enable queue small")
    centre.submit("anne queue=small" if words else "anne queue=small array=1-2", "anne" + words)
    asked = {
        "move": cm.MoveRequests((centre.id(2),), "small"),
        "modify": cm.ModifyRequest((centre.id(2),), {"queue": "small"}),
    }[command]
    assert [each["code"] for each in centre.ask(asked, ANNE)["failed"]] == ["queue_full"]
    assert not centre.ask(asked, MAX)["failed"]


@pytest.mark.parametrize("limit", ["queued_limit=2", "queued_limit user=2", "run_limit=2 loadonly=on"])
def test_a_request_that_is_moved_to_where_it_is_needs_no_room(limit: str) -> None:
    centre = centre_with("create batch_queue small", "enable queue small", f"set queue small {limit}")
    centre.submit("anne queue=small array=1-2")
    assert not centre.ask(cm.MoveRequests((centre.id(1),), "small"), ANNE)["failed"]


def test_several_that_wait_in_a_pipe_queue_do_not_overrun_a_queue_in_one_pass():
    centre = centre_with(
        "create batch_queue small", "enable queue small", "set queue small queued_limit user=2",
        "create pipe_queue pipe destination=(small)", "enable queue pipe",
    )  # fmt: skip
    seqs = centre.submit(*["anne queue=pipe"] * 5)
    centre.qmgr("start queue pipe")
    centre.later(minutes=1)
    assert [centre.request(seq).queue for seq in seqs] == ["small", "small", "pipe", "pipe", "pipe"]


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
