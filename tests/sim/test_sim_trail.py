"""What pictures are drawn from: of one size however many jobs there are, and right to the millisecond."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from nqspy.sim.batch import EndedJob, HeldPes
from nqspy.sim.trail import COLUMNS, FINEST, MOST_BOXES, Trail
from nqspy.sim.workloads.jobs import SimulatedJob


def stay(number: int, submit: int, begin: int, end: int, pes: tuple[int, ...]) -> EndedJob:
    job = SimulatedJob(number, number, submit, end - begin, end - begin, len(pes))
    return EndedJob(job, begin, end, end - begin, (HeldPes(begin, end, pes),))


@st.composite
def stays(draw: st.DrawFn) -> list[EndedJob]:
    """Draw jobs from a tenth of a second to half a year, in any order."""
    found = []
    for number in range(draw(st.integers(1, 12))):
        submit = draw(st.integers(0, 10 ** draw(st.integers(2, 10))))
        begin = submit + draw(st.integers(0, 10 ** draw(st.integers(1, 9))))
        end = begin + draw(st.integers(0, 10 ** draw(st.integers(1, 9))))
        first = draw(st.integers(0, 99))
        pes = tuple(range(first, min(100, first + draw(st.integers(1, 40)))))
        found.append(stay(number, submit, begin, end, pes))
    return found


@given(stays())
def test_each_column_has_what_was_held_and_waited_in_it(jobs):
    trail = Trail(100, 0)
    for job in jobs:
        trail.add(job)
    assert trail.end == max(job.end for job in jobs)
    assert trail.columns <= COLUMNS
    assert trail.width == FINEST or trail.columns > COLUMNS // 2 - 1
    for found, times in (
        (trail.held(), [(job.start, job.end, job.job.width) for job in jobs]),
        (trail.waiting(), [(job.job.submit, job.start, 1) for job in jobs]),
    ):
        for column, mean in enumerate(found):
            low, high = column * trail.width, (column + 1) * trail.width
            true = sum(max(0, min(end, high) - max(begin, low)) * weight for begin, end, weight in times)
            assert abs(mean * trail.width - true) < 1e-3 + 1e-9 * true


def test_rows_are_neighbouring_pes():
    trail = Trail(128, 0)
    trail.add(stay(1, 0, 0, 1000, (0, 1, 2, 127)))
    rows = trail.rows()
    assert len(rows) == 64
    assert [row[0] for row in rows] == [2.0, 1.0, *[0.0] * 61, 1.0]
    assert [(box.first, box.last) for box in trail.boxes] == [(0, 2), (127, 127)]


def test_what_was_queued_again_held_its_pes_twice():
    trail, job = Trail(4, 0), SimulatedJob(0, 1, 0, 400, 400, 1)
    trail.add(EndedJob(job, 0, 900, 400, (HeldPes(0, 100, (0,)), HeldPes(500, 900, (2,)))))
    assert [(box.first, box.begin, box.end) for box in trail.boxes] == [(0, 0, 100), (2, 500, 900)]
    assert sum(trail.held()) * trail.width == 500


def test_too_many_boxes_are_forgotten_and_the_rest_is_kept():
    trail, rng = Trail(8, 0), Random(1)
    for n in range(MOST_BOXES + 1):
        trail.add(stay(n, n * 10, n * 10, n * 10 + 10, (rng.randrange(8),)))
    assert trail.boxes is None
    assert sum(trail.held()) * trail.width == (MOST_BOXES + 1) * 10


def test_time_counts_from_the_first_submission_on():
    trail = Trail(1, 5_000_000)
    trail.add(stay(1, 5_000_000, 5_000_100, 5_000_200, (0,)))
    assert (trail.end, trail.held(), trail.waiting()) == (200, [0.0, 1.0], [1.0, 0.0])
