"""The end of a request is reported exactly: status, signal, use, and why it could not begin."""

import os
import signal
from pathlib import Path

import pytest
from executors.conftest import BOTH, IN_CGROUP, gone
from stillness import stands_still

from nqspy.executors import child, person
from nqspy.model.actions import Adjust, Forget, Kill, Resume, Signal, Start, Suspend, WriteOutput
from nqspy.model.observations import ObservedEnded, ObservedNotStarted, ObservedRunning, ObservedUse
from nqspy.model.requests import Output


@BOTH
def test_status_and_signal_are_exact_and_told_apart(bench, ask):
    how = {
        "exit 37\n": ("exit", 37, None),
        "kill -TERM $$\n": ("signal", None, signal.SIGTERM),
        "exit 143\n": ("exit", 143, None),
    }
    for script, expected in how.items():
        request = bench.start(script, ask=ask)
        bench.expect(ObservedRunning, request)  # told before the end even of a very short one
        ending = bench.ending(request)
        assert (ending.reason, ending.status, ending.signal) == expected


def test_use_of_all_processes_is_counted(bench):
    (bench.work / "busy.py").write_text("import time\nwhile time.process_time() < 0.3: pass\n")
    ending = bench.run("python3 -S busy.py & python3 -S busy.py & wait\n")
    assert 600 <= ending.used.cpu < 1500
    assert ending.used.wall >= 300


def test_use_is_told_while_it_runs(bench):
    request = bench.running("while :; do :; done\n")
    assert bench.expect(ObservedUse, request).used.cpu >= 200
    bench.do(Kill(request.seq, 1, "deleted", 1000))
    bench.ending(request)


@BOTH
@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"workdir": "/nowhere/at/all"}, "cannot change to the folder /nowhere/at/all: "),
        ({"shell": "/etc/passwd"}, "cannot run /etc/passwd: Permission denied"),
        ({"output": Output(stdout="/no/out", direct_stdout=True)}, "cannot open the output /no/out: "),
    ],
    ids=["folder", "shell", "output"],
)
def test_why_it_could_not_begin_is_told(bench, spec, text, ask):
    assert bench.expect(ObservedNotStarted, bench.start("exit 0\n", ask=ask, **spec)).text.startswith(text)


def test_a_script_that_the_database_does_not_have_or_has_damaged_does_not_run(bench):
    for data in (None, b"exit 1\n"):
        request = bench.request("exit 0\n")
        del bench.blobs[request.spec.script]
        bench.blobs |= {} if data is None else {request.spec.script: data}
        bench.do(Start(request.seq, 1, (0,)), request)
        assert "database" in bench.expect(ObservedNotStarted, request).text


@BOTH
def test_kill_ends_with_the_reason_of_the_action(bench, ask):
    ending = bench.kill(bench.running("exec sleep 60\n", ask=ask), 5000)
    assert (ending.reason, ending.signal) == ("deleted", signal.SIGTERM)
    early = bench.kill(bench.start("exec sleep 60\n", ask=ask), 5000)
    assert early.reason == "deleted"
    suspended = bench.running("exec sleep 60\n", ask=ask)
    bench.do(Suspend(suspended.seq, 1))
    assert bench.kill(suspended, 5000).signal == signal.SIGTERM


def test_who_ignores_term_is_killed_after_the_grace(bench):
    request = bench.running("trap '' TERM\ntouch ready\nwhile :; do sleep 0.05; done\n")
    bench.until((bench.work / "ready").exists, "the trap is set")
    ending = bench.kill(request, 200, "requeued")
    assert (ending.reason, ending.signal) == ("requeued", signal.SIGKILL)
    assert ending.used.wall >= 200


@BOTH
def test_leftovers_end_with_the_request_and_their_use_is_counted(bench, ask):
    (bench.work / "busy.py").write_text(
        "import os, time\nwhile time.process_time() < 0.3: pass\nopen('done', 'w').write(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    script = "setsid python3 -S busy.py & \nwhile [ ! -s done ]; do sleep 0.02; done\nexit 4\n"
    ending = bench.run(script, ask=ask)
    assert (ending.reason, ending.status) == ("exit", 4)
    assert ending.used.cpu >= 300
    assert gone(bench.number("done"))


@BOTH
def test_a_suspended_request_stands_still_and_goes_on(bench, ask):
    request = bench.running("echo $$ > pid\nwhile [ ! -e go ]; do sleep 0.01; done\nexit 5\n", ask=ask)
    pid = bench.number("pid")
    bench.do(Suspend(request.seq, 1))
    bench.until(lambda: stands_still(pid), "the job stands still")
    bench.go()
    bench.do(Resume(request.seq, 1))
    assert bench.ending(request).status == 5


def test_a_signal_goes_to_all_processes(bench):
    both = "while [ $(wc -l < log) -lt 2 ]; do sleep 0.02; done"
    script = "trap 'echo got >> log; {both}; exit 9' USR1\ntouch {name}\nwhile :; do sleep 0.02; done\n"
    one, other = (script.format(both=both, name=name) for name in ("one", "other"))
    request = bench.running(f"({one}) &\n{other}")
    for name in ("one", "other"):
        bench.until((bench.work / name).exists, "the trap is set")
    bench.do(Signal(request.seq, 1, signal.SIGUSR1))
    assert bench.ending(request).status == 9
    assert bench.text("log").split() == ["got", "got"]


def test_forget_takes_the_folder_away_and_actions_on_what_is_gone_do_nothing(bench):
    request = bench.start("exit 0\n")
    bench.ending(request)
    late = WriteOutput(request.seq, 1, "late\n", ("stderr",))
    mine = (Kill(request.seq, 1, "deleted", 10), Adjust(request.seq, 1), late)
    for action in (*mine, Suspend(99, 1), Resume(99, 1), Forget(99, 1)):
        bench.do(action)
    bench.do(Adjust(request.seq, 1), request)
    assert bench.folder(request).is_dir()
    bench.do(Forget(request.seq, 1))
    bench.until(lambda: not bench.folder(request).exists(), "its folder is cleared away")
    assert bench.run("exit 3\n").status == 3


@BOTH
def test_signals_are_as_a_shell_expects_them_and_no_descriptor_leaks(bench, ask):
    bench.run("exec grep -E 'Sig(Ign|Blk)' /proc/self/status\n", ask=ask)
    for line in bench.text("job.o1").splitlines():
        assert int(line.split()[1], 16) == 0, line
    bench.run("ls -l /proc/self/fd | grep -c spool\nls /proc/self/fd | wc -l\n", ask=ask)
    # stdin, stdout, stderr and the folder that ls reads.
    assert int(bench.text("job.o2").split()[1]) <= 4


def test_starting_the_same_attempt_twice_runs_it_once_also_in_a_home_of_a_long_path(make_bench, tmp_path):
    bench = make_bench(home=tmp_path / ("long" * 40))
    found = bench.executor.found()
    assert (set(found.cpus), found.memory > 64 << 20) == (os.sched_getaffinity(0), True)
    request = bench.request("echo run >> log\nexec sleep 0.1\n")
    for _ in range(3):
        bench.do(Start(request.seq, 1, (0,)), request)
    bench.ending(request)
    assert bench.run("exit 0\n").status == 0
    assert bench.text("log").split() == ["run"]
    assert not [s for s in bench.seen if isinstance(s, ObservedEnded)]
    assert bench.kill(bench.running("exec sleep 60\n"), 5000).reason == "deleted"


@pytest.mark.parametrize("cgroup", ["cgroup2", "cgroup1", "none"])
def test_every_kind_of_cgroup_holds_a_request(make_bench, cgroup):
    bench = make_bench(cgroup=cgroup)
    request = bench.running("sleep 60 &\nsetsid sleep 60 &\necho $$ > pid\nexec sleep 60\n", ask=IN_CGROUP)
    pid = bench.number("pid")
    kind, folder = bench.record(request)["cage"]
    if kind == "none" != cgroup:
        pytest.skip(f"this machine has no {cgroup} that the tests may write")
    assert kind == cgroup
    if folder:
        assert len((Path(folder) / "cgroup.procs").read_text().split()) == 3
    bench.do(Suspend(request.seq, 1))
    if kind != "none":
        state = Path(folder) / ("cgroup.events" if kind == "cgroup2" else "freezer.state")
        bench.until(lambda: "frozen 1" in state.read_text() or "FROZEN" in state.read_text(), "frozen")
    assert bench.kill(request, 5000).signal == signal.SIGTERM
    assert gone(pid)
    assert not folder or not Path(folder).exists()


def test_who_has_no_home_folder_is_told_how_to_start_elsewhere():
    who = person.Person(os.getuid(), os.getgid(), "anne", "/nowhere/at/all", "", os.getgid())
    order = {"start_in": None, "environment": {"PBS_QUEUE": "night"}}
    with pytest.raises(Exception, match="set queue night workdir=submit"):
        child._enter(order, who)
