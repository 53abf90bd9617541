"""Claims of a test about a site, in sentences. A claim that does not hold raises AssertionError, whose text
has the last lines of the story; one that holds is true, so ``assert`` may stand before it."""

from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant, number_of
from nqspy.report.time_text import Zone
from nqspy.sim.testing.job import StoryJob
from nqspy.sim.testing.record import LINES, StoryRecord, shown

WAITS = ("arriving", "routing", "waiting", "held", "queued", "begun")


class Claims:
    """The sentences; `StorySite` has the rest."""

    record: StoryRecord

    @property
    def zone(self) -> Zone:
        """The site's time zone."""
        raise NotImplementedError

    def job(self, name: str | StoryJob) -> StoryJob:
        """A request by what the test calls it. Raises BadStory where there is none."""
        raise NotImplementedError

    def submit(self, name: str) -> StoryJob:
        """Submit as `StorySite.submit`."""
        raise NotImplementedError

    # ------------------------------------------------------------ now

    def must_wait(self, name: str | StoryJob, because: str = "") -> bool:
        """Claim that it waits now, and that ``because`` is part of the reason or of the name of its
        source."""
        __tracebackhide__ = True
        job = self.job(name)
        if job.state not in WAITS:
            raise self._wrong(f"{job.label} should wait, and is {job.state}")
        if because not in job.why:
            raise self._wrong(f"{job.label} should wait because: {because}\nand waits because: {job.why}")
        return True

    def must_run(self, name: str | StoryJob) -> bool:
        """Claim that it runs now."""
        __tracebackhide__ = True
        job = self.job(name)
        if job.state != "running":
            why = f" because: {job.why}" if job.why else ""
            raise self._wrong(f"{job.label} should run, and is {job.state}{why}")
        return True

    def must_have_ended(self, name: str | StoryJob, status: int | None = None) -> bool:
        """Claim that it has ended, with this exit status if one is given."""
        __tracebackhide__ = True
        job = self.job(name)
        if job.state != "ended":
            why = f" because: {job.why}" if job.why else ""
            raise self._wrong(f"{job.label} should have ended, and is {job.state}{why}")
        if status is not None and job.exit_status != status:
            raise self._wrong(f"{job.label} should have ended with {status}, and did with {job.exit_status}")
        return True

    def must_refuse(self, name: str, because: str = "", **wanted: object) -> bool:
        """A submission like this (`StorySite.submit`) is refused now, and ``because`` is part of why."""
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
        """Both have started, the first one earlier, or at the same instant in an earlier decision."""
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
        """No two of these have run at the same time so far."""
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
        """Tell what has happened so far, a line each; ``most``: the last lines."""
        lines = self.record.lines[-most:] if most is not None else self.record.lines
        left = len(self.record.lines) - len(lines)
        head = [f"({left} lines before)"] if left else []
        return "\n".join([*head, *(f"{self._shown(at)}  {text}" for at, text in lines)])

    def _shown(self, at: Instant) -> str:
        return shown(self.zone, at)
