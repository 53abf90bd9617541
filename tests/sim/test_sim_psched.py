"""PSched's experiment in small, against a second, plain implementation of its recipe."""

import json
from itertools import islice
from random import Random

import pytest
from sim.sim_calls import program

from nqspy.model.site_checks import check_site
from nqspy.sim.psched import CYCLE, PATIENCE, PschedOrder, PschedRun
from nqspy.sim.workloads.psched import AT_ONCE, PES, applications

FEW, SETTLED, SEED = 150, 30, 3


class Recipe:
    """The recipe of the experiment, second by second where something may happen: holes are looked for PE by
    PE. Times in s. ``busy``: mean number of PEs; ``moves``: (second, application, first PE)."""

    def __init__(self, seed, migration, patience=PATIENCE, cycle=CYCLE):
        self.patience, self.cycle = patience, cycle
        self.source = enumerate(applications(Random(seed)), 1)
        self.waiting, self.running = [], {}  # (number, PEs, length, since); number -> (first PE, PEs, end)
        self.moves, self.ended, area, at, begin = [], 0, 0, 0, 0
        self.fill(at)
        while self.ended < FEW:
            now = min(end for _, _, end in self.running.values())
            if migration and self.slide() is not None:
                now = min(now, (at // cycle + 1) * cycle)
            area += (now - at) * sum(pes for _, pes, _ in self.running.values())
            at = now
            ending = [number for number, (_, _, end) in self.running.items() if end == at]
            for number in ending:
                del self.running[number]
                self.ended += 1
                if self.ended == SETTLED:
                    area, begin = 0, at
            self.fill(at)
            if migration and at % cycle == 0 and (slide := self.slide()) is not None:
                _, base, number = slide
                self.moves.append((at, number, base))
                self.running[number] = (base, *self.running[number][1:])
                self.fill(at)
        self.busy = area / (at - begin)

    def holes(self):
        taken = {pe for base, pes, _ in self.running.values() for pe in range(base, base + pes)}
        found, pe = [], 0
        while pe < PES:
            size = 0
            while pe + size < PES and pe + size not in taken:
                size += 1
            found += [(pe, size)] if size else []
            pe += size or 1
        return found

    def fill(self, at):
        """Start what fits, in order; then let new applications come, as many as have ended."""
        before = None
        while before != (len(self.waiting), len(self.running)):
            before = len(self.waiting), len(self.running)
            self.start(at)
            while len(self.waiting) + len(self.running) < AT_ONCE:
                number, (pes, length) = next(self.source)
                self.waiting.append((number, pes, length, at))

    def start(self, at):
        self.now = at
        for each in list(self.waiting):
            number, pes, length, _ = each
            base = next((base for base, size in self.holes() if size >= pes), None)
            if base is not None:
                self.waiting.remove(each)
                self.running[number] = (base, pes, at + length)
            elif self.overdue(each):
                return

    def overdue(self, application):
        return application is self.waiting[0] and self.now - application[3] > self.patience

    def slide(self):
        """Return (PEs, first PE, application) of the slide that the balancer makes; None: it makes none."""
        idle = sum(size for _, size in self.holes())
        count = self.waiting[:1] if self.overdue(self.waiting[0]) else self.waiting
        wanted = min((pes for _, pes, _, _ in count if pes <= idle), default=None)
        kept, first = dict(self.running), None
        while wanted is not None and max(size for _, size in self.holes()) < wanted:
            ends = {base + size: base for base, size in self.holes()}
            firsts = {base for base, _ in self.holes()}
            between = [
                (pes, ends[base], number)
                for number, (base, pes, _) in self.running.items()
                if base in ends and base + pes in firsts
            ]
            if not between:
                first = None
                break
            slide = min(between)
            first = first or slide
            self.running[slide[2]] = (slide[1], *self.running[slide[2]][1:])
        self.running = kept
        return first


@pytest.mark.parametrize("migration", [False, True])
@pytest.mark.parametrize("patience", [PATIENCE, 600])
def test_the_simulator_does_what_the_recipe_says(migration, patience):
    recipe = Recipe(SEED, migration, patience)
    run = PschedRun(SEED, PschedOrder(migration, patience=patience), FEW, SETTLED)
    figures = run.figures()
    moves = [((at - run.begin) // 1000, seq) for at, seq in run.moves]
    assert moves == [(at, number) for at, number, _ in recipe.moves]
    assert figures["pes_busy"] == pytest.approx(recipe.busy)
    assert bool(moves) == migration
    assert run.alone == run.scattered == 0
    cycles = [at // (1000 * CYCLE) for at, _ in run.moves]
    assert len({*cycles}) == len(cycles)
    check_site(run.sim.site)


def test_both_runs_have_the_stream_that_the_reference_begins_with():
    begins = list(islice(applications(Random(1997)), 8))
    first = [(24, 319), (8, 914), (12, 401), (20, 314), (8, 1496), (20, 273), (8, 475), (8, 1500)]
    assert begins == first
    runs = [PschedRun(1997, PschedOrder(migration), 20, 5) for migration in (False, True)]
    streams = [[(job.width, job.run // 1000) for job in run.workload.jobs()] for run in runs]
    assert streams[0] == streams[1]
    assert streams[0][:8] == first


def test_a_move_costs_what_it_is_told():
    free, dear = (PschedRun(SEED, PschedOrder(True, cost), FEW, SETTLED).figures() for cost in (0, 300))
    assert free["moves"]
    assert dear["wait_s"]["narrow"] != free["wait_s"]["narrow"]


def test_the_command_prints_tables_or_data_and_refuses_what_is_no_patience():
    data = json.loads(program("psched", "--migration", "yes", "--seed", 2, "--jobs", 300, "--json").stdout)
    assert 100 < data["pes_busy"] < 128
    assert data["moves"] > 0
    assert sum(data["applications_by_pes"].values()) == 100
    table = program("psched", "--migration=no", "--jobs", 250, "--patience", "unlimited").stdout.decode()
    assert "mean PEs busy" in table
    assert "128" in table
    wrong = program("psched", "--migration", "yes", "--patience", "long")
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)
    assert program("psched", "--migration", "maybe").returncode == 2
