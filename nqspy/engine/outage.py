"""Outages: times in which commands were refused because the database could not be written or its disk was
full. Each is reported to the managers once it is over."""

from nqspy.engine.handlers.context import Transaction
from nqspy.model.actions import Notify
from nqspy.model.events import Alarm
from nqspy.model.ids import Instant
from nqspy.model.units import format_span


class Outage:
    """State of the present outage. ``since``: instant and error of its first failed commit; None: no commit
    has failed since the last report."""

    def __init__(self) -> None:
        self.since: tuple[Instant, str] | None = None
        self._full: Instant | None = None
        # Content of an alarm that is not committed yet.
        self._reporting: tuple[tuple[Instant, str] | None, Instant | None] = (None, None)

    def failed(self, error: str, now: Instant) -> None:
        """Record that a commit failed at ``now``; an outage that it was to report is reported later."""
        since, full = self._reporting
        self.since = self.since or since or (now, error)
        self._full = self._full or full
        self._reporting = (None, None)

    def full(self, now: Instant) -> None:
        """Record that a submission was refused at ``now`` because the disk is full."""
        self._full = self._full or now

    def committed(self) -> None:
        """Record that a commit succeeded, so that a report in it need not be repeated."""
        self._reporting = (None, None)

    def report(self, tx: Transaction) -> None:
        """Emit an alarm with a mail about an outage that is over; do nothing while the disk is full or
        without an outage. Call it in the first group of events that may be committed again."""
        if self.since is None and (self._full is None or tx.journal.low()):
            return
        self._reporting, since, full = (self.since, self._full), self.since, self._full
        self.since = self._full = None
        if since is not None:
            begun, error = since
            what, more = "the database could not be written for", f", all commands were refused: {error}"
            subject = "the database could not be written"
        elif full is not None:
            begun, what, more = full, "no job could be submitted for", ": the disk of the database was full"
            subject = "the disk of the database was full"
        text = f"{what} {format_span(tx.now - begun)}{more}"
        tx.emit(Alarm("store", text, begun))
        tx.group.alarms.append(text)
        tx.act(Notify("", f"nqspy: {subject}", text))
