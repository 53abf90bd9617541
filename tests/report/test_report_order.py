"""Whether a night's report says that the order of a list was kept (semantics.md 1)."""

import pytest

from nqspy.model import events as ev
from nqspy.report.moments import zone_of
from nqspy.report.night import night_bounds, night_report
from nqspy.report.pages import night_text

PARIS = zone_of("Europe/Paris")


def report(book, now):
    return night_report(book.events, book.site, night_bounds(book.events, PARIS, book.at(now)), book.at(now))


def overtaking(diary, wait=(), before=None, **ask):
    """The second request of a list, which asks for 1 MB, is started while the first still waits."""
    book = diary(pes=4, d1=1)
    one = book.submit(-60, "d1", "anne", **{"memory": 1 << 20, **ask})
    two = book.submit(-50, "d1", "anne", memory=1 << 20)
    book.night()
    if before is not None:
        before(book, one, two)
    book.decide(0, two, wait=[(one, *each) for each in wait])
    return report(book, 10)


def test_starting_a_later_one_first_changes_the_order(diary):
    data = overtaking(diary)
    assert not data["order_kept"]
    assert data["line"].endswith("order changed")
    assert [(each["started"], each["before"]) for each in data["overtaken"]] == [("2.ymp", "1.ymp")]
    assert "2.ymp was started before 1.ymp" in night_text(data)


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        (("EXIT", "dependency", "job of anne has not ended"), True),
        (("DEPENDENCY", "dependency", "waits for 9.ymp"), True),
        (("LIMIT", "queue night", "user limit 2 of queue night is reached for anne"), False),
        (("LIMIT", "queue night", "run limit 4 of queue night is reached"), False),
        (("NO_PES", "machine", "no PE is free"), False),
        (("LATER", "pass", "the next pass will look at it"), False),
    ],
)
def test_a_journaled_reason_excuses_unless_the_later_one_met_it_as_well(diary, reason, kept):
    assert overtaking(diary, wait=[reason])["order_kept"] is kept


def test_larger_requests_may_be_passed_over_for_lack_of_room(diary):
    no_pes = ("NO_PES", "machine", "it asks for 3 PEs, 1 is free")
    assert overtaking(diary, wait=[no_pes], pes=3)["order_kept"]
    memory = ("LIMIT", "global", "global memory limit 1gb leaves 0b, it counts 1gb")
    assert overtaking(diary, wait=[memory], memory=1 << 30)["order_kept"]
    assert not overtaking(diary, wait=[memory])["order_kept"]


def test_what_could_not_start_is_no_change_of_order(diary):
    def hold(book, one, two):
        book.add(-10, ev.Held((one,), "o", "op"))

    def first_by_hand(book, one, two):
        book.add(-10, ev.Ranked(two, 2, "op"))

    def moved_in(book, one, two):
        book.add(-10, ev.Moved((one,), "day", "op"))
        book.add(-9, ev.Moved((one,), "night", "op"))

    for before in (hold, first_by_hand, moved_in):
        assert overtaking(diary, before=before)["order_kept"], before.__name__


def test_a_request_released_after_the_pass_looked_is_not_overtaken(diary):
    book = diary(pes=1, d1=1)
    one, two = book.submit(-60, "d1"), book.submit(-50, "d1")
    book.add(-40, ev.Held((one,), "o", "op"))
    book.night()
    seen = book.site.n
    book.add(0, ev.Released((one,), "o", "op"))
    book.add(0, ev.Decided(seen))
    book.add(0, ev.Starting(two, 1, (0,)))
    assert report(book, 10)["order_kept"]


def test_lists_of_other_groups_and_queues_are_lists_of_their_own(diary):
    book = diary(pes=4, d1=1, d2=1)
    book.submit(-60, "d1")
    book.submit(-60, "d2", queue="day")
    last = book.submit(-50, "d2")
    book.night()
    book.decide(0, last)
    assert report(book, 10)["order_kept"]


def test_a_request_with_a_date_joins_its_list_when_the_date_has_come(diary):
    book = diary(pes=4, d1=1)
    dated = book.submit(-60, "d1", state="waiting", eligible=30)
    one, two = book.submit(-50, "d1"), book.submit(-50, "d1")
    book.night()
    book.decide(0, one)
    book.add(30, ev.Eligible((dated,)))
    book.decide(40, two)
    assert report(book, 50)["order_kept"]
