"""Run times of running requests are real, also where the site's clock is set while they run."""

import pytest

from nqspy.daemon.run_times import RunTimes
from nqspy.model.events import Ended, Recorded, Started
from nqspy.model.ids import Instant
from nqspy.model.site import Site

HOUR = 3_600_000


class Clocks:
    """A clock that can be set, and the monotonic one."""

    text, accelerated = "", False

    def __init__(self, speed=1.0):
        self.speed, self.real, self.off = speed, 0.0, 1_000 * HOUR

    def now(self):
        return Instant(int(self.off + self.real * 1000 * self.speed))

    def monotonic(self):
        return self.real


def started(seq):
    return [Recorded(1, Instant(0), Started(seq, 1, (0,)))]


@pytest.mark.parametrize("speed", [1.0, 360.0])
@pytest.mark.parametrize("step", [2 * HOUR, -2 * HOUR, 0])
def test_a_step_of_the_clock_is_no_run_time(speed, step):
    clocks = Clocks(speed)
    times = RunTimes(clocks, clocks.monotonic)
    times.follow(started(1))
    began = clocks.now()
    clocks.real += 3
    clocks.off += step * speed
    times.follow(started(2))
    later = clocks.now()
    assert times.unset(1, later) - began == pytest.approx(3_000 * speed, abs=1)
    assert times.unset(2, later) == later
    assert times.unset(3, later) == later, "nothing is known of it"
    assert times.moved() == ({1: pytest.approx(step * speed, abs=1)} if step else {})
    clocks.real += 2
    assert times.unset(1, clocks.now()) - began == pytest.approx(5_000 * speed, abs=1)
    times.follow([Recorded(2, later, Ended(1, 1, "exit", 0))])
    assert times.unset(1, later) == later


@pytest.mark.parametrize(("step", "unset"), [(HOUR, HOUR), (900, 0)], ids=["an hour", "adjusted a little"])
def test_what_ran_before_the_daemon_came_is_compared_from_then_on(step, unset):
    clocks, site = Clocks(), Site()
    site.started[7] = None
    times = RunTimes(clocks, clocks.monotonic)
    times.begin(site)
    clocks.real += 1
    clocks.off += step
    assert times.unset(7, clocks.now()) == clocks.now() - unset
