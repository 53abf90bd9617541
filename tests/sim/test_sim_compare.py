"""Several runs side by side: policies, varied settings, seeds; the same whoever runs them."""

import os
import re
import subprocess
import sys
from typing import BinaryIO

import pytest
from sim.sim_calls import ROOT, TRACES, call, data_of, log, program, refused

from nqspy.sim.comparing import STUDENT, Estimate, estimate, student
from nqspy.sim.policies import changes_of, variants_of
from nqspy.sim.workloads.jobs import NotSimulated
from nqspy.sim.workloads.known import WEEK, resampled
from nqspy.sim.workloads.logs import open_swf

LUBLIN = ("lublin", "--jobs", 40)


# ---------------------------------------------------------------- policies side by side
def test_each_policy_gives_what_it_gives_alone():
    both = data_of(TRACES / "edge.swf", "--policy", "fcfs,easy")
    assert [run["label"] for run in both["runs"]] == ["fcfs", "easy"]
    for run in both["runs"]:
        alone = data_of(TRACES / "edge.swf", "--policy", run["label"])
        assert alone["metrics"] == run["metrics"]
        assert alone["by"] == run["by"]
    first, second = both["comparison"]
    assert "difference" not in first["metrics"]["wait_mean_s"]
    apart = second["metrics"]["wait_mean_s"]["mean"] - first["metrics"]["wait_mean_s"]["mean"]
    assert second["metrics"]["wait_mean_s"]["difference"] == {"mean": apart, "ci95": None}


def test_the_table_has_a_row_for_each_and_its_difference_to_the_first():
    lines = call(TRACES / "example.swf", "--policy", "fcfs,easy").stdout.splitlines()
    found = {line.split()[0]: line.split() for line in lines if line.strip()}
    easy, fcfs = (float(found[name][1]) for name in ("easy", "fcfs"))
    assert float(found["easy"][2]) == pytest.approx(easy - fcfs, abs=0.11)


# ---------------------------------------------------------------- seeds
def test_seeds_give_the_same_whoever_runs_them():
    words = (*LUBLIN, "--policy", "fcfs,easy", "--seeds", 3)
    one, two, three = (data_of(*words, "--processes", n) for n in (1, 2, 3))
    for found in (one, two, three):
        del found["seconds"]
    assert one == two == three
    assert [(run["label"], run["seed"]) for run in one["runs"]] == [
        (label, seed) for label in ("fcfs", "easy") for seed in (1, 2, 3)
    ]


def test_differences_are_paired_by_seed_and_a_seed_among_many_is_that_seed_alone():
    found = data_of(*LUBLIN, "--policy", "fcfs,easy", "--seeds", 4, "--seed", 5, "--processes", 1)
    assert found["runs"][1]["metrics"] == data_of(*LUBLIN, "--policy", "fcfs", "--seed", 6)["metrics"]
    waits = {
        label: [run["metrics"]["wait_mean_s"] for run in found["runs"] if run["label"] == label]
        for label in ("fcfs", "easy")
    }
    pairs = [easy - fcfs for fcfs, easy in zip(waits["fcfs"], waits["easy"], strict=True)]
    told = found["comparison"][1]["metrics"]["wait_mean_s"]["difference"]
    assert Estimate(**told) == estimate(pairs)


def test_estimates_are_those_of_students_t():
    assert estimate([5.0]) == Estimate(5.0, None)
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.ci95) == (2.0, pytest.approx(4.303 / 3**0.5))
    assert [student(n) for n in (1, 29, 30)] == [12.706, 2.045, 2.042]
    assert [student(n) for n in (31, 40, 60, 120)] == pytest.approx([2.040, 2.021, 2.000, 1.980], abs=1e-3)
    assert list(STUDENT) == sorted(STUDENT, reverse=True)


# ---------------------------------------------------------------- weeks of a log
def weeks_of_jobs(path, weeks: int):
    """Write a log in which each week has as many jobs as its number, in its first hour; one job ends the
    log."""
    days = 7 * 86_400
    jobs = [(week * days + n, 60, 1) for week in range(weeks) for n in range(week + 1)]
    return log(path, *jobs, (weeks * days, 60, 1))


def test_other_seeds_of_a_log_are_weeks_drawn_from_it(tmp_path):
    workload = open_swf(weeks_of_jobs(tmp_path / "log.swf", 6), 4)
    one, again, other = (resampled(workload, seed) for seed in (1, 1, 2))
    assert list(one.jobs()) == list(again.jobs())
    assert list(one.jobs()) != list(other.jobs())
    for found in (one, other):
        jobs = list(found.jobs())
        assert found.count == len(jobs)
        assert [job.place for job in jobs] == list(range(len(jobs)))
        assert [job.submit for job in jobs] == sorted(job.submit for job in jobs)
        per_week = [sum(job.submit // WEEK == week for job in jobs) for week in range(6)]
        assert all(1 <= count <= 6 for count in per_week), "whole weeks, each one of the log's"


def test_a_log_is_run_over_seeds_where_it_is_long_enough_and_has_the_jobs_that_it_has(tmp_path):
    path = weeks_of_jobs(tmp_path / "log.swf", 5)
    found = data_of(path, "--pes", 2, "--seeds", 2, "--processes", 1)
    assert {run["workload"] for run in found["runs"]} == {"log.swf-1", "log.swf-2"}
    assert "--jobs" in refused(TRACES / "example.swf", "--jobs", 2)
    message = refused(TRACES / "example.swf", "--seeds", 3)
    assert ("example.swf" in message, re.findall(r" \d+ ", message)) == (True, [" 0 ", " 4 "])
    with pytest.raises(NotSimulated):
        resampled(open_swf(TRACES / "example.swf"), 1)


# ---------------------------------------------------------------- varied settings
def test_a_setting_takes_one_value_after_the_other():
    found = data_of(*LUBLIN, "--vary", "run_limit=1,3 batch", "--policy", "fcfs")
    assert [each["label"] for each in found["comparison"]] == ["fcfs, run_limit=1", "fcfs, run_limit=3"]
    waits = [each["metrics"]["wait_mean_s"]["mean"] for each in found["comparison"]]
    assert waits[0] > waits[1]


def test_policies_and_several_settings_are_all_crossed():
    varied = variants_of("fcfs,sjf", ["sched_factor share=0,1", "queue batch reserve=0,1"])
    labels = [each.label("") for each in varied]
    assert len(labels) == 8
    assert labels[:2] == ["fcfs, share=0, reserve=0", "fcfs, share=0, reserve=1"]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("sched_factor share=0,10", ["set sched_factor share=0", "set sched_factor share=10"]),
        ("set run_limit = 1, 2 batch", ["set run_limit=1 batch", "set run_limit=2 batch"]),
        ("queue q users=(a,b),(c)", ["set queue q users=(a,b)", "set queue q users=(c)"]),
    ],
)
def test_what_is_varied_becomes_commands_of_qmgr(text, commands):
    assert [change.command for change in changes_of(text)] == commands


@pytest.mark.parametrize(
    "text", ["", "share", "sched_factor", "a=1 b=2", "share=", "share=1,,2", "share=1,", "=1"]
)
def test_what_is_no_variation_is_refused_in_a_line(text):
    with pytest.raises(NotSimulated, match="write it like 'sched_factor share=0,10,20'") as refusal:
        list(changes_of(text))
    assert f"--vary '{text}'" in str(refusal.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vary", "sched_factor shore=1,2"], "--vary 'sched_factor shore=1,2', line 1"),
        (["--vary", "sched_factor share=1,x"], "'x' is not a whole number"),
        (["--vary", "queue none order=sjf"], "there is no queue none"),
        (["--vary", "nonsense"], "has no values"),
        (["--policy", "fcfs,best"], "there is no policy best; there are fcfs"),
        (["--policy", "fcfs,"], "--policy 'fcfs,' has an empty name; write it like fcfs,easy"),
        (["--policy", "easy,,fcfs"], "--policy 'easy,,fcfs' has an empty name"),
        (["--policy", "fcfs,fcfs"], "--policy names fcfs twice"),
        (["--policy", "fcfs,easy", "--starts", "s"], "need a single run; these are 2"),
        (["--seeds", "1000000000"], "make 1000000000 runs, 10000 at most are made"),
        (5 * ["--vary", "run_limit=" + ",".join(map(str, range(1, 101)))], "make 10000000000 runs"),
        (["--seeds", "2", "--requests", "r.csv"], "need a single run; these are 2"),
        (["--html", "/none/page.html"], "/none/page.html cannot be written"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(words, message):
    assert message in refused(*LUBLIN, *words)


def test_more_jobs_than_anything_has_are_refused():
    answer = program("lublin", "--jobs", 10**21)
    assert (answer.returncode, answer.stderr.count(b"\n")) == (2, 1)
    assert b"1000000000000000000000 is not in the range 1<=x<=10000000" in answer.stderr


def test_an_output_that_is_full_is_told_in_one_line():
    with open("/dev/full", "wb") as full:
        answer = program(TRACES / "example.swf", stdout=full)
    message = b"nqspy sim: the output cannot be written: No space left on device\n"
    assert (answer.returncode, answer.stderr) == (1, message)


def test_names_and_errors_do_nothing_to_a_terminal(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text('job,width,submit,run,user\n1,1,0,5,"\x1b[31mred"\n')
    assert "\\u001b[31mred" in call(path).stdout
    path = tmp_path / "log.swf"
    path.write_text("1 0 -1 \x1b[31m 1 -1 -1 1 9 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert "field 4 is not a number: \\u001b[31m" in refused(path, "--pes", 1)
    assert "a=1 b=2" in refused(path, "--pes", 1, "--vary", "a=1\nb=2")


def test_what_makes_no_difference_is_said():
    answer = call(*LUBLIN, "--policy", "fcfs", "--vary", "sched_factor share=0,10", "--processes", 1)
    assert "the same result" in answer.stdout
    assert (
        "the same result"
        not in call(*LUBLIN, "--policy", "fcfs,easy", "--jobs", 200, "--processes", 1).stdout
    )


# ---------------------------------------------------------------- terminals
@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "cp1252"])
def test_a_terminal_may_have_any_encoding(tmp_path, encoding):
    path = log(tmp_path / "größe ✓.swf", (0, 5, 1), (0, 5, 2))
    for words in ((path, "--pes", 2), (*LUBLIN, "--seeds", 2, "--processes", 1)):
        done = program(*words, PYTHONIOENCODING=encoding)
        assert (done.returncode, done.stderr) == (0, b"")
        done.stdout.decode(encoding)
    assert ("±" if encoding == "utf-8" else "+-").encode() in done.stdout


@pytest.mark.parametrize("words", [(), ("--seeds", 2, "--policy", "fcfs,easy")], ids=["one", "several"])
def test_a_terminal_sees_how_far_it_is(words):
    """Elsewhere nothing is written to stderr, as the other tests here look at."""
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        asked = [sys.executable, "-m", "nqspy.sim.command", *map(str, (*LUBLIN, *words))]
        with subprocess.Popen(asked, cwd=ROOT, stderr=theirs, stdout=subprocess.DEVNULL) as running:
            os.close(theirs)
            seen = b"".join(iter(lambda: _read(screen), b""))
        assert running.returncode == 0
    assert ("lublin, 4 runs" if words else "lublin-1").encode() in seen
    assert b"/160" in seen if words else b"/40" in seen


def _read(screen: BinaryIO) -> bytes:
    """Return what comes next; empty once no process writes any more, which a terminal reports as an error."""
    try:
        return screen.read(4096)
    except OSError:
        return b""


def test_a_file_whose_name_is_no_text_is_simulated(tmp_path):
    path = log(tmp_path / b"log\xff.swf".decode("utf-8", "surrogateescape"), (0, 5, 1), (0, 5, 2))
    done = program(path, "--pes", 2, "--html", tmp_path / "page", "--pictures", tmp_path / "p")
    assert (done.returncode, done.stderr) == (0, b"")


def test_commands_of_every_day_import_nothing_of_it():
    script = """
import sys, nqspy.cli.qsub, nqspy.cli.qstat, nqspy.cli.nqspy
print(*[name for name in sys.modules if name.split(".")[0] == "PIL" or name.startswith("nqspy.sim")])
"""
    assert subprocess.check_output([sys.executable, "-c", script], cwd=ROOT) == b"\n"
