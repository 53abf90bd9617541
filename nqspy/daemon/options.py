"""What ``nqsd start`` and ``nqsd run`` were told. Nothing heavy here: the other commands wait for it too."""

from msgspec import Struct


class StartOptions(Struct, frozen=True):
    """Folders of the configuration and of the exits (None: the home's), the clock, and whether it runs in
    the background."""

    queues: str | None = None
    exits: str | None = None
    clock: str | None = None
    background: bool = False

    @property
    def given(self) -> bool:
        """Whether there is anything to check."""
        return any(each is not None for each in (self.queues, self.exits, self.clock))
