"""The offers to `jobselect` exits: which candidates they are asked about, and how far an answer reaches.

Exits are asked before the gate, as they may force a start. A pass makes at most ``set global
offers_per_pass`` offers. Where that does not suffice for a queue, the next passes go on where this one
stopped: of the candidates that were refused before, the best are offered again, with at most half of the
offers; the others count as refused until the end of the queue was reached. These passes are a *round*.
"""

from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import replace

from nqspy.core import alike, views
from nqspy.core.draft import Draft
from nqspy.core.fallback.policy import Skip
from nqspy.core.gate.gate import Gate
from nqspy.core.order.candidates import Candidates
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reach, Reason, ReasonCode, quoted
from nqspy.model.requests import Request, State
from nqspy.ports import Answer, OfferRound, RequestView

REFUSED: Mapping[str, ReasonCode] = {
    "refuse": ReasonCode.EXIT,
    "hold_line": ReasonCode.EXIT,
    "never": ReasonCode.NEVER,
}
"""The code of the reason that each refusing answer gives."""
SOON = 1_000
"""Least time (ms) until an exit is asked again, whatever instant it names, so that passes do not spin."""
SEEK = 10
"""Most candidates that are offered, after all that could start, to learn if one lacks only PEs."""

Refusal = tuple[Request, Answer, int, int | None, int]
"""A candidate that was refused in this pass: the answer, its place among the offers of its queue, its reach
(a place in `Offers.reach`), and the number of proposals of the pass then. A pass may make thousands."""


class Walk:
    """Offers to exits for one queue, or for the class queues ``names`` of a domain. ``most``: offers that
    remain. ``before``: answers of earlier passes of the round. ``cut``: the offers ran out before the
    candidates did. ``skipped``: an earlier answer was used without asking again."""

    def __init__(self, names: Collection[str], most: int, before: Mapping[Seq, Answer]) -> None:
        self.names, self.most, self.before = names, most, before
        self.cut = self.skipped = False
        self._again = most // 2

    def asks(self, request: Request) -> bool:
        """True if a candidate is to be examined now; this uses up an offer unless the candidate is suspended.
        False: its earlier answer is used, or the offers ran out (``cut``)."""
        seq = request.seq
        if request.state is State.SUSPENDED:
            return True
        if seq in self.before:
            self.skipped = self.skipped or self._again <= 0
            if self._again <= 0:
                return False
            self._again -= 1
        elif self.most <= 0:
            self.cut = True
            return False
        self.most -= 1
        return True


class Reached:
    """Answers at the end of a pass (`Offers.ask_again`) that apply to similar requests of the queue too."""

    def __init__(self) -> None:
        self._alike: dict[tuple[str, ...], None] = {}
        self._answers: dict[tuple[str, alike.Fields], Answer] = {}
        self._bounded: list[tuple[str, alike.Fields, Answer]] = []

    def note(self, request: Request, answer: Answer | None) -> None:
        """Record an exit's answer about a request, if it applies to similar requests too."""
        if answer is None or answer.alike is None:
            return
        fields = alike.fields_of(request, answer.alike)
        if answer.within:
            self._bounded.append((request.queue, fields, answer))
        else:
            self._alike[answer.alike] = None
            self._answers[request.queue, fields] = answer

    def of(self, request: Request) -> Answer | None:
        """Return a recorded answer that applies to this request too; None: no answer does."""
        for names in self._alike:
            found = self._answers.get((request.queue, alike.fields_of(request, names)))
            if found is not None:
                return found
        for queue, fields, answer in self._bounded:
            inside = queue == request.queue and alike.lies_within(request, answer.within)
            if inside and fields == alike.fields_of(request, answer.alike or ()):
                return answer
        return None


class Offers:
    """Offers to `jobselect` exits in one pass. ``asking``: there is such an exit; ``forces``: it may force
    starts. ``reach``: which other requests each refusal covers. ``due``: first instant from which an exit may
    answer otherwise. ``walks``: `Walk` of each queue. ``assumed``: domains in which some request is assumed
    to lack only PEs, as exits refused the first ones."""

    def __init__(self, draft: Draft, gate: Gate) -> None:
        self._draft, self._gate, self._exits = draft, gate, draft.exits
        self.asking = draft.exits.has("jobselect")
        self.forces = self.asking and draft.exits.forces()
        self.reach: list[Reach | None] = []
        self.due: Instant | None = None
        self.assumed: set[str] = set()
        self._rounds = draft.exits.rounds(draft.site) if self.asking else {}
        self._offers_left = draft.site.settings.global_.offers_per_pass
        self._is_divided = draft.site.is_divided()
        self.walks: dict[str, Walk] = {}
        self._refused: list[Refusal] = []
        self._reasons: dict[tuple[str, str, str, Instant | None], Reason] = {}

    # ------------------------------------------------------------ the rows of a queue

    def begin(self, candidates: Candidates, queues: int) -> None:
        """Give a queue one of ``queues`` equal parts of the offers that remain in this pass."""
        queue = candidates.queue.name
        if self.asking and queue not in self.walks:
            part = -(-self._offers_left // queues)
            self._offers_left -= part
            before = self._rounds[queue].refused if queue in self._rounds else {}
            now = self._draft.now
            before = {seq: each for seq, each in before.items() if each.holds(now)}
            self.walks[queue] = Walk(candidates.names, part, before)

    def next_rows(self, candidates: Candidates, policy: Skip) -> Iterator[int]:
        """Yield the rows to offer to exits in order, even those that limits hold, until no more can start."""
        walk, draft = self.walks[candidates.queue.name], self._draft
        rows = policy.all_rows(candidates, walk.most + 1)
        version: object = None
        while not walk.cut and policy.blocker is None:
            if version != (now := (draft.proposals, candidates.changes, len(draft.short_domains))):
                if self._is_closed(policy) or self._is_over(candidates, policy):
                    break
                version = now
            if (row := next(rows, None)) is None:
                break
            request = candidates.request(row)
            if walk.asks(request):
                yield row
            elif not walk.cut:
                candidates.examine(row)
                answer = walk.before[request.seq]
                self._draft.offered[request.queue].append((views.request_view(request, self._draft), answer))
                self.refuse(candidates, request, answer)
        self._offers_left += walk.most
        if policy.blocker is None and not walk.cut:
            yield from self._seek(candidates, policy)
        yield from policy.past_blocker(candidates)
        if not walk.cut:  # a reservation that is due and cannot be kept is reported
            due = map(candidates.row_of, self._gate.reserved.due(candidates.queue.name))
            yield from filter(candidates.is_remaining, due)

    def _seek(self, candidates: Candidates, policy: Skip) -> Iterator[int]:
        """Yield at most `SEEK` rows to learn if exits let one pass that lacks only PEs. If they do not and
        rows are left, assume that one of these does (``assumed``)."""
        if self.forces or self._is_closed(policy):
            return
        name = candidates.queue.name
        for _ in range(SEEK):
            row = None if self._draft.is_short(name) else policy.not_limited(candidates)
            if row is None:
                break
            yield row
        if not self._draft.is_short(name) and policy.not_limited(candidates) is not None:
            self.assumed.add(self._draft.board(name).domain.name)

    def _is_closed(self, policy: Skip) -> bool:
        """Return True if a limit holds the whole queue, and no exit may force a start past it."""
        return not self.forces and policy.closed

    def _is_over(self, candidates: Candidates, policy: Skip) -> bool:
        """True if nothing more of a queue can start, nor get a reserved start or a block of PEs."""
        if policy.may_reserve(candidates):
            return False
        if self.forces:
            name = candidates.queue.name
            return self._draft.is_short(name) and not candidates.any_within(self._draft.room(name))
        return not policy.any_startable(candidates)

    # ------------------------------------------------------------ asking

    def of(self, request: Request) -> Answer | None:
        """Ask `jobselect` exits about a candidate; return the answer. None: they leave it to the rules, or
        were not asked (there is no such exit, or the candidate is suspended)."""
        if not self.asking or request.state is State.SUSPENDED:
            return None
        view = views.request_view(request, self._draft)
        answer = self._ask(request, view)
        self._draft.offered[request.queue].append((view, answer))
        return answer

    def _ask(self, request: Request, view: RequestView) -> Answer | None:
        if self._is_divided:
            self._draft.asked = self._draft.board(request.queue).domain.name
        return self._exits.jobselect(view, views.view_of(self._draft))

    def refuse(self, candidates: Candidates, request: Request, answer: Answer) -> bool:
        """Record an exit's refusal of a request, and skip the rows to which it applies too. The refused
        requests lose reservations that are due. Return True if the refusal closes the queue."""
        draft, reserved, place = self._draft, self._gate.reserved, None
        due = [request] if reserved.is_due(request) else []
        draft.reasons[request.seq] = reason = self._reason(answer)
        if answer.alike is not None:
            fields = alike.fields_of(request, answer.alike)
            place, reach = len(self.reach), Reach(request.queue, fields, reason, answer.within)
            self.reach.append(reach)
            others = [each for each in reserved.due(request.queue) if alike.covers(reach, each)]
            due += [each for each in others if candidates.is_remaining(candidates.row_of(each))]
            candidates.pass_over(reach)
        self._refused.append((request, answer, len(draft.offered[request.queue]) - 1, place, draft.proposals))
        for each in due:
            self._gate.drop(each, f"{answer.who}: {answer.text}")
        return answer.verdict == "hold_line"

    def _reason(self, answer: Answer) -> Reason:
        key = (answer.verdict, answer.who, answer.text, answer.until)
        if key not in self._reasons:
            self._reasons[key] = quoted(REFUSED[answer.verdict], answer.who, answer.text, answer.until)
            if answer.until is not None:
                at = max(answer.until, Instant(self._draft.now + SOON))
                self.due = at if self.due is None else min(self.due, at)
        return self._reasons[key]

    # ------------------------------------------------------------ the end of the pass

    def ask_again(self) -> list[Request]:
        """Ask exits again about candidates that they refused before the last proposals, so that reasons fit
        the end of the pass; a new answer counts for those that it covers. Return those that may start."""
        freed, reached = [], Reached()
        for each in self._refused:
            request, before, place, reach, proposals = each
            if proposals == self._draft.proposals:
                continue
            view = views.request_view(request, self._draft)
            answer = reached.of(request)
            if answer is None:
                answer = self._ask(request, view)
                reached.note(request, answer)
            self._draft.offered[request.queue][place] = (view, answer)
            if answer is None or answer.verdict == "force":
                freed.append(request)
                if reach is not None:
                    self.reach[reach] = None
                continue
            reason = self._draft.reasons[request.seq] = self._reason(answer)
            # Requests that only the old answer reaches were passed over for it, and keep its reason.
            if reach is not None and (answer.alike, answer.within) == (before.alike, before.within):
                alike = self.reach[reach]
                assert alike is not None
                self.reach[reach] = replace(alike, reason=reason)
        return freed

    def go_on(self) -> bool:
        """Store the rounds of offers that are not finished. Return True if the next pass must follow at once:
        a round goes on, or this pass used answers from before a change."""
        if not self.asking:
            return False
        rounds, site, again = dict[str, OfferRound](), self._draft.site, False
        for name, walk in self.walks.items():
            since = self._rounds[name].since if name in self._rounds else site.changed
            if walk.cut:
                refused = (each[:2] for each in self._refused)
                mine = {each.seq: answer for each, answer in refused if each.queue in walk.names}
                rounds[name] = OfferRound(since, {**walk.before, **mine})
            has_changed = since != site.changed or self._draft.proposals > 0
            again = again or walk.cut or (walk.skipped and has_changed)
        return self._exits.store(site, rounds) and again
