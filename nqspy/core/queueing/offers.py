"""What jobselect exits say of the candidates of one pass: whom to ask, whom not again, how far an answer
reaches.

A candidate is asked about only if what is known of it may not hold any more (`ports.Exits.known`), and at
most ``set global offers_per_pass`` are asked about in a pass. Where that does not suffice for a line, the
next passes go on where this one stopped, whatever happens meanwhile: of those refused before, the best are
asked about again, with at most half of the offers, the others count as refused until the end of the line was
reached.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from nqspy.core import alike, sight
from nqspy.core.draft import Draft
from nqspy.core.queueing.candidate_order import CandidateOrder
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reach, Reason, ReasonCode, told
from nqspy.model.requests import Request
from nqspy.ports import Answer, RequestView

REFUSED: Mapping[str, ReasonCode] = {
    "refuse": ReasonCode.EXIT,
    "hold_line": ReasonCode.EXIT,
    "never": ReasonCode.NEVER,
}
"""The code of the reason that each refusing answer gives."""


SOON = 1_000
"""ms after which an exit is asked again at the earliest, whatever instant it names: passes must not spin."""


Refusal = tuple[Request, Answer, int, int | None, int]
"""A candidate that was refused in this pass: with what, its place among those offered of its queue, what it
reaches (a place in `Offers.reach`), and how much the pass had proposed then. A pass may make thousands."""


class Walk:
    """The walk along one line: ``most`` candidates may be asked about. ``cut``: it ended before the line did;
    ``skipped``: somebody counted as refused who was not asked about again."""

    def __init__(self, most: int, before: Mapping[Seq, Answer]) -> None:
        self.most, self.before = most, before
        self.cut = self.skipped = False
        self._again = most // 2

    def asks(self, seq: Seq) -> bool:
        """Whether it is to be asked about; if not, what it was told before counts, or the walk is cut."""
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
    """Refusals that reach others, by queue and what these are alike in."""

    def __init__(self) -> None:
        self._alike: dict[tuple[str, ...], None] = {}
        self._answers: dict[tuple[str, alike.Fields], Answer] = {}
        self._bounded: list[tuple[str, alike.Fields, Answer]] = []

    def note(self, request: Request, answer: Answer | None) -> None:
        """That was answered about a request."""
        if answer is None or answer.alike is None:
            return
        fields = alike.fields_of(request, answer.alike)
        if answer.within:
            self._bounded.append((request.queue, fields, answer))
        else:
            self._alike[answer.alike] = None
            self._answers[request.queue, fields] = answer

    def of(self, request: Request) -> Answer | None:
        """What reaches a request; None: nothing does."""
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
    """The offers of one pass. ``asking``: there is somebody to ask; ``forces``: whom it may force; ``reach``:
    how far refusals reach; ``due``: when the first refusal that named an instant holds no more."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self._exits = draft, draft.exits
        self.asking = draft.exits.has("jobselect")
        self.forces = self.asking and draft.exits.forces()
        self.reach: list[Reach | None] = []
        before = draft.exits.recall(draft.site) if self.asking else {}
        self._rounds = {queue: self._holding(refused) for queue, refused in before.items()}
        self.due: Instant | None = None
        self._walks: dict[str, Walk] = {}
        self._refused: list[Refusal] = []
        self._said: dict[tuple[str, str, str, Instant | None], Reason] = {}
        self._domains: dict[str, str] = {}

    def _holding(self, refused: Mapping[Seq, Answer]) -> Mapping[Seq, Answer]:
        """Return the refusals that hold still at the instant of the pass."""
        return {seq: answer for seq, answer in refused.items() if answer.holds(self._draft.now)}

    # ------------------------------------------------------------ asking

    def walk(self, queue: str, most: int) -> Walk:
        """A walk along the line of a queue begins."""
        walk = self._walks[queue] = Walk(most, self._rounds.get(queue, {}))
        return walk

    def is_known(self, request: Request) -> bool:
        """True if it need not be asked about."""
        known = self._exits.known(request.seq)
        return known is not None and (known.answer is None or known.answer.holds(self._draft.now))

    def of(self, request: Request) -> Answer | None:
        """What jobselect says of a candidate, or would say again."""
        if not self.asking:
            return None
        seen = sight.seen(request, self._draft)
        answer = self._ask(request, seen)
        self._draft.offered[request.queue].append((seen, answer))
        return answer

    def _ask(self, request: Request, seen: RequestView) -> Answer | None:
        draft, queue = self._draft, request.queue
        if queue not in self._domains:
            self._domains[queue] = draft.site.domain_of(queue).name
        draft.asked = self._domains[queue]
        return self._exits.jobselect(seen, self._draft.view)

    def former(self, request: Request, answer: Answer) -> None:
        """It was refused before in this round and counts so still."""
        self._draft.offered[request.queue].append((sight.seen(request, self._draft), answer))

    # ------------------------------------------------------------ refusals

    def refuse(self, line: CandidateOrder, request: Request, answer: Answer) -> None:
        """Notes why a candidate is kept back, and passes over those whom the answer reaches."""
        draft, reason, place = self._draft, self._reason(answer), None
        draft.own[request.seq] = reason
        if answer.alike is not None:
            fields = alike.fields_of(request, answer.alike)
            place = len(self.reach)
            self.reach.append(Reach(request.queue, fields, reason, answer.within))
            line.pass_over(alike.rows(draft.site, line.columns, fields, answer.within))
        offered = len(draft.offered[request.queue]) - 1
        self._refused.append((request, answer, offered, place, draft.proposals))

    def _reason(self, answer: Answer) -> Reason:
        said = (answer.verdict, answer.who, answer.text, answer.until)
        if said not in self._said:
            self._said[said] = told(REFUSED[answer.verdict], answer.who, answer.text, answer.until)
            if answer.until is not None:
                at = max(answer.until, Instant(self._draft.now + SOON))
                self.due = at if self.due is None else min(self.due, at)
        return self._said[said]

    def ask_again(self) -> list[Request]:
        """Asks again about those whose refusal may rest on what the pass proposed later, so that the reason
        is that of the state after it. Whom a new answer reaches is not asked about: that holds for the rest
        of the pass. Answers whom it would let pass now."""
        freed, said = [], Reached()
        for each in self._refused:
            request, _, place, _, proposals = each
            if proposals == self._draft.proposals:
                continue
            known = self._exits.known(request.seq)
            if known is None or known.answer is None:
                seen = sight.seen(request, self._draft)
                answer = said.of(request)
                if answer is None:
                    answer = self._ask(request, seen)
                    said.note(request, answer)
                self._draft.offered[request.queue][place] = (seen, answer)
                if answer is None or answer.verdict == "force":
                    freed.append(request)
                self._renew(each, answer)
        return freed

    def _renew(self, each: Refusal, answer: Answer | None) -> None:
        """Another answer of one; whom a refusal of the same ones reached has its reason too. Those whom the
        new one does not reach were passed over for the old one, which stays theirs."""
        request, before, _, reach, _ = each
        if answer is None or answer.verdict == "force":
            if reach is not None:
                self.reach[reach] = None
            return
        reason = self._draft.own[request.seq] = self._reason(answer)
        if reach is not None and (answer.alike, answer.within) == (before.alike, before.within):
            reached = self.reach[reach]
            assert reached is not None
            self.reach[reach] = replace(reached, reason=reason)

    # ------------------------------------------------------------ what stays

    def go_on(self) -> bool:
        """Keeps what the next pass must know; whether it has to go on where this one stopped."""
        if not self.asking:
            return False
        rounds: dict[str, dict[Seq, Answer]] = {}
        for name, walk in self._walks.items():
            if walk.cut:
                mine = {r.seq: answer for r, answer, *_ in self._refused if r.queue == name}
                rounds[name] = {**walk.before, **mine}
        kept = self._exits.keep(rounds)
        return kept and any(walk.cut or walk.skipped for walk in self._walks.values())
