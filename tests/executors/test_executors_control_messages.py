"""Messages to a shepherd while its job runs: lines for the output, another wall time, another place for the
output."""

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
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


def adjust(bench, request, **fields):
    request.spec = replace(request.spec, **fields)
    bench.do(Adjust(request.seq, 1), request)


def test_lines_stand_in_the_errors_in_the_order_in_which_they_were_told(bench):
    request = bench.start(GATE)
    message = [f"line {number}" for number in range(20)]
    say(bench, request, *message)  # before it listens
    errors = bench.spooled(request, "stderr")
    bench.until(lambda: errors.read_text().count("\n") == 20, "they are there")
    bench.go()
    ending = bench.ending(request)
    assert Path(ending.stderr).read_text().splitlines() == message
    assert Path(ending.stdout).read_text() == "up\ndown\n"


@pytest.mark.parametrize("join", [False, True])
def test_a_line_goes_between_what_the_job_writes_once(bench, join):
    request = bench.running(GATE, output=Output(join=join))
    bench.until(lambda: "up" in bench.spooled(request).read_text(), "it has written")
    say(bench, request, "hello", streams=("stdout", "stderr"))
    last = bench.spooled(request, "stdout" if join else "stderr")
    bench.until(lambda: "hello" in last.read_text(), "it was told")
    bench.go()
    ending = bench.ending(request)
    assert Path(ending.stdout).read_text() == "up\nhello\ndown\n"
    assert join or Path(ending.stderr).read_text() == "hello\n"


def test_what_is_written_in_place_is_added_to_in_order_also_at_the_end_and_not_to_a_fifo(bench):
    target = bench.work / "errors"
    request = bench.running(GATE, output=Output(stderr=str(target), direct_stderr=True))
    message = [f"line {number}" for number in range(9)]
    say(bench, request, *message[:4])
    bench.until(lambda: target.exists() and target.read_text().count("\n") == 4, "they are there")
    assert target.stat().st_uid == os.geteuid()
    say(bench, request, *message[4:])
    bench.go()
    assert bench.ending(request).status == 0
    assert [line for line in target.read_text().splitlines() if line in message] == message
    target.unlink()
    os.mkfifo(target)
    (bench.work / "go").unlink()
    request = bench.running(GATE, output=Output(stderr=str(bench.work / "fifo"), direct_stderr=True))
    bench.until((bench.work / "fifo").exists, "it was made")
    target.rename(bench.work / "fifo")
    say(bench, request, "hello")
    bench.go()
    assert bench.ending(request).status == 0, "a FIFO that nobody reads holds up nobody"


def test_it_is_ended_at_the_wall_time_it_has_now(bench):
    request = bench.running(SLEEP, ask=Ask(wall=3_600_000))
    adjust(bench, request, ask=Ask(wall=300))
    ending = bench.ending(request)
    assert (ending.reason, "0.3 s" in ending.text) == ("wall_limit", True)
    longer = bench.running(GATE, ask=Ask(wall=2_000))
    adjust(bench, longer, ask=Ask(wall=3_600_000))
    bench.run("sleep 2.2\n")  # its former limit has passed
    bench.go()
    assert bench.ending(longer).reason == "exit"


def test_output_goes_where_it_is_to_go_when_the_job_ends(bench):
    request = bench.running(GATE, name="former")
    adjust(bench, request, name="later", output=Output(stderr=f"{bench.work}/%x.err"))
    say(bench, request, "hello")
    bench.until(lambda: "hello" in bench.spooled(request, "stderr").read_text(), "all was heard")
    bench.go()
    ending = bench.ending(request)
    names = ["later.err", f"later.o{request.seq}"]
    assert [ending.stderr, ending.stdout] == [f"{bench.work}/{name}" for name in names]
    assert sorted(path.name for path in bench.work.iterdir()) == ["go", *names]


def test_a_path_as_long_as_can_be_reaches_the_shepherd(bench):
    request = bench.running(GATE)
    deep = bench.work / "é" / ("d" * 200)
    deep.mkdir(parents=True)
    long = f"{deep}/{'/'.join('.' * 1_500)}/out"
    adjust(bench, request, output=Output(stdout=long, stderr=f"{deep}/err"))
    bench.go()
    bench.ending(request)
    assert (deep / "out").read_text().endswith("down\n")


@pytest.mark.parametrize("how", ["wall_limit", "deleted", "exit"])
def test_lines_that_nobody_reads_delay_no_end_and_keep_no_pe(bench, how):
    """Its errors go in place to a FIFO that somebody keeps open and full."""
    fifo = bench.work / "fifo"
    os.mkfifo(fifo)
    end = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while os.write(end, b"x" * 4096):
            pass
    ask = Ask(wall=1_000) if how == "wall_limit" else Ask()
    output = Output(stderr=str(fifo), direct_stderr=True)
    request = bench.running(GATE if how == "exit" else SLEEP, output=output, ask=ask)
    say(bench, request, *map(str, range(9)))
    began = time.monotonic()
    if how == "deleted":
        bench.do(Kill(request.seq, 1, "deleted", 0))
    elif how == "exit":
        bench.go()
    told = bench.first(request, ObservedEnded, ObservedExiting)
    took = time.monotonic() - began
    os.close(end)
    assert took < (2.5 if how == "wall_limit" else 1.5)
    assert (told.ending if isinstance(told, ObservedEnded) else bench.ending(request)).reason == how
