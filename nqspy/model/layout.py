"""How a request's PEs are laid out, in the words of PBS and Slurm: for its job, and for who looks."""

from msgspec import Struct

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
