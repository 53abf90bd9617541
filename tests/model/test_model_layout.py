"""The layout of a request follows its PEs."""

import pytest

from nqspy.model.shapes import Layout


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
def test_ranks_and_threads_follow_the_pes(
    layout: Layout, before: int, pes: int, after: Layout | None
) -> None:
    assert layout.following(before, pes) == after
