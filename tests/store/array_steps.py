"""What happens to arrays in a random history."""

import random
from typing import Any

from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.arrays import ArraySpec
from nqspy.model.events import Parted
from nqspy.model.requests import Request
from nqspy.model.site import Site


class ArraySteps:
    """Steps of a `Story` that concern arrays."""

    site: Site
    _random: random.Random

    def tell(self, event: ev.Event) -> None:
        """Lets one event happen."""
        raise NotImplementedError

    def submit(self, **more: Any) -> int:
        """Submits one request."""
        raise NotImplementedError

    def _submit_array(self) -> None:
        self.submit(array=ArraySpec(((1, 9, 2), (20, 22, 1)), self._random.choice((None, 2))))

    def _some_of(self, array: Request) -> indices.Runs:
        """Indices of an array that have not begun."""
        assert array.array is not None
        left = list(indices.each(array.array.left))
        return indices.of(self._random.sample(left, min(len(left), self._random.choice((1, 2, 9)))))

    def _arrays(self) -> list[Request]:
        found = [r for r in self.site.requests.values() if r.array is not None and r.array.left]
        return self._random.sample(found, min(len(found), 1))

    def _part(self) -> None:
        for array in self._arrays():
            self.tell(Parted(array.seq, self._some_of(array)))

    def _hold_some(self) -> None:
        for array in self._arrays():
            letter = self._random.choice("uos")
            self.tell(ev.Held((array.seq,), letter, "op", indices=self._some_of(array)))

    def _release_some(self) -> None:
        for array in self._arrays():
            self.tell(ev.Released((array.seq,), "uos", "op", indices=self._some_of(array)))

    def _end_arrays(self) -> None:
        for request in list(self.site.requests.values()):
            state = request.array
            if state is not None and not state.left and request.seq not in self.site.members:
                if state.begun:
                    self.tell(ev.Ended(request.seq, 0, "exit", exit_status=state.worst))
                else:
                    self.tell(ev.Deleted(request.seq, "anne"))
