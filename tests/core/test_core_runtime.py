"""Expected run time of a request: by its owner's best guess, by similar requests, and after it has run for
some time; what is recorded of past runs; and starts by chance."""

import math
from random import Random

import pytest
from core.story import Story
from hypothesis import given
from hypothesis import strategies as st

from nqspy.core.runtime import expected_wall, longest_of, median_beyond
from nqspy.core.runtime import hint_on_wall as hint
from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.model.lifetimes import Key, Lifetime, Lifetimes, Lived
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Request, Spec, State, Used
from nqspy.model.settings import Settings
from nqspy.model.units import parse_time

SECOND = 1_000


def asking(name="job", owner="anne", pes=1, **ask) -> Request:
    """Return a request; times in s."""
    limits = {what: value * SECOND for what, value in ask.items()}
    spec = Spec(owner, 1, name, "batch", "", "", "/", ask=Ask(pes=pes, **limits))
    return Request(1, spec, "batch", State.QUEUED, Instant(0), Instant(0))


def past(*runs, owner="anne", name="job", pes=1, known=None) -> Lifetimes:
    """Return recorded lifetimes of runs (wall in s, thousandths of the limit, of the guess) in the order of
    their ends; ``known``: runs by name."""
    known = known if known is not None else Lifetimes()
    for n, run in enumerate(runs):
        if isinstance(run, tuple) and isinstance(run[0], str):
            past(*run[1:], owner=owner, name=run[0], known=known)
            continue
        wall, *parts = run if isinstance(run, tuple) else (run,)
        list(known.add((owner, name, pes), Lived(wall * SECOND, *(parts or (0,))), n))
    return known


def expected(request, known, ran=0, settings=None) -> float | None:
    """Return the expected run time in s; None: unknown."""
    found = expected_wall(settings or Settings(), known, request, ran * SECOND)
    return None if found is None else found / SECOND


OTHER = ("other", 5000, 6000, 7000)
GUESSED = (50, 0, 500)


@pytest.mark.parametrize(
    ("runs", "ask", "ran", "wall"),
    [
        # The last few runs count more than those before.
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
        # Without recorded runs its limits count.
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
    """Return the advice about a wall limit after runs of these lengths."""
    settings, past = Settings(), Lifetimes()
    settings.server.limit_hint = times
    for n, wall in enumerate(walls):
        list(past.add(KEY, Lived(parse_time(wall), 0), n))
    return hint(settings, past, KEY, parse_time(limit))


def test_a_limit_ten_times_the_longest_run_is_reported_with_a_better_one():
    many, one = told("2:00:00", "5:00", "12:00", "11:59"), told("1:00:00", "20")
    assert all(each in many for each in ("last 3", "12 min", "2 h", "18:00"))
    assert all(each in one for each in ("one", "20 s", "1 h", "=1:00 "))


@pytest.mark.parametrize(
    ("limit", "walls", "times"),
    [
        ("1:59:59", ["12:00"], 10), ("2:00:00", ["5:00", "12:01"], 10), ("9:59", ["1"], 10),
        ("2:00:00", [], 10), ("unlimited", ["1"], 10), ("2:00:00", ["1"], None), ("2:00:00", ["12:00"], 11),
    ],
)  # fmt: skip
def test_a_sensible_wall_limit_is_not_reported(limit, walls, times):
    assert told(limit, *walls, times=times) == ""


def test_what_ran_long_ago_is_forgotten():
    assert told("2:00:00", "1:00:00", *["1:00"] * 15) == ""
    assert told("2:00:00", "1:00:00", *["1:00"] * 16)


PROBABLE = "machine 8; queue night order=fcfs reserve=1 backfill=probable; run anne pes=6 wall=10:00"
LUCKY = f"{PROBABLE}; learn cleo 100*9; run ben pes=8 wall=5:00, cleo pes=2 wall=60:00 name=job"
STORIES = {
    f"how sure it must be is the queue's own: {runs}": f"""{PROBABLE}; {runs}; submit ben pes=8 wall=5:00
        submit cleo pes=2 wall=60:00 name=job, dora pes=2 wall=60:00 name=job; starts {passes}
        reserved ben 10"""
    for runs, passes in (
        ("", "-"), ("learn cleo 100*8", "-"), ("learn cleo 100*9", "cleo"),
        ("learn cleo 100*9 500*2", "-"), ("learn cleo 200*9", "-"),
    )
} | {
    "one without a wall limit takes no chances": f"""{PROBABLE}; learn cleo 1*50
        submit ben pes=8 wall=5:00, cleo pes=2 name=job; starts -""",
    "with luck it starts in time": f"""{LUCKY}; at 5; end cleo; go; reserved ben 10; late ben no; at 10
        end anne; starts ben""",
    "without luck it is told why, and none takes chances any more": f"""{LUCKY}; at 10; end anne
        submit cleo pes=2 wall=60:00 name=job, dora pes=2 wall=50:00; starts dora
        late ben = 3.ymp; at 60; end dora cleo; starts ben""",
    "none takes chances beside one that was promised a time": f"""{PROBABLE}; queue sure order=fcfs reserve=1
        learn cleo 100*9; run ben pes=8 wall=5:00 queue=sure
        submit cleo pes=2 wall=60:00 name=job queue=night; starts -; at 10; end anne; starts ben""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_starts_by_chance(house, title):
    Story(house).play(STORIES[title])


# ---------------------------------------------------------------- what is learnt
@pytest.mark.parametrize("percent", [1, 30.0, 50, 66.6, 90, 98, 99])
@pytest.mark.parametrize("count", [0, 1, 2, 9, 10, 49, 50])
def test_the_sure_part_is_the_least_with_that_chance(percent, count):
    """A run that has not ended by then counts beside the known ones; at its limit each has ended."""
    parts = tuple((each * 37) % 997 + 1 for each in range(count))

    def chance(part: int) -> float:
        return 1 if part == 1000 else sum(each <= part for each in parts) / (count + 1)

    by_trying = next(part for part in range(1001) if chance(part) >= percent / 100)
    lived = Lifetime(tuple(Lived(part * 600, part) for part in parts), 1)
    assert lived.sure_part(percent) == by_trying


def test_what_ends_by_itself_or_by_a_limit_is_learnt_and_nothing_else(house):
    Story(house).play(PROBABLE)
    kinds = ("exit", "wall_limit", "signal", "cpu_limit", "deleted", "lost", "killed", "contract")
    seqs = house.submit(*["eve wall=10:00 name=one"] * len(kinds))
    house.at(3600).end(1)
    for seq, kind in zip(seqs, kinds, strict=True):
        while house.request(seq).started is None:
            house.go()
        signal = {"signal": 11, "killed": 9}.get(kind)
        house._event(ev.Ended(seq, 1, "signal" if signal else kind, exit_signal=signal, used=Used(0, 60_001)))
    assert house.site.lifetimes.known["eve", "one", 1].runs == (Lived(60_001, 101),) * 4


def test_the_oldest_runs_are_forgotten_first():
    known, touched = Lifetimes(), set()
    for n in range(5000):
        touched.update(known.add(("anne", f"job{n % 2500}", 1), Lived(n, n % 1000), n))
    assert len(known.known) == 2000
    assert next(iter(known.known)) == ("anne", "job500", 1)
    assert ("anne", "job0", 1) in touched
    for n in range(60):
        list(known.add(("anne", "job600", 1), Lived(n, n + 1), 5000 + n))
    assert known.known["anne", "job600", 1].runs == tuple(Lived(n, n + 1) for n in range(10, 60))
    assert Lifetimes.of(dict(sorted(known.known.items()))) == known
    assert list(Lifetimes.of(dict(sorted(known.known.items()))).known) == list(known.known)


def walls(known: Lifetimes, key: Key) -> list[list[int]]:
    """Return the wall times of each kind."""
    return [[run.wall for run in kind] for kind in known.kinds(key)]


def test_similar_runs_are_searched_in_ever_wider_kinds():
    known = Lifetimes()
    ends = [("anne", "sweep", 1, 10), ("anne", "sweep", 1, 20), ("anne", "sweep", 4, 30), ("ben", "x", 1, 40)]
    for n, (owner, name, pes, wall) in enumerate(ends):
        list(known.add((owner, name, pes), Lived(wall, 0), n))
    assert walls(known, ("anne", "sweep", 1)) == [[10, 20, 30], [10, 20, 30], [10, 20, 30, 40]]
    assert walls(known, ("ben", "y", 1)) == [[10, 20, 30, 40]], "those of everybody"
    list(known.add(("anne", "sweep", 1), Lived(50, 0), 9))
    assert walls(known, ("anne", "sweep", 1))[0] == [10, 20, 50], "enough of the same width"
    assert [len(kind) for kind in known.of_owner(("anne", "sweep", 1))] == [3, 4, 4]
    again = Lifetimes.of(known.known)
    assert sorted(walls(again, ("carl", "z", 1))[0]) == sorted(walls(known, ("carl", "z", 1))[0])
    closed = known.copy(closed=True)
    assert list(closed.add(("anne", "sweep", 1), Lived(60, 0), 10)) == []
    assert closed.latest() == known.latest()
