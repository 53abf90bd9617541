"""Holds a site of applications to what its programs wrote down themselves, and to what their callers were
told."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from chaos.gang_people import Call
from chaos.gang_programs import Trace, Wish, traces
from chaos.jobs import read_marks
from chaos.judge import History, Judge, Story
from chaos.ledger import Ledger, Promise

from nqspy.model import events as ev
from nqspy.model.ids import Seq

SLACK = 50
"""ms between the time that a program reads and that which the journal has, at most."""
PAST = 124
STILL = 30_000
"""ms for which a program may show nothing though its attempt is not suspended, on a machine that is busy."""
LATE = 60
"""Seconds from its end by the journal after which a caller counts as told late."""


@dataclass(slots=True)
class Hold:
    """PEs that an attempt had, from when to when (ms; None: to the end)."""

    seq: Seq
    attempt: int
    pes: tuple[int, ...]
    since: int
    until: int | None = None


@dataclass(slots=True)
class Runs:
    """When each attempt was said to run, by the journal alone: from when to when (ms)."""

    spans: dict[tuple[Seq, int], list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    _since: dict[Seq, tuple[int, int]] = field(default_factory=dict)

    def add(self, recorded: ev.Recorded) -> None:
        match recorded.event:
            case ev.Starting(seq, attempt) | ev.Resumed(seq, attempt):
                self._since[seq] = (attempt, recorded.at)
            case ev.Suspended(seq) | ev.Exiting(seq) | ev.Ended(seq) | ev.Requeued(seq) | ev.Deleted(seq):
                if seq in self._since:
                    attempt, since = self._since.pop(seq)
                    self.spans[seq, attempt].append((since, recorded.at))

    def longest_silence(self, key: tuple[Seq, int], ticks: list[int]) -> int:
        """The longest time (ms) in which an attempt was said to run and its program showed nothing."""
        longest = 0
        for since, until in self.spans[key]:
            seen = [since, *(at for at in ticks if since < at < until), until]
            longest = max(longest, *(later - at for at, later in pairwise(seen)))
        return longest


@dataclass(slots=True)
class Holds:
    """Who had which PE when, by the journal alone; ``twice``: what was given to more than ``depth``."""

    depth: int = 1
    all: dict[tuple[Seq, int], list[Hold]] = field(default_factory=lambda: defaultdict(list))
    twice: list[tuple[Seq, str]] = field(default_factory=list)
    moved: int = 0
    _on: dict[int, set[Seq]] = field(default_factory=lambda: defaultdict(set))
    _ending: set[Seq] = field(default_factory=set)
    _coming_up: bool = False
    _found: list[Hold] = field(default_factory=list)

    def add(self, recorded: ev.Recorded) -> None:
        """One event more. What a daemon finds as it comes up has the time at which it began to look: it may
        have run until something is decided."""
        if isinstance(recorded.event, ev.DaemonStarted):
            self._coming_up = True
        elif isinstance(recorded.event, ev.Submitted | ev.Decided | ev.Starting | ev.Resumed):
            for hold in self._found:
                hold.until = recorded.at
            self._coming_up, self._found = False, []
        match recorded.event:
            case ev.Starting(seq, attempt, pes):
                self._give(seq, attempt, pes, recorded)
            case ev.Resumed(seq, attempt):
                self._go_on(recorded.event, recorded)
            case ev.Deleting(seq, attempt):
                self._ending.add(seq)
                self._end(seq, attempt, recorded.at)
            case ev.MovedOut(seq, attempt):
                self._release(seq, recorded.at)
                if seq in self._ending:  # it was asked to end while it gave way
                    self._end(seq, attempt, recorded.at)
            case ev.Exiting(seq) | ev.Ended(seq) | ev.Requeued(seq) | ev.Deleted(seq):
                self._release(seq, recorded.at)

    def _give(self, seq: Seq, attempt: int, pes: tuple[int, ...], recorded: ev.Recorded) -> None:
        for pe in pes:
            self._on[pe].add(seq)
            if len(self._on[pe]) > self.depth:
                self.twice.append((seq, f"event {recorded.n}: PE {pe} has {self._on[pe]}"))
        self.all[seq, attempt].append(Hold(seq, attempt, pes, recorded.at))

    def _go_on(self, event: ev.Resumed, recorded: ev.Recorded) -> None:
        last = self.all[event.seq, event.attempt][-1]
        if last.until is not None:
            pes = event.pes or last.pes
            self.moved += pes != last.pes
            self._give(event.seq, event.attempt, pes, recorded)

    def _end(self, seq: Seq, attempt: int, at: int) -> None:
        """One that gave way is woken to end itself, within the grace time and beside who has its PEs."""
        if self.all[seq, attempt][-1].until is not None:
            self.all[seq, attempt].append(Hold(seq, attempt, (), at))

    def _release(self, seq: Seq, at: int) -> None:
        for holders in self._on.values():
            holders.discard(seq)
        for (number, _), held in self.all.items():
            if number == seq and held[-1].until is None:
                held[-1].until = at
                if self._coming_up:
                    self._found.append(held[-1])

    def covers(self, trace: Trace) -> bool:
        """Whether the program may have run then."""
        held = self.all.get((Seq(trace.seq), trace.attempt), [])
        return any(h.since - SLACK <= trace.at <= (h.until or trace.at) + SLACK for h in held)


class GangJudge(Judge):
    """Judges applications and their callers by the traces of programs."""

    def __init__(self, ledger: Ledger, history: History, calls: list[Call], depth: int = 1) -> None:
        super().__init__(ledger, history)
        self.calls = {each.promise.job.token: each for each in calls}
        self.traces = traces(ledger.work)
        self.returned = {m.token: int(m.word) for m in read_marks(ledger.work) if m.what == "rc"}
        self.holds, self.runs = Holds(depth), Runs()
        self.ends: Counter[Seq] = Counter()
        for recorded in history.events:
            self.holds.add(recorded)
            self.runs.add(recorded)
            if isinstance(recorded.event, ev.Ended | ev.Deleted):
                self.ends[recorded.event.seq] += 1

    def told(self) -> dict[str, list[str]]:
        return {t: [str(each) for each in found if each.what != "tick"] for t, found in self.traces.items()}

    def of(self, token: str) -> Iterator[tuple[str, str]]:
        """What is wrong with one token."""
        promise, stories = self.ledger.promises.get(token.partition("-")[0]), self.by_token[token]
        if promise is None:
            yield "nobody's", "nobody submitted it"
            return
        yield from self.standing(token, promise, token in self.traces)
        if promise.standing == "acknowledged" and not stories and "-" not in token:
            yield "lost", f"{promise.id} was acknowledged and is unknown"
        for story in stories:
            if self.ends[story.seq] != 1:
                yield "ends", f"it ended {self.ends[story.seq]} times by the journal"
            if story.end is not None:
                yield from self._ended(token, promise, story)
        yield from self._ran(token, stories)
        yield from self._held(token)
        yield from self._went_on(token)

    def whole(self) -> Iterator[tuple[str, str, str]]:
        """PEs given twice; lost ends of attempts whose shepherd was not killed."""
        for seq, text in self.holds.twice:
            yield "a PE given twice", self.history.stories[seq].token, text
        lost = sum(each.fate == "lost" for story in self.history.stories.values() for each in story.attempts)
        killed = self.ledger.counts["fault shepherd killed"]
        if lost > killed:
            yield "lost", "", f"{lost} ends were lost, {killed} shepherds killed"

    # ------------------------------------------------------------ how often, and where
    def _ran(self, token: str, stories: list[Story]) -> Iterator[tuple[str, str]]:
        """Each attempt of which the journal says that it ran began once, no other ever; only those whose
        requests may run again have several."""
        begins = Counter(
            (trace.seq, trace.attempt) for trace in self.traces.get(token, []) if trace.what == "begin"
        )
        fates = {(story.seq, each.number): each.fate for story in stories for each in story.attempts}
        for (seq, attempt), number in begins.items():
            if number > 1:
                yield "run twice", f"attempt {attempt} of {seq} began {number} times"
            if fates.get((Seq(seq), attempt)) not in ("", "ended", "lost", "rerun"):
                yield "run twice", f"attempt {attempt} of {seq} began; by the record: {fates}"
        if (token in self.calls or "-" in token) and len(begins) > 1:
            yield "run twice", f"an application, and it began {dict(begins)}"
        script = self.ledger.promises[token.partition("-")[0]].job.kind == "script" and "-" not in token
        if self._nobody_there(token):
            return
        for story in [] if script else stories:
            done = isinstance(story.end, ev.Ended) and story.end.end_reason in ("exit", "wall_limit")
            if done and not begins:
                yield "not run", f"it ended and has never begun: {story.end}"

    def _nobody_there(self, token: str) -> bool:
        """Whether its caller was ended: one whose turn came at that moment ends 1 and has not begun."""
        return bool(token in self.calls and self.calls[token].struck) or self._script_died(token)

    def _held(self, token: str) -> Iterator[tuple[str, str]]:
        """A program ran only while its PEs were its own; they are those it was told."""
        outside = [trace for trace in self.traces.get(token, []) if not self.holds.covers(trace)]
        if outside:
            each = outside[0]
            held = self.holds.all.get((Seq(each.seq), each.attempt), [])
            yield "ran without its PEs", f"{len(outside)} times, first {each}; held {held}"
        for each in self.traces.get(token, []):
            held = self.holds.all.get((Seq(each.seq), each.attempt))
            if held and each.what == "begin" and held[0].pes != each.pes:
                yield "other PEs", f"told {each.pes}, given {held[0].pes}"

    def _went_on(self, token: str) -> Iterator[tuple[str, str]]:
        """A program that was said to run did so."""
        ticks: dict[tuple[Seq, int], list[int]] = defaultdict(list)
        for trace in self.traces.get(token, []):
            ticks[Seq(trace.seq), trace.attempt].append(trace.at)
        for key, found in ticks.items():
            if (silence := self.runs.longest_silence(key, sorted(found))) > STILL:
                yield "frozen", f"attempt {key[1]} was said to run and showed nothing for {silence / 1000} s"

    # ------------------------------------------------------------ how it ended
    def _wish(self, token: str, promise: Promise) -> Wish | None:
        if token in self.calls:
            return self.calls[token].wish
        found: Wish | None = promise.inner[int(token.split("-")[1])] if "-" in token else promise.wish
        return found

    def _ended(self, token: str, promise: Promise, story: Story) -> Iterator[tuple[str, str]]:
        end, want = story.end, self._wish(token, promise)
        struck = bool(token in self.calls and self.calls[token].struck)
        free = struck or "delete" in promise.asked or self._script_died(token)
        if isinstance(end, ev.Deleted):
            if not free:
                yield "deleted", f"nobody asked for it: {end}"
        elif isinstance(end, ev.Ended) and end.end_reason == "lost":
            if token not in self.calls and "-" not in token and not free:
                yield "lost end", "lost, and not run again although it may be"
        elif isinstance(end, ev.Ended):
            wanted = _wanted(want)
            told = (end.end_reason, end.exit_status if end.end_reason == "exit" else end.exit_signal)
            if told != wanted and not free and not (wanted[0] == end.end_reason == "wall_limit"):
                yield "ended otherwise", f"{told}, expected {wanted}; {end.text}"
        if end is not None and not struck:
            yield from self._told(token, end)

    def _script_died(self, token: str) -> bool:
        """Whether the request around it was ended or lost in that attempt: its caller with it."""
        base, _, rest = token.partition("-")
        number = int(rest.rpartition("a")[2]) if rest else 0
        return bool(rest) and any(_cut_short(story, number) for story in self.by_token[base])

    def _told(self, token: str, end: ev.Ended | ev.Deleted) -> Iterator[tuple[str, str]]:
        """What its caller was told is what happened."""
        call = self.calls.get(token)
        status = call.status if call is not None else self.returned.get(token)
        if status is None or not isinstance(end, ev.Ended):
            return
        if end.end_reason == "exit":
            right = status == end.exit_status
        elif end.end_reason == "wall_limit":
            right = status == PAST
        elif end.end_reason == "signal":
            right = status == 128 + (end.exit_signal or 0)
        else:  # one that came to its end told its caller so; its shepherd may be killed before it notes it
            ended = any(trace.what == "end" for trace in self.traces.get(token, []))
            right = status != 0 or (end.end_reason == "lost" and ended)
        if not right:
            yield "told otherwise", f"mpprun ended {status}: {end}"

    def count(self) -> None:
        """Count what gave way and began too, and callers that were told late."""
        super().count()
        count, events = self.ledger.count, [recorded.event for recorded in self.history.events]
        count("preempted", sum(isinstance(event, ev.MovedOut) for event in events))
        count("came back elsewhere", self.holds.moved)
        for found in self.traces.values():
            count("began", sum(trace.what == "begin" for trace in found))
            count("moments seen to run", len(found))
        for call in self.calls.values():
            ended = [s.end_n for s in self.by_token[call.promise.job.token] if s.end is not None]
            if ended and not call.struck:
                at = self.history.events[ended[0] - 1].at / 1000
                count("callers told late", call.over - at > LATE)


def _cut_short(story: Story, number: int) -> bool:
    """Whether that attempt ended otherwise than by itself."""
    itself = isinstance(story.end, ev.Ended) and story.end.end_reason == "exit"
    return any(each.number == number and (each.fate != "ended" or not itself) for each in story.attempts)


def _wanted(want: Wish | None) -> tuple[str, int | None]:
    if want is None:
        return "exit", 0
    if want.kind == "late":
        return "wall_limit", None
    return ("signal", 9) if want.kind == "killed" else ("exit", want.status)
