"""Where cgroups may be used the kernel itself keeps a request to its limits; escapes are found anywhere."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from executors.conftest import gone, kept

from nqspy.executors import child, patience, person, records
from nqspy.executors.cage import Seat
from nqspy.executors.control import Controls, Wish
from nqspy.model.actions import Kill
from nqspy.model.requests import Ask

MB = 1 << 20


def needs(controller: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not kept(controller), reason=f"needs a {controller} cgroup that may be written: root, as a rule"
    )


CAGES = pytest.mark.parametrize("cage", ["", "none"], ids=["best cage", "no cgroup"])
EAT = 'python3 -S -c \'import time; x = b"x" * {}; open("full", "w"); time.sleep(60)\''


@needs("memory")
@pytest.mark.parametrize("limit", [40 * MB, 80 * MB])
def test_memory_is_the_kernels_business_and_the_right_request_ends(bench, limit):
    """With the larger limit its shepherd goes where the request is held, to spawn it there."""
    innocent = bench.running(f"exec {EAT.format(20 * MB)}\n", ask=Ask(memory=400 * MB))
    ending = bench.run(f"exec {EAT.format(400 * MB)}\n", ask=Ask(memory=limit))
    assert ending.reason == "memory_limit"
    assert ending.text.startswith(f"memory limit of {limit} bytes exceeded: ")
    assert limit - MB <= ending.used.memory <= limit + 20 * MB  # no sample could have been in time for 400 MB
    assert f"nqspy: request 2.ymp was ended: {ending.text}\n" in bench.text("job.e2")
    bench.do(Kill(innocent.seq, 1, "deleted", 1000))
    assert bench.ending(innocent).reason == "deleted"


@needs("memory")
def test_a_process_that_the_kernel_killed_ends_its_request_though_the_leader_lives(bench):
    script = f"{EAT.format(400 * MB)}\necho survived\nexec sleep 60\n"
    ending = bench.run(script, ask=Ask(memory=40 * MB))
    assert ending.reason == "memory_limit"
    assert ending.signal in (signal.SIGTERM, signal.SIGKILL)
    assert ending.used.wall < 20_000


@needs("memory")
def test_swapping_does_not_hide_memory_and_the_peak_is_told(bench):
    script = f"exec python3 -S -c 'x = b\"x\" * {60 * MB}; del x'\n"
    ending = bench.run(script, ask=Ask(memory=300 * MB))
    assert (ending.reason, ending.status) == ("exit", 0)
    assert ending.used.memory >= 60 * MB  # it was that much for a moment only


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
    bench = make_bench(cage="none")
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


@CAGES
@pytest.mark.parametrize("killed", [False, True], ids=["ends", "is killed"])
def test_what_escapes_ends_with_the_request(make_bench, cage, killed):
    bench = make_bench(cage=cage)
    script = "".join(
        way.format(f"echo $$ > escaped.{n}; while :; do sleep 0.05; done") for n, way in enumerate(ESCAPES)
    )
    names = [f"escaped.{n}" for n in range(len(ESCAPES))]
    wait = "".join(f"while [ ! -s {name} ]; do sleep 0.02; done\n" for name in names)
    if killed:
        request = bench.running(f"{script}exec sleep 60\n")
        pids = [int(bench.text(name)) for name in names]
        bench.do(Kill(request.seq, 1, "deleted", 200))
        assert bench.ending(request).reason == "deleted"
    else:
        caged = Ask(others=(("per_process/corefile_limit", 0),))
        ending = bench.run(f"{script}{wait}exit 3\n", ask=caged)
        assert (ending.reason, ending.status) == ("exit", 3)
        pids = [int(bench.text(name)) for name in names]
    assert [pid for pid in pids if not gone(pid)] == []


def test_a_request_that_closes_all_its_descriptors_ends_exactly(bench):
    script = "exec python3 -S -c 'import os; os.closerange(0, 1024); os._exit(7)'\n"
    assert bench.run(script).status == 7


# ---------------------------------------------------------------- a full spool


@pytest.fixture
def small_spool(tmp_path):
    """A spool of 24 MB with hands of its own."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("needs root: a small file system is mounted as the spool")
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "spool", str(spool)], check=False
    )
    if mount.returncode:
        pytest.skip("needs mount(2): no file system may be mounted here")
    yield spool
    subprocess.run(["umount", "-l", str(spool)], check=True)


def _fill(fd: int) -> None:
    while True:
        os.write(fd, bytes(65536))


def test_who_fills_the_spool_is_ended_and_the_records_of_others_are_safe(small_spool, make_bench):
    bench = make_bench()
    innocent = bench.running("while [ ! -e go ]; do sleep 0.02; done\nexit 9\n")
    bench.until(
        lambda: os.stat(bench.folder(innocent) / "claim").st_blocks * 512 > 8192,
        "there is room for its records",
    )
    greedy = bench.start("while :; do head -c 1000000 /dev/zero; sleep 0.05; done\n")
    ending = bench.ending(greedy)
    assert ending.reason == "file_limit"
    assert "the disk of the spool is nearly full" in ending.text
    # Full to the last byte: what must be written down has its place already.
    (small_spool / "filler").write_bytes(b"")
    fd = os.open(small_spool / "filler", os.O_WRONLY)
    with pytest.raises(OSError, match="No space left"):
        _fill(fd)
    os.close(fd)
    (bench.work / "go").touch()
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


def test_version_2_sets_its_own_files(tmp_path):
    """The names and values written, seen on plain files: this kernel has its controllers elsewhere."""
    tree = _tree(tmp_path, "memory pids")
    controls = Controls("home", str(tree), {})
    assert set(controls.found) == {"memory", "pids"}
    request = tree / "1.1"
    request.mkdir()
    for name in ("memory.max", "memory.swap.max", "pids.max"):
        (request / name).touch()
    held = controls.hold(Wish(40 * MB, [1], 30), "1.1", str(request))
    texts = [(request / name).read_text() for name in ("memory.max", "memory.swap.max", "pids.max")]
    assert texts == [str(40 * MB), "0", "30"]
    assert (held.enter, set(held.places)) == ([], {"memory", "pids"})
    (request / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\n")
    (request / "memory.peak").write_text(f"{40 * MB}\n")
    assert (held.killed(), held.peak()) == (1, 40 * MB)


def test_a_tree_that_delegates_nothing_holds_nothing(tmp_path):
    controls = Controls("home", str(_tree(tmp_path, "")), {})
    assert not controls.found
    held = controls.hold(Wish(1, [0], 1), "1.1", str(tmp_path))
    assert (held.places, held.killed(), held.peak(), held.bell()) == ({}, 0, 0, None)


# ---------------------------------------------------------------- cages that are about to be entered


def test_no_cage_is_taken_away_at_the_daemons_stop_while_a_job_may_be_about_to_enter_it(make_bench):
    bench = make_bench()
    request = bench.running("echo $$ > pid\nexec sleep 60\n", ask=Ask(nice=5))
    record = bench.until(lambda: records.read(str(bench.folder(request)), "pid"), "its record")
    leader = int(bench.text("pid"))
    if not record["cage"][1]:
        os.kill(leader, signal.SIGKILL)
        pytest.skip("needs cgroups that may be written: root, as a rule")
    made = Path(record["cage"][1]).with_name("9.1")
    made.mkdir()
    bench.leave()
    there = made.exists()
    os.kill(leader, signal.SIGKILL)
    bench.until((bench.folder(request) / "done").exists, "it has ended")
    with contextlib.suppress(FileNotFoundError):  # the starter, which has stayed for its shepherd, is sooner
        made.rmdir()
    assert there


@pytest.mark.parametrize("kind", ["cgroup2", "cgroup1"])
def test_a_job_whose_cage_is_gone_does_not_start_outside_of_it(kind, monkeypatch):
    monkeypatch.setattr(child, "secure", lambda: None)
    seat = Seat(f"test-{os.getpid()}", kind)
    cage = seat.cage("1.1")
    seat.leave()
    if seat.kind != kind:
        pytest.skip(f"needs a {kind} that may be written: root, as a rule")
    who = person.Person(os.geteuid(), os.getegid(), "me", "/", "/bin/sh", os.getegid())
    control, _ = sockets = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    wait = patience.Wait(20, lambda: control)
    with pytest.raises(child.Again, match="cannot enter its cgroup"):
        child.launch({}, who, cage, (1, 2), wait, lambda pid: None)
    for each in sockets:
        each.close()


def test_an_order_to_end_a_job_that_then_begins_after_all_is_not_lost():
    """Its first process may stand still until the daemon gives up on it, and go on at that very moment."""
    shepherd, daemon = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    reader, writer = os.pipe()
    kill = {"do": "kill", "reason": "deleted", "grace": 20_000, "signal": 15}
    for message in ({"do": "suspend"}, kill):
        daemon.send(json.dumps(message).encode())
    wait = patience.Wait(20, lambda: shepherd)

    def begin() -> None:
        while wait.kill is None:
            os.sched_yield()
        os.close(writer)  # it has exec'd

    going = threading.Thread(target=begin)
    going.start()
    try:
        assert wait.read(reader) == (b"", True)
        assert wait.unanswered() == [{"do": "suspend"}, kill]
    finally:
        going.join()
        os.close(reader)
        shepherd.close()
        daemon.close()
