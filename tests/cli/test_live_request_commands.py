"""qalter, qsig, qmsg, qrerun, qorder, qlimit and qping against a real daemon, and what befalls them when it
is killed or the request has just ended."""

import os
import signal

import pytest
from daemon.live import until
from stillness import stands_still

GATE = "echo up; while [ ! -e gate ]; do sleep 0.02; done; echo down"


@pytest.fixture
def gate(office):
    """Return a file that jobs wait for."""
    path = office.work / "gate"
    path.unlink(missing_ok=True)
    yield path
    path.unlink(missing_ok=True)


def test_a_waiting_request_is_altered(office):
    id = office.qsub("true\n", "-h")
    words = "-h u -j oe -l select=2:mem=1gb,walltime=0:3:0 -m be -N other -o out -p 7 -r n -S /bin/bash"
    assert office.run("qalter", *words.split(), id).ok().out == ""
    job, full = office.job(id), office.run("qstat", "-f", id).ok().out
    assert (job["name"], job["held"], job["output"]) == ("other", ["u"], f"{office.work}/out")
    assert (job["requested"]["pes"], job["requested"]["wall_s"]) == (2, 180)
    assert job["requested"]["memory_bytes"] == 2 << 30
    for line in ("Mail_Points = be", "Rerunable = False", "Shell_Path_List = /bin/bash", "Priority = 7"):
        assert f"    {line}\n" in full
    office.run("qalter", "-l", "select=1", id).ok()
    assert office.job(id)["requested"]["memory_bytes"] is None, "the whole selection is replaced"
    office.run("qalter", "-u", "somebody", id).refused(id, "stays")
    office.run("qdel", id).ok()


def test_the_statuses_are_those_of_pbs_and_each_failure_has_its_line(office, gate):
    running = office.submit(GATE, rerunnable=False)
    office.running(running)
    waiting = office.submit("true", held=True)
    done = office.run("qalter", "-p", "3", running, "4711", waiting)
    assert done.status == 153
    assert done.err.splitlines()[1] == f"qalter: Unknown Job Id 4711.{running.partition('.')[2]}"
    assert done.err.startswith(f"qalter: Cannot modify attribute while job running {running}: priority")
    assert "    Priority = 3\n" in office.run("qstat", "-f", waiting).ok().out
    statuses = {
        ("qalter", "-p", "3"): 167, ("qhold",): 168, ("qmove", "batch"): 168, ("qrerun",): 190,
        ("qsig", "-s", "0"): 0,
    }  # fmt: skip
    assert {words: office.run(*words, running).status for words in statuses} == statuses
    assert office.run("qmove", "nowhere", waiting).status == 170
    assert office.run("qsig", "-s", "NOSUCH", running).status == 165
    gate.touch()
    office.ended(running)
    for words in (["qsig"], ["qrerun"], ["qmsg", "text"], ["qalter", "-N", "x"], ["qhold"], ["qdel"]):
        done = office.run(*words, running)
        assert (done.status, done.err) == (35, f"{words[0]}: Job has finished {running}\n")
    office.run("qdel", waiting).ok()
    assert office.run("qdel", waiting).status == 35


def test_signals_by_name_and_number_and_suspend_and_resume(office):
    id = office.submit(
        "trap 'echo told' USR1; echo $$; while [ ! -e end ]; do sleep 0.02; done", workdir=office.work
    )
    office.running(id)
    pid = int(until(lambda: office.run("qcat", id).out.strip(), "its pid"))
    office.run("qsig", "-s", "SIGUSR1", id).ok()
    until(lambda: office.run("qcat", id).out.endswith("told\n"), "the signal")
    office.run("qsig", "-s", "suspend", id).ok()
    until(lambda: stands_still(pid), "it stops")
    assert office.job(id)["state"] == "suspended"
    assert office.run("qsig", "-s", "suspend", id).status == 168
    office.run("qsig", "-s", "resume", id).ok()
    until(lambda: not stands_still(pid), "it goes on")
    office.run("qsig", "-s9", id).ok()
    ended = office.ended(id)
    assert (ended["end_reason"], ended["exit_signal"]) == ("signal", signal.SIGKILL)


def test_messages_stand_in_the_output_in_order(office, gate):
    id = office.submit(GATE)
    office.running(id)
    until(lambda: office.run("qcat", id).out == "up\n", "its first line")
    office.run("qmsg", "-O", "the disk is nearly full", id).ok()
    for number in range(2):
        office.run("qmsg", f"warning {number}", id).ok()
    until(lambda: office.run("qcat", "-e", id).out.count("\n") == 2, "the warnings")
    gate.touch()
    seq = office.ended(id)["seq"]
    assert office.text(f"STDIN.o{seq}") == "up\nthe disk is nearly full\ndown\n"
    assert office.text(f"STDIN.e{seq}") == "warning 0\nwarning 1\n"


def test_the_limits_are_listed_with_their_options(office):
    lines = office.run("qlimit").ok().lines
    assert lines[0].split() == ["Per-process", "core", "file", "size", "-lc"]
    assert all(line.startswith("  ") for line in lines if line)
    assert next(line for line in lines if "-lF" in line).endswith("Enforced per-process")
    assert next(line for line in lines if "-lq" in line).endswith("Not run-time enforceable")
    assert lines[-1].startswith("  Shell strategy: ")
    assert "RLIMIT_CORE" in office.run("qlimit", "-v").ok().lines[0]
    office.run("qlimit", "elsewhere").refused("host elsewhere is not served here")


def test_qping_tells_whether_the_daemon_answers(shared):
    name = shared.job(shared.submit("true", held=True))["id"].partition(".")[2]
    assert shared.run("qping").ok().out == f"{name}: nqsd answers\n"
    shared.run("qping", name).ok()
    shared.run("qping", "elsewhere").refused("elsewhere")
    shared.stop()
    shared.run("qping").refused("no nqsd answers")


ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: jobs of another user")


@pytest.mark.privileged
@ROOT
def test_output_of_an_ended_request_is_read_with_the_rights_of_who_asks(live, open_folder):
    live.work, folder = open_folder, open_folder / "theirs"
    folder.mkdir(mode=0o755)
    os.chown(folder, 65534, 65534)
    id = live.qsub("umask 077; echo secret\n", "-u", "nobody", "-o", f"{folder}/out")
    live.ended(id)
    os.chmod(folder / "out", 0o600)
    assert live.run("qcat", id).ok().out == "secret\n", "root may"
    (folder / "out").unlink()
    os.mkfifo(folder / "out")
    live.run("qcat", id).refused("which is not a file")
    (folder / "out").unlink()
    (folder / "out").symlink_to(live.work / "nothing")
    live.run("qcat", id).refused(f"Job has finished {id}", "No such file")
