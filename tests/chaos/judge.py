"""Holds a site to what its clients were told: ledger on one side, journal, rows, marks and files on the
other."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chaos.jobs import Mark, read_marks
from chaos.ledger import Ledger, Promise

from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.ids import Seq, array_of, is_array, member
from nqspy.model.requests import Reservation
from nqspy.model.site import Site
from nqspy.store.journal import SqliteJournal

NEVER_BEGAN = "the job did not start"
LATE = 1_000
"""ms by which a start may come after its promised time, and nothing is told (`expected_ends.MOMENT`)."""
_LIFTING = (ev.Held, ev.Moved, ev.Modified, ev.Deleted, ev.Ended)
SLACK = 1e-3
"""Part of a use that may be missing: the half-life is 100,000 years. With 100 years, 821 ms were missing: a
suspension charges use by estimate up to the present clock. After a step of a day the estimate is a day. What
it decays over that day stays missing when the true use corrects it."""


@dataclass(slots=True)
class Attempt:
    """One attempt by the journal: numbers of its events, and how it ended (``void``, ``lost``, ``rerun``,
    ``ended``; empty: it has not). ``date``: its request's date in queue when it was started."""

    number: int
    starting: int
    date: int = 0
    started: int = 0
    over: int = 0
    fate: str = ""
    carried: bool = False


@dataclass(slots=True)
class Story:
    """One request by the journal. ``submitted``: when; ``date``: its date in queue."""

    seq: Seq
    token: str
    submitted: int
    date: int
    attempts: list[Attempt] = field(default_factory=list)
    end: ev.Ended | ev.Deleted | None = None
    end_n: int = 0
    deleting: int = 0
    cpu: int = 0
    lines: list[str] = field(default_factory=list)


def _line(recorded: ev.Recorded) -> str:
    event: object = recorded.event
    if isinstance(event, ev.Submitted):
        event = f"Submitted(queue={event.queue}, after={event.spec.after})"
    return f"{recorded.n} at {recorded.at} {event}"[:260]


def _seqs(event: ev.Event) -> tuple[Seq, ...]:
    many: tuple[Seq, ...] = getattr(event, "seqs", ())
    one: Seq = getattr(event, "seq", 0)
    return many or ((one,) if one else ())


def _submitted(event: ev.Submitted) -> Iterator[tuple[Seq, str]]:
    """Yield a request and its token; of an array each index."""
    if event.spec.array is None:
        yield event.seq, event.spec.name
    else:
        for index in indices.each(event.spec.array.indices):
            yield member(event.seq, index), f"{event.spec.name}i{index}"


class History:
    """All that the journal says."""

    def __init__(self, events: Iterable[ev.Recorded]) -> None:
        self.events = list(events)
        self.stories: dict[Seq, Story] = {}
        self.restarts = 0
        for recorded in self.events:
            self._take(recorded)

    def _take(self, recorded: ev.Recorded) -> None:
        event, n = recorded.event, recorded.n
        if isinstance(event, ev.Submitted):
            for seq, token in _submitted(event):
                self.stories[seq] = Story(seq, token, recorded.at, recorded.at)
        elif isinstance(event, ev.DaemonStarted):
            self.restarts += 1
            for story in self.stories.values():
                if story.attempts and not story.attempts[-1].fate:
                    story.attempts[-1].carried = True
        for seq in self._concerned(event):
            if seq in self.stories:
                if not isinstance(event, ev.Redated):
                    self.stories[seq].lines.append(_line(recorded))
                self._tell(self.stories[seq], event, n)

    def _concerned(self, event: ev.Event) -> Iterator[Seq]:
        """Yield the requests of an event; of an array the indices that it deletes."""
        for seq in _seqs(event):
            if is_array(seq) and isinstance(event, ev.Deleted):
                members = [s.seq for s in self.stories.values() if array_of(s.seq) == seq and s.end is None]
                deleted = {member(seq, index) for index in indices.each(event.indices)}
                yield from (each for each in members if each in deleted or not deleted)
            else:
                yield seq

    def _tell(self, story: Story, event: ev.Event, n: int) -> None:
        match event:
            case ev.Starting():
                story.attempts.append(Attempt(event.attempt, n, story.date))
            case ev.Redated():
                story.date = event.date
            case ev.Started():
                story.attempts[-1].started = n
            case ev.Requeued():
                story.cpu += event.used.cpu
                self._over(story, n, _fate(event))
            case ev.Ended():
                story.cpu += event.used.cpu
                story.end, story.end_n = event, n
                self._over(story, n, "lost" if event.end_reason == "lost" else "ended")
            case ev.Deleted():
                story.end, story.end_n = event, n
            case ev.Deleting() if not event.rerun:
                story.deleting = n

    def _over(self, story: Story, n: int, fate: str) -> None:
        story.attempts[-1].over, story.attempts[-1].fate = n, fate


def _fate(event: ev.Requeued) -> str:
    if NEVER_BEGAN in event.text:
        return "void"
    if "its end was not seen" in event.text:
        return "lost"
    return "rerun" if event.text.startswith("rerun") else "not started"


class Judge:
    """Compares what clients were told with the journal; everything that is wrong goes into the ledger.

    A kind of judge has ``told``: lines that requests themselves wrote, by token; ``of``: what is wrong with
    one request, kind and text; and ``whole``: what is wrong with the site, kind, token and text.
    """

    def __init__(self, ledger: Ledger, history: History) -> None:
        self.ledger = ledger
        self.history = history
        self.by_token: dict[str, list[Story]] = defaultdict(list)
        for story in history.stories.values():
            self.by_token[story.token].append(story)

    def all(self) -> None:
        """Every rule for every request, then those of the whole site."""
        told = self.told()
        for token in {*self.ledger.promises, *self.by_token, *told}:
            for what, text in self.of(token):
                self.ledger.broken(what, token, text)
        for what, token, text in self.whole():
            self.ledger.broken(what, token, text)
        self.count()
        for token in {each.token for each in self.ledger.violations} - {""}:
            events = [line for story in self.by_token[token] for line in story.lines]
            self.ledger.stories[token] = self.ledger.story(token, events, told.get(token, []))

    def count(self) -> None:
        """Count attempts, ends and starts of the daemon."""
        for story in self.history.stories.values():
            for attempt in story.attempts:
                self.ledger.count(f"attempts {attempt.fate}")
            if story.end is not None:
                self.ledger.count(f"ended {getattr(story.end, 'end_reason', 'deleted')}")
        self.ledger.count("requests", len(self.history.stories))
        self.ledger.count("restarts", self.history.restarts)

    def standing(self, token: str, promise: Promise, acted: bool) -> Iterator[tuple[str, str]]:
        """What is wrong with the number of requests; ``acted``: it has left a trace."""
        stories = self.by_token[token]
        if len(stories) > 1:
            yield "twice", f"submitted {len(stories)} times: {[story.seq for story in stories]}"
        if promise.standing == "refused" and (stories or acted):
            yield "refused and there", "the client was told that nothing was changed"


class StormJudge(Judge):
    """Judges requests by the marks of their jobs, and the site."""

    def __init__(self, ledger: Ledger, history: History, site: Site) -> None:
        super().__init__(ledger, history)
        self.site = site
        self.marks: dict[str, list[Mark]] = defaultdict(list)
        for mark in read_marks(ledger.work):
            self.marks[mark.token].append(mark)
        self.fills = [s for s in ledger.strikes if s.what == "disk full"]

    def told(self) -> dict[str, list[str]]:
        return {
            token: [f"[{mark.at}] {mark.what} {mark.word}" for mark in marks]
            for token, marks in self.marks.items()
        }

    def whole(self) -> Iterator[tuple[str, str, str]]:
        """What is wrong with lists, promised starts, the journal and the accounts."""
        yield from self._lists()
        yield from self._starts_promised()
        for what, text in self._site():
            yield what, "", text

    def _starts_promised(self) -> Iterator[tuple[str, str, str]]:
        """A start that comes later than it was promised, and nobody was told why before."""
        kept: dict[Seq, Reservation] = {}
        for recorded in self.history.events:
            event = recorded.event
            if isinstance(event, ev.Reserved):
                self.ledger.count("starts promised", sum(each is not None for each in event.starts.values()))
                for seq, made in event.starts.items():
                    kept.pop(seq, None)
                    kept |= {seq: made} if made is not None and made.at is not None else {}
            elif isinstance(event, ev.Starting):
                made = kept.pop(event.seq, None)
                in_time = made is None or recorded.at <= (made.at or 0) + LATE
                self.ledger.count("promises kept", made is not None and in_time)
                self.ledger.count("promises late", made is not None and bool(made.late))
                if made is not None and not made.late and not in_time:
                    token = self.history.stories[event.seq].token
                    yield "promise", token, f"promised for {made.at}, starts {recorded.at}"
            else:
                for seq in _seqs(event) if isinstance(event, _LIFTING) else ():
                    kept.pop(seq, None)

    def of(self, token: str) -> Iterator[tuple[str, str]]:
        """What is wrong with one request."""
        promise, stories = self.ledger.promises.get(token), self.by_token[token]
        if promise is None:
            yield "nobody's", "a request or a mark that nobody submitted"
            return
        yield from self.standing(token, promise, bool(self.marks[token]))
        if promise.standing == "acknowledged" and promise.seq not in self.history.stories:
            yield "lost", f"{promise.id} was acknowledged and is unknown"
        for story in stories:
            if promise.standing == "acknowledged" and story.seq != promise.seq:
                yield "twice", f"told {promise.id}, found {story.seq}"
            yield from self._ran(promise, story)
            yield from self._ended(promise, story)
            yield from self._barred(promise, story)
            yield from self._waited(promise, story)

    # ------------------------------------------------------------ how often
    def _ran(self, promise: Promise, story: Story) -> Iterator[tuple[str, str]]:
        begins = [mark for mark in self.marks[promise.job.token] if mark.what == "begin"]
        sure = sum(attempt.fate == "ended" and self._was_begun(story) for attempt in story.attempts)
        maybe = sum(attempt.fate in ("ended", "lost", "rerun") for attempt in story.attempts)
        if not sure <= len(begins) <= maybe:
            fates = [attempt.fate for attempt in story.attempts]
            yield "ran wrongly often", f"{len(begins)} times; its attempts by the record: {fates}"
        if [attempt.number for attempt in story.attempts] != list(range(1, len(story.attempts) + 1)):
            yield "attempts", f"numbered {[attempt.number for attempt in story.attempts]}"
        if promise.job.options.get("rerunnable") is False and len(begins) > 1:
            yield "rerun", f"-r n, and it began {len(begins)} times"
        overlaps = [mark.word for mark in self.marks[promise.job.token] if mark.what == "overlap"]
        if overlaps:
            yield "two at once", f"an attempt began while process {overlaps} of an earlier one was there"

    def _was_begun(self, story: Story) -> bool:
        """Whether its last attempt must have left a mark: one that was ended by order may have been quicker
        than its own first line."""
        return isinstance(story.end, ev.Ended) and story.end.end_reason in ("exit", "wall_limit")

    # ------------------------------------------------------------ how it ended
    def _ended(self, promise: Promise, story: Story) -> Iterator[tuple[str, str]]:
        end, job = story.end, promise.job
        if end is None:
            yield "not ended", "it is still there"
            return
        if isinstance(end, ev.Deleted):
            if "delete" not in promise.asked:
                yield "deleted", f"nobody asked for it: {end}"
            return
        if "delete" in promise.asked and end.end_reason in ("deleted", "lost", "signal"):
            return
        if "delete" in promise.done and not story.deleting:
            yield "not deleted", f"the deletion was acknowledged: {end}"
        if end.end_reason == "lost":
            if job.options.get("rerunnable") is not False:
                yield "lost end", "lost, and not run again although it may be"
            return
        told = (end.end_reason, end.exit_status, end.exit_signal)
        want = (job.reason, job.status, job.signal)
        if told != want and (job.reason, end.end_reason) != ("wall_limit", "wall_limit"):
            yield "ended otherwise", f"{told}, expected {want}; {end.text}"
            return
        yield from self._output(promise, end)

    def _output(self, promise: Promise, end: ev.Ended) -> Iterator[tuple[str, str]]:
        paths = [self.ledger.work / "out" / promise.job.token]
        if end.stdout is not None and "stays in" in end.text:  # each shepherd that delivered it was killed
            paths.append(Path(end.stdout))  # one may have delivered it after that was said
        want = promise.job.output
        texts = [path.read_text() for path in paths if path.exists()]
        found = want if want in texts else next(iter(texts), None)
        if found == want or (self._was_full(promise) and want.startswith(found or "")):
            return
        size = "none" if found is None else f"{len(found)} bytes, {found[:40]!r}"
        yield "output", f"{size} instead of {len(want)} bytes {want[:40]!r}"

    def _was_full(self, promise: Promise) -> bool:
        """Whether the disk with the spool was full while it ran."""
        marks = self.marks[promise.job.token]
        first, last = (marks[0].at, marks[-1].at) if marks else (0, 0)
        return any(fill.since <= last and first <= fill.until for fill in self.fills)

    # ------------------------------------------------------------ when
    def _barred(self, promise: Promise, story: Story) -> Iterator[tuple[str, str]]:
        for bar in promise.bars:
            if bar.why == "deleted" and story.deleting:
                late = [a.number for a in story.attempts if a.starting > story.deleting]
                if late:
                    yield "began although deleted", f"attempts {late} after its deletion was journaled"
                continue
            for mark in self.marks[promise.job.token]:
                over = 1 << 62 if bar.until is None else bar.until
                if mark.what == "begin" and bar.since <= mark.at < over:
                    yield f"began although {bar.why}", f"at {mark.at}: barred [{bar.since}-{bar.until}]"

    def _waited(self, promise: Promise, story: Story) -> Iterator[tuple[str, str]]:
        if promise.after is None or not story.attempts:
            return
        token, word = promise.after
        [other] = self.by_token[token] or [None]
        first = story.attempts[0].starting
        if other is None or not _met(other, word, first):
            yield "dependency", f"it began (event {first}) before {token}:{word} had come about"
        mine, others = self.marks[promise.job.token], self.marks[token]
        if word != "start" and mine and others and others[-1].at > mine[0].at:
            yield "dependency", f"it began at {mine[0].at}, {token} was still there at {others[-1].at}"

    def _lists(self) -> Iterator[tuple[str, str, str]]:
        lines: dict[str, list[Promise]] = defaultdict(list)
        for promise in self.ledger.promises.values():
            if promise.line is not None and self.marks[promise.job.token]:
                lines[promise.line[0]].append(promise)
        for name, promises in lines.items():
            begun = sorted(promises, key=lambda p: self.marks[p.job.token][0].at)
            order = [promise.line[1] for promise in begun if promise.line]
            late = [p for n, p in enumerate(begun) if any(self._overtook(other, p) for other in begun[:n])]
            if late:
                yield "order", late[0].job.token, f"list {name} began in the order {order}"

    def _overtook(self, first: Promise, second: Promise) -> bool:
        """True if the first one began before the second one, behind which it stands in their list.

        The clock excuses it: the exit machine_gun dates what waits, and no attempt that has yet to begin.
        Where the clock was set back meanwhile, that puts the others forward.
        """
        if first.line is None or second.line is None or first.line[1] < second.line[1]:
            return False
        stories, others = self.by_token[first.job.token], self.by_token[second.job.token]
        return not any(_date(s) < min(s.submitted, _date(o)) for s in stories for o in others)

    # ------------------------------------------------------------ the whole
    def _site(self) -> Iterator[tuple[str, str]]:
        numbers = [recorded.n for recorded in self.history.events]
        if numbers != list(range(1, len(numbers) + 1)):
            yield "journal", "its events are not numbered without gaps"
        if self.site.requests:
            yield "left over", f"requests {sorted(self.site.requests)[:10]} have not ended"
        used = sum(story.cpu for story in self.history.stories.values())
        booked = sum(a.value for key, a in self.site.accounts.items() if key.startswith("g:"))
        users = sum(a.value for key, a in self.site.accounts.items() if key.startswith("u:"))
        if abs(used - booked) > SLACK * used + 1 or abs(booked - users) > SLACK * used + 1:
            yield "usage", f"records say {used} ms, groups {booked:.0f} ms, users {users:.0f} ms"

    def count(self) -> None:
        """Count what was adopted and requeued too, and the jobs that began."""
        super().count()
        for story in self.history.stories.values():
            for attempt in story.attempts:
                self.ledger.count("adopted", attempt.carried and attempt.fate == "ended")
                again = attempt.fate in ("void", "lost", "rerun") and attempt.over != story.end_n
                self.ledger.count("requeued", again)
        self.ledger.count("ran", sum(m.what == "begin" for marks in self.marks.values() for m in marks))


def _date(story: Story) -> int:
    """Return the date in queue with which its first attempt was started that began."""
    return next((attempt.date for attempt in story.attempts if attempt.fate != "void"), story.date)


def _met(other: Story, word: str, before: int) -> bool:
    """Whether the prerequisite had come to what was awaited before that event."""
    if word == "start":
        return any(0 < attempt.started < before for attempt in other.attempts)
    if other.end is None or other.end_n > before:
        return False
    good = isinstance(other.end, ev.Ended) and (other.end.end_reason, other.end.exit_status) == ("exit", 0)
    return {"any": True, "ok": good, "fail": not good}[word]


def open_site(database: Path) -> tuple[History, Site]:
    """The journal's history and the rows' site of a home whose daemon was stopped."""
    with SqliteJournal.open(database) as journal:
        return History(journal.events()), journal.load()
