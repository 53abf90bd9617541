"""Where output goes, and what a request finds in its environment."""

import json
import os
import pwd
import signal
import stat
import sys
from pathlib import Path

import pytest

from nqspy.executors import deliver, proc
from nqspy.model.actions import Forget, Kill
from nqspy.model.requests import Output

needs_home = pytest.mark.skipif(
    not os.access(pwd.getpwuid(os.geteuid()).pw_dir, os.W_OK),
    reason="this user has no home folder of its own",
)
SPEAK = "echo out; echo err >&2\n"


def test_output_goes_to_the_folder_of_submission(bench):
    ending = bench.run(SPEAK)
    assert (ending.stdout, ending.stderr) == (str(bench.work / "job.o1"), str(bench.work / "job.e1"))
    assert bench.text("job.o1") == "out\n"
    assert bench.text("job.e1") == "err\n"


def test_while_it_runs_output_lies_in_the_spool(bench):
    request = bench.running("echo early\nexec sleep 60\n")
    spooled = bench.folder(request) / "stdout"
    bench.until(lambda: spooled.read_text() == "early\n", "output in the spool")
    assert not (bench.work / "job.o1").exists()
    bench.do(Kill(request.seq, 1, "deleted", 1000))
    bench.ending(request)
    assert bench.text("job.o1") == "early\n"


def test_joined_output_is_one_file_in_order(bench):
    ending = bench.run("echo 1; echo 2 >&2; echo 3\n", output=Output(join=True))
    assert ending.stdout == ending.stderr == str(bench.work / "job.o1")
    assert bench.text("job.o1") == "1\n2\n3\n"
    assert not (bench.work / "job.e1").exists()


def test_output_goes_to_the_paths_asked_for(bench):
    (bench.work / "folder").mkdir()
    output = Output(stdout=str(bench.work / "folder"), stderr=str(bench.work / "mine.err"))
    ending = bench.run(SPEAK, output=output)
    assert ending.stdout == str(bench.work / "folder" / "job.o1")
    assert bench.text("folder/job.o1") == "out\n"
    assert bench.text("mine.err") == "err\n"


def test_output_may_be_thrown_away(bench):
    ending = bench.run(SPEAK, output=Output(stdout="/dev/null", stderr="/dev/null"))
    assert (ending.stdout, ending.text) == ("/dev/null", "")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert list(bench.work.iterdir()) == []


def test_an_older_file_is_replaced(bench):
    (bench.work / "job.o1").write_text("from another life, and longer\n")
    bench.run(SPEAK)
    assert bench.text("job.o1") == "out\n"


def test_output_in_place_is_there_while_it_runs(bench):
    output = Output(stdout=str(bench.work / "live"), direct_stdout=True)
    request = bench.running("echo early\nexec sleep 60\n", output=output)
    assert bench.text("live") == "early\n"
    bench.do(Kill(request.seq, 1, "deleted", 1000))
    assert bench.ending(request).stdout == str(bench.work / "live")


def test_output_that_nobody_can_write_stays_and_is_named(bench):
    request = bench.start(SPEAK, output=Output(stdout="/nowhere/out"))
    ending = bench.ending(request)
    kept = bench.folder(request) / "stdout"
    assert ending.stdout == str(kept)
    assert ending.text == (
        f"cannot write /nowhere/out: No such file or directory; the output stays in {kept} "
        f"(qcat {request.seq} shows it)"
    )
    assert (ending.reason, ending.status) == ("exit", 0)
    other = bench.start("exit 0\n")
    bench.ending(other)
    for seq in (request.seq, other.seq):
        bench.do(Forget(seq, 1))
    bench.until(lambda: not bench.folder(other).exists(), "the broom has been there")
    assert kept.read_text() == "out\n"
    assert bench.text("job.e1") == "err\n"
    assert (bench.work / "job.o2").read_bytes() == b""  # empty output is delivered as well
    both = Output(stdout="/nowhere/out", stderr="/nowhere/err")
    text = bench.run(SPEAK, output=both).text
    assert [text.count(part) for part in ("stays in", "cannot write", both.stdout, both.stderr)] == [1] * 4


def test_a_link_of_the_owner_is_followed_to_the_file_it_means(bench):
    (bench.work / "link").symlink_to(bench.work / "real")
    (bench.work / "real").touch()
    bench.run(SPEAK, output=Output(stdout=str(bench.work / "link")))
    assert bench.text("real") == "out\n"


def test_a_fifo_that_nobody_reads_does_not_hold_the_end_up(bench):
    os.mkfifo(bench.work / "fifo")
    request = bench.start(SPEAK, output=Output(stdout=str(bench.work / "fifo")))
    assert bench.ending(request).stdout == str(bench.folder(request) / "stdout")


def test_the_umask_of_the_submission_counts(bench):
    bench.run("umask; touch made\n", umask=0o027)
    assert bench.text("job.o1").strip() == "0027"
    for name in ("job.o1", "made"):
        assert stat.S_IMODE((bench.work / name).stat().st_mode) == 0o640


def test_the_environment_is_what_was_sent_and_what_a_batch_job_needs(bench):
    sent = b"COLOUR=bl\xe5\0QSUB_HOST=front\0QSUB_SHELL=/bin/csh\0HOME=/elsewhere\0PATH=/bin:/usr/bin\0"
    bench.run("exec env\n", env=sent, name="sum", workdir=str(bench.work), pes=(1,))
    lines = (bench.work / "sum.o1").read_bytes().splitlines()
    found = dict(line.split(b"=", 1) for line in lines)
    assert found[b"COLOUR"] == b"bl\xe5"
    assert found[b"HOME"] == b"/elsewhere"
    expected = {
        "QSUB_REQID": "1.ymp", "QSUB_REQNAME": "sum", "QSUB_WORKDIR": str(bench.work), "QSUB_HOST": "front",
        "ENVIRONMENT": "BATCH", "NQSPY_HOME": str(bench.home), "NQSPY_PES": "1", "NQSPY_ATTEMPT": "1",
        "PBS_JOBID": "1.ymp",
        "PBS_JOBNAME": "sum", "PBS_QUEUE": "batch", "PBS_ENVIRONMENT": "PBS_BATCH", "PBS_O_HOST": "front",
        "PBS_O_WORKDIR": str(bench.work), "PBS_O_SHELL": "/bin/csh",
    }  # fmt: skip
    for name, value in expected.items():
        assert found[name.encode()].decode() == value, name
    assert {b"USER", b"LOGNAME", b"SHELL"} <= set(found)


def test_an_environment_of_a_megabyte_arrives_whole(bench):
    sent = "\0".join(f"V{n}={'x' * 1000}{n}" for n in range(1000)).encode()
    bench.run("env | grep -c ^V; echo ${V999#xxxx}\n", env=sent)
    count, last = bench.text("job.o1").split()
    assert (count, last) == ("1000", "x" * 996 + "999")


def test_arguments_arrive_as_they_are(bench):
    bench.run('printf "%s\\n" "$@"\n', args=("one two", "*", "", "é"))
    assert bench.text("job.o1").split("\n")[:4] == ["one two", "*", "", "é"]


@needs_home
def test_a_request_starts_at_home_unless_its_queue_says_otherwise(bench):
    bench.queue.workdir = "home"
    output = Output(stdout=str(bench.work / "out"), stderr="/dev/null")
    bench.run("pwd\n", output=output)
    assert bench.text("out").strip() == os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)


@needs_home
def test_kept_output_lies_in_the_owners_home(bench):
    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    name = f"nqspy-test-{os.getpid()}"
    try:
        ending = bench.run(SPEAK, name=name, output=Output(keep_stdout=True))
        assert ending.stdout == str(home / f"{name}.o1")
        assert (home / f"{name}.o1").read_text() == "out\n"
    finally:
        (home / f"{name}.o1").unlink(missing_ok=True)


def test_without_a_shell_it_is_a_login_shell(bench):
    """Its name begins with a dash: what shells take for a login. (Not tried with a shell: it would read the
    profile of whoever runs the tests, which may take its time, print, or start something else.)"""
    bench.site.settings.server.shell_strategy = f"fixed={sys.executable}"
    bench.run("import sys; print(sys.orig_argv[0])\n", shell=None)
    assert bench.text("job.o1").strip() == f"-{Path(sys.executable).name}"


def test_a_free_strategy_reads_the_scripts_first_line(bench):
    bench.site.settings.server.shell_strategy = "free"
    bench.run("#!/usr/bin/env python3\nprint(6 * 7)\n", shell=None)
    assert bench.text("job.o1") == "42\n"


def test_the_spool_is_closed_to_others(bench):
    request = bench.running("exec sleep 60\n")
    for folder in (bench.home / "spool", bench.folder(request)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    bench.do(Kill(request.seq, 1, "deleted", 1000))
    bench.ending(request)


def test_the_exit_record_is_there_before_the_end_is_told(bench):
    request = bench.start("exit 7\n")
    bench.ending(request)
    lines = (bench.folder(request) / "exit").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith('{"exit"'))
    assert json.loads(line)["exit"]["ending"]["status"] == 7


# ---------------------------------------------------------------- a fifo that is not read


@pytest.fixture
def unread(bench):
    """A fifo that somebody has open and never reads."""
    bench.fifo = bench.work / "fifo"
    os.mkfifo(bench.fifo)
    fd = os.open(bench.fifo, os.O_RDWR)
    yield bench
    os.close(fd)


def test_output_for_a_fifo_that_nobody_reads_stays_in_the_spool(unread):
    request = unread.start("head -c 300000 /dev/zero\n", output=Output(stdout=str(unread.fifo)))
    ending = unread.ending(request)
    kept = unread.folder(request) / "stdout"
    stays = f"the output stays in {kept} (qcat {request.seq} shows it)"
    assert ending.text == f"cannot write {unread.fifo}: nobody reads it; {stays}"
    assert (ending.status, ending.stdout, kept.stat().st_size) == (0, str(kept), 300_000)


def _deliverer(bench, request, former: int) -> int:
    """The shepherd that brings a request's output, another than the ``former``."""
    for pid in proc.all_pids():
        try:
            here = os.readlink(f"/proc/{pid}/cwd") == str(bench.folder(request))
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if here and b"starter.py" in command and pid != former and os.getsid(pid) == pid:
            return pid
    return 0


def test_output_whose_delivery_is_cut_off_twice_stays_in_the_spool(unread):
    script = "head -c 300000 /dev/zero\nexit 3\n"
    request = unread.start(script, output=Output(stdout=str(unread.fifo)))
    unread.until((unread.folder(request) / "exit").exists, "its end is written down")
    first = unread.until(lambda: _deliverer(unread, request, 0), "its shepherd brings its output")
    os.kill(first, signal.SIGKILL)
    second = unread.until(lambda: _deliverer(unread, request, first), "another one brings it")
    os.kill(second, signal.SIGKILL)
    ending = unread.ending(request)
    kept = unread.folder(request) / "stdout"
    assert ending.text == f"its output stays in {unread.folder(request)} (qcat {request.seq} shows it)"
    assert (ending.status, ending.stdout) == (3, str(kept))
    other = unread.start("exit 0\n")
    unread.ending(other)
    for seq in (request.seq, other.seq):
        unread.do(Forget(seq, 1))
    unread.until(lambda: not unread.folder(other).exists(), "the broom has been there")
    unread.executor.scan({})
    assert kept.stat().st_size == 300_000


# ---------------------------------------------------------------- attempts one after the other

MARK = "---- nqspy: attempt 2 of 7.ymp ----\n"


CUT = ("", "two\nth", "two\nthree\n")


@pytest.mark.parametrize("there", ["", "one\n", "no end", *(f"one\n{MARK}{rest}" for rest in CUT)])
def test_an_append_that_was_cut_off_is_completed_and_nothing_stands_twice(tmp_path, there):
    source, target = tmp_path / "stdout", tmp_path / "out"
    source.write_text("two\nthree\n")
    target.write_text(there)
    output = {"keep": False, "path": str(target), "direct": False, "former": [str(target)], "name": "out",
              "rerun": "append", "attempt": 2, "mark": MARK.rstrip()}  # fmt: skip
    record = {"output": {"stdout": output}, "once_more": True, "home": "/"}
    with source.open("rb") as file:
        for _ in range(2):
            done = deliver._deliver_one(record, "stdout", file.fileno())
            assert done == {"at": str(target), "why": ""}
    text = target.read_text()
    assert (text.count(MARK), text.count("two\n"), text.count("three\n")) == (1, 1, 1)
    assert text.startswith(there)
