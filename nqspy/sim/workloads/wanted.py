"""What is asked of a workload."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wanted:
    """PEs and memory (bytes) of the machine, seed and number of jobs of what is invented; None: as the
    workload has it."""

    pes: int | None = None
    memory: int | None = None
    seed: int = 1
    jobs: int | None = None
