"""Orders of a worker: who waits for an answer gets it, or what counts where none comes."""

from concurrent.futures import Future

from nqspy.decider.messages import OrderFailed, OutlooksMade, RouteAnswered, outlooks_made
from nqspy.decider.orders import OpenOrders, answer_within, nothing
from nqspy.engine.look_ahead import Foreseen, Outlook

FALLBACK = OutlooksMade(0, [], {})


def test_an_answer_counts_if_it_comes_in_time_and_is_of_the_kind_that_was_asked_for():
    answer = Future()
    assert answer_within(answer, FALLBACK, 0.01) is FALLBACK
    alone = Outlook(Foreseen(None, "nobody knows"), Foreseen(1_000, "alone"))
    answer.set_result(outlooks_made(7, {5: alone}))
    assert answer_within(answer, FALLBACK, 0.0).read() == {5: alone}
    other = Future()
    other.set_result(RouteAnswered(7, ("night",), ()))
    assert answer_within(other, FALLBACK, 1.0) is FALLBACK
    assert answer_within(nothing(), FALLBACK, 1.0) is FALLBACK


def test_an_order_is_overdue_until_its_answer_has_come_and_what_it_says_is_not_lost():
    orders, late, early = OpenOrders(), Future(), Future()
    assert not orders
    assert orders.age() == 0.0
    orders.add(1, late)
    orders.add(2, early)
    orders.add(3)
    early.set_result(FALLBACK)
    assert list(orders.answered()) == [], "somebody waited for that one"
    assert not orders.overdue
    orders.give_up(1)
    assert orders.overdue
    assert list(orders.answered()) == []
    late.set_result(OrderFailed(1, "no"))
    assert list(orders.answered()) == [OrderFailed(1, "no")]
    assert not orders.overdue
    assert orders, "one comes through the inbox"
    orders.close(3)
    assert not orders
