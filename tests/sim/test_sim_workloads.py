"""Invented workloads: the same seed is the same list, and each is what its recipe says. Recorded lists."""

from itertools import islice
from random import Random

import pytest
from typer.testing import CliRunner

from nqspy.sim.batch import BatchRun
from nqspy.sim.command import app
from nqspy.sim.policies import SITE
from nqspy.sim.workloads.jobs import NotSimulated, Wanted
from nqspy.sim.workloads.known import GENERATORS, open_workload
from nqspy.sim.workloads.lublin import cycle
from nqspy.sim.workloads.nights import night_lists
from nqspy.sim.workloads.psched import applications


@pytest.mark.parametrize("name", GENERATORS)
def test_a_seed_is_a_list(name):
    first, second, other = (list(open_workload(name, Wanted(seed=n, jobs=60)).jobs()) for n in (1, 1, 2))
    assert first == second
    assert first != other
    assert [job.place for job in first] == list(range(60))
    assert all(job.width >= 1 and job.estimate > 0 for job in first)
    submits = [job.submit for job in first]
    assert submits == sorted(submits)


# ---------------------------------------------------------------- Lublin and Feitelson
@pytest.fixture(scope="module")
def lublin():
    return list(open_workload("lublin", Wanted(pes=256, jobs=20_000)).jobs())


def test_a_quarter_of_the_models_jobs_is_serial_and_most_others_are_powers_of_two(lublin):
    widths = [job.width for job in lublin]
    assert sum(width == 1 for width in widths) / len(widths) == pytest.approx(0.244, abs=0.02)
    powers = sum(width > 1 and not width & (width - 1) for width in widths)
    assert 0.576 <= powers / len(widths) < 0.65, "some of the others are powers of 2 by chance"
    assert max(widths) <= 256
    assert {job.width for job in open_workload("lublin", Wanted(pes=1, jobs=50)).jobs()} == {1}


def test_wide_jobs_of_the_model_run_longer(lublin):
    assert max(job.run for job in lublin) <= 162_754_000
    narrow, wide = ([job.run for job in lublin if (job.width > 64) is large] for large in (False, True))
    assert sorted(wide)[len(wide) // 2] > 3 * sorted(narrow)[len(narrow) // 2]


def test_jobs_of_the_model_come_by_day(lublin):
    assert sum(cycle()) / 48 == pytest.approx(1)
    by_hour = [0] * 24
    for job in lublin:
        by_hour[job.submit // 3_600_000 % 24] += 1
    assert min(by_hour[9:17]) > 3 * max(by_hour[2:6])
    days = lublin[-1].submit / 86_400_000
    assert 80 < len(lublin) / days < 130


# ---------------------------------------------------------------- PSched's experiment, the centre's night
def test_psched_applications_are_those_of_the_recipe():
    found = list(islice(applications(Random(1997)), 8))
    assert found == [(24, 319), (8, 914), (12, 401), (20, 314), (8, 1496), (20, 273), (8, 475), (8, 1500)]


def test_thirty_three_applications_are_there_at_any_time():
    workload = open_workload("psched", Wanted(seed=1997, jobs=200))
    ended = list(BatchRun(workload, [("site", SITE)]))
    changes = [(each.job.submit, 1) for each in ended]
    changes += [(each.end, -1) for each in ended]
    there, most = 0, 0
    for _, change in sorted(changes):
        there += change
        most = max(most, there)
    assert len(ended) == 200
    assert most == 33


def test_the_lists_of_a_night_are_handed_in_by_departments():
    jobs = list(open_workload("night", Wanted(seed=3)).jobs())
    assert len(jobs) == sum(map(len, night_lists(3).values()))
    assert all(job.submit < 4 * 3_600_000 for job in jobs)
    small = open_workload("night", Wanted(seed=3, memory=40 * 8 << 20))
    assert 0 < small.count < len(jobs)


@pytest.mark.parametrize(("name", "least"), [("psched", 8), ("t3d", 2)])
def test_a_machine_on_which_no_job_fits_is_refused(name, least):
    with pytest.raises(NotSimulated, match=f"need at least {least} PEs; give --pes"):
        open_workload(name, Wanted(pes=least - 1, jobs=5))
    assert len(list(open_workload(name, Wanted(pes=least, jobs=5)).jobs())) == 5


# ---------------------------------------------------------------- recorded lists
def test_what_was_written_of_a_run_can_be_run_again(tmp_path):
    table, again = tmp_path / "jobs.csv", tmp_path / "again.csv"
    assert CliRunner().invoke(app, ["lublin", "--jobs", "80", "--requests", str(table)]).exit_code == 0
    answer = CliRunner().invoke(app, [str(table), "--pes", "128", "--requests", str(again)])
    assert answer.exit_code == 0
    assert sorted(again.read_text().splitlines()) == sorted(table.read_text().splitlines())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("job,width\n1,2\n", "has no column submit"),
        ("job,width,submit,run\n1,2,0,5\n2,x,0,5\n", "line 3: job, width, submit, run or estimate"),
        ("job,width,submit,run\n1,2\n", "line 2"),
        ("job,width,submit,run\n1,2,0,inf\n", "line 2"),
        ("job,width,submit,run\n1,0,0,5\n", "line 2"),
        ("job,width,submit,run\n", "no job in it"),
        ("\xff\xfe", "not a CSV file"),
    ],
)
def test_what_is_wrong_with_a_list_is_told(tmp_path, text, message):
    path = tmp_path / "list.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(NotSimulated, match=message):
        open_workload(str(path), Wanted())


def test_what_is_wider_than_the_machine_is_dropped(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("job,width,submit,run\n1,2,9,5\n2,8,0,5\n3,1,3,0\n")
    workload = open_workload(str(path), Wanted(pes=4))
    assert [(job.number, job.place, job.estimate) for job in workload.jobs()] == [(3, 2, 1000), (1, 0, 5000)]
    assert workload.dropped == {"wider than the machine": 1}
