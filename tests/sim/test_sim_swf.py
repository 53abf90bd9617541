"""Logs in the Standard Workload Format: what a line means, what is no job, what is wrong with a file;
and the log of a site, written and read back."""

import gzip
from pathlib import Path

import pytest
from sim.sim_calls import TRACES, KeptRun

from nqspy.report.swf import SwfFrame, swf_log
from nqspy.report.time_text import Zone
from nqspy.sim.policies import BATCH_POLICIES, SITE
from nqspy.sim.workloads.jobs import NotSimulated, Wanted
from nqspy.sim.workloads.known import open_workload
from nqspy.sim.workloads.logs import open_swf, read_labels

HEADER = "; Version: 2.2\n; MaxNodes: 8\n; MaxProcs: 16\n"
LINE = "{number} {submit} -1 {run} {had} -1 -1 {asked} {estimate} {memory} 1 7 3 -1 1 -1 -1 -1"


def line(number=1, submit=0, run=10, had=1, asked=1, estimate=60, memory=-1):
    return LINE.format(**locals())


@pytest.fixture
def log(tmp_path):
    def write(*lines: str, header: str = HEADER):
        path = tmp_path / "log.swf"
        path.write_text(header + "".join(f"{each}\n" for each in lines))
        return path

    return write


def only(path, **options):
    workload = open_swf(path, **options)
    return list(workload.jobs())


# ---------------------------------------------------------------- jobs
def test_a_line_becomes_a_job_in_milliseconds(log):
    [job] = only(log(line(17, 5, 20.5, 4, 2, 90)))
    assert (job.number, job.place, job.submit, job.run, job.estimate) == (17, 0, 5000, 20_500, 90_000)
    assert (job.width, job.user, job.group, job.memory) == (2, "u7", "g3", None)


def test_without_processors_or_estimate_it_has_what_it_had_and_its_run_time_of_a_second_at_least(log):
    assert [job.width for job in only(log(line(had=4, asked=-1), line(had=4, asked=0)))] == [4, 4]
    jobs = only(log(line(run=25, estimate=-1), line(run=0, estimate=0), line(run=0.4, estimate=-1)))
    assert [job.estimate for job in jobs] == [25_000, 1000, 1000]


def test_what_is_no_job_is_dropped_and_counted_by_the_first_reason_that_holds(log):
    lines = (
        line(submit=-1, asked=0, had=0),
        line(asked=0, had=-1, run=-1),
        line(run=-1, asked=99),
        line(asked=17),
    )
    workload = open_swf(log(*lines, line()))
    assert dict(workload.dropped) == {
        "no submit time": 1, "no processors": 1, "never ran": 1, "wider than the machine": 1,
    }  # fmt: skip
    assert workload.count == 1


def test_memory_counts_where_the_machine_has_any(log):
    path = log(line(memory=1024, asked=2), line(memory=1024, asked=9))
    assert [job.memory for job in only(path)] == [None, None]
    workload = open_swf(path, memory=8 << 20)
    assert [job.memory for job in workload.jobs()] == [2 << 20]
    assert workload.dropped == {"more memory than the machine": 1}


def test_jobs_come_by_submit_time_then_by_place_and_what_follows_the_eighteenth_field_is_not_read(log):
    jobs = only(log(line(1, 50), line(2, 10), line(3, 10) + " 12 some more", line(4, 20)))
    assert [(job.number, job.place) for job in jobs] == [(2, 1), (3, 2), (4, 3), (1, 0)]


# ---------------------------------------------------------------- the machine, the header
def test_the_machine_is_as_large_as_said_else_as_the_header_says(log):
    assert open_swf(log(line())).pes == 16
    assert open_swf(log(line(), header="; MaxNodes: 8\n")).pes == 8
    assert open_swf(log(line(), header="; MaxProcs: -1\n; MaxNodes: 8\n")).pes == 8
    assert open_swf(log(line()), pes=4).pes == 4
    with pytest.raises(NotSimulated, match="give --pes N"):
        open_swf(log(line(), header="; Version: 2\n"))


def test_labels_repeat_and_go_on_in_further_lines(log):
    header = "; Note: one\n;   and more\n; Note: two\n;\n; UnixStartTime: 850000000\n"
    header += "; TimeZoneString: Europe/Paris\n"
    labels = read_labels(log(header=header))
    assert labels["Note"] == ("one and more", "two")
    workload = open_swf(log(line(), header=header + "; MaxProcs: 4\n"))
    assert (workload.begin, workload.zone) == (850_000_000_000, "Europe/Paris")
    for zone in ("", "; TimeZoneString: Mars/Olympus\n"):
        assert open_swf(log(line(), header=HEADER + zone)).zone == "UTC"


# ---------------------------------------------------------------- files
def test_a_packed_log_is_read_as_it_is(log, tmp_path):
    packed = tmp_path / "log.swf.gz"
    packed.write_bytes(gzip.compress(log(line(), line(2)).read_bytes()))
    assert [job.number for job in open_swf(packed).jobs()] == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3", "line 4: 3 fields instead of 18"),
        (line(submit="soon"), "line 4: field 2 is not a number: soon"),
        (line(run="nan"), "line 4: field 4 is not a number: nan"),
        (line(submit=10**17), "line 4: a number is too large"),
        (line(run="1e300"), "line 4: a number is too large"),
        (line(estimate=10**12), "line 4: a number is too large"),
    ],
)
def test_a_bad_line_is_named(log, text, message):
    with pytest.raises(NotSimulated, match=message):
        open_swf(log(text))


def test_a_file_that_is_none_is_told_in_a_line(log, tmp_path):
    with pytest.raises(NotSimulated, match="cannot be read: No such file"):
        open_swf(tmp_path / "no.swf")
    with pytest.raises(NotSimulated, match="no job in it"):
        open_swf(log(line(run=-1)))
    packed = tmp_path / "cut.swf.gz"
    packed.write_bytes(gzip.compress(log(*(line(n) for n in range(5000))).read_bytes())[:3000])
    with pytest.raises(NotSimulated, match="is damaged"):
        open_swf(packed)


@pytest.mark.parametrize("word", ["9" * 5000, "9" * 30, "²"])
def test_numbers_of_the_header_that_nothing_has_count_as_none(log, word):
    header = f"; MaxProcs: {word}\n; MaxNodes: 8\n; UnixStartTime: {word}\n"
    workload = open_swf(log(line(), header=header))
    assert (workload.pes, workload.begin) == (8, 0)


def test_a_machine_that_is_too_large_is_told(log):
    with pytest.raises(NotSimulated, match="at most 1000000 PEs"):
        open_workload(str(log(line(), header="; MaxProcs: 1000000000\n")), Wanted())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1" * 3_000_000, "is not a log: it has a line longer than 1000000"),
        ("; Note: a\n" * 200_000, "its header is longer than 1000000 characters"),
        ("; more of what stands above\n" * 70_000, "its header is longer than 1000000 characters"),
    ],
)
def test_a_line_or_a_header_without_end_is_not_read_to_its_end(tmp_path, text, message):
    packed = tmp_path / "log.swf.gz"
    packed.write_bytes(gzip.compress((HEADER + text).encode()))
    with pytest.raises(NotSimulated, match=message):
        open_swf(packed)


# ---------------------------------------------------------------- written and read back
def run(path: Path, policy: str):
    made = KeptRun(open_swf(path), [("site", SITE), (policy, BATCH_POLICIES[policy].commands)])
    found = sorted((each.job.submit, each.job.place, each.start, each.run, each.job.width) for each in made)
    return made, [each[2:] for each in found]


@pytest.mark.parametrize(
    ("trace", "policy"),
    [
        ("example", "firstfit"), ("edge", "easy"), ("edge", "conservative"),
        pytest.param("ties", "easy", marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_a_log_of_a_simulated_site_gives_the_same_starts_again(trace, policy, tmp_path):
    made, starts = run(TRACES / f"{trace}.swf", policy)
    written = tmp_path / "out.swf"
    written.write_text(swf_log(made.events, SwfFrame("sim", "nqspy", Zone("UTC"), fractions=True)))
    again = open_swf(written)
    assert (again.pes, again.count) == (made.workload.pes, made.workload.count)
    first = made.begin - again.begin
    told = [each.split() for each in written.read_text().splitlines() if not each.startswith(";")]
    began = [round(1000 * (float(line[1]) + float(line[2]))) - first for line in told]
    assert began == [start for start, _, _ in starts]
    assert [(start - first, *rest) for start, *rest in run(written, policy)[1]] == starts
