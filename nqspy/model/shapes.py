"""Moldable requests: on how many PEs one may run, and how long it takes on each (seed 001, section 3.3). It
runs on one of its sizes; which, is chosen anew whenever it is started. While it waits it asks for the least
of them and the shortest of its times: whoever looks at it then never takes it for more than it is."""

from math import ceil

from msgspec import Struct
from msgspec.structs import replace

Lacked = tuple[tuple[int, str], ...]
"""Sizes on which one would have ended sooner, with the codes (`ReasonCode`) of why it could not start."""
MOST_SIZES = 256
"""Sizes of one request at most: each may be looked at in each pass."""
MOST_PARALLELISM = 1e6
MOST_SIGMA = 1e6


class Speedup(Struct, frozen=True):
    """Speedup of a program on more PEs: A. B. Downey, "A model for speedup of parallel programs" (UC
    Berkeley, CSD-97-933, 1997). ``parallelism``: A, on the mean so many PEs have work, 1 at least; ``sigma``:
    how much that varies, 0: not at all (twice as fast on twice the PEs, up to A of them)."""

    parallelism: float
    sigma: float = 0.0

    def on(self, pes: int) -> float:
        """Return how many times as fast it runs on so many PEs (1 at least) as on one; never more than A."""
        n, a, sigma = pes, self.parallelism, self.sigma
        if sigma > 1:  # the model's high variance
            return a if n >= a + a * sigma - sigma else n * a * (sigma + 1) / (sigma * (n + a - 1) + a)
        if n >= 2 * a - 1:
            return a
        if n <= a:
            return a * n / (a + sigma * (n - 1) / 2)
        return a * n / (sigma * (a - 0.5) + n * (1 - sigma / 2))


class Sizes(Struct, frozen=True):
    """``sizes``: PEs on which it may run, from the least on; ``walls``: its wall limit (ms) on each, nothing
    where it is the same on all; ``speedup``: what these were reckoned by. ``base``: the one wall limit that
    was asked for, by ``speedup`` the time on one PE; None: none was."""

    sizes: tuple[int, ...] = ()
    walls: tuple[int, ...] = ()
    speedup: Speedup | None = None
    base: int | None = None

    def wall_on(self, pes: int) -> int | None:
        """The wall limit on one of its sizes."""
        return self.walls[self.sizes.index(pes)] if self.walls else self.base

    def expected_on(self, pes: int, wall: int | None) -> int | None:
        """Expected run time (ms) on one of its sizes, where ``wall`` is the limit in force: that long;
        without times of its own as if work were divided evenly, the least size needing it all."""
        if wall is None or self.walls:
            return wall
        return -(-wall * self.sizes[0] // pes)


def reckoned(mold: Sizes) -> Sizes:
    """With its sizes in order, and with its wall limits by its speedup where it has one and a base."""
    sizes = tuple(sorted(mold.sizes))
    walls = tuple(wall for pes in sizes if (wall := wall_by_speedup(mold, pes)) is not None)
    if not walls and mold.walls:
        walls = tuple(wall for _, wall in sorted(zip(mold.sizes, mold.walls, strict=True)))
    return Sizes(sizes, walls, mold.speedup, mold.base)


def wall_by_speedup(mold: Sizes, pes: int) -> int | None:
    """Wall limit (ms) on a number of PEs, by a speedup and the time on one PE; None: it has no such."""
    if mold.speedup is None or mold.base is None:
        return None
    return max(1, ceil(mold.base / mold.speedup.on(pes)))


def shown_sizes(sizes: tuple[int, ...]) -> str:
    """``4-16`` where none between is missing, else ``4,8,16``."""
    if len(sizes) > 2 and sizes[-1] - sizes[0] == len(sizes) - 1:
        return f"{sizes[0]}-{sizes[-1]}"
    return ",".join(map(str, sizes))


MOST_RANKS = 1_000_000
"""Ranks, chunks or CPUs of a layout at most: the job is given a line for each rank."""


class Layout(Struct, frozen=True):
    """``text``: as asked for (``select=2:ncpus=4``, ``nodes=1:ppn=4``); ``chunks``: parts or nodes;
    ``ranks``: MPI processes, a line each in the file of hosts; ``cpus`` of the first chunk; ``threads`` of
    each rank, if asked for; ``place``: PBS's placement."""

    text: str = ""
    chunks: int = 1
    ranks: int = 1
    cpus: int | None = None
    threads: int | None = None
    place: str = ""

    def following(self, before: int, pes: int) -> "Layout | None":
        """Return the layout on another number of PEs than ``before``; None: nothing is left to say. A
        selection (``text``) names one number of PEs and falls away. Several ranks keep the PEs that each has,
        one rank takes all (more ranks than PEs stay so many); no rank has more threads than PEs."""
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
