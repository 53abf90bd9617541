"""The parts of the decider's process: what is believed of what a child says, who is left out."""

import struct
import tracemalloc
from concurrent.futures import Future

import pytest
from core.properties.worlds import live, worlds
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.decider import backoff, messages, plans, process
from nqspy.decider.heartbeat import Call, Heartbeat
from nqspy.decider.messages import ForecastsMade, OrderFailed, RouteAnswered, forecasts_made
from nqspy.decider.orders import OpenOrders, answer_within, nothing
from nqspy.engine.look_ahead import Forecast, StartEstimate
from nqspy.model.actions import ExitFailure, Hold, Move, Plan, Redate, Requeue, Resume, Start, Suspend
from nqspy.model.cause import Cause
from nqspy.model.reasons import Reach, Reason, ReasonCode, Reasons, quoted

NOW = 1_000_000


SPILL = Cause("feature", "spill")
NEVER = quoted(ReasonCode.NEVER, "queue night", "never")


def test_a_plan_and_a_trace_come_out_as_they_went_in():
    rows = [{"at": 5, "exit": "gun", "hook": "route", "answer": ["a", {"b": 1.5}], "error": None}]
    found = messages.message_of(messages.encode(messages.TraceAnswered(1, messages.packed(rows)))[4:])
    assert found.read() == rows
    actions = (
        Move(3, "night"), Suspend(4, 1, SPILL, "day begins", True, True), Resume(5, 2),
        Requeue(6, 1, SPILL, "day begins"), Start(1, 1, (0, 1), True), Redate((7, 8), NOW, 1, "gun"),
        Hold(9, "gun", "later"),
    )  # fmt: skip
    reasons = Reasons({2: quoted(ReasonCode.LIMIT, "queue night", "full", NOW)}, {"night": NEVER})
    failures = (ExitFailure("gun", 2, "no", "trace", True), ExitFailure("no such exit", 2, "no"))
    plan = Plan(actions, reasons, NOW, 17, True, (), failures)
    body = messages.encode(plans.plan_made(5, plan, []))
    word = messages.message_of(body[4:])
    again = plans.plan_of(word, 17, (), ["gun"])
    assert again == Plan(actions, reasons, NOW, 17, True, (), failures[:1])


@pytest.mark.parametrize(
    "action",
    [
        ("Kill", {"seq": 1, "attempt": 1, "reason": "x", "grace": 0}),
        ("Notify", {"to": "", "subject": "", "text": ""}),
        ("Start", {"seq": "1", "attempt": 1, "pes": [0]}),
        ("Start", {"seq": 1, "attempt": 1}),
        ("Start", {"seq": 1 << 62, "attempt": 1, "pes": [0]}),
        ("Redate", {"seqs": [1], "date": 1.5, "cause": 1, "who": "x"}),
        ("Move", {"seq": 1, "queue": None}),
    ],
)
def test_what_is_no_action_of_a_pass_is_not_taken(action):
    word = plans.plan_made(1, Plan(), [])
    word.actions = [action]
    with pytest.raises(messages.BadWorkerMessage):
        plans.plan_of(messages.message_of(messages.encode(word)[4:]), 1, (), [])


@pytest.mark.parametrize("at", [-1, 10**17, 1 << 62])
def test_an_instant_that_no_calendar_has_is_left_out_of_a_plan(at):
    bad, good, never = (quoted(ReasonCode.LIMIT, "queue night", "full", each) for each in (at, NOW, None))
    plan = Plan((), Reasons({1: good, 2: bad}, {"night": bad, "day": good}), at)
    word = messages.message_of(messages.encode(plans.plan_made(1, plan, []))[4:])
    found = plans.plan_of(word, 1, (), [])
    assert found.reasons == Reasons({1: good, 2: never}, {"night": never, "day": good})
    assert found.wake_at is None


@pytest.mark.parametrize(
    "reason",
    [
        Reason("no such kind", "queue night"),
        Reason("LIMIT", "queue night"),
        Reason("LIMIT", "queue night", ("x",) * 9),
        Reason("limit_reached", "queue night", ("run", True, None, None)),
        Reason("memory_short", "queue night", ("memory", "a", None, "b", "c")),
        Reason("LIMIT", "queue night", (["x"],)),
    ],
)
def test_a_reason_that_makes_no_sentence_is_not_taken(reason):
    reach = Reach("night", (("owner", "anne"),), reason)
    for reasons in (Reasons({1: reason}, {}), Reasons({}, {"night": reason}), Reasons({}, {}, (reach,))):
        body = messages.encode(plans.plan_made(1, Plan((), reasons), []))[4:]
        with pytest.raises(messages.BadWorkerMessage):
            plans.plan_of(messages.message_of(body), 1, (), [])


@pytest.mark.parametrize(("field", "taken"), [("memory", True), ("owner", False), ("nonsense", False)])
def test_bounds_are_taken_of_numbers_that_there_are(field, taken):
    reach = Reach("night", (), quoted(ReasonCode.EXIT, "exits/test", "too large"), ((field, 1, None),))
    body = messages.encode(plans.plan_made(1, Plan((), Reasons({}, {}, (reach,))), []))[4:]
    assert plans.plan_of(messages.message_of(body), 1, (), []).reasons.reach == ((reach,) if taken else ())


@settings(max_examples=examples(40))
@given(worlds())
def test_the_reasons_of_any_pass_come_out_as_they_went_in(world):
    def check(told):
        message = messages.message_of(messages.encode(plans.plan_made(1, told.plan, []))[4:])
        assert plans.plan_of(message, 1, (), []).reasons == told.plan.reasons
        assert all(each.text for each in told.plan.reasons.own.values())

    live(world, 4, check)


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x81\xa4kind\xa3ask", b"\x93" * 100_000, b"\x80"])
def test_what_is_no_message_is_nonsense(body):
    with pytest.raises(messages.BadWorkerMessage):
        messages.message_of(body)


def packed(text: str) -> bytes:
    return bytes([0xA0 + len(text)]) + text.encode()


def planned(actions: bytes = b"\x90", own: bytes = b"\x80", listing: bytes = b"\x90") -> bytes:
    """Return a plan as a malicious exit may write it."""
    parts = {"kind": packed("planned"), "id": b"\1", "actions": actions, "own": own, "closing": b"\x80",
             "wake_at": b"\xc0", "short": b"\xc2", "failures": b"\x90", "listing": listing}  # fmt: skip
    return bytes([0x80 + len(parts)]) + b"".join(packed(name) + value for name, value in parts.items())


ROOM = messages.LARGEST_ANSWER - 300
MANY = ROOM // 3
ANYTHING = b"\x81" + packed("x") + b"\xdd" + ROOM.to_bytes(4, "big") + b"\x80" * ROOM
FORGED = {
    "millions of actions": planned(actions=b"\xdd" + MANY.to_bytes(4, "big") + b"\x92\xa0\x80" * MANY),
    "an action of millions of things": planned(actions=b"\x91\x92" + packed("Hold") + ANYTHING),
    "a row of millions of things": planned(listing=b"\x91" + ANYTHING),
    "a trace of millions of things": b"\x83" + packed("kind") + packed("traced") + packed("id") + b"\1"
    + packed("rows") + b"\x91" + ANYTHING,
}  # fmt: skip


@pytest.mark.parametrize("forged", FORGED)
def test_rubbish_as_long_as_an_answer_may_be_is_refused_before_it_fills_the_memory(forged):
    body = FORGED[forged]
    assert len(body) <= messages.LARGEST_ANSWER
    tracemalloc.start()
    try:
        word = messages.message_of(body)
        if isinstance(word, messages.TraceAnswered):
            assert word.read() == []
            raise messages.BadWorkerMessage
        plans.plan_of(word, 1, (), [])
    except messages.BadWorkerMessage:
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < 3 * messages.LARGEST_ANSWER


def test_the_reasons_and_starts_of_100000_requests_fit_into_an_answer_and_larger_ones_are_refused():
    with pytest.raises(messages.BadWorkerMessage, match="larger than any answer"):  # at its first bytes
        process._Frames().add((messages.LARGEST_ANSWER + 1).to_bytes(4, "big"))
    text = "user limit 4 of queue night is reached for somebody with a long name in department forty-two"
    seqs = range(1_000_000, 1_100_000)
    own = {seq: quoted(ReasonCode.LIMIT, "queue night", text, 1_795_262_400_000) for seq in seqs}
    starts = dict.fromkeys(seqs, 1_795_262_400_000)
    moves = tuple(Move(seq, "a queue with a long name") for seq in seqs)
    redate = Redate(tuple(seqs), 1_795_262_400_000, 1, "gun")
    forecast = Forecast(StartEstimate(5, text), StartEstimate(None, "why"))
    for word in (
        plans.plan_made(1, Plan((redate,), Reasons(own, {})), []),
        plans.plan_made(1, Plan(moves), []),
        messages.StartsMade(1, starts, starts),
        messages.forecasts_made(1, dict.fromkeys(seqs, forecast)),
    ):
        [found] = process._Frames().add(messages.encode(word))
        if isinstance(found, messages.PlanMade):
            plan = plans.plan_of(found, 1, (), [])
            assert plan.actions in ((redate,), moves)
            assert plan.reasons.own in (own, {})
        else:
            assert found == word


def test_the_page_says_whose_code_runs():
    page = Heartbeat()
    assert page.read() is None
    for subject, owner in ((17, "ben"), (("anne", "d1"), "anne"), (None, "")):
        page.enter("gun", "jobselect", subject, owner)
        call = page.read()
        assert (call.exit, call.hook, call.subject, call.owner) == ("gun", "jobselect", subject, owner)
        assert call.age() < 60
        page.leave()
        assert page.read() is None
    page._map[:] = b"\xff" * len(page._map)
    assert page.read() is None


@given(st.binary(max_size=60), st.text(max_size=9), st.integers(0, 1 << 70))
def test_whatever_a_worker_leaves_on_the_page_is_a_call_or_none(left, owner, subject):
    page = Heartbeat()
    page.enter("gun" * 2_000, "jobselect", ("anne" * 2_000, "d1"), owner + "\udcff")
    assert page.read() is None or isinstance(page.read(), Call)
    page._map[: 10 + len(left)] = struct.pack("<qH", 1, len(left)) + left
    assert page.read() is None or isinstance(page.read(), Call)
    page.enter("gun", "jobselect", subject, owner)
    found = page.read()
    assert found is None or found.subject is None or 0 <= found.subject < 1 << 63


def test_while_no_child_can_be_had_nothing_starts_and_the_reason_says_why():
    from nqspy.model.queues import Queue
    from nqspy.model.site import Site

    site = Site()
    site.settings.queues["night"] = Queue("night")
    plan = backoff.standstill(site)
    assert not plan.actions
    assert plan.reason(1, "night").matches(code=ReasonCode.EXIT, who="exits")


FALLBACK = ForecastsMade(0, [], {})


def test_an_answer_counts_if_it_comes_in_time_and_is_of_the_kind_that_was_asked_for():
    late, answer = Future(), Future()
    assert answer_within(late, FALLBACK, 0.01) is FALLBACK
    assert late.cancelled(), "an order that was not sent by then is not sent"
    alone = Forecast(StartEstimate(None, "nobody knows"), StartEstimate(1_000, "alone"))
    answer.set_result(forecasts_made(7, {5: alone}))
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
    orders[1].overdue = True
    assert orders.overdue
    assert list(orders.answered()) == []
    late.set_result(OrderFailed(1, "no"))
    assert list(orders.answered()) == [OrderFailed(1, "no")]
    assert not orders.overdue
    assert orders, "one comes through the inbox"
    del orders[3]
    assert not orders
