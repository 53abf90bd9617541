"""PassingJournal: what is committed is told and forgotten, for simulations of more than memory holds."""

from collections.abc import Callable, Sequence

from nqspy.model import events as ev
from nqspy.model.site import Site
from nqspy.ports import Batch
from nqspy.store.memory import MemoryJournal


class PassingJournal(MemoryJournal):
    """Tells ``told`` the events of each commit and keeps nothing of it: no event, no ended request, no
    script, no key of a submission. So a simulation on it cannot be restarted, and a request cannot wait for
    one that has ended already."""

    remembers = False

    def __init__(self, told: Callable[[Sequence[ev.Recorded]], None] = lambda events: None) -> None:
        super().__init__()
        self._told = told
        self._used = False

    def commit(self, batch: Batch, site: Site) -> None:
        """Tells it and clears ``site.touched``."""
        self._used = True
        self._told(batch.events)
        site.touched.clear()

    def load(self) -> Site:
        """An empty site. Raises RuntimeError once something was committed."""
        if self._used:
            raise RuntimeError("a journal that keeps nothing has nothing to begin again from")
        return super().load()
