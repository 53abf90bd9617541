"""Moldable jobs in the simulator: the same jobs on fixed sizes and on those that the pass chooses."""

import pytest

from nqspy.sim.batch import BatchRun
from nqspy.sim.policies import BATCH_POLICIES, SITE, Variant
from nqspy.sim.runs import RunTask, run_task
from nqspy.sim.workloads.jobs import SimulatedJob, Wanted, Workload
from nqspy.sim.workloads.moldable import any_size, molded_job, narrow, wide

JOBS = [
    SimulatedJob(n, n + 1, n * 60_000, 600_000, 900_000, width) for n, width in enumerate((4, 1, 6, 8, 2, 5))
]


def run(policy, jobs=JOBS, pes=16):
    chosen = BATCH_POLICIES[policy]
    workload = Workload("few", pes, len(jobs), lambda: iter(jobs))
    texts = [("site", SITE), (policy, chosen.commands)]
    return {each.job.number: each for each in BatchRun(workload, texts, molding=chosen.molding)}


def test_a_job_could_run_on_whole_parts_and_multiples_of_its_width_that_the_machine_has():
    assert [molded_job(job, 16).sizes for job in JOBS] == [
        (1, 2, 4, 8, 16), (1,), (3, 6, 12), (2, 4, 8, 16), (1, 2, 4, 8), (5, 10),
    ]  # fmt: skip


def test_on_its_own_width_it_takes_what_the_log_says_and_its_speedup_is_its_own_for_ever():
    for job in JOBS:
        found = molded_job(job, 16)
        assert found.time_on(job.width, 12_345) == 12_345
        assert job.width <= found.speedup.parallelism <= 4 * job.width
        assert 0 <= found.speedup.sigma <= 2
        times = [found.time_on(pes, job.run) for pes in found.sizes]
        assert times == sorted(times, reverse=True)
        again = SimulatedJob(0, job.number, 5, job.run, job.estimate, job.width)
        assert molded_job(again, 16).speedup == found.speedup


@pytest.mark.parametrize(("shape", "end"), [(narrow, 0), (wide, -1)])
def test_fixed_sizes_are_the_least_and_the_greatest(shape, end):
    ended = run(f"easy-{shape.__name__}")
    assert {n: each.pes for n, each in ended.items()} == {
        job.number: molded_job(job, 16).sizes[end] for job in JOBS
    }
    for number, each in ended.items():
        assert each.run == molded_job(JOBS[number - 1], 16).time_on(each.pes, 600_000)


def test_the_chosen_size_is_the_fastest_that_is_free():
    ended = run("fcfs-mold")
    assert ended[1].pes == 16, "the machine is empty"
    taken = [(each.start, each.end, each.pes) for each in ended.values()]
    for each in ended.values():
        found = molded_job(each.job, 16)
        free = 16 - sum(pes for begin, end, pes in taken if begin <= each.start < end) + each.pes
        times = {size: found.time_on(size, 600_000) for size in any_size(found).sizes if size <= free}
        assert times[each.pes] == min(times.values())


def test_use_is_counted_by_the_pes_that_were_held():
    found = run_task(RunTask("lublin", Wanted(seed=3, jobs=40), Variant("easy-mold")))
    fixed = run_task(RunTask("lublin", Wanted(seed=3, jobs=40), Variant("easy")))
    assert found.metrics.jobs == fixed.metrics.jobs == 40
    assert 0 < found.metrics.overall().utilisation <= 1
    assert found.data() == run_task(RunTask("lublin", Wanted(seed=3, jobs=40), Variant("easy-mold"))).data()
