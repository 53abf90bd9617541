"""Moldable requests in words: Downey's speedup, times on each size, and the size that counts at first."""

import pytest
from core.harness import spec_of
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nqspy.model.shapes import Layout, Sizes, Speedup, reckoned, shown_sizes, sizes_in_words
from nqspy.model.specs import fixed, on_size, resized, settled, timed, while_waiting

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("sigma", "pes", "speedup"),
    [
        (0, 4, 4.0),  # no variance: twice as fast on twice the PEs, up to A
        (0, 9, 8.0),
        (0.5, 1, 1.0),
        (0.5, 4, 32 / 8.75),  # A n / (A + sigma (n - 1) / 2)
        (0.5, 8, 64 / 9.75),
        (0.5, 12, 96 / 12.75),  # A n / (sigma (A - 1/2) + n (1 - sigma / 2))
        (0.5, 15, 8.0),  # 2 A - 1
        (0.5, 100, 8.0),
        (2, 1, 1.0),
        (2, 4, 3.2),  # n A (sigma + 1) / (sigma (n + A - 1) + A) = 96 / 30
        (2, 8, 192 / 38),
        (2, 21, 504 / 64),
        (2, 22, 8.0),  # A + A sigma - sigma
        (2, 500, 8.0),
    ],
)
def test_speedups_are_those_worked_by_hand_for_an_average_parallelism_of_8(sigma, pes, speedup):
    assert Speedup(8, sigma).on(pes) == pytest.approx(speedup, rel=1e-12)


def test_both_variances_say_the_same_where_they_meet():
    for pes in range(1, 40):
        assert Speedup(12, 1).on(pes) == pytest.approx(Speedup(12, 1 + 1e-12).on(pes))


@given(st.floats(1, 500), st.floats(0, 20), st.integers(1, 2_000))
def test_more_pes_never_make_it_slower_nor_faster_than_its_parallelism(a, sigma, pes):
    curve = Speedup(a, sigma)
    assert 1 - 1e-9 <= curve.on(pes) <= curve.on(pes + 1) + 1e-9
    assert curve.on(pes + 1) <= min(a, pes + 1) + 1e-9


@given(st.floats(1, 500), st.floats(0, 5), st.floats(0, 5), st.integers(1, 600))
def test_more_variance_never_makes_it_faster(a, one, other, pes):
    assert Speedup(a, max(one, other)).on(pes) <= Speedup(a, min(one, other)).on(pes) + 1e-9


def test_times_follow_the_speedup_from_the_time_on_one_pe():
    made = reckoned(Sizes((4, 8, 22), speedup=Speedup(8, 2), base=16 * HOUR))
    assert made.walls == (5 * HOUR, 11_400_000, 2 * HOUR)  # 16 h / 3.2, 16 h * 38 / 192, 16 h / 8
    assert reckoned(made) == made


def test_times_go_with_their_sizes_in_whatever_order_these_are_named():
    made = reckoned(Sizes((16, 4, 8), (HOUR, 4 * HOUR, 2 * HOUR)))
    assert made == Sizes((4, 8, 16), (4 * HOUR, 2 * HOUR, HOUR))
    assert made.wall_on(8) == 2 * HOUR


def test_it_is_expected_to_take_its_time_or_as_long_as_evenly_divided_work_would():
    assert Sizes((4, 8), (4 * HOUR, 3 * HOUR)).expected_on(8, 3 * HOUR) == 3 * HOUR
    assert Sizes((4, 8), base=4 * HOUR).expected_on(8, 4 * HOUR) == 2 * HOUR
    assert Sizes((4, 8)).expected_on(8, None) is None


def test_while_it_waits_it_asks_for_the_least_of_its_sizes_and_times():
    spec = spec_of("anne", sizes="4,8,16", walls="4:00:00,2:00:00,1:00:00", mem="1mb")
    assert (spec.ask.pes, spec.ask.wall, spec.ask.memory) == (4, HOUR, 1 << 20)
    started = on_size(spec, 8)
    assert (started.ask.pes, started.ask.wall) == (8, 2 * HOUR)
    assert while_waiting(started) == spec
    assert on_size(spec, 5) == spec  # 5 is not one of its sizes


def test_what_an_alteration_leaves_out_stays():
    spec = spec_of("anne", sizes="4,8", walls="4:00:00,2:00:00")
    other = settled(resized(spec, replace(spec, mold=Sizes(walls=(3 * HOUR, HOUR))), None))
    assert other.mold == Sizes((4, 8), (3 * HOUR, HOUR))
    wider = settled(resized(spec, replace(spec, mold=Sizes((2, 4, 8))), None))
    assert (wider.mold, wider.ask.wall) == (Sizes((2, 4, 8), base=4 * HOUR), 4 * HOUR)
    curve = spec_of("anne", sizes="4,8", speedup="8:0", wall="8:00:00")
    assert curve.ask.wall == HOUR
    assert settled(timed(curve, 16 * HOUR)).mold.walls == (4 * HOUR, 2 * HOUR)
    other = settled(resized(curve, replace(curve, mold=Sizes((2, 8), speedup=Speedup(4))), None))
    assert other.mold.walls == (4 * HOUR, 2 * HOUR)


def test_one_number_of_pes_takes_the_choice_away_and_a_single_size_is_fixed():
    spec = spec_of("anne", sizes="8", walls="2:00:00")
    assert (spec.mold, spec.ask.pes, spec.ask.wall) == (None, 8, 2 * HOUR)
    spec = fixed(spec_of("anne", sizes="4,8", walls="4:00:00,2:00:00"), 4)
    assert (spec.mold, spec.ask.pes, spec.ask.wall) == (None, 4, 4 * HOUR)


def test_sizes_in_words():
    texts = {(4, 5, 6): "4-6", (4, 8): "4,8", (4, 5): "4,5", (4, 6, 7): "4,6,7"}
    assert {sizes: shown_sizes(sizes) for sizes in texts} == texts
    words = {(4,): "4", (1, 2): "1 or 2", (1, 2, 4): "1, 2 or 4", (4, 5, 6): "4-6"}
    assert {sizes: sizes_in_words(sizes) for sizes in words} == words


@pytest.mark.parametrize(
    ("layout", "before", "pes", "after"),
    [
        (Layout("select=1:ncpus=4:mpiprocs=4", 1, 4, 4), 4, 2, None),
        (Layout("nodes=1:ppn=4", 1, 4, 4), 4, 8, None),
        (Layout(ranks=1, cpus=4, threads=4), 4, 2, Layout(ranks=1, cpus=2, threads=2)),
        (Layout(ranks=1, cpus=4, threads=4), 4, 8, Layout(ranks=1, cpus=8, threads=8)),
        (Layout(ranks=4, cpus=4), 4, 2, Layout(ranks=2, cpus=2)),
        (Layout(ranks=4, cpus=4), 4, 6, Layout(ranks=6, cpus=6)),
        (Layout(chunks=2, ranks=2, cpus=4, threads=2), 4, 6,
         Layout(chunks=2, ranks=3, cpus=6, threads=2)),
        (Layout(chunks=2, ranks=2, cpus=4, threads=2), 4, 1, Layout(chunks=1, ranks=1, cpus=1, threads=1)),
        (Layout(ranks=4), 4, 2, Layout(ranks=2)),
        (Layout(threads=2), 4, 8, Layout(threads=2)),
        (Layout(threads=4), 4, 1, Layout(threads=1)),
        (Layout(ranks=8), 2, 4, Layout(ranks=8)),
    ],
)  # fmt: skip
def test_ranks_and_threads_follow_the_pes(layout, before, pes, after):
    assert layout.following(before, pes) == after
