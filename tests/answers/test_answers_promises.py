"""A promised start, as it is told to whom it concerns and to others."""

from nqspy.answers.visibility import _narrowed, promise_for
from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.model.requests import Reservation

KEPT = Reservation(Instant(5), (1, 2), "what it needs is held by 2.ymp")


def test_who_may_not_see_those_in_the_way_is_not_told_their_names():
    told = promise_for(KEPT, {1, 3})
    assert (told.at, told.by, told.late) == (5, (1,), "others are in its way")
    assert promise_for(KEPT, {1, 2}) is KEPT


def test_an_event_tells_of_the_promises_to_known_requests_alone():
    event = ev.Reserved({3: KEPT, 4: KEPT, 5: None}, 17, {5: "exits/x: no"})
    assert _narrowed(event, {1, 2, 3}) == ev.Reserved({3: KEPT}, 17)
    assert _narrowed(event, {1, 2, 5}) == ev.Reserved({5: None}, 17, {5: "exits/x: no"})
    assert _narrowed(event, {1, 2}) is None
