"""Moldable requests: on how many PEs they may run, and how long on each (seed 001, section 3.3). Such a
request runs on one of its sizes, chosen anew at each start. While it waits it asks for the smallest size and
the shortest time, so no reader takes it for more than that."""

from math import ceil

from msgspec import Struct
from msgspec.structs import replace

Lacked = tuple[tuple[int, str], ...]
"""Sizes on which a request would have ended sooner, with codes (`ReasonCode`) of why it could not start."""
MOST_SIZES = 256
"""Most sizes of one request: each may be examined in each pass."""
MOST_PARALLELISM = 1e6
MOST_SIGMA = 1e6


class Speedup(Struct, frozen=True):
    """Speedup of a program on more PEs: A. B. Downey, "A model for speedup of parallel programs" (UC
    Berkeley, CSD-97-933, 1997). ``parallelism``: A, the mean number of PEs that have work, at least 1.
    ``sigma``: how much that number varies; 0: not at all (n times as fast on n PEs, up to A)."""

    parallelism: float
    sigma: float = 0.0

    def on(self, pes: int) -> float:
        """Return how many times as fast it runs on so many PEs (at least 1) as on one; at most A."""
        n, a, sigma = pes, self.parallelism, self.sigma
        if sigma > 1:  # the model's high variance
            return a if n >= a + a * sigma - sigma else n * a * (sigma + 1) / (sigma * (n + a - 1) + a)
        if n >= 2 * a - 1:
            return a
        if n <= a:
            return a * n / (a + sigma * (n - 1) / 2)
        return a * n / (sigma * (a - 0.5) + n * (1 - sigma / 2))


class Sizes(Struct, frozen=True):
    """Sizes of a moldable request. ``sizes``: PEs, the fewest first; ``walls``: its wall limit (ms) on each;
    empty: one for all. ``speedup``: from which these were computed. ``base``: the one wall limit asked for,
    with ``speedup`` the time on one PE; None: no limit."""

    sizes: tuple[int, ...] = ()
    walls: tuple[int, ...] = ()
    speedup: Speedup | None = None
    base: int | None = None

    def wall_on(self, pes: int) -> int | None:
        """Return the wall limit (ms) on one of its sizes; None: no limit was asked for."""
        return self.walls[self.sizes.index(pes)] if self.walls else self.base

    def expected_on(self, pes: int, wall: int | None) -> int | None:
        """Return the expected run time (ms) on ``pes`` PEs with the limit ``wall`` in force: ``wall``. If all
        sizes have one limit, it is less on larger ones, as if the work of the smallest were divided."""
        if wall is None or self.walls:
            return wall
        return -(-wall * self.sizes[0] // pes)


def reckoned(mold: Sizes) -> Sizes:
    """Return these sizes in order, with wall limits computed from speedup and base if there are both."""
    sizes = tuple(sorted(mold.sizes))
    walls = tuple(wall for pes in sizes if (wall := wall_by_speedup(mold, pes)) is not None)
    if not walls and mold.walls:
        walls = tuple(wall for _, wall in sorted(zip(mold.sizes, mold.walls, strict=True)))
    return Sizes(sizes, walls, mold.speedup, mold.base)


def wall_by_speedup(mold: Sizes, pes: int) -> int | None:
    """Return the wall limit (ms) on ``pes`` PEs, from speedup and time on one PE; None: one is missing."""
    if mold.speedup is None or mold.base is None:
        return None
    return max(1, ceil(mold.base / mold.speedup.on(pes)))


def shown_sizes(sizes: tuple[int, ...]) -> str:
    """Return sizes as text: ``4-16`` if none between is missing, else ``4,8,16``."""
    if len(sizes) > 2 and sizes[-1] - sizes[0] == len(sizes) - 1:
        return f"{sizes[0]}-{sizes[-1]}"
    return ",".join(map(str, sizes))


def sizes_in_words(sizes: tuple[int, ...]) -> str:
    """Return sizes as words of a sentence: ``4-16`` if none between is missing, else ``4, 8 or 16``."""
    return " or ".join(shown_sizes(sizes).replace(",", ", ").rsplit(", ", 1))


MOST_RANKS = 1_000_000
"""Ranks, chunks or CPUs of a layout at most: the job is given a line for each rank."""


class Layout(Struct, frozen=True):
    """Layout of the PEs of a request. ``text``: as asked for (``select=2:ncpus=4``, ``nodes=1:ppn=4``);
    ``chunks``: number of parts or nodes; ``ranks``: number of MPI processes, a line each in the file of
    hosts; ``cpus``: of the first chunk; ``threads``: of each rank, if given; ``place``: PBS's placement."""

    text: str = ""
    chunks: int = 1
    ranks: int = 1
    cpus: int | None = None
    threads: int | None = None
    place: str = ""

    def following(self, before: int, pes: int) -> "Layout | None":
        """Return the layout on ``pes`` PEs instead of ``before``; None: no layout. A selection (``text``)
        names one number of PEs and is dropped. Several ranks keep the PEs that each has, one rank gets all
        (more ranks than PEs stay as many); no rank has more threads than PEs."""
        if self.text:
            return None
        width = max(1, before // max(1, self.ranks))
        ranks = max(1, pes // width) if 1 < self.ranks <= before else self.ranks
        wider = max(1, pes // max(1, ranks))
        threads = self.threads
        if threads is not None:
            threads = wider if threads == width else min(threads, wider)
        cpus = None if self.cpus is None else pes
        return replace(self, chunks=min(self.chunks, pes), ranks=ranks, cpus=cpus, threads=threads)
