"""Select: takes candidates from the top of each queue's line while something can still start.

Without a `jobselect` exit, rows that limits keep back are masked out and never looked at. With one they are
offered too, because it may force them; at most ``set global offers_per_pass`` offers are made in a pass.
When PEs are still free then, the next pass goes on where this one stopped, unless something has happened.
"""

from typing import Any

from nqspy.core import broken
from nqspy.core.draft import Draft
from nqspy.core.feature import Domain
from nqspy.core.queueing.limits import Tally, never
from nqspy.core.queueing.line import FIRST, NOW, Line
from nqspy.core.queueing.startable import startable
from nqspy.core.sight import Seen
from nqspy.model.ids import Instant, Seq
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request
from nqspy.model.site import Settings, Site
from nqspy.ports import Answer


def verify(settings: Settings, site: Site) -> list[str]:
    """Queues that could never start anything."""
    pes = settings.machine.pes if settings.machine.pes is not None else len(site.found.cpus)
    return ["the machine has no PE: set machine pes=N"] if pes < 1 else []


def bind(domain: Domain, settings: Settings) -> Any:
    """It keeps nothing between passes."""
    return None


def action(draft: Draft, domain: Domain, now: Instant) -> Instant | None:
    """Chooses the requests to start; a date in queue may be the next thing to wait for, or that a group's
    use falls below its cap."""
    selection = _Selection(draft)
    selection.run()
    dues = (draft.site.next_date(), selection.opens(), selection.goes_on())
    return min((due for due in dues if due is not None), default=None)


def exception(draft: Draft, domain: Domain) -> None:
    """Nothing to clean up."""


class _Selection:
    """One pass over all queues."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._tally = Tally(draft.site, lambda: draft.ledger, now=draft.now)
        draft.startable = lambda: startable(draft, self._tally)
        for request in draft.resumed:
            self._tally.resume(request)
        self._lines: dict[str, Line] = {}
        self._closed: set[str] = set()
        self._asking = draft.exits.has("jobselect")
        self._electing = draft.exits.has("elected")
        self._said: dict[tuple[str, str], Reason] = {}
        self._narrow: list[tuple[Request, bool]] = []
        self._offers = draft.site.settings.global_.offers_per_pass
        self._refused: dict[Seq, Answer] = {}
        self._recalled = draft.exits.recall(draft.site.n) if self._asking else {}
        self._cut = False

    def run(self) -> None:
        """Serves ranked requests, then the queues in their order."""
        served = [queue for queue, _ in self._draft.waiting() if queue.kind == "batch"]
        for queue in served:
            self._refuse_what_never_fits(queue)
        started = [queue for queue in served if queue.started and not self._is_shut(queue)]
        self._serve_urgent(started)
        for place, queue in enumerate(started):
            if queue.name in self._closed:
                continue
            if self._asking:
                self._serve_by_offers(queue, -(-self._offers // (len(started) - place)))
            else:
                self._serve(queue)
        for queue in served:
            if not queue.started:
                self._close(queue, Reason(ReasonCode.STOPPED, f"queue {queue.name}", _stopped(queue)))
        self._look_again()

    def _is_shut(self, queue: Queue) -> bool:
        """Whether an earlier stage says that nothing of this queue starts now."""
        reason = self._draft.barred or self._draft.shut.get(queue.name)
        if reason is not None:
            self._close(queue, reason)
        return reason is not None

    def goes_on(self) -> Instant | None:
        """When the next pass goes on with those that this one could not offer: at once, where PEs are
        free."""
        if not self._asking:
            return None
        goes_on = self._cut and bool(self._draft.free)
        kept = self._draft.exits.keep(self._draft.site.n, self._refused if goes_on else {})
        return Instant(self._draft.now + 1) if goes_on and kept else None

    def opens(self) -> Instant | None:
        """When a group's cap will let it start again."""
        return self._tally.opens()

    def _look_again(self) -> None:
        """Whether one still waits only for PEs: a start after it was looked at may have used up a limit."""
        kept = {request.seq: self._kept(request, forced) for request, forced in self._narrow}
        self._draft.own.update((seq, reason) for seq, reason in kept.items() if reason is not None)
        self._draft.short = any(reason is None for reason in kept.values())

    def _line(self, queue: Queue) -> Line:
        if queue.name not in self._lines:
            self._lines[queue.name] = Line(self._draft, queue, self._tally)
        return self._lines[queue.name]

    def _refuse_what_never_fits(self, queue: Queue) -> None:
        site = self._draft.site
        columns = site.waiting[queue.name]
        if columns.most("pes") > site.pes():
            wide = (columns.pes > site.pes()).nonzero()[0][: site.settings.global_.offers_per_pass]
            for row in wide.tolist():
                request = columns.request(row)
                self._draft.own[request.seq] = never_reason(site, request)

    # ------------------------------------------------------------ ranked requests

    def _serve_urgent(self, started: list[Queue]) -> None:
        """``schedule request ... now`` and ``first``: ahead of everything, queue by queue."""
        found = []
        for place, queue in enumerate(started):
            columns = self._draft.site.waiting[queue.name]
            if columns.most("rank") >= FIRST:
                line = self._line(queue)
                ranked = [row for row in line.in_order(_ranked(columns.rank)) if columns.rank[row] >= FIRST]
                found += [(-int(columns.rank[row]), place, i, line, row) for i, row in enumerate(ranked)]
        for _, _, _, line, row in sorted(found, key=lambda each: each[:3]):
            if line.queue.name not in self._closed and row not in self._draft.gone(line.queue.name):
                self._look(line, row)

    # ------------------------------------------------------------ without jobselect

    def _serve(self, queue: Queue) -> None:
        closed = self._closed_before(queue)
        if closed is None:
            line = self._line(queue)
            closed = self._all_kept(line) or self._start_what_fits(line)
        if closed is not None:
            self._close(queue, closed)

    def _closed_before(self, queue: Queue) -> Reason | None:
        closed = self._tally.closed(queue.name)
        if closed is None and self._draft.short and not self._draft.free:
            return _no_pes(self._draft)
        return closed

    def _all_kept(self, line: Line) -> Reason | None:
        oldest = line.oldest_if_all_kept()
        if oldest is None:
            return None
        request = line.columns.request(oldest)
        kept = broken.keeping(self._draft.site, request) or self._tally.keeping(request)
        if kept is not None:
            self._draft.own[request.seq] = kept
        return kept

    def _start_what_fits(self, line: Line) -> Reason | None:
        closed = None
        while self._draft.free and closed is None:
            row = line.best(self._draft.free)
            if row is None:
                break
            self._look(line, row)
            closed = self._tally.closed(line.queue.name)
        return closed or self._what_is_left(line)

    def _what_is_left(self, line: Line) -> Reason | None:
        row = line.best()
        if row is not None:
            self._look(line, row)
            return _no_pes(self._draft)
        row = line.first_left()
        if row is None:
            return None
        self._look(line, row)
        return self._draft.own[line.columns.request(row).seq]

    # ------------------------------------------------------------ with jobselect

    def _serve_by_offers(self, queue: Queue, most: int) -> None:
        draft = self._draft
        if draft.short and not draft.free:
            return self._close(queue, self._closed_before(queue) or _no_pes(draft))
        line, chosen, fits = self._line(queue), -1, True
        while queue.name not in self._closed:
            if len(draft.chosen) != chosen:
                chosen, fits = len(draft.chosen), bool(draft.free) and line.any_within(draft.free)
            if draft.short and not fits:
                return self._close(queue, self._tally.closed(queue.name) or _no_pes(draft))
            if most <= 0:
                self._cut = True
                return self._close(queue, self._tally.closed(queue.name) or self._bounded())
            row = line.next_offer(most + len(self._recalled))
            if row is None:
                return None
            if not self._is_refused_still(line, row):
                most -= 1
                self._look(line, row)
        return None

    def _is_refused_still(self, line: Line, row: int) -> bool:
        """Whether the pass before was told about it, and nothing has happened since."""
        if not self._recalled:
            return False
        request = line.columns.request(row)
        answer = self._recalled.get(request.seq)
        if answer is None:
            return False
        line.take(row)
        self._draft.offered[request.queue].append((Seen(request, self._draft), answer))
        self._refuse(request, answer)
        return True

    def _refuse(self, request: Request, answer: Answer) -> None:
        self._draft.own[request.seq] = self._refusal(answer)
        self._refused[request.seq] = answer

    def _bounded(self) -> Reason:
        most = self._draft.site.settings.global_.offers_per_pass
        text = f"jobselect was offered as many candidates as one pass allows (global offers_per_pass {most})"
        return Reason(ReasonCode.LATER, "global", text)

    def _offer(self, request: Request) -> Answer | None:
        if not self._asking:
            return None
        seen = Seen(request, self._draft)
        self._offers -= 1
        answer = self._draft.exits.jobselect(seen, self._draft.view)
        self._draft.offered[request.queue].append((seen, answer))
        return answer

    # ------------------------------------------------------------ one candidate

    def _look(self, line: Line, row: int) -> None:
        """Starts one candidate, or notes why it is not started."""
        draft, request = self._draft, line.columns.request(row)
        line.take(row)
        answer = self._offer(request)
        if answer is not None and answer.verdict != "force":
            self._refuse(request, answer)
            if answer.verdict == "hold_line":
                self._hold_line(line.queue, request, answer)
            return
        forced = request.rank == NOW or answer is not None
        kept = self._kept(request, forced)
        if kept is not None:
            draft.own[request.seq] = kept
        elif request.spec.ask.pes > draft.free:
            draft.short = True
            self._narrow.append((request, forced))
            draft.own[request.seq] = _too_few(draft, request)
        else:
            self._start(line, request, forced)

    def _kept(self, request: Request, forced: bool) -> Reason | None:
        return None if request.rank == NOW else self._tally.keeping(request, forced)

    def _start(self, line: Line, request: Request, forced: bool) -> None:
        draft = self._draft
        choice = draft.choose(request, forced)
        self._tally.add(request)
        if self._electing:
            actions = draft.exits.elected(Seen(request, draft), draft.view)
            changed = draft.follow(choice, actions)
            for other in self._lines.values():
                mine = [each for each in changed if each.queue == other.queue.name]
                if mine:
                    other.changed(mine)
        for other in self._lines.values():
            other.refresh()

    def _refusal(self, answer: Answer) -> Reason:
        said = (answer.who, answer.text)
        if said not in self._said:
            self._said[said] = Reason(ReasonCode.EXIT, answer.who, answer.text)
        return self._said[said]

    def _hold_line(self, queue: Queue, request: Request, answer: Answer) -> None:
        name = self._draft.site.id_of(request.seq)
        text = f"{name} closes the line of queue {queue.name}: {answer.text}"
        self._close(queue, Reason(ReasonCode.LINE_CLOSED, answer.who, text))

    def _close(self, queue: Queue, reason: Reason) -> None:
        self._closed.add(queue.name)
        line = self._lines.get(queue.name)
        ahead = line.looked if line is not None else 0
        text = f"{reason.text}; {ahead} ahead of it" if ahead else reason.text
        self._draft.closing[queue.name] = Reason(reason.code, reason.who, text, reason.until)


def _ranked(ranks: Any) -> int:
    return int((ranks >= FIRST).sum())


def never_reason(site: Site, request: Request) -> Reason:
    """Why a request that asks for more PEs than there are can never start."""
    return Reason(ReasonCode.NEVER, "machine", never(site, request.spec.ask.pes) or "")


def _stopped(queue: Queue) -> str:
    return f"queue {queue.name} is stopped: start queue {queue.name}"


def _no_pes(draft: Draft) -> Reason:
    return Reason(ReasonCode.NO_PES, "machine", _free(draft))


def _too_few(draft: Draft, request: Request) -> Reason:
    pes = request.spec.ask.pes
    asked = "1 PE" if pes == 1 else f"{pes} PEs"
    return Reason(ReasonCode.NO_PES, "machine", f"it asks for {asked}, {_free(draft)}")


def _free(draft: Draft) -> str:
    return f"{draft.free or 'none'} of {draft.site.pes()} PEs {'are' if draft.free > 1 else 'is'} free"
