"""A log on a simulated machine: every start as the reference gives it, and what is printed of it."""

import csv
import errno
import json
import os
from hashlib import sha256
from pathlib import Path

import pytest
from sim.sim_calls import ROOT, call, data_of, log, refused
from sim.sim_calls import TRACES as OURS

from nqspy.qmgr.parser import ParseError
from nqspy.sim.batch import BatchRun
from nqspy.sim.metrics import Metrics, size_class
from nqspy.sim.policies import BATCH_POLICIES, SITE
from nqspy.sim.results import seconds
from nqspy.sim.workloads.jobs import NotSimulated
from nqspy.sim.workloads.logs import open_swf

MORE = Path(os.environ.get("NQSPY_TRACES", ROOT.parent / "shared" / "traces"))
"""Folder of logs that we may not copy, with a folder ``expected``; it may be missing."""


def starts_of(path: Path, policy: str) -> list[tuple[float, float]]:
    run = BatchRun(open_swf(path), [("site", SITE), (policy, BATCH_POLICIES[policy].commands)])
    found = sorted((each.job.place, each.job.number, each.start / 1000) for each in run)
    assert not run.unended
    return [(number, start) for _, number, start in found]


def expected(path: Path) -> list[tuple[float, float]]:
    return [(float(job), float(start)) for job, start in map(str.split, path.read_text().splitlines())]


REFERENCE = ("fcfs", "firstfit", "sjf", "easy", "easy-sjbf", "conservative")
SHORT = [(trace, policy) for trace in ("example", "edge", "ties") for policy in REFERENCE]
T3D = pytest.param("t3d", "conservative", marks=pytest.mark.long)


@pytest.mark.parametrize(("trace", "policy"), [*SHORT, ("t3d", "easy"), T3D])
def test_every_start_is_as_the_reference_gives_it(trace, policy):
    assert starts_of(OURS / f"{trace}.swf", policy) == expected(OURS / f"{trace}.{policy}.txt")


_EACH_RUN = {
    ("nasa", "fcfs"), ("nasa", "sjf"), ("lublin", "firstfit"), ("lublin", "easy-sjbf"),
    ("kth", "conservative"),
}  # fmt: skip
"""Logs and policies that every run compares, and the long one all; of `easy` there is t3d above."""
OTHERS = [
    pytest.param(trace, policy, marks=() if (trace, policy) in _EACH_RUN else pytest.mark.long)
    for trace in ("kth", "sdsc", "nasa", "lublin")
    for policy in REFERENCE
]


@pytest.mark.skipif(not (MORE / "expected").is_dir(), reason="needs the logs: NQSPY_TRACES=FOLDER")
@pytest.mark.parametrize(("trace", "policy"), OTHERS)
def test_so_it_is_in_the_logs_that_are_not_ours_to_copy(trace, policy):
    assert starts_of(MORE / f"{trace}.swf", policy) == expected(MORE / "expected" / f"{trace}.{policy}.txt")


def whole_logs() -> list[tuple[str, str, str]]:
    """Return each log and policy with the checksum of its starts; none without the logs."""
    table = MORE / "logs" / "metrics.tsv"
    lines = table.read_text("utf-8").splitlines() if table.exists() else []
    rows = csv.DictReader(lines, delimiter="\t")
    return [(row["log"], row["policy"], row["sha256_of_starts"]) for row in rows]


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("name", "policy", "checksum"), whole_logs())
def test_every_start_of_a_whole_log_is_as_the_reference_gives_it(name, policy, checksum):
    starts = starts_of(MORE / "logs" / f"{name}.swf.gz", policy)
    lines = "".join(f"{number} {seconds(round(start * 1000))}\n" for number, start in starts)
    assert sha256(lines.encode()).hexdigest() == checksum


def test_who_knows_run_times_exactly_plans_by_them_and_chances_need_a_past(tmp_path):
    """Job 3 is to end before job 2 can start, which only its run time says."""
    path = log(tmp_path / "log.swf", (0, 100, 1), (1, 50, 2), (2, 90, 1, 500))
    for policy, third in (("easy", 150), ("easy-exact", 2), ("easy-probable", 150)):
        chosen = BATCH_POLICIES[policy]
        run = BatchRun(open_swf(path, 2), [("site", SITE), (policy, chosen.commands)], ask=chosen.ask)
        assert {each.job.number: each.start // 1000 for each in run} == {1: 0, 2: 100, 3: third}


# ---------------------------------------------------------------- what happens to a job
def test_a_job_that_outruns_its_estimate_is_killed_at_it(tmp_path):
    path = log(tmp_path / "log.swf", (0, 80, 1, 50), (0, 50, 1))
    first, second = BatchRun(open_swf(path, 1), [("site", SITE)])
    assert (first.start, first.run, first.end) == (0, 50_000, 50_000)
    assert (second.wait, second.end) == (50_000, 100_000)


def test_memory_keeps_back_what_does_not_fit_beside_what_runs(tmp_path):
    path, memory = log(tmp_path / "log.swf", (0, 50, 1, 50, 600), (0, 50, 1, 50, 600)), 1 << 20
    run = BatchRun(open_swf(path, 4, memory), [("site", SITE)], memory)
    assert [each.start for each in run] == [0, 50_000]


def test_what_never_starts_is_told(tmp_path):
    run = BatchRun(open_swf(OURS / "example.swf"), [("site", SITE + "stop queue batch\n")])
    assert list(run) == []
    assert run.unended == 7


def test_settings_that_are_refused_and_jobs_that_no_queue_takes_end_it_with_a_line():
    workload = open_swf(OURS / "example.swf")
    with pytest.raises(ParseError, match="line 1"):
        BatchRun(workload, [("my.qmgr", "set nonsense\n")])
    with pytest.raises(NotSimulated, match="job 4 was refused"):
        list(BatchRun(workload, [("site", SITE + "set per_request pe_limit=4 batch\n")]))


# ---------------------------------------------------------------- metrics
def test_metrics_are_those_of_the_reference():
    workload = open_swf(OURS / "ties.swf")
    metrics = Metrics(workload.pes)
    for ended in BatchRun(workload, [("site", SITE)]):
        metrics.add(ended)
    found = metrics.overall()
    assert (round(found.wait_mean_s, 3), found.wait_median_s, found.wait_max_s) == (9187.12, 1140, 116_760)
    rest = round(found.bsld_mean, 4), found.makespan_s, round(found.utilisation, 6)
    assert rest == (14.3949, 611_460, 0.848997)
    for kind in ("group", "user", "size"):
        assert sum(each.jobs for each in metrics.parts(kind).values()) == 1500
    assert list(metrics.parts("size")) == ["1", "2", "3-4", "5-8", "9-16", "17-32", "33-64"]


def test_size_classes_reach_to_powers_of_two_and_times_have_no_trailing_zeros():
    assert Metrics(8).overall().utilisation == 0.0, "nothing is divided by zero"
    classes = {1: "1", 2: "2", 3: "3-4", 5: "5-8", 8: "5-8", 9: "9-16", 128: "65-128"}
    assert {n: size_class(n) for n in classes} == classes
    assert [seconds(ms) for ms in (0, 1000, 120_500, 1, 10)] == ["0", "1", "120.5", "0.001", "0.01"]


# ---------------------------------------------------------------- the command
def test_starts_are_written_in_the_order_of_the_file(tmp_path):
    out = tmp_path / "starts"
    answer = call(OURS / "edge.swf", "--policy", "firstfit", "--starts", out)
    assert answer.exit_code == 0
    assert out.read_text() == (OURS / "edge.firstfit.txt").read_text()
    assert "never ran" in answer.stdout


def test_json_is_one_object(tmp_path):
    data = data_of(OURS / "edge.swf")
    assert (data["jobs"], data["policy"], data["pes"]) == (16, "firstfit", 16)
    reasons = ("no submit time", "no processors", "never ran", "wider than the machine")
    assert data["dropped"] == dict.fromkeys(reasons, 1)
    assert set(data["metrics"]) == {
        "wait_mean_s", "wait_median_s", "wait_max_s", "bsld_mean", "makespan_s", "utilisation",
    }  # fmt: skip
    assert data["seconds"] > 0
    assert data["jobs_per_s"] > 0


def test_each_job_is_written_as_it_ends(tmp_path):
    table, lines = tmp_path / "jobs.csv", tmp_path / "jobs.jsonl"
    assert call(OURS / "example.swf", "--requests", table).exit_code == 0
    assert call(OURS / "example.swf", "--requests", lines).exit_code == 0
    rows = [json.loads(text) for text in lines.read_text().splitlines()]
    assert rows[0] == {
        "job": 1, "user": "u1", "group": "g1", "width": 2, "estimate": 12, "submit": 0, "start": 0, "end": 9,
        "run": 9, "wait": 0,
    }  # fmt: skip
    told = [row["job"] for row in csv.DictReader(table.read_text().splitlines())]
    assert told == [str(row["job"]) for row in rows]


@pytest.mark.parametrize(
    ("option", "name", "jobs"),
    [("--starts", "starts", 5), ("--requests", "jobs.csv", 2000), ("--requests", "j.json", 5)],
    ids=["at its end", "in the middle", "of JSON"],
)
def test_a_disk_that_is_full_is_told_in_one_line(tmp_path, option, name, jobs):
    (tmp_path / name).symlink_to("/dev/full")
    message = refused("lublin", "--jobs", jobs, option, tmp_path / name)
    assert f"{tmp_path / name} cannot be written: {os.strerror(errno.ENOSPC)}" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--starts", "mine.swf"], "--starts would overwrite {}/mine.swf, which is the workload"),
        (["--html", "link.html"], "--html would overwrite {}/link.html, which is the workload"),
        (
            ["--requests", "site.csv", "--config", "site.csv"],
            "site.csv, which is --config: choose another file",
        ),
        (["--starts", "a.csv", "--requests", "a.csv"], "a.csv, which is what --starts writes"),
        (["--html", "gantt.svg", "--pictures", "gantt.svg"], "gantt.svg, which is what --html writes"),
    ],
)
def test_what_is_read_or_written_is_not_overwritten(tmp_path, words, message):
    content = (OURS / "example.swf").read_text()
    (tmp_path / "mine.swf").write_text(content)
    (tmp_path / "site.csv").write_text(SITE)
    (tmp_path / "link.html").symlink_to("mine.swf")
    named = [word if word.startswith("--") else tmp_path / word for word in words]
    assert message.format(tmp_path) in refused(tmp_path / "mine.swf", *named)
    assert (tmp_path / "mine.swf").read_text() == content
    assert (tmp_path / "site.csv").read_text() == SITE


def test_what_is_refused_leaves_no_file(tmp_path):
    (tmp_path / "log.swf").write_text("no log at all\n")
    (tmp_path / "old.html").write_text("the page of yesterday")
    for page in ("new.html", "old.html"):
        refused(tmp_path / "log.swf", "--html", tmp_path / page, "--pictures", tmp_path / "gantt.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.swf", "old.html"]
    assert (tmp_path / "old.html").read_text() == "the page of yesterday"


def test_a_refused_job_ends_the_run_and_leaves_no_half_written_file(tmp_path):
    config, starts, jobs = tmp_path / "one.qmgr", tmp_path / "starts", tmp_path / "jobs.csv"
    config.write_text(SITE + "set per_request pe_limit=4 batch\n")
    words = ["--config", config, "--starts", starts, "--requests", jobs]
    assert "job 4 was refused: batch: 5 PEs" in refused(OURS / "example.swf", *words)
    assert [path.name for path in tmp_path.iterdir()] == ["one.qmgr"]


def test_a_configuration_of_ones_own_is_used(tmp_path):
    config = tmp_path / "one.qmgr"
    config.write_text(SITE + "set run_limit=1 batch\n")
    data = data_of(OURS / "example.swf", "--config", config)
    assert data["metrics"]["makespan_s"] == sum((9, 8, 8, 6, 3, 2, 2)), "one after the other"
    config.write_text(SITE + "set machine pes=3\n")
    assert data_of(OURS / "example.swf", "--config", config, "--pes", 8)["jobs"] == 7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "there is no workload nothing; there are "),
        (["no.swf"], "no.swf cannot be read: No such file or directory"),
        ([OURS / "example.swf", "--policy", "best"], "there is no policy best; there are fcfs, firstfit"),
        ([OURS / "example.swf", "--config", "no.qmgr"], "no.qmgr cannot be read"),
        ([OURS / "example.swf", "--starts", "/no/such/folder"], "/no/such/folder cannot be written"),
        ([OURS / "example.swf", "--requests", "jobs.xml"], "unknown format"),
        ([OURS / "example.swf", "--memory", "much"], "much"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(words, message):
    assert message in refused(*words)
