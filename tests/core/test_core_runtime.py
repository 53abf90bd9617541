"""How long a request will run: by its owner's best guess, by those like it, and when it has run so far."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.core.runtime import expected_wall, longest_of, median_beyond
from nqspy.core.runtime import hint_on_wall as hint
from nqspy.model.ids import Instant
from nqspy.model.lifetimes import Lifetimes, Lived
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Request, Spec, State
from nqspy.model.settings import Settings
from nqspy.model.units import parse_time

SECOND = 1_000


def asking(name="job", owner="anne", pes=1, **ask) -> Request:
    """A request; times in s."""
    limits = {what: value * SECOND for what, value in ask.items()}
    spec = Spec(owner, 1, name, "batch", "", "", "/", ask=Ask(pes=pes, **limits))
    return Request(1, spec, "batch", State.QUEUED, Instant(0), Instant(0))


def past(*runs, owner="anne", name="job", pes=1, known=None) -> Lifetimes:
    """Runs (wall, thousandths of the limit, thousandths of the guess; s) in the order in which they ended;
    a name with runs: those of that name."""
    known = known if known is not None else Lifetimes()
    for n, run in enumerate(runs):
        if isinstance(run, tuple) and isinstance(run[0], str):
            past(*run[1:], owner=owner, name=run[0], known=known)
            continue
        wall, *parts = run if isinstance(run, tuple) else (run,)
        list(known.add((owner, name, pes), Lived(wall * SECOND, *(parts or (0,))), n))
    return known


def expected(request, known, ran=0, settings=None) -> float | None:
    """In s."""
    found = expected_wall(settings or Settings(), known, request, ran * SECOND)
    return None if found is None else found / SECOND


OTHER = ("other", 5000, 6000, 7000)
GUESSED = (50, 0, 500)


@pytest.mark.parametrize(
    ("runs", "ask", "ran", "wall"),
    [
        # The last few tell more than those before.
        ((10, 10, 10, 10, 500, 600, 700), {}, 0, 600),
        ((500, 600, 700, 10, 10, 10), {}, 0, 10),
        # What ran longer under a longer limit is measured by it.
        (((60, 100), (60, 100), (90, 150)), {"wall": 6000}, 0, 600),
        (((60, 100), (60, 100), (90, 150)), {}, 0, 60),
        # One that has run for a while goes by those that ran longer: the last three.
        ((10, 20, 1000, 30, 2000, 40), {}, 25, 40),
        ((10, 20, 1000, 30, 2000, 40), {}, 100, 2000),
        # A wider kind is asked where none like it ran longer.
        ((10, 20, 30, OTHER), {}, 15, 30),
        ((10, 20, 30, OTHER), {}, 40, 6000),
        # One that has outrun all goes on as lifetimes do: sqrt(400 x 6400).
        ((100, 200, 400), {"wall": 6400}, 400, 1600),
        # Its limits tell where nothing is known.
        ((), {"wall": 100}, 0, 100),
        ((), {"wall": 100}, 40, 100),
        ((), {}, 0, None),
        ((), {}, 40, 80),
        # A best guess counts as it is until three guesses tell how they come true.
        ((10, 10, 10), {"wall": 1000, "best_guess": 300}, 0, 300),
        ((10, 10, 10, GUESSED, GUESSED), {"wall": 1000, "best_guess": 300}, 0, 300),
        ((10, 10, 10, GUESSED, GUESSED, GUESSED), {"wall": 1000, "best_guess": 300}, 0, 150),
        ((10, GUESSED, GUESSED, GUESSED), {"best_guess": 300, "name": "new"}, 0, 150),
        # A guess that is over gives way to those that ran longer.
        ((10, 400, 400, 400), {"wall": 1000, "best_guess": 300}, 200, 300),
        ((10, 400, 400, 400), {"wall": 1000, "best_guess": 300}, 301, 400),
    ],
)
def test_expected_wall_times(runs, ask, ran, wall):
    assert expected(asking(**ask), past(*runs), ran=ran) == wall


def test_one_that_has_outrun_all_goes_on_beyond_its_limit_too():
    assert expected(asking(), past(100, 200, 400), ran=400) > 400
    assert expected(asking(wall=300), past(100, 200, 400), ran=400) > 400


def test_guesses_of_others_say_nothing():
    known = past(10, GUESSED, GUESSED, GUESSED)
    past((900, 0, 900), (900, 0, 900), (900, 0, 900), owner="ben", known=known)
    assert expected(asking(best_guess=300), known) == 150


def test_no_guess_reaches_beyond_what_limits_let_it_run():
    settings = Settings()
    settings.queues["batch"] = Queue("batch")
    settings.queues["batch"].per_request.wall_limit = 100 * SECOND
    assert expected(asking(best_guess=300), Lifetimes(), settings=settings) == 100


# ---------------------------------------------------------------- lifetimes as they are spread


def test_the_longest_lifetime_is_found_from_a_few():
    drawn = Random(1)
    low, high = math.log(1_000), math.log(10_000_000)
    walls = [round(math.exp(drawn.uniform(low, high))) for _ in range(500)]
    assert 8_000_000 < longest_of(walls) < 12_500_000
    assert longest_of([]) == longest_of([5]) == longest_of([5, 5, 5]) == 0


def test_half_of_those_that_ran_so_long_have_ended_by_the_median():
    drawn = Random(2)
    longest, ran = 1_000_000, 10_000
    walls = [math.exp(drawn.uniform(0, math.log(longest))) for _ in range(20_000)]
    longer = [wall for wall in walls if wall > ran]
    ended = sum(wall <= median_beyond(ran, longest) for wall in longer) / len(longer)
    assert ended == pytest.approx(0.5, abs=0.02)


_runs = st.lists(
    st.tuples(
        st.integers(0, 10**9), st.integers(0, 1000), st.integers(0, 10**6), st.sampled_from("ab"),
        st.sampled_from("xy"),
    ),
    max_size=12,
)  # fmt: skip


@given(
    _runs,
    st.none() | st.integers(1, 10**9),
    st.none() | st.integers(1, 10**9),
    st.lists(st.integers(0, 2 * 10**9), min_size=1, max_size=6),
)
def test_who_runs_is_always_expected_to_go_on_and_within_its_limit(runs, wall, guess, ages):
    known = Lifetimes()
    for n, (ran, part, of_guess, owner, name) in enumerate(runs):
        list(known.add((owner, name, 1), Lived(ran, part, of_guess), n))
    request = asking("x", "a")
    spec = Spec("a", 1, "x", "batch", "", "", "/", ask=Ask(wall=wall, best_guess=guess))
    request.spec = spec
    found = []
    for ran in sorted(ages):
        total = expected_wall(Settings(), known, request, ran)
        found.append((ran, total))
        if ran:
            assert total is not None
            assert total > ran
        if wall is not None and ran < wall:
            assert total is not None
            assert total <= wall
    assert all(total is not None for ran, total in found if ran), "what runs is never unknown"


# ---------------------------------------------------------------- more wall time than needed

KEY = ("anne", "job", 1)


def told(limit, *walls, times=10):
    """What is said of a wall limit after runs that took so long."""
    settings, past = Settings(), Lifetimes()
    settings.server.limit_hint = times
    for n, wall in enumerate(walls):
        list(past.add(KEY, Lived(parse_time(wall), 0), n))
    return hint(settings, past, KEY, parse_time(limit))


def test_ten_times_what_the_longest_needed_is_told_with_what_would_do():
    many, one = told("2:00:00", "5:00", "12:00", "11:59"), told("1:00:00", "20")
    assert all(each in many for each in ("last 3", "12:00", "2:00:00", "18:00"))
    assert all(each in one for each in ("the one", "20 s", "1:00:00", "1:00 "))


@pytest.mark.parametrize(
    ("limit", "walls", "times"),
    [
        ("1:59:59", ["12:00"], 10),
        ("2:00:00", ["5:00", "12:01"], 10),
        ("9:59", ["1"], 10),
        ("2:00:00", [], 10),
        ("unlimited", ["1"], 10),
        ("2:00:00", ["1"], None),
        ("2:00:00", ["12:00"], 11),
    ],
)
def test_who_asks_for_what_he_may_need_is_told_nothing(limit, walls, times):
    assert told(limit, *walls, times=times) == ""


def test_what_ran_long_ago_is_forgotten():
    assert told("2:00:00", "1:00:00", *["1:00"] * 15) == ""
    assert told("2:00:00", "1:00:00", *["1:00"] * 16)
