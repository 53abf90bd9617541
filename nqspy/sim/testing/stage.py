"""A site of a story: what happens to it, its requests, and questions about each of them."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from nqspy.decider.due_notices import DueNotices
from nqspy.decider.worker import SentRequest
from nqspy.engine.explain import Places, reasons_of
from nqspy.engine.inputs import CommandAsked, Outcome
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model.endings import End
from nqspy.model.events import Recorded
from nqspy.model.ids import Instant, Seq, array_key, number_of
from nqspy.model.people import Caller
from nqspy.model.requests import Dependency, Request, Spec
from nqspy.model.site import Site as EngineSite
from nqspy.qmgr.parser import parse_text
from nqspy.report.time_text import Zone, zone_of
from nqspy.sim.main import ONE_QUEUE, OPERATOR, Simulation
from nqspy.sim.testing.files import Exits, ExitsUnderTest, sources_of
from nqspy.sim.testing.record import BadStory, StoryRecord, moment, shown, span
from nqspy.sim.testing.wish import Amount, read_after, spec_of
from nqspy.store.memory import MemoryJournal

USERS = 100
"""Unix group of all users in a test."""
FIRST_UID = 1_001


class StoryJob:
    """A request of a test in its present state, by the test's name; times like ``2026-03-02 20:00:00``."""

    def __init__(self, site: "Stage", label: str, number: int, array: bool) -> None:
        self._site, self.label, self.number = site, label, number
        self.seq: Seq = array_key(number) if array else number

    def __repr__(self) -> str:
        return f"<{self.label} ({self.id}) {self.state}>"

    @property
    def id(self) -> str:
        """Return the request's full identifier, like ``17.ymp``."""
        return self._site.named(self.seq)

    @property
    def request(self) -> Request:
        """Return the engine's `Request`, also after its end."""
        return self._site.found(self.seq)[0]

    @property
    def spec(self) -> Spec:
        """Return the request as it was accepted, changes of a submit exit included."""
        return self.request.spec

    @property
    def state(self) -> str:
        """Return ``arriving``, ``routing``, ``queued``, ``held``, ``waiting`` (for a date), ``running``,
        ``suspended``, ``exiting`` or ``ended``."""
        return self._site.found(self.seq)[1]

    @property
    def queue(self) -> str:
        """Return the queue it is in, or was in last."""
        return self.request.queue

    @property
    def why(self) -> str:
        """Return the reason why it waits, in words, with the reason's source; empty if it does not wait."""
        return self._site.why(self)

    @property
    def place(self) -> int | None:
        """Return the place in its queue, from 1; None if it is not queued."""
        return self._site.place(self)

    @property
    def date_in_queue(self) -> str:
        """Return the time from which its age in the queue counts."""
        return shown(self._site.zone, self.request.date_in_queue)

    @property
    def started(self) -> str | None:
        """Return the time of its last start, of an array: that of its last index; None before it."""
        runs = self._site.record.stretches(self.number)
        return self._shown(runs[-1].begin if runs else None)

    @property
    def ended(self) -> str | None:
        """Return the time at which its last run ended; None while it runs, or before it has run."""
        runs = self._site.record.stretches(self.number)
        return self._shown(runs[-1].end if runs else None)

    @property
    def exit_status(self) -> int | None:
        """Return the exit status, never 0 after a bad end; None before the end, or if it has none."""
        end = self._site.record.ends.get(self.seq)
        return None if end is None else End.of(end).shown_status

    def _shown(self, at: Instant | None) -> str | None:
        return None if at is None else shown(self._site.zone, at)


AfterGiven = str | StoryJob | Iterable[str | StoryJob]


class _Driver(Simulation):
    """Driver that calls ``happened`` with events as soon as they are committed."""

    def __init__(
        self, happened: Callable[[Sequence[Recorded], EngineSite], None], *given: Any, **more: Any
    ) -> None:
        self._happened = happened
        super().__init__(*given, **more)

    def _collect(self, outcome: Outcome) -> None:
        super()._collect(outcome)
        self._happened(outcome.happened, self.site)


class Stage:
    """A site under a virtual clock. ``qmgr``: its queues and settings in qmgr's language (none: one open
    queue ``batch``); ``exits``: files, a folder of them, modules, or texts by name, relative paths beside the
    file that makes the site; ``pes``: how many PEs it has; ``at``: when it begins, on the clocks of ``zone``
    (a Monday); ``runs``: how long requests run if nothing else is given; ``strict``: failures of an exit fail
    the test.

    Raises BadExit for a file that cannot be loaded, ParseError and Refusal for wrong settings."""

    def __init__(
        self,
        qmgr: str = "",
        *,
        exits: Exits = (),
        pes: int = 4,
        at: str = "2026-03-02 20:00",
        zone: str = "UTC",
        runs: str | float = "10min",
        strict: bool = True,
    ) -> None:
        beside = Path(sys._getframe(1).f_globals.get("__file__") or ".").parent
        self.exits = ExitsUnderTest(sources_of(exits, beside))
        self.strict, self.record = strict, StoryRecord()
        self._length = span(runs)
        self._runs: dict[int, Run] = {}
        self._uids: dict[str, int] = {}
        self._jobs: dict[str, StoryJob] = {}
        self._together: list[tuple[cm.Submit, Caller]] | None = None
        self._due = DueNotices(self.exits)
        self.journal = MemoryJournal()
        self._driver = _Driver(
            self._follow, self.journal, lambda request: self._runs[number_of(request.seq)],
            zone_of(zone).instant(datetime.fromisoformat(at)),
            pes=pes, zone=zone, exits=self.exits, host="test",
        )  # fmt: skip
        self.qmgr(qmgr or ONE_QUEUE)

    # ------------------------------------------------------------ what happens

    def qmgr(self, text: str) -> None:
        """Run commands of qmgr, one a line, as a manager. Raises ParseError, Refusal, BadStory (query)."""
        __tracebackhide__ = True
        for parsed in parse_text(text, "qmgr"):
            if not isinstance(parsed.command, cm.Command) or isinstance(parsed.command, cm.Query):
                raise BadStory(f"qmgr, line {parsed.line}: {parsed.text!r} changes nothing")
            self._do([(parsed.command, OPERATOR)])

    def open_queue(self, name: str, words: str = "") -> None:
        """Create and open a batch queue; ``words`` as in ``create batch_queue``: ``run_limit=4``."""
        __tracebackhide__ = True
        self.qmgr(f"create batch_queue {name} {words}\nenable queue {name}\nstart queue {name}\n")

    def load(self, exits: Exits) -> None:
        """Load more exits, given as to the `Stage`; each replaces one with the same name. Raises BadExit."""
        beside = Path(sys._getframe(1).f_globals.get("__file__") or ".").parent
        self.exits.put(sources_of(exits, beside))
        self._do([(cm.ReloadExits(), OPERATOR)])

    def submit(
        self, name: str, *, owner: str = "anne", queue: str = "", group: str | None = None,
        account: str | None = None, project: str | None = None, pes: int = 1, cpu: Amount = None,
        wall: Amount = None, memory: Amount = None, priority: int | None = None, after: AfterGiven = (),
        not_before: str | None = None, held: bool = False, array: str | None = None,
        units: Mapping[str, int] | None = None, needs: Iterable[str] = (), attributes: Iterable[str] = (),
        arguments: Iterable[str] = (), script: str = "", named: str | None = None,
        runs: str | float | None = None, uses: str | float | None = None, status: int = 0, **options: Any,
    ) -> StoryJob:  # fmt: skip
        """Submit a request as its owner. ``name``: the test's name for it, and its own unless ``named`` gives
        another (empty: none); ``group`` or ``account``: what ``-A`` names; ``project``: of ``-P``; ``after``:
        what it waits for (``"a:any"``); ``array``: ``"1-10%2"``; ``units``: of consumables; ``options``:
        others of `Client.submit`, such as ``contract=True``.

        Times and sizes are texts, or seconds and bytes. It ``runs`` that long, ``uses`` so much CPU time
        (default: its wall time on each PE) and ends with that exit status, unless a limit ends it before.

        Raises Refusal if the site refuses it."""
        __tracebackhide__ = True
        eligible = None if not_before is None else moment(not_before, self.zone, self._driver.now)
        word, uid = name if named is None else named, self._uids.get(owner, FIRST_UID + len(self._uids))
        settings, projects = self._site.settings, () if project is None else (f"project:{project}",)
        if len(settings.queues) == 1 and not settings.default.queue:
            queue = queue or next(iter(settings.queues))
        own = {
            "owner": owner, "uid": uid, "gid": USERS, "name": word or "STDIN", "name_given": bool(word),
            "queue": queue, "script": "", "environment": "", "workdir": f"/home/{owner}", "account": group,
            "eligible": eligible, "after": tuple(self._dependencies(after)),
            "attributes": (*projects, *attributes), "args": tuple(arguments),
        }  # fmt: skip
        ask = {"needs": tuple(needs), "consumables": tuple((units or {}).items())}
        options |= {"account": account, "pes": pes, "cpu": cpu, "wall": wall, "memory": memory,
                    "priority": priority, "held": held}  # fmt: skip
        wanted = cm.Submission(spec_of(own, ask, options, array), script, f"HOME=/home/{owner}")
        if name in self._jobs:
            raise BadStory(f"{name!r} was submitted before; call this one otherwise (named={name!r})")
        number = self._site.next_seq + len(self._together or ())
        self.record.labels[number] = name
        job = self._jobs[name] = StoryJob(self, name, number, array is not None)
        wall_ms = self._length if runs is None else span(runs)
        self._runs[job.number] = Run(wall_ms, wall_ms * pes if uses is None else span(uses), status)
        self._uids[owner] = uid
        asked = (cm.Submit((wanted,)), Caller(owner, uid, USERS, ("users",)))
        if self._together is not None:
            self._together.append(asked)
            return job
        try:
            self._do([asked])
        except Exception:
            if job.number == self._site.next_seq:  # it was not accepted
                del self.record.labels[job.number], self._jobs[name]
            raise
        return job

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let submissions in this block arrive together at its end: one pass examines all of them."""
        __tracebackhide__ = True
        self._together = []
        try:
            yield
            asked = self._together
        finally:
            self._together = None
        self._do(asked)

    def hold(self, name: str | StoryJob) -> None:
        """Hold a request as an operator."""
        self._do([(cm.HoldRequests((self.job(name).id,)), OPERATOR)])

    def release(self, name: str | StoryJob) -> None:
        """Release a request as an operator."""
        self._do([(cm.ReleaseRequests((self.job(name).id,)), OPERATOR)])

    def delete(self, name: str | StoryJob) -> None:
        """Delete a request, running or not."""
        self._do([(cm.Delete((self.job(name).id,), force=True), OPERATOR)])

    # ------------------------------------------------------------ time

    def at(self, when: str) -> None:
        """Let time pass to the next ``03:00`` or ``tue 03:00``, or to a date with a time. Raises BadStory."""
        __tracebackhide__ = True
        self._pass(moment(when, self.zone, self._driver.now))

    def let_pass(self, time: str | float) -> None:
        """Let so much time pass: ``2h``, ``10:00``, a number of seconds. Raises BadStory for other texts."""
        __tracebackhide__ = True
        self._pass(Instant(self._driver.now + span(time)))

    def to_the_end(self) -> None:
        """Let time pass until nothing is due, or shifts alone have happened for eight days."""
        __tracebackhide__ = True
        self._pass(None)

    @property
    def now(self) -> str:
        """Return the present time: ``2026-03-02 20:00:00``."""
        return shown(self.zone, self._driver.now)

    @property
    def _site(self) -> EngineSite:
        """Return the present site of the engine."""
        return self._driver.site

    @property
    def zone(self) -> Zone:
        """Return the site's time zone."""
        return zone_of(self._site.timezone)

    def why(self, name: str | StoryJob) -> str:
        """Return the reason why a request waits, in words, with its source; empty if it does not wait."""
        seq = self.job(name).seq
        reason = reasons_of(self._driver.engine, (seq,)).get(seq)
        return "" if reason is None else f"{reason.text} ({reason.who})" if reason.who else reason.text

    def place(self, name: str | StoryJob) -> int | None:
        """Return a request's place in its queue, from 1; None if it is not queued."""
        place = Places(self._driver.engine, self._driver.now).of(self.found(self.job(name).seq)[0])
        return None if place is None else place.position

    def answers(self, name: str | StoryJob) -> list[str]:
        """Return the last answer of each hook about a request, such as ``quiet.jobselect: refuse('why')``."""
        rows = self.exits.trace(self.job(name).seq)
        return [
            f"{row['exit']}.{row['hook']}: "
            + (f"failed: {row['error']}" if row["error"] else row["answer"] or "the standard rules")
            for row in rows
        ]

    def job(self, name: str | StoryJob) -> StoryJob:
        """Return the request that the test submitted under that name. Raises BadStory if there is none."""
        if isinstance(name, StoryJob):
            return name
        if name not in self._jobs:
            known = ", ".join(self._jobs) or "none"
            raise BadStory(f"nothing was submitted as {name!r}; submitted were {known}")
        return self._jobs[name]

    def found(self, seq: Seq) -> tuple[Request, str]:
        """Return a request and its state (`StoryJob.state`), ended or not. Raises BadStory without it."""
        request = self._site.to_be(seq)
        if request is not None:
            return request, request.shown_state.value
        rows = list(self.journal.ended((seq,)))
        if not rows:
            raise BadStory(f"{self.record.label(seq)} was not accepted")
        return rows[0]["request"], "ended"

    def named(self, seq: Seq) -> str:
        """Return the full identifier of the request with this number."""
        return self._site.id_of(seq)

    # ------------------------------------------------------------ how it is done

    def _do(self, asked: Sequence[tuple[cm.Command, Caller]]) -> None:
        """Carry out commands now, at the same moment. Raises the first refusal."""
        __tracebackhide__ = True
        driver, handles = self._driver, [object() for _ in asked]
        with self.exits.blamed(self.strict):
            driver.feed([CommandAsked(*each, handle) for each, handle in zip(asked, handles, strict=True)])
            driver.run(driver.now)
        replies = {id(handle): reply for handle, reply in driver.replies}
        for handle in handles:
            if (refusal := replies[id(handle)].refusal) is not None:
                raise refusal

    def _pass(self, until: Instant | None) -> None:
        __tracebackhide__ = True
        with self.exits.blamed(self.strict):
            self._driver.run(until)

    def _follow(self, happened: Sequence[Recorded], site: EngineSite) -> None:
        self.record.add(happened)
        for hook, arguments in self._due.of(happened, site):
            if "request" in arguments:
                arguments = {"request": SentRequest(arguments["request"])}
            self._notify(hook, arguments)

    def _notify(self, hook: str, arguments: Mapping[str, Any]) -> None:
        self.exits.failed += self.exits.notify(hook, **arguments)

    def _dependencies(self, after: AfterGiven) -> Iterator[Dependency]:
        for each in (after,) if isinstance(after, (str, StoryJob)) else after:
            if isinstance(each, StoryJob):
                yield Dependency(each.seq)
            else:
                name, word = read_after(each)
                yield Dependency(self.job(name).seq, word)
