"""scripts/bench estimates: how far from the truth are the starts that are told, over simulated weeks; and
what a look ahead takes with 10,000 that wait."""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from random import Random

from bench_tools import Figure, figure

from nqspy.core.no_exits import NoExits
from nqspy.core.passes import run_pass
from nqspy.decider.stopwatch import LOOK_AHEAD, part_of
from nqspy.engine.inputs import CommandAsked
from nqspy.engine.look_ahead import LookAhead, Outlook, never
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import MINUTE, Instant, Seq
from nqspy.model.people import Caller
from nqspy.model.requests import Ask, Request, Spec
from nqspy.sim.batch import YEAR_2026
from nqspy.sim.batch_policies import SITE
from nqspy.sim.main import Simulation
from nqspy.sim.workloads.lublin import lublin
from nqspy.sim.workloads.wanted import Wanted
from nqspy.store.loading import no_collector
from nqspy.store.passing import PassingJournal

PES, WEEK = 128, 7 * 24 * 60 * MINUTE
DENSER = 1.45
"""The model's jobs come so many times as fast."""
ROUND = [n * MINUTE for n in (5, 10, 15, 30, 60, 120, 240, 480, 720, 1440, 2880, 5760)]
"""Wall limits that people ask for, ms."""
USERS, PROGRAMS = 40, 4
EACH = 7
"""Of so many that wait one is asked about, when it is handed in."""
POLICIES = {
    "first fit": "set queue batch order=fcfs",
    "EASY": "set queue batch order=fcfs reserve=1",
    "conservative": "set queue batch order=fcfs reserve=all",
    "shares and age": "set sched_factor share 10 time 5\nset queue batch order=priority",
}
WAITING = 10_000
MOST = 50
"""ms that a look may take."""


@dataclass(frozen=True)
class Job:
    """``program``: of its user; ``limit`` None: it has no wall limit; ``guess``: its owner's best, None: he
    gives none."""

    submit: int
    run: int
    width: int
    user: str
    program: str
    limit: int | None
    guess: int | None = None


def jobs(seed: int, weeks: int, unlimited: float, guessing: float = 0.0) -> Iterator[Job]:
    """The widths, run times and arrivals of the Lublin-Feitelson model, handed in by people who run a few
    programs each and ask for a round limit: what part of it they use is the program's, with a spread. A part
    of them (``guessing``) guesses how long each will run: half of the guesses within a quarter of the truth,
    but for what each of them always guesses too much or too little."""
    rng, typical, guesses = Random(seed), dict[tuple[str, str], float](), Random(seed + 1)
    habits = {f"u{n}": guesses.lognormvariate(0.2, 0.3) for n in range(USERS)}
    guessers = {user for user in habits if guesses.random() < guessing}
    for each in lublin(Wanted(pes=PES, seed=seed, jobs=10_000_000)).jobs():
        submit = round(each.submit / DENSER)
        if submit > weeks * WEEK:
            return
        user = f"u{min(USERS - 1, int(rng.expovariate(6 / USERS)))}"
        program = f"p{rng.randrange(PROGRAMS)}"
        part = typical.setdefault((user, program), rng.betavariate(1.2, 1.6))
        used = min(1.0, max(0.02, part * rng.lognormvariate(0, 0.25)))
        limit = next((n for n in ROUND if n >= each.run / used), max(ROUND[-1], each.run))
        limited = None if rng.random() < unlimited else limit
        guess = max(1, round(each.run * habits[user] * guesses.lognormvariate(0, 0.35)))
        guess = guess if limited is None else min(guess, limited)
        yield Job(submit, each.run, each.width, user, program, limited, guess if user in guessers else None)


@dataclass
class Weeks:
    """A simulated site that is asked about some of those that wait as they are handed in; ``patient``: a look
    is not broken off."""

    policy: str
    patient: bool = False
    told: dict[Seq, tuple[Instant, Outlook]] = field(default_factory=dict)
    starts: dict[Seq, Instant] = field(default_factory=dict)
    took: list[float] = field(default_factory=list)

    def live(self, work: Sequence[Job]) -> None:
        """All of it, to the end."""
        runs: dict[Seq, int] = {}
        self.sim = Simulation(
            PassingJournal(self._follow), lambda r: Run(runs[r.seq], runs[r.seq] * r.spec.ask.pes), YEAR_2026,
            pes=PES, sampled=False,
        )  # fmt: skip
        self.sim.configure([("site", SITE), ("policy", self.policy)])
        for number, job in enumerate(work, 1):
            self.sim.run(Instant(YEAR_2026 + job.submit))
            runs[number] = job.run
            self.sim.feed([CommandAsked(submission(job), Caller(job.user, 1000, 1000, (), True))])
            request = self.sim.site.requests.get(number)
            if request is not None and request.started is None and number % EACH == 0:
                self._ask(request)
        self.sim.run()

    def _ask(self, request: Request) -> None:
        began = time.perf_counter()
        ahead = LookAhead(self.sim.site, self.sim.now, self.sim.engine.between)
        spent = never if self.patient else part_of(LOOK_AHEAD)
        found = ahead.outlooks((request.seq,), NoExits(), spent)[request.seq]
        self.took.append(time.perf_counter() - began)
        self.told[request.seq] = (self.sim.now, found)

    def _follow(self, events: Sequence[ev.Recorded]) -> None:
        for each in events:
            if isinstance(each.event, ev.Starting):
                self.starts.setdefault(each.event.seq, each.at)


def submission(job: Job) -> cm.Submit:
    """As qsub sends it."""
    ask = Ask(pes=job.width, wall=job.limit, best_guess=job.guess)
    spec = Spec(job.user, 1000, job.program, "", "", "", "/home", ask=ask)
    return cm.Submit((cm.Submission(spec, ""),))


@dataclass(frozen=True)
class Told:
    """What was told of one kind (``at the latest``, ``probably``) under a policy: errors in parts of the
    wait, shares of all that were asked about."""

    policy: str
    kind: str
    asked: int
    median: float
    most: float
    early: float
    unknown: float


def judged(name: str, weeks: Weeks) -> Iterator[Told]:
    """Both kinds."""
    for kind in ("latest", "probably"):
        errors, early = [], 0
        for seq, (at, outlook) in weeks.told.items():
            start, real = getattr(outlook, kind).start, weeks.starts[seq]
            if start is not None:
                errors.append(abs(start - real) / max(1, real - at))
                early += real > start + MINUTE
        known, asked = len(errors), len(weeks.told)
        most = statistics.quantiles(errors, n=10)[-1] if known > 1 else 0.0
        median = statistics.median(errors) if errors else 0.0
        yield Told(name, kind, asked, median, most, early / max(1, known), 1 - known / max(1, asked))


def text(rows: Sequence[Told]) -> str:
    """A table in Markdown, as the manual has it."""
    lines = ["| policy | what | asked | median error | 90 % | too early | unknown |", "|" + " --- |" * 7]
    for each in rows:
        word = "at the latest" if each.kind == "latest" else each.kind
        parts = (f"{100 * n:.0f} %" for n in (each.median, each.most, each.early, each.unknown))
        lines.append(f"| {each.policy} | {word} | {each.asked} | {' | '.join(parts)} |")
    return "\n".join(lines)


def long_line() -> Figure:
    """What a look takes of one that stands behind 10,000, and what a pass over them takes."""
    rng = Random(1)
    sim = Simulation(PassingJournal(), lambda r: Run(600_000), YEAR_2026, pes=PES, sampled=False)
    sim.configure([("site", SITE), ("policy", POLICIES["shares and age"])])
    for _ in range(WAITING // 1000):
        some = [
            Job(0, 0, rng.randint(1, 16), f"u{rng.randrange(USERS)}", "p", rng.choice(ROUND))
            for _ in range(1000)
        ]
        items = tuple(item for job in some for item in submission(job).items)
        sim.feed([CommandAsked(cm.Submit(items), Caller("root", 0, 0, (), True))])
    took, passes, said = [], [], ""
    for _ in range(5):
        began = time.process_time()
        run_pass(sim.site, sim.now, NoExits())
        passes.append(time.process_time() - began)
        began, spent = time.process_time(), part_of(LOOK_AHEAD)
        with no_collector():
            ahead = LookAhead(sim.site, sim.now, sim.engine.between)
            found = ahead.outlooks((WAITING - 7,), NoExits(), spent)
        took.append(time.process_time() - began)
        said = found[WAITING - 7].probably.basis
    ours, floor = 1000 * statistics.median(took), 1000 * statistics.median(passes)
    floor_name, goal = "one pass over the same site", f"<= {MOST} ms"
    return figure("a look ahead, 10,000 waiting", ours, "ms CPU", floor, floor_name, goal, ours <= MOST, said)


def main(words: list[str], table: Callable[[list[Figure]], str]) -> int:
    """Prints the tables, or JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench estimates", description=__doc__)
    parser.add_argument("--weeks", type=int, default=4, help="simulated (4)")
    parser.add_argument("--seed", type=int, default=1, help="of the workload (1)")
    parser.add_argument(
        "--unlimited", type=float, default=0.0, help="part of the jobs without a wall limit (0)"
    )
    parser.add_argument("--guessing", type=float, default=0.0, help="part of the people who guess (0)")
    parser.add_argument(
        "--patient",
        action="store_true",
        help="looks are not broken off: no machine is too slow",
    )
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args(words)
    rows, work = [], list(jobs(options.seed, options.weeks, options.unlimited, options.guessing))
    for name, policy in POLICIES.items():
        weeks = Weeks(policy, options.patient)
        weeks.live(work)
        rows += judged(name, weeks)
    line = long_line()
    if options.json:
        print(json.dumps({"told": [asdict(each) for each in rows], "figures": [asdict(line)]}, indent=1))
    else:
        print(text(rows), table([line]), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit("run scripts/bench estimates")
