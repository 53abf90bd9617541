"""scripts/bench estimators: how near to the truth are several ways to say how long a job will run: when it is
handed in, and when it has run for a while. On logs of the Parallel Workloads Archive (none of them is here:
those in ../shared/traces beside the checkout, or in NQSPY_TRACES, or named), and on invented weeks whose
people give best guesses."""

import argparse
import gzip
import json
import math
import os
import statistics
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench_estimates import jobs as invented

from nqspy.core.runtime import expected_wall, longest_of, median_beyond
from nqspy.model.ids import Instant
from nqspy.model.lifetimes import ENOUGH, FARTHEST, KEPT, WHOLE, Lifetimes, Lived
from nqspy.model.requests import Ask, Request, Spec, State
from nqspy.model.settings import Settings

TRACES = Path(os.environ.get("NQSPY_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
AGES = (60_000, 600_000, 3_600_000, 14_400_000)
"""How long jobs have run when they are asked about again, ms."""
INVENTED = "invented"
SUBMITTED, STARTED_FOR, ENDED = 1, 2, 0
"""What happens to a job; at one instant ends come first."""


@dataclass(frozen=True)
class Job:
    """Times in ms; ``program``: its executable, a width apart; ``limit``, ``guess``: None where there is
    none."""

    submit: int
    start: int
    run: int
    width: int
    user: str
    program: str
    limit: int | None
    guess: int | None = None


def of_log(path: Path, most: int) -> list[Job]:
    """The last jobs of a log, at most so many."""
    found = []
    with gzip.open(path, "rt", encoding="latin-1") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            words = line.split()
            if len(words) < 18 or line.startswith(";"):
                continue
            submit, wait, run, estimate = (round(float(words[n]) * 1000) for n in (1, 2, 3, 8))
            width = int(words[7]) if int(words[7]) > 0 else int(words[4])
            if submit >= 0 and run > 0 and width > 0:
                start = submit + max(0, wait)
                limit = estimate if estimate > 0 else None
                found.append(Job(submit, start, run, width, words[11], words[13], limit))
    return sorted(found, key=lambda job: job.submit)[-most:]


def of_weeks(seed: int, weeks: int) -> list[Job]:
    """Those of `bench_estimates`; how long each waits is left out."""
    return [
        Job(j.submit, j.submit, j.run, j.width, j.user, j.program, j.limit, j.guess)
        for j in invented(seed, weeks, 0.0, 1.0)
        if j.run > 0
    ]


# ---------------------------------------------------------------- ways to say it


class Past:
    """What has ended, as each way wants it."""

    def __init__(self) -> None:
        self.lifetimes = Lifetimes()
        self.of_owner: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=KEPT))
        self._n = 0

    def learn(self, job: Job) -> None:
        """It has ended."""
        self._n += 1
        part = min(WHOLE, max(1, -(-job.run * WHOLE // job.limit))) if job.limit else 0
        guess = min(FARTHEST, max(1, -(-job.run * WHOLE // job.guess))) if job.guess else 0
        key = job.user, job.program, job.width
        list(self.lifetimes.add(key, Lived(job.run, part, guess), self._n))
        self.of_owner[job.user].append(job.run)


Way = Callable[[Past, Job, int], float | None]
"""How long a job will run in all that has run for so long, ms; None: nobody can say."""


def own_limit(past: Past, job: Job, ran: int) -> float | None:
    return job.limit


def best_guess(past: Past, job: Job, ran: int) -> float | None:
    return job.guess if job.guess is None or job.guess > ran else max(job.guess, 2 * ran)


def last_two(past: Past, job: Job, ran: int) -> float | None:
    """The mean of the last two of its owner (D. Tsafrir, Y. Etsion, D. Feitelson, "Backfilling using
    system-generated predictions rather than user runtime estimates", IEEE TPDS 18(6), 2007); twice as long as
    it has run where that is over."""
    known = list(past.of_owner[job.user])[-2:]
    mean = sum(known) / 2 if len(known) == 2 else job.limit
    return mean if mean is None or mean > ran else 2 * ran


def _alike(past: Past, job: Job) -> Sequence[Lived]:
    """Of the same owner, executable and width, else of wider kinds."""
    return next(past.lifetimes.kinds((job.user, job.program, job.width)), ())


def history(past: Past, job: Job, ran: int) -> float | None:
    """The median of the last 16 of its owner, name and size that ran longer."""
    longer = sorted(each.wall for each in _alike(past, job) if each.wall > ran)
    return longer[len(longer) // 2] if longer else job.limit or 2 * ran or None


def downey(past: Past, job: Job, ran: int) -> float | None:
    """The median of a log-uniform distribution through those like it, given that it has run for so long."""
    walls = [each.wall for each in _alike(past, job)]
    longest = longest_of(walls) if len(walls) >= ENOUGH else 0
    longest = min(longest, job.limit) if longest and job.limit else longest or job.limit or 0
    if not ran:
        return median_beyond(max(1, min(walls)), max(walls)) if walls else job.limit
    return median_beyond(ran, longest) if longest > ran else 2 * ran


_NO_SETTINGS = Settings()


def ours(past: Past, job: Job, ran: int) -> float | None:
    """What `probably` rests on."""
    ask = Ask(pes=job.width, wall=job.limit, best_guess=job.guess)
    spec = Spec(job.user, 1, job.program, "batch", "", "", "/", ask=ask)
    request = Request(1, spec, "batch", State.QUEUED, Instant(0), Instant(0))
    return expected_wall(_NO_SETTINGS, past.lifetimes, request, ran)


WAYS: Mapping[str, Way] = {
    "its own wall limit": own_limit,
    "its owner's best guess": best_guess,
    "mean of its owner's last two (Tsafrir)": last_two,
    "median of owner, name and size": history,
    "log-uniform (Downey)": downey,
    "`probably`": ours,
}


# ---------------------------------------------------------------- judged


@dataclass
class Judged:
    """Of one way: how near (the shorter of what was said and what was left, by the longer; 1: exact), and how
    many were said too short."""

    near: list[float] = field(default_factory=list)
    short: int = 0

    def judge(self, said: float, true: float) -> None:
        """One more; both are what is left, ms."""
        said, true = max(1.0, said), max(1.0, true)
        self.near.append(min(said, true) / max(said, true))
        self.short += said < 0.999 * true

    @property
    def accuracy(self) -> float | None:
        """The mean; None where nothing was said."""
        return statistics.fmean(self.near) if self.near else None


Table = dict[str, Judged]


def judged(work: Sequence[Job]) -> dict[int, Table]:
    """By how long jobs had run: 0 when they were handed in."""
    past = Past()
    found: dict[int, Table] = {age: {way: Judged() for way in WAYS} for age in (0, *AGES)}
    for _, kind, place, age in sorted(happenings(work)):
        job = work[place]
        if kind == ENDED:
            past.learn(job)
            continue
        for name, way in WAYS.items():
            said = way(past, job, age)
            if said is not None:
                capped = said if job.limit is None or job.limit <= age else min(said, job.limit)
                found[age][name].judge(capped - age, job.run - age)
    return found


def happenings(work: Sequence[Job]) -> Iterator[tuple[int, int, int, int]]:
    """When, what, to which, and how long that has run."""
    for place, job in enumerate(work):
        yield job.submit, SUBMITTED, place, 0
        yield job.start + job.run, ENDED, place, 0
        yield from ((job.start + age, STARTED_FOR, place, age) for age in AGES if age < job.run)


# ---------------------------------------------------------------- told


def cell(each: Judged) -> str:
    """The accuracy, and how many were said too short."""
    if each.accuracy is None:
        return "-"
    return f"{each.accuracy:.2f} ({100 * each.short / len(each.near):.0f} %)"


def at_submission(found: Mapping[str, dict[int, Table]]) -> Iterator[str]:
    """A table in Markdown: each way on each log."""
    yield f"| when it is handed in | {' | '.join(found)} |"
    yield "|" + " --- |" * (len(found) + 1)
    for way in WAYS:
        yield f"| {way} | {' | '.join(cell(each[0][way]) for each in found.values())} |"


def while_it_runs(found: Mapping[str, dict[int, Table]]) -> Iterator[str]:
    """The same for jobs that run, as the mean over the logs."""
    names = [f"{age // 60_000} min" if age < 3_600_000 else f"{age // 3_600_000} h" for age in AGES]
    yield f"| when it has run for | {' | '.join(names)} |"
    yield "|" + " --- |" * (len(AGES) + 1)
    for way in WAYS:
        means = [_mean(each[age][way].accuracy for each in found.values()) for age in AGES]
        yield f"| {way} | {' | '.join(means)} |"


def _mean(values: Iterator[float | None]) -> str:
    known = [value for value in values if value is not None and not math.isnan(value)]
    return f"{statistics.fmean(known):.2f}" if known else "-"


def logs(named: Sequence[str]) -> list[Path]:
    """Those that are named, else all that are there."""
    if named:
        return [Path(name) for name in named]
    return sorted(path for path in (TRACES / "logs").glob("*.swf.gz") if not path.name.startswith("lublin"))


def main(words: list[str]) -> int:
    """Prints the tables, or JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench estimators", description=__doc__)
    parser.add_argument("logs", nargs="*", help="logs in the Standard Workload Format (all that are found)")
    parser.add_argument("--most", type=int, default=20_000, help="the last so many jobs of each (20000)")
    parser.add_argument("--weeks", type=int, default=8, help="invented ones, whose people guess (8)")
    parser.add_argument("--seed", type=int, default=1, help="of these (1)")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args(words)
    found = {path.name.partition(".")[0]: judged(of_log(path, options.most)) for path in logs(options.logs)}
    if options.weeks:
        found[INVENTED] = judged(of_weeks(options.seed, options.weeks))
    if options.json:
        plain = {
            name: {age: {way: each.accuracy for way, each in table.items()} for age, table in tables.items()}
            for name, tables in found.items()
        }
        print(json.dumps(plain, indent=1))
    else:
        of_logs = {name: each for name, each in found.items() if name != INVENTED} or found
        print(*at_submission(found), "", *while_it_runs(of_logs), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit("run scripts/bench estimators")
