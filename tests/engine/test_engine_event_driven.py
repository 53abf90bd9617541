"""Event driven (seed 001): each pass follows an event or an announced wake-up, and idle time causes no pass,
however often the engine is called."""

from engine.harness import Centre
from engine.test_engine_look_ahead_properties import FACTORS, QUEUE, REQUEST, SHIFT, built, put
from engine.test_engine_properties import SETTINGS, live, steps
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model.ids import Instant

MOMENTS = st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=8)


class Watched:
    """Records what called for each pass. ``passes``: their number; ``wake``: the last announced wake-up;
    ``again``: whether the engine has more to do at once."""

    def __init__(self, centre: Centre) -> None:
        self.engine = centre.engine
        self.passes, self.again, self.wake = 0, False, None
        self._decider, self._feed = self.engine.decider, self.engine.feed
        self._known, self._due = centre.site.n, True  # what was set up before may have left a pass to make
        self.engine.decider, self.engine.feed = self, self.feed

    def feed(self, inputs, now, asked=()):
        """Record what the driver gives to the engine."""
        known = self.engine.site.n
        self._due |= self.again or (self.wake is not None and self.wake <= now)
        outcome = self._feed(inputs, now, asked)
        assert not outcome.again or inputs or self.engine.site.n > known, "it goes on for no reason"
        self._known, self._due = self.engine.site.n, False
        self.again, self.wake = outcome.again, outcome.wake_at
        return outcome

    def ask(self, site, now, samples):
        """Record a pass."""
        self.passes += 1
        assert site.n > self._known or self._due, f"a pass at {now} follows nothing"
        return self._decider.ask(site, now, samples)

    def __getattr__(self, name):
        return getattr(self._decider, name)

    def is_idle(self, centre: Centre, moments: list[float]) -> None:
        """Call the engine at moments (parts of the time) before the next wake-up, or within a month, and
        check that nothing happens."""
        outcome = self.engine.feed((), centre.sim.now)
        while outcome.again or outcome.pending:
            outcome = (
                self.engine.flush(centre.sim.now) if outcome.pending else self.engine.feed((), centre.sim.now)
            )
        passes, commits, events = self.passes, self.engine.commits, centre.site.n
        end = outcome.wake_at or centre.sim.now + 30 * 86_400_000
        for part in sorted(moments):
            now = Instant(centre.sim.now + int(part * (end - centre.sim.now)))
            found = self.engine.feed((), now)
            assert (found.again, found.pending, found.wake_at) == (False, False, outcome.wake_at)
        assert (self.passes, self.engine.commits, centre.site.n) == (passes, commits, events)


@settings(max_examples=examples(200))
@given(steps, MOMENTS)
def test_nothing_breaks_the_site_and_each_pass_follows_an_event_or_a_wake_up(happenings, moments):
    centre = Centre(SETTINGS, length=100, pes=3)
    watched = Watched(centre)
    live(centre, happenings)
    watched.is_idle(centre, moments)
    for _ in range(2):
        centre.is_sound()
        centre.sim.restart()


@settings(max_examples=examples(60))
@given(
    st.lists(QUEUE, min_size=3, max_size=3), FACTORS, SHIFT, st.lists(REQUEST, min_size=3, max_size=15),
    st.integers(0, 4_000), MOMENTS,
)  # fmt: skip
def test_so_it_is_beside_reservations_limits_and_shifts(queues, factors, shift, requests, later, moments):
    centre = built(queues, factors, shift, sampled=True)
    watched = Watched(centre)
    put(centre, requests)
    centre.later(seconds=later)
    watched.is_idle(centre, moments)
    centre.later(days=5)
    watched.is_idle(centre, moments)


def test_what_running_requests_use_is_no_reason_for_a_pass():
    centre = Centre(pes=2, length=36_000)
    centre.submit(*["anne"] * 2, "ben", "ben held")
    watched = Watched(centre)
    for _ in range(50):
        centre.later(minutes=10)
    assert watched.passes == 0
    centre.later(hours=3)
    assert watched.passes > 0, "their ends are"
