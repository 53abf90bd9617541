"""A site with a long, random but legal history, and what it means that two sites are equal."""

import hashlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine import harness

from nqspy.core import features as features  # declares the features' settings
from nqspy.engine import lifecycle
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.arrays import ArraySpec
from nqspy.model.cause import Cause
from nqspy.model.ids import Instant, array_key, member
from nqspy.model.machine import ForeignJob
from nqspy.model.requests import Ask, Dependency, MailWishes, Output, Request, Reservation, Spec, State, Used
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.ports import Batch
from nqspy.store.journal import SqliteJournal
from nqspy.store.memory import MemoryJournal
from nqspy.store.reader import Reader

QUEUES = ("express", "night", "weekend")
OWNERS = ("anne", "ben", "cleo", "dörte")
BEFORE_START = (State.QUEUED, State.WAITING, State.HELD)


def observable(site: Site) -> dict[str, Any]:
    """Return all visible data of a site, accounts in their order too."""
    more = {
        "whole settings": site.settings,
        "types": {seq: type(r.state) for seq, r in sorted(site.requests.items())},
        "accounts": list(site.accounts.items()),
        "next_date": site.next_date(),
    }
    return harness.observable(site) | more


class Story:
    """Feeds random events to a site and a journal, batch by batch."""

    def __init__(self, journal: Any, seed: int = 1) -> None:
        self.journal = journal
        self.site = Site()
        self.history: list[ev.Recorded] = []
        self.ended: dict[int, tuple[ev.Event, int]] = {}
        self.blobs: dict[str, bytes] = {}
        self.batch = Batch()
        self._random = random.Random(seed)
        self._at = 1_000_000
        for event in self._opening():
            self.tell(event)
        self.commit()

    def _opening(self) -> Iterator[ev.Event]:
        yield ev.MachineFound((0, 1, 2, 3), 1 << 30, "ymp", "Europe/Paris")
        for path, value in (
            *((f"queue/{queue}", {"run_limit": 4}) for queue in QUEUES),
            ("probe/nfs", {"file": "/etc/passwd"}),
            ("group/d1", {"share": 29, "members": ["anne", "ben"]}),
            ("complex/prime", {"queues": ["night", "express"]}),
            ("shift/night", {"when": ["0 21 * * mon-fri"], "lines": ["start queue night"],
                             "commands": [{"kind": "x"}]}),
        ):  # fmt: skip
            yield ev.SettingsChanged((ev.Change("create", path, value),), "root")

    def tell(self, event: ev.Event) -> None:
        """Apply one event; it is part of the next commit."""
        self._at += self._random.choice((0, 0, 1, 250))
        recorded = ev.Recorded(self.site.n + 1, Instant(self._at), event)
        lifecycle.apply(self.site, recorded)
        self.batch.events.append(recorded)
        if isinstance(event, ev.Ended | ev.Deleted) and not getattr(event, "indices", ()):
            self.ended[event.seq] = (event, recorded.at)

    def commit(self) -> None:
        """Commit the events so far."""
        batch, self.batch = self.batch, Batch()
        self.journal.commit(batch, self.site)
        self.history += batch.events

    def submit(self, **more: Any) -> int:
        """Submit one request; return its number."""
        spec = self.spec(**more)
        seq = self.site.next_seq if spec.array is None else array_key(self.site.next_seq)
        state = "held" if spec.held or spec.after else "waiting" if spec.eligible else "queued"
        self.tell(ev.Submitted(seq, spec, spec.queue, state))
        return seq

    def spec(self, **more: Any) -> Spec:
        """Return a specification with many different fields set."""
        choose = self._random.choice
        values: dict[str, Any] = {
            "owner": choose(OWNERS),
            "uid": 1000,
            "name": choose(("STDIN", "größe", f"job{self._random.randrange(50)}")),
            "queue": choose(QUEUES),
            "script": self.keep(choose((b"true\n", b"sleep 1\n" * 500))),
            "environment": "e" * 64,
            "workdir": f"/home/{choose(OWNERS)}/run",
            "group": choose(("default", "d1")),
            "ask": choose((Ask(), Ask(cpu=600_000), Ask(memory=1 << 20, others=(("nice", 5),)),
                           Ask(needs=("nfs", "licence")))),
            "args": choose(((), ("-v", "a b"))),
            "eligible": choose((None, None, None, Instant(self._at + 500))),
            "held": choose((False, False, False, True)),
            "output": choose((Output(), Output(join=True), Output(stdout="/tmp/o"))),
            "mail": choose((MailWishes(), MailWishes(end=True, to="anne"))),
            "priority": choose((None, 0, 63)),
            "after": self._after(),
        }  # fmt: skip
        return Spec(**(values | more))

    def _after(self) -> tuple[Dependency, ...]:
        earlier = list(self.site.requests)
        if not earlier or self._random.random() < 0.7:
            return ()
        return (Dependency(self._random.choice(earlier), self._random.choice(("ok", "any", "start"))),)

    def keep(self, body: bytes) -> str:
        """Add a blob to the next commit; return its digest."""
        digest = hashlib.sha256(body).hexdigest()
        self.batch.blobs[digest] = self.blobs[digest] = body
        return digest

    def go_on(self, events: int) -> None:
        """Apply random events, committed in groups of random size."""
        attempts = (
            self._start, self._start, self._exit, self._end, self._end, self._requeue, self._suspend,
            self._memory, self._bump, self._migrate, self._sample,
        )  # fmt: skip
        people = (
            self._hold, self._release, self._move, self._modify, self._rank, self._delete, self._redate,
            self._promise, self._met, self._never, self._part, self._hold_some, self._release_some,
        )  # fmt: skip
        site = (self._submit_array, self._due, self._configure, self._correct, self._shift, self._other)
        steps = (*(self.submit,) * 8, *attempts, *people, *site)
        for _ in range(events):
            self._random.choice(steps)()
            self._end_arrays()
            if self._random.random() < 0.3:
                self.commit()
        self.commit()

    def _some(self, *states: State) -> list[Request]:
        found = [r for r in self.site.requests.values() if r.state in states]
        return self._random.sample(found, min(len(found), self._random.choice((1, 1, 3))))

    def _start(self) -> None:
        taken = {pe for r in self.site.started.values() for pe in r.pes}
        free = [pe for pe in range(4) if pe not in taken]
        for request in self._some(State.QUEUED)[: len(free)]:
            attempt, pes, seq = request.attempts + 1, (free.pop(0),), request.seq
            if request.array is not None:
                seq = member(seq, indices.nth(request.array.ready, 0))
            self.tell(ev.Starting(seq, attempt, pes))
            if self._random.random() < 0.7:
                self.tell(ev.Started(seq, attempt, pes))

    def _used(self) -> Used:
        return Used(self._random.randrange(10_000), self._random.randrange(10_000), 1 << 20)

    def _exit(self) -> None:
        for r in self._some(State.RUNNING, State.SUSPENDED)[:1]:
            self.tell(ev.Exiting(r.seq, r.attempts, self._used()))

    def _end(self) -> None:
        for r in self._some(State.RUNNING, State.SUSPENDED, State.EXITING)[:1]:
            status, used = self._random.randrange(3), self._used()
            self.tell(ev.Ended(r.seq, r.attempts, "exit", exit_status=status, used=used))

    def _redate(self) -> None:
        seqs = tuple(r.seq for r in self._some(*BEFORE_START))
        self.tell(ev.Redated(seqs, Instant(self._at + 7), None, "machine_gun"))

    def _promise(self) -> None:
        starts = {r.seq: Reservation(Instant(self._at + 9), (r.seq,)) for r in self._some(State.QUEUED)}
        self.tell(ev.Reserved(starts, self.site.n))

    def _hold(self) -> None:
        self.tell(ev.Held(tuple(r.seq for r in self._some(State.QUEUED)), self._random.choice("uos"), "op"))

    def _release(self) -> None:
        self.tell(ev.Released(tuple(r.seq for r in self._some(State.HELD)), "uos", "op"))

    def _move(self) -> None:
        seqs = tuple(r.seq for r in self._some(State.QUEUED))
        self.tell(ev.Moved(seqs, self._random.choice(QUEUES), "op"))

    def _modify(self) -> None:
        for request in self._some(*BEFORE_START)[:1]:
            spec = self.spec(owner=request.owner, array=request.spec.array)
            self.tell(ev.Modified(request.seq, spec, request.owner))

    def _rank(self) -> None:
        for request in self._some(State.QUEUED)[:1]:
            self.tell(ev.Ranked(request.seq, 2, "op"))

    def _delete(self) -> None:
        for request in self._some(*BEFORE_START)[:1]:
            some = self._some_of(request) if request.array is not None else ()
            if request.array is not None and not some:
                continue
            self.tell(ev.Deleted(request.seq, request.owner, "no longer needed", indices=some))

    def _met(self) -> None:
        for request in self._unmet():
            each = self._random.choice(request.unmet)
            self.tell(ev.DependencyMet((request.seq,), each.seq, ("any", each.word), "it ended"))

    def _never(self) -> None:
        for request in self._unmet():
            each = request.unmet[0]
            self.tell(ev.DependencyFailed((request.seq,), each.seq, (each.word,), "it failed"))

    def _unmet(self) -> list[Request]:
        return [request for request in self._some(State.HELD) if request.unmet]

    def _suspend(self) -> None:
        for r in self._some(State.RUNNING)[:1]:
            self.tell(ev.Suspended(r.seq, r.attempts, "op"))
            if self._random.random() < 0.5:
                self.tell(ev.Resumed(r.seq, r.attempts, "op"))

    def _memory(self) -> None:
        running = self._some(State.RUNNING)
        held = tuple((r.seq, self._random.randrange(1 << 30)) for r in running)
        level = self._random.choice(("high", "calm"))
        self.tell(ev.PressureChanged(level, 91.5, "91 % in use", held, 1 << 35))
        self.tell(ev.ForeignChanged((ForeignJob(4711, 99, "zoe", "spin", (2, 3)),)))
        for r in running[:1]:
            self.tell(ev.Suspended(r.seq, r.attempts, "swap", text="its memory gives way"))
            if self._random.random() < 0.5:
                self.tell(ev.Resumed(r.seq, r.attempts, "swap"))
        self.tell(ev.ResourceChanged("nowhere", "broken", "no such probe"))

    def _bump(self) -> None:
        for r in self._some(State.RUNNING)[:1]:
            self.tell(ev.Suspended(r.seq, r.attempts, "bumper", text="it gave its PEs", leaving=True))
            if self._random.random() < 0.7:
                self.tell(ev.MovedOut(r.seq, r.attempts, 1_000))
                if self._random.random() < 0.3:
                    self.tell(ev.PauseChanged(r.seq, r.attempts, "anne", Cause("owner", "anne")))
                if self._random.random() < 0.5:
                    self.tell(ev.Resumed(r.seq, r.attempts, "bumper"))

    def _migrate(self) -> None:
        taken = {pe for r in self.site.started.values() for pe in r.pes}
        free = [pe for pe in range(4) if pe not in taken]
        for r in self._some(State.RUNNING)[: len(free[:1])]:
            self.tell(ev.Migrated(r.seq, r.attempts, (free[0],)))

    def _requeue(self) -> None:
        for r in self._some(State.RUNNING)[:1]:
            self.tell(ev.Deleting(r.seq, r.attempts, "op", rerun=True))
            if self._random.random() < 0.7:
                self.tell(ev.Requeued(r.seq, r.attempts, "rerun", self._used()))

    def _sample(self) -> None:
        samples = tuple((r.seq, self._used()) for r in self._some(State.RUNNING))
        self.tell(ev.Decided(self.site.n, samples, wait=((1, "LIMIT", "night", "full"),)))

    def _due(self) -> None:
        self._at += 300
        self.tell(ev.Eligible(self.site.due(Instant(self._at))))

    def _configure(self) -> None:
        number = self._random.randrange(9)
        changes = self._random.choice((
            (ev.Change("set", "queue/*/run_limit", number),),
            (ev.Change("set", "usage/half_life", 1_000 * (number + 1)),),
            (ev.Change("create", f"group/g{number}", {"share": number}),),
            (ev.Change("create", "group/g3", {}), ev.Change("delete", "group/g3")),
            (ev.Change("create", "group/d1", {}), ev.Change("delete", "group/d1"),
             ev.Change("create", "group/d1", {"share": number, "members": ["cleo"]})),
            (ev.Change("add", "managers", [f"m{number}:o"]), ev.Change("set", "exit/large/hmax", "115mw")),
            (ev.Change("set", "sched_factor/share", number), ev.Change("set", "machine/memory", None)),
        ))  # fmt: skip
        self.tell(ev.SettingsChanged(changes, "root", "qmgr"))

    def _correct(self) -> None:
        group, value = self._random.choice(("default", "d1", "g3")), self._random.randrange(10_000)
        self.tell(ev.UsageCorrected(group, round(self.site.use_of(group, self.site.at)), value, "max"))

    def _shift(self) -> None:
        self.tell(ev.ShiftChanged("night", None, Instant(self._at), manual=True, until=Instant(self._at + 9)))
        if self._random.random() < 0.3:
            self.tell(ev.ShiftFailed("day", "no such queue"))

    def _other(self) -> None:
        self.tell(ev.FilesApplied((("00_site.qmgr", f"{self._random.randrange(99):064}"),)))
        self.tell(ev.LoadedExits((("quiet", f"{self._at:032}"),)))
        self.tell(ev.Alarm("large", "too slow", Instant(self._at - 5)))
        self.tell(ev.ResourceChanged("nfs", self._random.choice(("ok", "broken")), "stale handle"))
        self.tell(ev.PressureChanged(self._random.choice(("calm", "high")), 91.5, "", ((1, 5),)))
        self.tell(ev.Promised("rest", str(self._random.randrange(3)), self._random.choice((1, [2], None))))
        attempts = tuple((r.seq, r.attempts + 1) for r in self._some(*BEFORE_START)[:1])
        self.tell(ev.Restored("a backup", self.site.next_seq + self._random.randrange(2), attempts))
        self.tell(ev.DaemonStarted(Instant(self._at), False))
        day = f"2026-03-{self._random.randrange(1, 32):02d}"
        why, used = ((3, "LIMIT", "q", "full"),), ((3, Used(5, 6, 7)),)
        self.tell(ev.Reported(day, self.site.n, Instant(self._at), ("night.json",), 2, used, why))

    # ------------------------------------------------------------ arrays
    def _submit_array(self) -> None:
        self.submit(array=ArraySpec(((1, 9, 2), (20, 22, 1)), self._random.choice((None, 2))))

    def _some_of(self, array: Request) -> indices.Runs:
        """Return some indices of an array that have not begun."""
        assert array.array is not None
        left = list(indices.each(array.array.left))
        return indices.of(self._random.sample(left, min(len(left), self._random.choice((1, 2, 9)))))

    def _arrays(self) -> list[Request]:
        found = [r for r in self.site.requests.values() if r.array is not None and r.array.left]
        return self._random.sample(found, min(len(found), 1))

    def _part(self) -> None:
        for array in self._arrays():
            self.tell(ev.Parted(array.seq, self._some_of(array)))

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


@pytest.fixture
def same_site() -> Callable[[Site, Site], None]:
    """Return a function that asserts that two sites are equal."""

    def check(one: Site, other: Site) -> None:
        left, right = observable(one), observable(other)
        for part in left:
            assert left[part] == right[part], part
        assert not other.touched.requests
        assert not other.touched.ended
        check_site(other)

    return check


@pytest.fixture(params=["sqlite", "memory"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Yield each kind of journal: the contract holds for both."""
    found = SqliteJournal.open(tmp_path / "nqs.db") if request.param == "sqlite" else MemoryJournal()
    yield found
    found.close()


@pytest.fixture
def story(journal: Any) -> Story:
    """Return a new story over each journal."""
    return Story(journal)


@pytest.fixture
def tell_story() -> Callable[..., Story]:
    """Return a function that begins a story over a journal."""
    return Story


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of the database."""
    return tmp_path / "nqs.db"


@pytest.fixture
def sqlite(path: Path) -> Iterator[SqliteJournal]:
    """Yield a journal on SQLite."""
    with SqliteJournal.open(path) as journal:
        yield journal


@pytest.fixture
def told(path: Path, tell_story: Callable[..., Story]) -> Story:
    """Return the story of a closed database with a history."""
    with SqliteJournal.open(path) as journal:
        story = tell_story(journal, 5)
        story.go_on(300)
    return story


@pytest.fixture
def reader(sqlite: SqliteJournal, path: Path) -> Iterator[Reader]:
    """Yield a reader next to that journal."""
    found = Reader(path)
    yield found
    found.close()
