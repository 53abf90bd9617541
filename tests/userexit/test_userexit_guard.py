"""No exit stops the queue: tests with real loops, real sleeps and real timers."""

import gc
import signal
import textwrap
import threading
import time

import pytest

from nqspy.userexit.guard import Guard, Overrun, Unguarded


def looping(body):
    """Return a function whose code has this body."""
    scope = {"time": time}
    exec("def loop():\n" + textwrap.indent(body, "    "), scope)
    return scope["loop"]


INNER = "        while True:\n            pass\n"
LOOPS = {
    "plain": "while True:\n    pass\n",
    "past exceptions": f"while True:\n    try:\n{INNER}    except Exception:\n        pass\n",
    "past everything": f"while True:\n    try:\n{INNER}    except BaseException:\n        pass\n",
    "tightly": "while True:\n    try:\n        pass\n    except BaseException:\n        continue\n",
    "nested": """\
while True:
    try:
        while True:
            try:
                sum(range(10))
            except BaseException:
                pass
    except BaseException:
        pass
""",
    "finally": f"while True:\n    try:\n{INNER}    finally:\n        continue\n",
    "keeping what it caught": """\
caught = []
while True:
    try:
        sum(range(10))
    except BaseException as error:
        caught.append(error)
""",
    "asleep": "time.sleep(3600)\n",
}
forever, forever_past_everything, forever_asleep = (
    looping(LOOPS[name]) for name in ("plain", "past everything", "asleep")
)


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_ended_soon_after_its_budget(name):
    begun = time.monotonic()
    with Guard() as guard, pytest.raises(Overrun, match="ran"):
        guard.call(looping(LOOPS[name]), (), 20)
    assert time.monotonic() - begun < 30, "the machine may be busy"


def test_an_overrun_says_which_budget_was_used_up():
    with Guard() as guard:
        with pytest.raises(Overrun, match="budget of 20 ms of CPU time"):
            guard.call(forever, (), 20, 60_000)
        with pytest.raises(Overrun, match="longer than 50 ms of wall time"):
            guard.call(forever_asleep, (), 5)


def test_waiting_is_not_charged_as_cpu_time():
    with Guard() as guard:
        assert guard.call(lambda: time.sleep(0.06) or "slept", (), 20, 60_000) == "slept"


def test_a_swallowed_interruption_still_counts_as_an_overrun():
    def swallows():
        try:
            forever()
        except BaseException:
            return "all is well"

    with Guard() as guard, pytest.raises(Overrun):
        guard.call(swallows, (), 20)


def test_the_guard_works_again_right_after_an_overrun():
    guard = Guard()
    for _ in range(3):
        with guard:
            with pytest.raises(Overrun):
                guard.call(forever_past_everything, (), 5)
            assert guard.call(lambda: 42, (), 5) == 42


def test_whatever_is_raised_comes_out():
    def raises(error):
        raise error

    with Guard() as guard:
        for error in (ValueError, SystemExit, GeneratorExit):
            with pytest.raises(error):
                guard.call(raises, (error,), 20)


def test_timer_handler_and_collector_are_given_back():
    rung = []
    former = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    before = signal.setitimer(signal.ITIMER_REAL, 60)
    try:
        mine = signal.getsignal(signal.SIGALRM)
        with Guard() as guard, pytest.raises(Overrun):
            guard.call(forever, (), 20)
        assert signal.getsignal(signal.SIGALRM) is mine
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 60
        assert gc.isenabled()
        assert rung == []
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        while not rung:
            time.sleep(0.001)
        assert rung == [1]
    finally:
        signal.signal(signal.SIGALRM, former)
        signal.setitimer(signal.ITIMER_REAL, *before)


def test_an_interruption_that_an_exit_stored_has_no_effect_later():
    rung, kept = [], []

    def keeps():
        while True:
            try:
                forever()
            except BaseException as error:
                kept.append((error, error.trip))

    former = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        with Guard() as guard, pytest.raises(Overrun):
            guard.call(keeps, (), 20)
        assert kept
        while kept:
            kept.pop()
        assert rung == []
    finally:
        signal.signal(signal.SIGALRM, former)


def test_our_own_code_that_an_exit_calls_is_not_interrupted_half_way():
    guard = Guard()
    steps = []

    def ours():
        steps.append("begun")
        end = time.monotonic() + 0.06
        while time.monotonic() < end:
            pass
        steps.append("done")

    shielded = guard.shielded(ours)

    def calls_for_ever():
        while True:
            shielded()

    with guard, pytest.raises(Overrun):
        guard.call(calls_for_ever, (), 20, 60_000)
    assert steps.count("begun") == steps.count("done") >= 1


def test_in_another_thread_an_overrun_is_found_when_the_call_returns():
    outcomes = []

    def work():
        with Guard() as guard:
            try:
                outcomes.append(guard.call(burn, (0.06,), 20, 60_000))
            except Overrun:
                outcomes.append("overrun")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert outcomes == ["overrun"]


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return "late"


def test_a_call_that_no_signal_can_interrupt_is_found_when_it_returns():
    with Guard() as guard, pytest.raises(Overrun):
        guard.call(sum, (range(20_000_000),), 10)


def test_where_time_is_virtual_a_call_takes_what_it_takes():
    with Unguarded() as guard:
        assert guard.call(lambda n: sum(range(n)), (300_000,), 0) == 44_999_850_000
        with pytest.raises(ZeroDivisionError):
            guard.call(lambda: 1 // 0, (), 50)
    assert guard.shielded(len)("ab") == 2
