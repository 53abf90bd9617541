"""A site for tests of exits: built in a few lines, with events, lists of what happened, and claims about
it. It is the daemon's own engine, with its queues, limits, shares and shifts.

>>> site = StorySite(exits="quiet.py", pes=2)
>>> site.submit("a", owner="anne", pes=2, runs="1h")
>>> site.at("03:00")
>>> assert site.started == ["a"]
"""

from typing import Any

from nqspy.decider.worker import read_only
from nqspy.engine.explain import Places
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant, number_of
from nqspy.model.requests import STARTED, Request, State
from nqspy.report import night
from nqspy.sim.testing.record import LINES, shown
from nqspy.sim.testing.stage import Stage, StoryJob

WAITS = ("arriving", "routing", "waiting", "held", "queued", "begun")


class StorySite(Stage):
    """A `Stage` with lists of what happened, and claims about it. A claim that does not hold raises
    AssertionError, with the last lines of the story; one that holds returns True."""

    # ------------------------------------------------------------ what it did

    @property
    def shift(self) -> str | None:
        """Return the name of the shift in force; None: no shift is."""
        return self._site.shift.current

    @property
    def started(self) -> list[str]:
        """Return the names of started requests, in the order of decisions; once for each start."""
        return [self.record.label(each.seq) for each in self.record.starts]

    @property
    def running(self) -> list[str]:
        """Return the names of the requests that run now (not suspended), in the order of their starts."""
        known = self._site.started
        runs = (each.seq for each in self.record.starts if each.end is None)
        return [self.record.label(seq) for seq in runs if seq in known and known[seq].state is State.RUNNING]

    @property
    def waiting(self) -> list[str]:
        """Return the names of requests that have not started, by priority of their queues, then by place;
        requests without a place (held, or with a later date) come last."""
        site, places = self._site, Places(self._driver.engine, self._driver.now)

        def line(request: Request) -> tuple[Any, ...]:
            place, queue = places.of(request), site.settings.queues.get(request.queue)
            rank = 0 if queue is None else -(queue.priority or 0)
            return (place is None, rank, request.queue, 0 if place is None else place.position, request.seq)

        waits = (each for each in site.requests.values() if each.state not in STARTED)
        return [self.record.label(each.seq) for each in sorted(waits, key=line)]

    @property
    def ended(self) -> list[str]:
        """Return the names of the requests that have ended, deleted ones too, in the order of their ends."""
        return [self.record.label(seq) for seq in self.record.ends]

    @property
    def printed(self) -> list[str]:
        """Return the lines that exits have printed so far, as ``exit: text``."""
        return self.exits.printed

    def most_at_once(self, owner: str | None = None, queue: str | None = None) -> int:
        """Return the most requests that ever ran at the same time, of that owner and queue (None: of all)."""
        steps = []
        for each in self.record.starts:
            request = self.found(each.seq)[0]
            if owner in (None, request.owner) and queue in (None, request.queue):
                steps += [(each.begin, 1)] + ([] if each.end is None else [(each.end, -1)])
        most = count = 0
        for _, step in sorted(steps):
            count += step
            most = max(most, count)
        return most

    def report_night(self) -> dict[str, Any]:
        """Return the present data of ``nqspy report night --json``; call the hooks `night_report` with it."""
        __tracebackhide__ = True
        driver, events = self._driver, list(self.journal.events())
        bounds = night.night_bounds(events, self.zone, driver.now)
        data = night.night_report(events, driver.site, bounds, driver.now)
        with self.exits.blamed(self.strict):
            self._notify("night_report", {"report": read_only(data)})
        return data

    # ------------------------------------------------------------ now

    def must_wait(self, name: str | StoryJob, because: str = "") -> bool:
        """Claim that a request waits now, and that ``because`` is part of the reason or of its source."""
        __tracebackhide__ = True
        job = self.job(name)
        if job.state not in WAITS:
            raise self._wrong(f"{job.label} should wait, and is {job.state}")
        if because not in job.why:
            raise self._wrong(f"{job.label} should wait because: {because}\nand waits because: {job.why}")
        return True

    def must_run(self, name: str | StoryJob) -> bool:
        """Claim that a request runs now."""
        __tracebackhide__ = True
        job = self.job(name)
        if job.state != "running":
            why = f" because: {job.why}" if job.why else ""
            raise self._wrong(f"{job.label} should run, and is {job.state}{why}")
        return True

    def must_have_ended(self, name: str | StoryJob, status: int | None = None) -> bool:
        """Claim that a request has ended, with this exit status if one is given."""
        __tracebackhide__ = True
        job = self.job(name)
        if job.state != "ended":
            why = f" because: {job.why}" if job.why else ""
            raise self._wrong(f"{job.label} should have ended, and is {job.state}{why}")
        if status is not None and job.exit_status != status:
            raise self._wrong(f"{job.label} should have ended with {status}, and did with {job.exit_status}")
        return True

    def must_refuse(self, name: str, because: str = "", **wanted: Any) -> bool:
        """Claim that a submission like this (`StorySite.submit`) is refused with ``because`` in the text."""
        __tracebackhide__ = True
        try:
            job = self.submit(name, **wanted)
        except Refusal as refusal:
            if because not in str(refusal):
                text = f"{name} should be refused because: {because}\nand is because: {refusal}"
                raise self._wrong(text) from None
            return True
        raise self._wrong(f"{name} should be refused, and is {job.state}")

    # ------------------------------------------------------------ so far

    def ran_before(self, first: str | StoryJob, second: str | StoryJob) -> bool:
        """Claim that both have started, the first one earlier, or at the same instant by a decision
        before."""
        __tracebackhide__ = True
        one, other = self.job(first), self.job(second)
        order = [number_of(each.seq) for each in self.record.starts]
        for job in (one, other):
            if job.number not in order:
                text = f"{one.label} should run before {other.label}, and {job.label} has not run"
                raise self._wrong(f"{text}: {job.why}" if job.why else text)
        if order.index(one.number) >= order.index(other.number):
            text = f"{one.label} should run before {other.label}, which started first, at {other.started}"
            raise self._wrong(text)
        return True

    def never_together(self, *names: str | StoryJob) -> bool:
        """Claim that no two of these requests have run at the same time so far."""
        __tracebackhide__ = True
        jobs = [self.job(name) for name in names]
        runs = [(job, each) for job in jobs for each in self.record.stretches(job.number)]
        for place, (job, each) in enumerate(runs):
            for other, its in runs[place + 1 :]:
                begin = max(each.begin, its.begin)
                if job is not other and all(e.end is None or begin < e.end for e in (each, its)):
                    text = f"{job.label} and {other.label} should never run at the same time, and do at"
                    raise self._wrong(f"{text} {self._shown(begin)}")
        return True

    def _wrong(self, text: str) -> AssertionError:
        return AssertionError(f"{text}\n\n{self.story(LINES)}")

    def story(self, most: int | None = None) -> str:
        """Return what has happened so far, a line each; ``most``: only the last lines."""
        lines = self.record.lines[-most:] if most is not None else self.record.lines
        omitted = len(self.record.lines) - len(lines)
        head = [f"({omitted} lines before)"] if omitted else []
        return "\n".join([*head, *(f"{self._shown(at)}  {text}" for at, text in lines)])

    def _shown(self, at: Instant) -> str:
        return shown(self.zone, at)
