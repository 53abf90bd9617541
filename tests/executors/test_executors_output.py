"""Where output goes, and what a request finds: its environment, and a folder for scratch files."""

import errno
import os
import pwd
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from executors.conftest import WAIT
from msgspec import structs

from nqspy.executors import deliver, proc, records, scratch
from nqspy.executors.order import make_order
from nqspy.executors.scratch import variables as of_scratch
from nqspy.model import indices
from nqspy.model.actions import Forget, Start
from nqspy.model.arrays import ArraySpec
from nqspy.model.consumables import Consumable
from nqspy.model.ids import member
from nqspy.model.job_variables import ATTEMPT, NAMES, leave_behind
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Output, Request, Spec, State
from nqspy.model.shapes import Layout
from nqspy.model.site import Site

HOME = Path(pwd.getpwuid(os.geteuid()).pw_dir)
SPEAK = "echo out; echo err >&2\n"


def test_output_goes_where_it_is_to_go_and_replaces_an_older_file(bench):
    """Next to the submission; into a folder and through a link of the owner; joined in order; nowhere."""
    (bench.work / "job.o1").write_text("from another life, and longer\n")
    ending = bench.run(SPEAK)
    assert (ending.stdout, ending.stderr) == (str(bench.work / "job.o1"), str(bench.work / "job.e1"))
    assert (bench.text("job.o1"), bench.text("job.e1")) == ("out\n", "err\n")
    (bench.work / "folder").mkdir()
    (bench.work / "link").symlink_to(bench.work / "real")
    (bench.work / "real").touch()
    output = Output(stdout=str(bench.work / "folder"), stderr=str(bench.work / "link"))
    assert bench.run(SPEAK, output=output).stdout == str(bench.work / "folder" / "job.o2")
    assert (bench.text("folder/job.o2"), bench.text("real")) == ("out\n", "err\n")
    ending = bench.run("echo 1; echo 2 >&2; echo 3\n", output=Output(join=True))
    assert ending.stdout == ending.stderr == str(bench.work / "job.o3")
    assert bench.text("job.o3") == "1\n2\n3\n"
    ending = bench.run(SPEAK, output=Output(stdout="/dev/null", stderr="/dev/null"))
    assert (ending.stdout, ending.text) == ("/dev/null", "")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    names = sorted(path.name for path in bench.work.iterdir())
    assert names == ["folder", "job.e1", "job.o1", "job.o3", "link", "real"]


def test_while_it_runs_output_lies_in_the_spool_which_is_closed_to_others_or_in_place(bench):
    request = bench.running("echo early\nexec sleep 60\n")
    spooled = bench.spooled(request)
    bench.until(lambda: spooled.read_text() == "early\n", "output in the spool")
    for folder in (bench.home / "spool", bench.folder(request)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not (bench.work / "job.o1").exists()
    bench.kill(request)
    assert bench.text("job.o1") == "early\n"
    live = str(bench.work / "live")
    request = bench.running("echo early\nexec sleep 60\n", output=Output(stdout=live, direct_stdout=True))
    assert bench.text("live") == "early\n"
    assert bench.kill(request).stdout == live


def swept(bench, *requests):
    """Have requests removed, and wait until the folder is empty."""
    for request in requests:
        bench.do(Forget(request.seq, 1))
    bench.until(lambda: not bench.folder(requests[-1]).exists(), "the folder is cleared")


def test_output_that_nobody_can_write_stays_and_is_named(bench):
    request = bench.start(SPEAK, output=Output(stdout="/nowhere/out"))
    ending = bench.ending(request)
    kept = bench.folder(request) / "stdout"
    assert ending.stdout == str(kept)
    assert ending.text.startswith(f"cannot write /nowhere/out: {os.strerror(errno.ENOENT)}")
    assert f"stays in {kept} (qcat {request.seq} " in ending.text
    assert (ending.reason, ending.status) == ("exit", 0)
    other = bench.start("exit 0\n")
    bench.ending(other)
    swept(bench, request, other)
    assert kept.read_text() == "out\n"
    assert bench.text("job.e1") == "err\n"
    assert (bench.work / "job.o2").read_bytes() == b""  # empty output is delivered as well
    both = Output(stdout="/nowhere/out", stderr="/nowhere/err")
    text = bench.run(SPEAK, output=both).text
    assert [text.count(part) for part in ("stays in", "cannot write", both.stdout, both.stderr)] == [1] * 4


def test_a_fifo_that_nobody_opens_does_not_hold_the_end_up(bench):
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
    assert (found[b"COLOUR"], found[b"HOME"]) == (b"bl\xe5", b"/elsewhere")
    expected = {
        "QSUB_REQID": "1.ymp", "QSUB_REQNAME": "sum", "QSUB_WORKDIR": str(bench.work), "QSUB_HOST": "front",
        "ENVIRONMENT": "BATCH", "NQSPY_HOME": str(bench.home), "NQSPY_PES": "1", "NQSPY_ATTEMPT": "1",
        "PBS_JOBID": "1.ymp",
        "PBS_JOBNAME": "sum", "PBS_QUEUE": "batch", "PBS_ENVIRONMENT": "PBS_BATCH", "PBS_O_HOST": "front",
        "PBS_O_WORKDIR": str(bench.work), "PBS_O_SHELL": "/bin/csh",
    }  # fmt: skip
    assert {name: found[name.encode()].decode() for name in expected} == expected
    assert {b"USER", b"LOGNAME", b"SHELL"} <= set(found)


def test_arguments_and_an_environment_of_a_megabyte_arrive_whole(bench):
    sent = "\0".join(f"V{n}={'x' * 1000}{n}" for n in range(1000)).encode()
    script = 'env | grep -c ^V; echo ${V999#xxxx}; printf "%s\\n" "$@"\n'
    bench.run(script, env=sent, args=("one two", "*", "", "é"))
    message = bench.text("job.o1").split("\n")
    assert message[:6] == ["1000", "x" * 996 + "999", "one two", "*", "", "é"]


@pytest.mark.skipif(not os.access(HOME, os.W_OK), reason="this user has no home folder")
def test_a_request_starts_at_home_unless_its_queue_says_otherwise_and_kept_output_lies_there(bench):
    bench.queue.workdir = "home"
    name = f"nqspy-test-{os.getpid()}"
    try:
        ending = bench.run("pwd\n", name=name, output=Output(keep_stdout=True, stderr="/dev/null"))
        assert ending.stdout == str(HOME / f"{name}.o1")
        assert (HOME / f"{name}.o1").read_text().strip() == os.path.realpath(HOME)
    finally:
        (HOME / f"{name}.o1").unlink(missing_ok=True)


def test_without_a_shell_it_is_a_login_shell_or_what_the_scripts_first_line_names(bench):
    """Its name begins with a dash: what shells take for a login. (Not tried with a shell: it would read the
    profile of whoever runs the tests, which may take its time, print, or start something else.)"""
    bench.site.settings.server.shell_strategy = f"fixed={sys.executable}"
    bench.run("import sys; print(sys.orig_argv[0])\n", shell=None)
    assert bench.text("job.o1").strip() == f"-{Path(sys.executable).name}"
    bench.site.settings.server.shell_strategy = "free"
    bench.run("#!/usr/bin/env python3\nprint(6 * 7)\n", shell=None)
    assert bench.text("job.o2") == "42\n"


def test_the_exit_record_is_there_before_the_end_is_told(bench):
    request = bench.start("exit 7\n")
    bench.ending(request)
    assert records.read(str(bench.folder(request)), "exit")["ending"]["status"] == 7


# ---------------------------------------------------------------- a fifo that is not read
@pytest.fixture
def unread(bench):
    """Start a request that writes to a fifo which a process has open and never reads."""
    fifo = bench.work / "fifo"
    os.mkfifo(fifo)
    fd = os.open(fifo, os.O_RDWR)
    yield bench.start("head -c 300000 /dev/zero\nexit 3\n", output=Output(stdout=str(fifo)))
    os.close(fd)


def test_output_for_a_fifo_that_nobody_reads_stays_in_the_spool(bench, unread):
    ending = bench.ending(unread)
    kept = bench.folder(unread) / "stdout"
    assert ending.text.startswith(f"cannot write {bench.work}/fifo: ")
    assert (ending.status, ending.stdout, kept.stat().st_size) == (3, str(kept), 300_000)


def _deliverer(bench, request, former: int) -> int:
    """Return the shepherd that delivers a request's output, another than ``former``."""
    for pid in proc.all_pids():
        try:
            here = os.readlink(f"/proc/{pid}/cwd") == str(bench.folder(request))
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if here and b"spawner.py" in command and pid != former and os.getsid(pid) == pid:
            return pid
    return 0


def test_output_whose_delivery_is_cut_off_twice_stays_in_the_spool(bench, unread):
    bench.until((bench.folder(unread) / "exit").exists, "its end is written down")
    former = 0
    for _ in range(2):
        former = bench.until(lambda before=former: _deliverer(bench, unread, before), "a shepherd brings it")
        os.kill(former, signal.SIGKILL)
    ending = bench.ending(unread)
    kept = bench.folder(unread) / "stdout"
    assert f"stays in {bench.folder(unread)} (qcat {unread.seq} " in ending.text
    assert (ending.status, ending.stdout) == (3, str(kept))
    other = bench.start("exit 0\n")
    bench.ending(other)
    swept(bench, unread, other)
    bench.executor.scan({})
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


# ---------------------------------------------------------------- two requests with one path
def wait_for(bench, request):
    bench.site.requests[request.seq] = request
    bench.site.watch_for(request)


def run(bench, request):
    bench.do(Start(request.seq, 1, (0,)), request)
    ending = bench.ending(request)
    bench.site.watch_no_more(request)
    del bench.site.requests[request.seq]
    return ending.stdout


def two(bench, way: str, second: str = "out", **direct):
    """Submit two requests with the same path before either starts; run them one after the other."""
    bench.site.settings.server.output_clash = way
    (bench.work / "gone").mkdir()
    requests = []
    for word, name in (("first", "out"), ("second", second)):
        output = Output(stdout=f"{bench.work}/{name}", stderr="/dev/null", **direct)
        requests.append(bench.request(f"echo {word}\n", output=output))
        wait_for(bench, requests[-1])
    paths = [run(bench, request) for request in requests]
    return paths, {path.name: path.read_text() for path in bench.work.iterdir() if path.is_file()}


WAYS = {
    "number": (["out", "out.2"], {"out": "first\n", "out.2": "second\n"}),
    "append": (["out", "out"], {"out": "first\nsecond\n"}),
    "overwrite": (["out", "out"], {"out": "second\n"}),
}


@pytest.mark.parametrize("direct", [False, True], ids=["spooled", "in place"])
@pytest.mark.parametrize("way", WAYS)
def test_the_second_gets_a_number_is_added_or_replaces_the_first(bench, way, direct):
    names, texts = WAYS[way]
    assert two(bench, way, direct_stdout=direct) == ([str(bench.work / name) for name in names], texts)


@pytest.mark.parametrize("second", ["./out", "gone/../out", "/./out"])
def test_the_second_is_known_however_its_path_is_written(bench, second):
    assert two(bench, "append", second=second)[1] == {"out": "first\nsecond\n"}


def test_one_that_starts_while_another_of_its_path_runs_is_second(bench):
    output = Output(stdout=str(bench.work / "out"))
    first = bench.running(f"echo first; {WAIT}", output=output)
    bench.site.started[first.seq] = first
    wait_for(bench, first)
    second = bench.request("echo second\n", output=output)
    wait_for(bench, second)
    assert run(bench, second) == str(bench.work / f"out.{second.seq}")
    bench.go()
    bench.ending(first)
    assert bench.text("out") == "first\n"


OURS = {
    "number": {"out.5.1": "1\n", "out.5.3": "3\n"}, "append": {"out": "1\n3\n"}, "overwrite": {"out": "3\n"},
}  # fmt: skip


@pytest.mark.parametrize(("way", "ours"), OURS.items())
def test_indices_of_one_path_are_kept_apart_also_one_after_the_other(bench, way, ours):
    bench.site.settings.server.output_clash = way
    array = ArraySpec(((1, 3, 2),))
    for index in (1, 3):
        output = Output(stdout=str(bench.work / "out"), stderr=str(bench.work / "err.%a"))
        request = bench.request(f"echo {index}; echo {index} >&2\n", output=output, array=array)
        request = structs.replace(request, seq=member(5, index))
        wait_for(bench, request)
        run(bench, request)
    written = {path.name: path.read_text() for path in bench.work.iterdir()}
    assert written == {"err.1": "1\n", "err.3": "3\n", **ours}


EACH_JOB = {"NQSPY_HOME", "CUDA_VISIBLE_DEVICES"}


def order_of(dialect: str, sent: dict[str, str], *, array: bool = False, torus: bool = False, **units: Any):
    site = Site(host="ymp")
    site.settings.machine.pes = 8
    if torus:
        site.settings.machine.shape = "2x2x2"
    site.settings.queues["batch"] = Queue("batch")
    site.settings.consumables["gpu"] = Consumable("gpu", env="CUDA_VISIBLE_DEVICES")
    spec = Spec(
        owner="anne", uid=os.getuid(), queue="batch", script="", environment="", workdir="/w", name="inner",
        dialect=dialect, ask=Ask(pes=4, memory=1 << 30), layout=Layout(threads=2),
        array=ArraySpec(indices.read("3-3")) if array else None,
    )  # fmt: skip
    seq = member(9, 3) if array else 9
    request = Request(seq, spec, queue="batch", submitted=0, date_in_queue=0, state=State.QUEUED)
    start = Start(seq, 1, (0, 1, 2, 3), **units)
    environment = "\0".join(f"{name}={value}" for name, value in sent.items()).encode("latin-1")
    return make_order(
        request, start, site, home="/h", speed=1.0, script=b"", environment=environment
    )["environment"]  # fmt: skip


def outer(dialect: str) -> dict[str, str]:
    """Return the variables of a job that asks for everything."""
    given = order_of(dialect, {}, array=True, torus=True, units=(("gpu", ("0",)),))
    mine, always = of_scratch({"scratch": "/tmp/nqspy.9-3.ab"})
    return {**given, **mine, **always, "PBS_JOBDIR": "/w", "MINE": "1"}


@pytest.mark.parametrize("dialect", ["nqs", "pbs", "slurm"])
def test_each_variable_that_a_job_is_given_is_listed(dialect):
    assert set(outer(dialect)) - EACH_JOB - {"MINE"} <= NAMES


@pytest.mark.parametrize("inner", ["nqs", "pbs", "slurm"])
@pytest.mark.parametrize("dialect", ["nqs", "pbs", "slurm"])
def test_a_job_that_a_job_submits_finds_what_it_would_find_from_a_login(dialect, inner):
    assert order_of(inner, outer(dialect)) == {**order_of(inner, {}), "MINE": "1"}


def test_outside_of_a_job_a_users_own_variables_stay():
    own = {"TMPDIR": "/scratch/anne", "OMP_NUM_THREADS": "3", "PBS_ARRAY_INDEX": "5", "SLURM_JOB_ID": "7"}
    assert leave_behind(own) == own
    found = order_of("pbs", own)
    assert {name: found[name] for name in own} == own


def test_a_folder_of_the_users_own_stays_within_a_job_too():
    own = {ATTEMPT: "1", "PBS_NODEFILE": "/tmp/nqspy.9.ab/hosts", "TMPDIR": "/scratch/anne"}
    assert leave_behind(own) == {"TMPDIR": "/scratch/anne"}
    assert leave_behind(own | {"TMPDIR": "/tmp/nqspy.9.ab/tmp/sub"}) == {}


@pytest.fixture
def victim(tmp_path):
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    return folder


@pytest.mark.parametrize("remove", [scratch.removed, scratch.remove])
def test_a_link_in_its_place_leads_nowhere_and_another_users_stays(tmp_path, victim, remove):
    tmp_path.chmod(0o755)
    (tmp_path / "scratch").symlink_to(victim)
    remove(str(tmp_path / "scratch"))
    assert (victim / "precious").read_text() == "precious"
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    if os.geteuid() == 0:  # a folder is another user's
        os.chown(victim, 65534, 65534)
        remove(str(victim))
        assert (victim / "precious").exists()


def test_what_the_job_has_left_there_is_removed_and_nothing_above(tmp_path, monkeypatch):
    held, rmdir = tmp_path / "scratch", os.rmdir
    (held / "tmp" / "more").mkdir(parents=True)
    (held / "closed").mkdir(mode=0)
    scratch.remove(str(held))
    assert not held.exists()
    (held / "more" / "tmp").mkdir(parents=True)
    tmp_path.chmod(0o755)

    def busy(path, **options):
        if os.fspath(path) == str(held):
            raise OSError(16, "busy, as a folder that something is mounted in")
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", busy)
    scratch.remove(str(held))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


_MOUNTED = """
import os, subprocess, sys
from pathlib import Path
from nqspy.executors import scratch

top = Path(sys.argv[1])

def mount(at, *words):
    subprocess.run(["mount", *words, at], check=True)

def bind(what, at):
    at.mkdir(parents=True, exist_ok=True)
    mount(at, "--bind", what)

def tmpfs(what, at):
    at.mkdir(parents=True)
    mount(at, "-t", "tmpfs", "none")
    (at / "precious").touch()

remove = eval(sys.argv[2])
for number, (make, where) in enumerate(
    [(tmpfs, "tmp/m"), (bind, "tmp/m"), (bind, "tmp/a \\\\040b\\n"), (bind, "tmp"), (bind, ".")]
):
    held, mounted = top / f"nqspy.{number}.a b", top / f"mounted {number}"
    (mounted / "tmp").mkdir(parents=True)
    (mounted / "precious").touch()
    make(mounted, held / where)
    remove(str(held))
    assert (held / where / "precious").exists(), (make, where)
    assert make is tmpfs or (mounted / "tmp").is_dir(), where
    plain = Path(f"{held}c")
    (plain / "tmp").mkdir(parents=True)
    remove(str(plain))
    assert not plain.exists()
"""


@pytest.mark.parametrize(
    "remove", ["scratch.removed", "scratch.remove", "lambda path: scratch.clear(path, os.geteuid())"]
)
def test_what_is_mounted_in_it_is_never_removed(tmp_path, remove):
    apart = ["unshare", "-m", "--propagation", "private", *([] if os.geteuid() == 0 else ["-r"])]
    may = subprocess.run([*apart, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    if may.returncode:
        pytest.skip("needs the right to mount")
    words = [*apart, sys.executable, "-c", _MOUNTED, str(tmp_path), remove]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
