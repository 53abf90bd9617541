"""What ``nqsd start`` and ``nqsd run`` were told."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Folders of the configuration and of the exits (None: the home's), the clock, and whether it runs in
    the background."""

    queues: str | None = None
    exits: str | None = None
    clock: str | None = None
    background: bool = False
