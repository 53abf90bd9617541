"""What a shepherd is told while its job runs: lines for the output, another wall time, another place for the
output."""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from executors.conftest import WAIT
from msgspec.structs import replace

from nqspy.model.actions import Adjust, Kill, WriteOutput
from nqspy.model.observations import ObservedEnded, ObservedExiting
from nqspy.model.requests import Ask, Output

GATE = f"echo up; {WAIT}echo down\n"
SLEEP = "while :; do sleep 0.02; done\n"


def say(bench, request, *lines, streams=("stderr",)):
    for line in lines:
        bench.do(WriteOutput(request.seq, 1, f"{line}\n", streams))


def test_lines_stand_in_the_errors_in_the_order_in_which_they_were_told(bench):
    request = bench.running(GATE)
    said = [f"line {number}" for number in range(20)]
    say(bench, request, *said)
    bench.until(lambda: (bench.folder(request) / "stderr").read_text().count("\n") == 20, "they are there")
    bench.go()
    ending = bench.ending(request)
    assert Path(ending.stderr).read_text().splitlines() == said
    assert Path(ending.stdout).read_text() == "up\ndown\n"


def test_a_line_goes_between_what_the_job_writes(bench):
    request = bench.running(GATE)
    bench.until(lambda: "up" in (bench.folder(request) / "stdout").read_text(), "it has written")
    say(bench, request, "hello", streams=("stdout", "stderr"))
    bench.until(lambda: "hello" in (bench.folder(request) / "stderr").read_text(), "it was told")
    bench.go()
    ending = bench.ending(request)
    assert Path(ending.stdout).read_text() == "up\nhello\ndown\n"
    assert Path(ending.stderr).read_text() == "hello\n"


def test_of_joined_outputs_a_line_is_written_once(bench):
    request = bench.running(GATE, output=Output(join=True))
    say(bench, request, "hello", streams=("stdout", "stderr"))
    bench.until(lambda: "hello" in (bench.folder(request) / "stdout").read_text(), "it was told")
    bench.go()
    assert Path(bench.ending(request).stdout).read_text().count("hello") == 1


def test_what_is_written_in_place_is_added_to_as_its_owner(bench):
    target = bench.work / "errors"
    request = bench.running(GATE, output=Output(stderr=str(target), direct_stderr=True))
    bench.until(target.exists, "it was made")
    said = [f"line {number}" for number in range(5)]
    say(bench, request, *said)
    bench.until(lambda: target.read_text().count("\n") == 5, "they are there")
    assert target.read_text().splitlines() == said
    assert target.stat().st_uid == os.geteuid()
    bench.go()
    assert bench.ending(request).status == 0


def test_a_fifo_that_nobody_reads_holds_up_nobody(bench):
    fifo = bench.work / "fifo"
    request = bench.running(GATE, output=Output(stderr=str(fifo), direct_stderr=True))
    bench.until(fifo.exists, "it was made")
    fifo.unlink()
    os.mkfifo(fifo)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    say(bench, request, "hello")
    bench.go()
    assert bench.ending(request).status == 0


def test_it_is_ended_at_the_wall_time_it_has_now(bench):
    request = bench.running(SLEEP, ask=Ask(wall=3_600_000))
    request.spec = _asking(request, 300)
    bench.do(Adjust(request.seq, 1), request)
    ending = bench.ending(request)
    assert (ending.reason, "0.3 s" in ending.text) == ("wall_limit", True)


def test_it_may_be_given_more_wall_time_while_it_runs(bench):
    request = bench.running(GATE, ask=Ask(wall=2_000))
    request.spec = _asking(request, 3_600_000)
    bench.do(Adjust(request.seq, 1), request)
    pid = bench.folder(request) / "pid"
    bench.until(pid.exists, "it runs")
    begun = pid.stat().st_mtime
    bench.until(lambda: _age(bench, begun) > 2.2, "its former limit has passed")
    bench.go()
    assert bench.ending(request).reason == "exit"


def _age(bench, begun):
    mark = bench.work / "now"
    mark.touch()
    return mark.stat().st_mtime - begun


def _asking(request, wall):
    return replace(request.spec, ask=replace(request.spec.ask, wall=wall))


def test_output_goes_where_it_is_to_go_when_the_job_ends(bench):
    request = bench.running(GATE, name="former")
    request.spec = replace(request.spec, name="later", output=Output(stderr=f"{bench.work}/%x.err"))
    bench.do(Adjust(request.seq, 1), request)
    say(bench, request, "hello")
    bench.until(lambda: "hello" in (bench.folder(request) / "stderr").read_text(), "all was heard")
    bench.go()
    ending = bench.ending(request)
    assert ending.stdout == f"{bench.work}/later.o{request.seq}"
    assert ending.stderr == f"{bench.work}/later.err"
    assert sorted(path.name for path in bench.work.iterdir()) == [
        "go",
        "later.err",
        f"later.o{request.seq}",
    ]


def test_a_path_as_long_as_can_be_reaches_the_shepherd(bench):
    request = bench.running(GATE)
    deep = bench.work / "é" / ("d" * 200)
    deep.mkdir(parents=True)
    long = f"{deep}/{'/'.join('.' * 1_500)}/out"
    request.spec = replace(request.spec, output=Output(stdout=long, stderr=f"{deep}/err"))
    bench.do(Adjust(request.seq, 1), request)
    bench.go()
    bench.ending(request)
    assert (deep / "out").read_text().endswith("down\n")


def test_told_before_it_listens_it_is_told_when_it_does(bench):
    request = bench.start(GATE)
    say(bench, request, "early")
    bench.until(lambda: (bench.folder(request) / "stderr").exists(), "its output is there")
    bench.until(lambda: (bench.folder(request) / "stderr").read_text() == "early\n", "it was told")
    bench.go()
    assert bench.ending(request).status == 0


def _in_a_full_fifo(bench, script, **spec):
    """A request whose errors go in place to a FIFO that somebody keeps open and full."""
    fifo = bench.work / "fifo"
    os.mkfifo(fifo)
    end = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while os.write(end, b"x" * 4096):
            pass
    request = bench.running(script, output=Output(stderr=str(fifo), direct_stderr=True), **spec)
    say(bench, request, *map(str, range(9)))
    return request, end


def test_lines_that_nobody_reads_delay_no_wall_limit(bench):
    request, end = _in_a_full_fifo(bench, SLEEP, ask=Ask(wall=1_000))
    ending = bench.ending(request)
    os.close(end)
    assert ending.reason == "wall_limit"
    assert ending.used.wall < 2_500


def test_lines_that_nobody_reads_delay_no_order_to_end(bench):
    request, end = _in_a_full_fifo(bench, SLEEP)
    began = time.monotonic()
    bench.do(Kill(request.seq, 1, "deleted", 0))
    gone = bench.first(request, ObservedEnded, ObservedExiting)
    os.close(end)
    assert time.monotonic() - began < 1.5
    if isinstance(gone, ObservedEnded):
        assert gone.ending.reason == "deleted"
    else:
        assert bench.ending(request).reason == "deleted"


def test_lines_that_nobody_reads_keep_no_pe_of_a_job_that_has_ended(bench):
    request, end = _in_a_full_fifo(bench, GATE)
    began = time.monotonic()
    bench.go()
    bench.first(request, ObservedEnded, ObservedExiting)
    os.close(end)
    assert time.monotonic() - began < 1.5


def test_lines_under_way_at_the_end_are_written_in_order(bench):
    target = bench.work / "errors"
    request = bench.running(GATE, output=Output(stderr=str(target), direct_stderr=True))
    said = [f"line {number}" for number in range(9)]
    say(bench, request, *said)
    bench.go()
    assert bench.ending(request).status == 0
    assert [line for line in target.read_text().splitlines() if line in said] == said
