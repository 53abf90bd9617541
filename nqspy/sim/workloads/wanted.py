"""What is asked of a workload."""

from msgspec import Struct


class Wanted(Struct, frozen=True):
    """PEs and memory (bytes) of the machine, seed and number of jobs of what is invented; None: as the
    workload has it."""

    pes: int | None = None
    memory: int | None = None
    seed: int = 1
    jobs: int | None = None
