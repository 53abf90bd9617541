"""A live site's past as a log: written by the command, read and run by the simulator."""

import json
from datetime import datetime
from pathlib import Path

from daemon.live import Live

from nqspy.report.time_text import zone_of
from nqspy.sim.workloads.logs import open_swf

UTC = zone_of("UTC")


def ms(stamp: str) -> int:
    return UTC.instant(datetime.fromisoformat(stamp))


def test_a_live_site_is_written_as_a_log_that_the_simulator_runs(live: Live) -> None:
    first = live.qsub("exit 0\n", "-l", "ncpus=2,walltime=10:00")
    live.ended(first)
    second = live.qsub("sleep 1.2; exit 3\n", "-l", "walltime=5:00", "--after", f"{first}:any")
    ends = [live.ended(each) for each in (first, second)]
    live.run("nqspy", "report", "swf", "-o", "site.swf", "--fractions").ok()
    path = Path(live.work / "site.swf")
    lines = [each.split() for each in path.read_text().splitlines() if not each.startswith(";")]
    log = open_swf(path)
    for line, end in zip(lines, ends, strict=True):
        submitted = log.begin + round(1000 * float(line[1]))
        assert submitted == ms(end["submitted"])
        assert submitted + round(1000 * float(line[2])) == ms(end["started"])
    assert [line[10] for line in lines] == ["1", "0"]
    assert lines[1][16] == "1"
    assert float(lines[1][17]) >= 0
    assert [(job.width, job.estimate) for job in log.jobs()] == [(2, 600_000), (1, 300_000)]
    assert log.pes == 2
    done = live.run("nqspy", "sim", "site.swf", "--policy", "easy", "--json").ok()
    assert json.loads(done.out)["jobs"] == 2


HOSTILE = ["a;b", "; Note: user 1 is root", "-1 2 3", "x\ny", "esc\x1b[2J", "\u2028apart", "n\u00e4me\u2713"]


def test_names_that_would_break_a_log_are_refused_or_stay_in_their_comment(live: Live) -> None:
    taken = [name for name in HOSTILE if live.run("qsub", "-N", name, stdin="exit 0\n").status == 0]
    assert taken == ["a;b", "n\u00e4me\u2713"]
    for id in live.run("qselect").ok().lines:
        live.ended(id)
    out = live.run("nqspy", "report", "swf", env={"PYTHONIOENCODING": "ascii"}).ok().out
    assert out.isascii()
    assert "executable 1 is a;b\n" in out
    assert "executable 2 is n\\xe4me\\u2713\n" in out
    live.run("nqspy", "report", "swf", "-o", "site.swf").ok()
    text = (live.work / "site.swf").read_bytes().decode()
    assert "executable 2 is n\u00e4me\u2713\n" in text
    jobs = [line.split() for line in text.splitlines() if not line.startswith("; ")]
    assert [len(fields) for fields in jobs] == [18, 18]
    assert [job.width for job in open_swf(live.work / "site.swf").jobs()] == [1, 1]
