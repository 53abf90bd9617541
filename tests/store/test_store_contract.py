"""What every journal promises, on SQLite and in memory."""

from dataclasses import fields
from unittest.mock import Mock

import pytest

from nqspy.engine import lifecycle
from nqspy.model import events as ev
from nqspy.model.ids import array_of
from nqspy.model.requests import Reservation, State, Used
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.ports import CommitFailed


def test_a_new_journal_holds_an_empty_site(journal, same_site):
    same_site(Site(), journal.load())
    assert list(journal.events()) == []


@pytest.mark.parametrize("seed", range(4))
def test_what_was_committed_is_loaded_after_any_history(journal, tell_story, same_site, seed):
    story = tell_story(journal, seed)
    for _ in range(3):
        story.go_on(150)
        check_site(story.site)
        same_site(story.site, journal.load())
    assert {r.state for r in story.site.requests.values()} >= {State.QUEUED, State.HELD}
    assert story.ended


def test_the_rows_are_what_the_history_says(story, journal, same_site):
    story.go_on(300)
    replayed = Site()
    for recorded in journal.events():
        lifecycle.apply(replayed, recorded)
    replayed.touched.clear()
    assert list(journal.events()) == story.history
    same_site(journal.load(), replayed)


def test_the_story_tells_of_every_kind_that_changes_a_site(journal, tell_story):
    told = set()
    for seed in range(4):
        story = tell_story(journal if seed == 0 else type("Nowhere", (), {"commit": lambda *_: None})(), seed)
        story.go_on(300)
        told |= {type(recorded.event) for recorded in story.history}
    assert set(ev.KINDS.values()) - told <= {ev.Routed, ev.ExitOff}


def test_promises_are_loaded_in_the_order_in_which_they_were_made(story, journal):
    first, second, third = (story.submit(eligible=None, held=False, after=()) for _ in range(3))
    for turn, seq in enumerate((third, first, second), start=1):
        story.tell(ev.Reserved({seq: Reservation(None, turn=turn)}, story.site.n))
    story.commit()
    assert list(journal.load().reserved) == [third, first, second]


def test_a_commit_clears_what_was_touched(story):
    story.submit()
    assert story.site.touched.requests
    story.commit()
    assert all(not getattr(story.site.touched, f.name) for f in fields(story.site.touched))


def test_events_are_read_from_a_number_or_an_instant_on(story, journal):
    story.go_on(80)
    history = story.history
    assert list(journal.events(after=10)) == history[10:]
    assert list(journal.events(after=10, limit=3)) == history[10:13]
    assert list(journal.events(limit=0)) == []
    instant = history[40].at
    assert list(journal.events(since=instant)) == [r for r in history if r.at >= instant]
    assert list(journal.events(since=history[-1].at + 1)) == []


def test_a_key_finds_all_requests_of_its_submission(story, journal):
    for seq, key in ((1, "list"), (2, "list"), (3, "other"), (4, ""), (5, "list")):
        owner = "ben" if seq == 5 else "anne"
        spec = story.spec(owner=owner, held=False, eligible=None)
        story.tell(ev.Submitted(seq, spec, "night", "queued", key=key, digest=f"of {key}" if key else ""))
    story.commit()
    assert journal.find_key("anne", "list") == ("of list", (1, 2))
    assert journal.find_key("anne", "other") == ("of other", (3,))
    assert journal.find_key("ben", "list") == ("of list", (5,))
    assert journal.find_key("cleo", "list") is None
    assert journal.find_key("anne", "") is None
    story.tell(ev.Deleted(3, "anne"))
    story.commit()
    assert journal.find_key("anne", "other") == ("of other", (3,)), "also when it has ended"


@pytest.mark.parametrize("body", [b"", b"echo hi\n", b"x" * 100_000, bytes(range(256)) * 30])
def test_blobs_come_back_byte_for_byte(story, journal, body):
    digest = story.keep(body)
    story.commit()
    story.keep(body)
    story.commit()
    assert journal.blob(digest) == body
    with pytest.raises(KeyError):
        journal.blob("0" * 64)


def test_ended_requests_are_read_in_the_order_asked(story, journal):
    story.go_on(300)
    asked = [*reversed(story.ended), 10**9, *story.site.requests]
    rows = list(journal.ended(asked))
    assert [row["seq"] for row in rows] == list(reversed(story.ended))
    for row in rows:
        assert (row["ended"], row["at"]) == story.ended[row["seq"]]
        own = {row["seq"], array_of(row["seq"])}  # an index is as old as its array
        submitted = next(r for r in story.history if isinstance(r.event, ev.Submitted) and r.event.seq in own)
        assert row["submitted"] == submitted.at
        assert row["request"].state is State.ENDED
        assert row["request"].spec == row["spec"]


def test_an_ended_request_keeps_its_last_attempt(story, journal):
    seq = story.submit(held=False, eligible=None)
    story.tell(ev.Starting(seq, 1, (3,)))
    story.tell(ev.Ended(seq, 1, "signal", exit_signal=9))
    story.commit()
    (row,) = journal.ended([seq])
    assert (row["request"].attempts, row["request"].pes) == (1, (3,))
    assert row["request"].started is not None
    assert seq not in journal.load().requests


def test_a_request_may_come_and_go_in_one_commit(story, journal, same_site):
    seq = story.submit()
    story.tell(ev.Deleted(seq, "anne"))
    story.commit()
    same_site(story.site, journal.load())
    assert journal.load().next_seq == seq + 1
    assert [row["seq"] for row in journal.ended([seq])] == [seq]


def test_settings_keep_the_order_in_which_they_were_made(story, journal):
    def change(*changes):
        story.tell(ev.SettingsChanged(changes, "root"))
        story.commit()
        return list(journal.load().settings.queues)

    assert change(ev.Change("create", "queue/zeta", {}), ev.Change("create", "queue/alpha", {})) == [
        "express", "night", "weekend", "zeta", "alpha",
    ]  # fmt: skip
    assert change(ev.Change("set", "queue/express/run_limit", 9))[0] == "express"
    assert change(ev.Change("delete", "queue/night"))[:2] == ["express", "weekend"]
    again = change(ev.Change("delete", "queue/express"), ev.Change("create", "queue/express", {}))
    assert again == ["weekend", "zeta", "alpha", "express"]


def test_accounts_keep_the_order_in_which_they_were_opened(story, journal):
    for group in ("zeta", "alpha", "mid"):
        seq = story.submit(group=group, owner="ben", held=False, eligible=None)
        story.tell(ev.Starting(seq, 1, (0,)))
        story.tell(ev.Ended(seq, 1, "exit", exit_status=0, used=Used(cpu=5)))
    story.commit()
    assert list(journal.load().accounts) == [
        "g:zeta", "u:zeta:ben", "g:alpha", "u:alpha:ben", "g:mid", "u:mid:ben",
    ]  # fmt: skip


def test_a_commit_that_fails_leaves_nothing(story, journal, same_site):
    story.go_on(50)
    journal.failpoint = Mock(side_effect=OSError(28, "No space left on device"))
    seq = story.submit(owner="anne")
    story.tell(ev.SettingsChanged((ev.Change("create", "queue/new", {}),), "root"))
    digest = story.keep(b"never kept")
    batch = story.batch
    with pytest.raises(CommitFailed, match="No space left"):
        journal.commit(batch, story.site)
    assert story.site.touched.requests

    journal.failpoint = None
    before = journal.load()
    assert before.n == len(story.history)
    assert seq not in before.requests
    assert "new" not in before.settings.queues
    with pytest.raises(KeyError):
        journal.blob(digest)
    journal.commit(batch, story.site)
    same_site(story.site, journal.load())
    assert journal.blob(digest) == b"never kept"
