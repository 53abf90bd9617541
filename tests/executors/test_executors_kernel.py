"""Where cgroups can be used the kernel itself enforces a request's limits; escaped processes are found
anywhere."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from executors.conftest import IN_CGROUP, WAIT, enforced, gone, needs
from small_disk import small_disk

from nqspy.executors import child, deadline, device_filter, pageout, person, proc
from nqspy.executors.cgroups import Cgroups
from nqspy.executors.control import Controls, JobLimits
from nqspy.executors.pageout import Residents
from nqspy.model.actions import Resume, Start, Suspend
from nqspy.model.cause import cause_of
from nqspy.model.consumables import Consumable
from nqspy.model.machine import Device, Found
from nqspy.model.requests import Ask

MB = 1 << 20


CGROUPS = pytest.mark.parametrize("cgroup", ["", "none"], ids=["best cgroup", "no cgroup"])
EAT = 'python3 -S -c \'import time; x = b"x" * {}; open("full", "w"); time.sleep(60)\''


@needs("memory")
@pytest.mark.parametrize("limit", [40 * MB, 80 * MB])
def test_memory_is_the_kernels_business_and_the_right_request_ends(bench, limit):
    """With the larger limit its shepherd enters the request's cgroup to spawn it."""
    ending = bench.run(f"exec python3 -S -c 'x = b\"x\" * {limit // 2}; del x'\n", ask=Ask(memory=limit))
    assert (ending.reason, ending.status) == ("exit", 0)
    assert ending.used.memory >= limit // 2  # it was that much for a moment only
    innocent = bench.running(f"exec {EAT.format(20 * MB)}\n", ask=Ask(memory=400 * MB))
    ending = bench.run(f"exec {EAT.format(400 * MB)}\n", ask=Ask(memory=limit))
    assert ending.reason == "memory_limit"
    assert ending.text.startswith(f"memory limit of {limit >> 20}.0 MiB exceeded: ")
    assert limit - MB <= ending.used.memory <= limit + 20 * MB  # no sample could have been in time for 400 MB
    assert f"3.ymp was ended: {ending.text}\n" in bench.text("job.e3")
    assert bench.kill(innocent).reason == "deleted"


@needs("memory")
def test_a_process_that_the_kernel_killed_ends_its_request_though_the_leader_lives(bench):
    script = f"{EAT.format(400 * MB)}\necho survived\nexec sleep 60\n"
    ending = bench.run(script, ask=Ask(memory=40 * MB))
    assert ending.reason == "memory_limit"
    assert ending.signal in (signal.SIGTERM, signal.SIGKILL)
    assert ending.used.wall < 20_000


@needs("memory")
def test_a_shepherd_that_spawned_one_with_a_memory_limit_takes_the_next_without(bench):
    script = "grep :memory: /proc/self/cgroup; echo $PPID\n"
    held, free = [
        (bench.run(script, ask=Ask(memory=memory)).status, bench.text(f"job.o{bench.seq}").split())[1]
        for memory in (80 * MB, None)
    ]
    assert held[0] != free[0]
    assert held[1] == free[1]
    folder = f"/sys/fs/cgroup/memory{held[0].partition(':memory:')[2]}"
    bench.until(lambda: not os.path.exists(folder), "the end of what held it")


def test_memory_is_measured_where_the_kernel_does_not_keep_it(make_bench):
    bench = make_bench(cgroup="none")
    ending = bench.run(f"exec {EAT.format(120 * MB)}\n", ask=Ask(memory=60 * MB))
    assert ending.reason == "memory_limit"
    assert ending.used.memory > 60 * MB


def test_a_daemons_own_user_keeps_room_to_fork(bench):
    if os.geteuid() == 0:
        pytest.skip("root has no limit on processes: nothing is lowered")
    mine = subprocess.run(["sh", "-c", "ulimit -u"], capture_output=True, text=True, check=True).stdout
    if mine.strip() == "unlimited":
        pytest.skip("no limit on processes holds here, so there is none to lower")
    bench.run("sleep 0.1; exec bash -c 'ulimit -u'\n")
    assert int(bench.text("job.o1")) < int(mine)


ESCAPES = (
    "(sh -c '{}' &) &\n",  # a double fork
    "setsid sh -c '{}' &\n",
    "(setsid sh -c '{}' &)\n",
    "set -m; sh -c '{}' &\nset +m\n",  # a process group of its own
    "(setsid env -i sh -c '{}' &)\n",
    "(setsid sh -c '{}' <&- >&- 2>&- &)\n",
    "(setsid sh -c 'trap \"\" HUP INT QUIT TERM USR1 USR2; {}' &)\n",
)


@CGROUPS
@pytest.mark.parametrize("killed", [False, True], ids=["ends", "is killed"])
def test_what_escapes_ends_with_the_request(make_bench, cgroup, killed):
    bench = make_bench(cgroup=cgroup)
    names = [f"escaped.{n}" for n in range(len(ESCAPES))]
    loop = "echo $$ > {}; while :; do sleep 0.05; done"
    script = "".join(way.format(loop.format(name)) for way, name in zip(ESCAPES, names, strict=True))
    if killed:
        request = bench.running(f"{script}exec sleep 60\n")
        pids = [bench.number(name) for name in names]
        assert bench.kill(request, 200).reason == "deleted"
    else:
        script += "".join(f"while [ ! -s {name} ]; do sleep 0.02; done\n" for name in names)
        ending = bench.run(f"{script}exit 3\n", ask=IN_CGROUP)
        assert (ending.reason, ending.status) == ("exit", 3)
        pids = [bench.number(name) for name in names]
    assert [pid for pid in pids if not gone(pid)] == []


def test_a_request_that_closes_all_its_descriptors_ends_exactly(bench):
    script = "exec python3 -S -c 'import os; os.closerange(0, 1024); os._exit(7)'\n"
    assert bench.run(script).status == 7


# ---------------------------------------------------------------- a full spool
@pytest.fixture
def small_spool(tmp_path):
    with small_disk(tmp_path / "spool", "size=24m,mode=0700"):
        yield tmp_path / "spool"


def test_who_fills_the_spool_is_ended_and_the_records_of_others_are_safe(small_spool, make_bench):
    bench = make_bench()
    innocent = bench.running(f"{WAIT}exit 9\n")
    claim = bench.folder(innocent) / "claim"
    bench.until(lambda: claim.stat().st_blocks * 512 > 8192, "there is room for its records")
    greedy = bench.start("while :; do head -c 1000000 /dev/zero; sleep 0.05; done\n")
    ending = bench.ending(greedy)
    assert ending.reason == "file_limit"
    assert "nearly full" in ending.text
    # Full to the last byte: what must be written down has its place already.
    filler = os.open(small_spool / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError), proc.Descriptor(filler) as fd:
        while True:
            os.write(fd, bytes(65536))
    bench.go()
    assert bench.ending(innocent).status == 9
    (small_spool / "filler").unlink()


# ---------------------------------------------------------------- version 2, by its files
def _tree(folder: Path, controllers: str) -> Path:
    tree = folder / "above" / "home"
    tree.mkdir(parents=True)
    for where in (tree.parent, tree):
        (where / "cgroup.controllers").write_text(controllers)
        (where / "cgroup.subtree_control").touch()
    return tree


def test_version_2_sets_its_own_files_and_a_tree_that_delegates_nothing_holds_nothing(tmp_path):
    """The names and values written, seen on plain files: this kernel has its controllers elsewhere."""
    tree = _tree(tmp_path, "memory pids")
    controls = Controls("home", str(tree), {})
    assert set(controls.found) == {"memory", "pids"}
    request = tree / "1.1"
    request.mkdir()
    names = ("memory.max", "memory.swap.max", "pids.max")
    for name in names:
        (request / name).touch()
    held = controls.hold(JobLimits(40 * MB, [1], 30), "1.1", str(request))
    assert [(request / name).read_text() for name in names] == [str(40 * MB), "0", "30"]
    assert (held.enter, set(held.places)) == ([], {"memory", "pids"})
    (request / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\n")
    (request / "memory.peak").write_text(f"{40 * MB}\n")
    assert (held.killed(), held.peak()) == (1, 40 * MB)
    controls = Controls("home", str(_tree(tmp_path / "other", "")), {})
    assert not controls.found
    held = controls.hold(JobLimits(1, [0], 1), "1.1", str(tmp_path))
    assert (held.places, held.killed(), held.peak(), held.oom_event()) == ({}, 0, 0, None)


# ---------------------------------------------------------------- cgroups that are about to be entered
def test_no_cgroup_is_removed_at_the_daemons_stop_while_a_job_may_be_about_to_enter_it(make_bench):
    bench = make_bench()
    request = bench.running("echo $$ > pid\nexec sleep 60\n", ask=Ask(nice=5))
    _, cgroup = bench.record(request)["cage"]
    leader = bench.number("pid")
    if not cgroup:
        os.kill(leader, signal.SIGKILL)
        pytest.skip("needs cgroups that may be written: root, as a rule")
    made = Path(cgroup).with_name("9.1")
    made.mkdir()
    bench.leave()
    there = made.exists()
    os.kill(leader, signal.SIGKILL)
    bench.until((bench.folder(request) / "done").exists, "it has ended")
    with contextlib.suppress(FileNotFoundError):  # the spawner, which has stayed for its shepherd, is sooner
        made.rmdir()
    assert there


@pytest.mark.parametrize("kind", ["cgroup2", "cgroup1"])
def test_a_job_whose_cgroup_is_removed_does_not_start_outside_of_it(kind, monkeypatch):
    monkeypatch.setattr(child, "secure", lambda: None)
    groups = Cgroups(f"test-{os.getpid()}", kind)
    cgroup = groups.for_job("1.1")
    groups.remove()
    if groups.kind != kind:
        pytest.skip(f"needs a {kind} that may be written: root, as a rule")
    who = person.Person(os.geteuid(), os.getegid(), "me", "/", "/bin/sh", os.getegid())
    control, _ = sockets = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    wait = deadline.Wait(20, lambda: control)
    with pytest.raises(child.Again, match="cannot enter its cgroup"):
        child.launch({}, who, cgroup, (1, 2), wait, lambda pid: None)
    for each in sockets:
        each.close()


def test_an_order_to_end_a_job_that_then_begins_after_all_is_not_lost():
    """The first process may be stopped until the daemon gives it up, and continue at that very moment."""
    shepherd, daemon = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    reader, writer = os.pipe()
    kill = {"do": "kill", "reason": "deleted", "grace": 20_000, "signal": 15}
    for message in ({"do": "suspend"}, kill):
        daemon.send(json.dumps(message).encode())
    wait = deadline.Wait(20, lambda: shepherd)

    def begin() -> None:
        while wait.kill is None:
            os.sched_yield()
        os.close(writer)  # it has exec'd

    going = threading.Thread(target=begin)
    going.start()
    try:
        assert wait.read(reader) == (b"", True)
        assert wait.unhandled() == [{"do": "suspend"}, kill]
    finally:
        going.join()
        os.close(reader)
        shepherd.close()
        daemon.close()


# ---------------------------------------------------------------- devices: a job may open what it holds
FULL, ZERO = os.makedev(1, 7), os.makedev(1, 5)
"""Devices that every machine has, in place of GPUs."""


@pytest.fixture
def nodes(tmp_path):
    """Return device files of two GPUs."""
    made = []
    for n, number in enumerate((FULL, ZERO)):
        path = tmp_path / f"nvidia{n}"
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, number)
            path.open("rb").close()
        except OSError:
            pytest.skip("no device file can be made here, or be used")
        made.append(path)
    return made


def give(bench, nodes, variable="CUDA_VISIBLE_DEVICES"):
    """Configure these two devices as GPUs."""
    numbers = ("1:7", "1:5")
    devices = tuple(Device("nvidia", str(n), (str(path),), (), (numbers[n],)) for n, path in enumerate(nodes))
    bench.site.found = Found(bench.site.found.cpus, 0, devices=devices)
    bench.site.settings.consumables["gpu"] = Consumable("gpu", ("auto",), env=variable)


def run(bench, script, *units):
    """Return the output of a job that holds these units."""
    request = bench.request(f"({script}) > out 2>&1")
    held = (("gpu", units),) if units else ()
    bench.executor.do(Start(request.seq, 1, (0,), units=held), request, bench.site, 0)
    bench.ending(request)
    return (bench.work / "out").read_text()


def list_nodes(nodes):
    """Return a script that tries to open each device."""
    return "echo $CUDA_VISIBLE_DEVICES;" + "".join(f"(: < {path}) && echo {path.name};" for path in nodes)


@pytest.mark.parametrize("kind", ["cgroup2", "cgroup1"])
def test_a_job_opens_the_devices_it_holds_and_no_other(make_bench, nodes, kind):
    if not enforced("devices", kind):
        pytest.skip(f"no devices can be kept from a job by {kind} here")
    bench = make_bench(cgroup=kind)
    give(bench, nodes)
    assert "nvidia0\nnvidia1\n" not in run(bench, list_nodes(nodes))
    output = run(bench, list_nodes(nodes), "1").splitlines()
    assert output[0] == "0", "the only one that it can open is the first that its programs see"
    assert output[-1] == "nvidia1"
    assert "not permitted" in output[1]
    assert run(bench, list_nodes(nodes), "0", "1") == "0,1\nnvidia0\nnvidia1\n"


@pytest.mark.parametrize("cgroup", ["none", ""], ids=["no cgroup", "files of another machine"])
def test_otherwise_the_variable_tells_the_units_as_they_are_called(make_bench, nodes, tmp_path, cgroup):
    bench = make_bench(cgroup=cgroup)
    give(bench, nodes if cgroup else [tmp_path / "no0", tmp_path / "no1"])
    told = run(bench, "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $NQSPY_UNITS", "1")
    assert told == "1 PCI_BUS_ID gpu=1\n"
    assert run(bench, 'echo "[${CUDA_VISIBLE_DEVICES-unset}] ${NQSPY_UNITS-unset}"') == "[] unset\n"


def test_what_is_no_cgroup_cannot_be_kept_from_devices(tmp_path):
    assert not device_filter.deny(str(tmp_path), [], keep=False)
    for folder, device in ((tmp_path, "1:7"), (tmp_path / "none", "1:7"), (tmp_path, "x:y")):
        assert not device_filter.deny(str(folder), [device])


# ---------------------------------------------------------------- memory of requests that give way
HOG = f"""exec {sys.executable} -c '
import os, time
held = bytearray(b"x") * (80 << 20)
open("holds", "w").write(str(os.getpid()))
while not os.path.exists("go"):
    time.sleep(0.02)
open("sum", "w").write(str(held.count(b"x")))
time.sleep(60)
'
"""


def swaps() -> list[str]:
    return Path("/proc/swaps").read_text().splitlines()[1:]


@pytest.fixture
def swap_file(tmp_path):
    """Make a swap file for one test."""
    path = tmp_path / "swapfile"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 256 * MB)
    path.chmod(0o600)
    if os.geteuid() or not shutil.which("mkswap"):
        pytest.skip("needs root and mkswap: only root may add swap")
    subprocess.run(["mkswap", path], check=True, capture_output=True)
    if subprocess.run(["swapon", path], check=False, capture_output=True).returncode:
        pytest.skip("this kernel takes no swap file here")
    yield path
    subprocess.run(["swapoff", path], check=True)


@pytest.fixture(params=["cgroup2", "cgroup1", "none"])
def hog(request, make_bench):
    """Start a request that holds 80 MB, with each kind of cgroup."""
    bench = make_bench(cgroup=request.param)
    job = bench.running(HOG)
    bench.text("holds")
    yield bench, job
    bench.kill(job, 0)


def held(bench, job) -> int:
    return bench.executor.resident({job.seq: 1}).get(job.seq, 0)


def test_what_a_request_holds_is_seen_from_the_daemon(hog):
    bench, job = hog
    assert 80 * MB < held(bench, job) < 120 * MB
    assert bench.executor.resident({job.seq + 1: 1}) == {}, "there is no such attempt"


def gives_way(bench, job, caplog) -> tuple[int, int]:
    """Return how many MB left memory, and of how many, when a request gave way."""
    with caplog.at_level("INFO", "nqspy.executor"):
        bench.do(Suspend(job.seq, 1, cause_of("swap"), page_out=True))
        told = bench.until(lambda: re.search(r"(\d+) of (\d+) MB are paged out", caplog.text), "a line")
    return int(told[1]), int(told[2])


@pytest.mark.privileged
def test_its_pages_really_leave_and_come_back_unchanged(hog, swap_file, caplog):
    bench, job = hog
    left, whole = gives_way(bench, job, caplog)
    # What it made has left; the pages of the programs, which others have too, the kernel may keep.
    assert held(bench, job) < 40 * MB
    assert left > 60
    assert 80 <= whole < 120
    bench.do(Resume(job.seq, 1))
    bench.go()
    assert bench.text("sum") == str(80 * MB)


@pytest.mark.skipif(not pageout.may(), reason="needs CAP_SYS_NICE: only then the kernel tries")
def test_without_swap_it_is_told_that_nothing_left(make_bench, caplog):
    if swaps():
        pytest.skip("this machine has swap: nothing to show of one without")
    bench = make_bench()
    job = bench.running(HOG)
    bench.text("holds")
    left, _ = gives_way(bench, job, caplog)
    stays, with_swap = held(bench, job), swaps()
    bench.kill(job, 0)
    if with_swap:
        pytest.skip("somebody has switched swap on meanwhile")
    assert left < 20, f"its code and files may leave, what it made stays: {caplog.text}"
    assert stays > 75 * MB


def test_a_request_that_is_told_to_go_on_at_once_is_not_paged_out_to_the_end(hog):
    bench, job = hog
    for _ in range(5):
        bench.do(Suspend(job.seq, 1, cause_of("swap"), page_out=True))
        bench.do(Resume(job.seq, 1))
    bench.go()
    assert bench.text("sum") == str(80 * MB)


def test_who_may_not_page_out_is_told_so():
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv: to give rights up")
    code = """
import os, subprocess, sys
from nqspy.executors import pageout
child = subprocess.Popen(["sleep", "60"])
out = pageout.PageOut([child.pid])
while out.step():
    pass
print(pageout.may(), out.refused)
child.kill()
child.wait()
"""
    weak = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    run = subprocess.run([*weak, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["False", "True"], run.stderr


def test_that_paging_out_is_refused_is_logged_once_and_ended_processes_are_passed_over(bench, caplog):
    assert [bench.executor._watch._paged_out(1, 5, 5, 1) for _ in range(2)] == [0, 0]
    assert caplog.text.count("CAP_SYS_NICE") == 1
    child = subprocess.Popen(["true"])
    child.wait()
    out = pageout.PageOut([child.pid])
    started = time.monotonic()
    while out.step():
        assert time.monotonic() < started + 5
    assert (out.before, out.after, out.refused) == (0, 0, False)
    assert Residents().of("/nowhere/17.1") is None
