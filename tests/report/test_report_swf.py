"""Ended requests as a log in the Standard Workload Format: the numbers of each line, and the header."""

import pytest
from engine.harness import Centre

from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.report.swf import SwfFrame, swf_log
from nqspy.report.time_text import Zone

PARIS = Zone("Europe/Paris")


def log_of(centre: Centre, **frame) -> tuple[list[str], list[list[str]]]:
    """Return the header and the jobs of a log."""
    text = swf_log(centre.journal.events(), SwfFrame("ymp", "nqspy", PARIS, **frame))
    lines = text.splitlines()
    header = [line[2:] for line in lines if line.startswith("; ")]
    return header, [line.split() for line in lines if not line.startswith(";")]


def lengths(**seconds: float):
    """Return the run times of requests, as their names say, or a minute."""
    return lambda request: Run(wall=round(1000 * seconds.get(request.name, 60)), memory=4096 * 1024)


def test_a_line_has_what_was_asked_for_what_was_got_and_how_it_ended():
    centre = Centre(pes=4, lengths=lengths(long=90))
    centre.submit("anne name=long pes=2 wall=10:00 mem=1mb")
    centre.later(seconds=10)
    centre.submit("ben pes=4 wall=5:00")
    centre.later(hours=1)
    _, jobs = log_of(centre)
    assert list(map(" ".join, jobs)) == [
        "1 0 0 90 2 45 2048 2 600 512 1 1 1 1 1 1 -1 -1",
        "2 10 80 60 4 15 1024 4 300 -1 1 2 1 2 1 1 -1 -1",
    ]


def test_the_header_names_machine_time_and_all_that_has_a_number():
    centre = Centre(pes=4, lengths=lengths())
    centre.submit("anne name=solve", "ben")
    centre.later(hours=1)
    header, _ = log_of(centre)
    for line in (
        "Version: 2.2", "Computer: ymp, nqspy", "MaxJobs: 2", "MaxRecords: 2", "Preemption: No",
        "UnixStartTime: 1772478000", "TimeZoneString: Europe/Paris", "TimeZone: 3600",
        "StartTime: Mon Mar  2 20:00:00 CET 2026", "EndTime: Mon Mar  2 20:01:00 CET 2026", "MaxProcs: 4",
        "MaxQueues: 1", "Queue: 1 batch", "Partition: 1 application", "Note: user 1 is anne",
        "Note: user 2 is ben", "Note: group 1 is default", "Note: executable 1 is solve",
    ):  # fmt: skip
        assert line in header


def test_times_are_rounded_to_whole_seconds_or_told_to_the_millisecond():
    centre = Centre(lengths=lengths(short=0.4, half=0.5, more=1.25))
    centre.submit("anne name=short", "anne name=half", "anne name=more")
    centre.later(hours=1)
    _, rounded = log_of(centre)
    _, exact = log_of(centre, fractions=True)
    assert [job[3] for job in rounded] == ["0", "1", "1"]
    assert [job[3] for job in exact] == ["0.4", "0.5", "1.25"]
    assert [job[2] for job in exact] == ["0", "0", "0.4"]


def test_what_failed_is_0_and_what_was_deleted_is_5_waiting_or_running():
    centre = Centre(pes=2, lengths=lambda r: Run(wall=60_000, status=3 if r.name == "bad" else 0))
    centre.submit("anne name=bad pes=2", "anne name=slow wall=0:30 pes=2")
    gone = centre.submit("anne pes=2")[0]
    centre.later(seconds=40)
    centre.ask(cm.Delete((str(gone),)))
    centre.later(seconds=40)
    _, jobs = log_of(centre)
    assert [(job[3], job[4], job[10]) for job in jobs] == [("60", "2", "0"), ("-1", "-1", "5")]
    centre.later(hours=1)
    _, jobs = log_of(centre)
    ends = [(job[0], job[3], job[10]) for job in jobs]
    assert ends == [("1", "60", "0"), ("2", "30", "0"), ("3", "-1", "5")]


def test_indices_of_an_array_are_jobs_also_those_that_never_began():
    centre = Centre(pes=1, lengths=lengths())
    [array] = centre.submit("anne array=1-4")
    centre.later(seconds=90)
    centre.ask(cm.Delete((centre.id(array),), kill=True))
    centre.later(hours=1)
    _, jobs = log_of(centre)
    assert [(job[2], job[10]) for job in jobs] == [("0", "1"), ("60", "5"), ("-1", "5"), ("-1", "5")]


def test_who_waited_for_another_ends_names_it_and_how_long_after_it_was_handed_in():
    centre = Centre(pes=4, lengths=lengths(second=200))
    centre.submit("anne name=first", "anne name=second", "anne after=1:any,2:any")
    centre.later(seconds=500)
    centre.submit("anne", "anne")
    _, jobs = log_of(centre)
    assert [job[16:] for job in jobs] == [["-1", "-1"], ["-1", "-1"], ["2", "0"]]


def test_what_was_run_again_is_told_whole_and_then_part_by_part():
    centre = Centre(pes=1, length=60)
    [again] = centre.submit("anne wall=10:00")
    centre.later(seconds=20)
    centre.ask(cm.RerunRequests((str(again),)))
    centre.later(hours=1)
    header, jobs = log_of(centre)
    assert [job[:4] + job[10:11] for job in jobs] == [
        ["1", "0", "0", "80", "1"],
        ["1", "-1", "0", "20", "2"],
        ["1", "-1", "0", "60", "3"],
    ]
    assert "Preemption: Double" in header


@pytest.mark.parametrize(
    ("since", "until", "kept"), [(None, None, 3), (60, None, 3), (61, None, 2), (0, 120, 1)]
)
def test_a_time_takes_those_that_ended_in_it_and_numbers_stay_what_they_are(since, until, kept):
    centre = Centre(pes=1, lengths=lengths())
    begin = centre.sim.now
    centre.submit("anne", "ben", "cleo")
    centre.later(hours=1)
    bounds = {"begin": since, "end": until}
    frame = {name: None if at is None else begin + 1000 * at for name, at in bounds.items()}
    _, jobs = log_of(centre, **frame)
    assert len(jobs) == kept
    assert jobs[-1][11] == ("1" if until else "3")


def test_a_site_of_which_nothing_ended_gives_a_log_without_jobs():
    header, jobs = log_of(Centre())
    assert "MaxJobs: 0" in header
    assert jobs == []
