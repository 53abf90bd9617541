"""The journal of a site that is gone through again: it knows which requests have ended meanwhile, and asks
for those before."""

from collections.abc import Callable, Iterator, Sequence

from nqspy.engine.virtual.ahead import Unwritten
from nqspy.model.ids import Instant, Seq
from nqspy.model.site import Site
from nqspy.ports import Batch, EndedRow

Ended = Callable[[Sequence[Seq]], Iterator[EndedRow]]


class ReplayJournal(Unwritten):
    """``before``: asks for requests that had ended by ``since``."""

    remembers = True

    def __init__(self, before: Ended, since: Instant) -> None:
        super().__init__()
        self._before, self._since = before, since
        self._ended: dict[Seq, EndedRow] = {}

    def commit(self, batch: Batch, site: Site) -> None:
        """Keep what has ended."""
        if site.touched.ended:
            instants = {id(recorded.event): recorded.at for recorded in batch.events}
            for seq, (request, event) in site.touched.ended.items():
                self._ended[seq] = EndedRow(
                    seq=seq, spec=request.spec, queue=request.queue, submitted=request.submitted,
                    ended=event, at=instants.get(id(event), site.at), request=request,
                )  # fmt: skip
        site.touched.clear()

    def copy(self) -> "ReplayJournal":
        """Return another one that knows the same."""
        made = ReplayJournal(self._before, self._since)
        made._ended = dict(self._ended)
        return made

    def ended(self, seqs: Sequence[Seq]) -> Iterator[EndedRow]:
        """Return those that have ended by now, in the order given."""
        left = [seq for seq in seqs if seq not in self._ended]
        known = {row["seq"]: row for row in self._before(left) if row["at"] <= self._since} if left else {}
        found = (self._ended.get(seq) or known.get(seq) for seq in seqs)
        return (row for row in found if row is not None)
