"""How a request's PEs are laid out, in the words of PBS and Slurm: for its job, and for who looks."""

from msgspec import Struct
from msgspec.structs import replace

MOST = 1_000_000
"""Ranks, chunks or CPUs of a layout at most: the job is given a line for each rank."""


class Layout(Struct, frozen=True):
    """``text``: as it was asked for (``select=2:ncpus=4``, ``nodes=1:ppn=4``); ``chunks``: how many parts or
    nodes; ``ranks``: MPI processes, a line each in the job's file of hosts; ``cpus`` of the first chunk;
    ``threads``: of each rank, if something was said of them; ``place``: PBS's placement, as it was asked for.
    """

    text: str = ""
    chunks: int = 1
    ranks: int = 1
    cpus: int | None = None
    threads: int | None = None
    place: str = ""

    def following(self, before: int, pes: int) -> "Layout | None":
        """Return the layout on another number of PEs than ``before``; None: nothing is left to say.

        A selection (``text``) names one number of PEs and falls away. Several ranks keep the PEs that each
        has, one rank takes all (more ranks than PEs stay so many); no rank has more threads than PEs.
        """
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
