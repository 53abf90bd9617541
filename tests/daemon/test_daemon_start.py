"""A home's daemon comes up, keeps others out, says what is wrong with its home, and goes."""

import os
import pwd
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, ROOT, until

from nqspy.daemon.home import Home


def test_a_new_home_is_filled_and_serves(make_live):
    live = make_live()
    done = live.run("nqsd", "init", "--site", "plain").ok()
    assert str(live.home) in done.out
    live.run("nqsd", "init").refused("not empty")
    live.run("nqsd", "start").ok()
    assert live.job(live.submit("true"))["queue"] == "batch"
    assert f"nqsd serves {live.home}" in live.run("nqsd", "status").ok().out
    words = (live.home / "nqsd.pid").read_text().split()
    assert int(words[0]) == live.pid
    assert not {"re", "json", "typing", "typer", "msgspec", "nqspy.daemon.command"} & _loaded_by_status(live)
    assert Path(f"/proc/{live.pid}/cwd").resolve() == Path("/")
    live.run("nqsd", "stop").ok()
    live.run("nqsd", "status").refused("no nqsd serves")
    live.run("nqsd", "stop").refused("no nqsd serves")
    assert not live.leftovers()
    names = {path.name for path in live.home.iterdir()}
    assert names == {"nqs.db", "nqsd.pid", "spool", "log", "exits", "queues.d"}, "closed properly"


def _loaded_by_status(live):
    code = (
        "import os, sys; sys.argv[1:] = ['status']; leave = os._exit\n"
        "os._exit = lambda status: (print(*sys.modules, file=sys.stderr, flush=True), leave(status))\n"
        "from nqspy.daemon.front import main; main()"
    )
    env = {**os.environ, "NQSPY_HOME": str(live.home), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-S", "-c", code]
    return set(subprocess.run(words, env=env, capture_output=True, text=True, check=True).stderr.split())


def test_the_shipped_site_is_the_computing_centre(make_live):
    live = make_live()
    live.run("nqsd", "init", "--site", "day-night").ok()
    shipped = {path.name for path in (ROOT / "exits").glob("*.py")}
    assert {path.name for path in (live.home / "exits").iterdir()} == shipped
    live.start("--clock", "2026-03-02T12:00:00+01:00 x1")
    shown = live.qmgr("show queue", "show shifts", "show exits").ok().out
    assert all(word in shown for word in ("express", "pe128m10", "evening", "machine_gun", "large_memory"))
    assert live.client.call("status")["alarms"] == []


@pytest.mark.parametrize("words", [("nqsd", "start"), ("nqsd", "run"), ("nqspy", "restore", "nqs.db")])
def test_a_folder_of_something_else_is_not_made_a_home(make_live, words):
    live = make_live()
    live.home.mkdir()
    (live.home / "passwd").write_text("root:x:0:0")
    (live.home / "exits").write_text("a file of somebody's")
    live.run(*words).refused("is not empty", str(live.home))
    assert sorted(os.listdir(live.home)) == ["exits", "passwd"]


def test_what_is_a_home_and_what_may_become_one(tmp_path):
    (tmp_path / "lost+found").mkdir()
    assert Home(tmp_path).is_new(), "a file system that was just made"
    for name in ("queues.d", ".git", "spool"):
        (tmp_path / name).mkdir()
    assert (Home(tmp_path).is_new(), Home(tmp_path).is_one()) == (False, True)
    (tmp_path / "tests").mkdir()
    assert not Home(tmp_path).is_one(), "more than a home has"


def test_a_mistake_in_the_words_is_one_line(make_live):
    live = make_live()
    for words in (("frob",), ("start", "--frob"), ("start", "--home")):
        done = live.run("nqsd", *words)
        assert (done.status, done.out, len(done.err.splitlines())) == (2, "", 1)
        assert done.err.startswith("nqsd: ")
    live.run("nqsd", "start", "--home", "").refused("--home needs a folder")
    live.run("nqsd", "start", "--home", str(live.write("file", ""))).refused("file")
    live.run("nqsd", "init", "--site", "lunar").refused("lunar", "plain")


def test_a_folder_with_exits_alone_is_a_new_home_and_nothing_is_added_or_left_open(make_live):
    live = make_live()
    (live.home / "exits").mkdir(parents=True)
    (live.home / "log").mkdir(mode=0o755)
    (live.home / "notes").write_text("ours")
    live.start()
    assert "batch" not in live.qmgr("show queue").ok().out
    assert not list((live.home / "exits").iterdir())
    assert (live.home / "notes").read_text() == "ours"
    assert {(live.home / name).stat().st_mode & 0o777 for name in ("spool", "log")} == {0o700}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file is given to another user")
def test_files_of_queues_d_that_others_may_write_are_not_read(make_live):
    live = make_live().site()
    file = live.home / "queues.d" / "10-site.qmgr"
    for mode, owner in ((0o666, 0), (0o644, 65534)):
        file.chmod(mode)
        os.chown(file, owner, -1)
        live.run("nqsd", "start").refused("10-site.qmgr was not read: it ")
    os.chown(file, 0, -1)
    os.mkfifo(live.home / "queues.d" / "30.qmgr")
    live.run("nqsd", "start").refused("30.qmgr was not read: it is not a file")
    (live.home / "queues.d" / "30.qmgr").unlink()
    live.start()
    (live.home / "queues.d").chmod(0o777)
    (live.home / "queues.d" / "20-more.qmgr").write_text("set run_limit=9 batch\n")
    live.stop()
    live.accepts_trouble = True
    assert "writable by all users" in live.run("nqsd", "start").ok().err
    assert "9" not in live.qmgr("show queue").ok().out


def test_start_leaves_nothing_of_the_caller_in_the_daemons_hands(make_live):
    """No descriptor, no session, and what lies in the caller's folder is no module of the daemon's."""
    live = make_live().site()
    for name in ("json", "signal", "numpy"):
        live.write(f"{name}.py", "open('was-run', 'w')\n")
    ours, theirs = os.pipe()
    live.run("nqsd", "start", pass_fds=(theirs,)).ok()
    os.close(theirs)
    assert os.read(ours, 1) == b"", "the pipe is kept open"
    os.close(ours)
    links = {os.readlink(f"/proc/{live.pid}/fd/{fd}") for fd in ("0", "1", "2")}
    assert links == {"/dev/null"}
    assert os.getsid(live.pid) == live.pid
    live.ended(live.submit("true"))
    assert not (live.work / "was-run").exists()


def test_a_second_daemon_is_kept_out(office):
    office.run("nqsd", "start").refused("already", str(office.pid), "nqsd stop")
    office.run("nqsd", "run").refused("already", str(office.pid))
    assert office.ended(office.submit("true"))["exit_status"] == 0


def test_two_homes_stand_side_by_side_one_at_a_path_longer_than_a_sockets_name_may_be(make_live):
    one, two = make_live("one").site().start(), make_live("/".join(["a-long-way-down"] * 9)).site().start()
    assert len(str(two.home)) > 107
    first, second = one.submit("exit 1"), two.qsub("exit 2\n")
    assert (one.ended(first)["exit_status"], two.ended(second)["exit_status"]) == (1, 2)
    one.stop()
    id = two.submit("trap 'exit 8' TERM; while :; do sleep 0.02; done")
    two.running(id)
    two.run("qdel", id).ok()
    assert two.ended(id)["exit_status"] == 8
    two.stop()
    assert not (two.home / "nqsd.sock").exists()


@pytest.mark.slow
def test_folders_of_the_configuration_may_lie_elsewhere(make_live):
    live = make_live()
    for name in ("rules", "code"):
        (live.work / name).mkdir()
    (live.work / "rules" / "a.qmgr").write_text(ONE_QUEUE)
    (live.work / "code" / "nobody.py").write_text(REFUSES)
    live.run("nqsd", "start", "--queues", "rules", "--exits", "code").ok()
    live.until(live.submit("true"), lambda job: (job["reason"] or {}).get("who") == "nobody", "be kept back")
    live.stop()
    live.run("nqsd", "start", "--queues", "missing", "--exits", "code").ok()
    assert "missing" in live.run("nqsd", "status").ok().out, "the former settings stay, and it is told"


REFUSES = """\
from nqspy.userexit import refuse, userexit


@userexit
def jobselect(request):
    return refuse("nobody today")
"""


def test_the_log_has_one_line_a_message_whose_time_carries_the_sites_zone(live):
    live.accepts_trouble = True
    live.exit("broken", "from nqspy.userexit import nothing_of_that_name\n")
    live.set("set timezone Asia/Kathmandu")
    live.restart()
    lines = live.log.splitlines()
    for line in lines:
        when = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"
        assert re.match(rf"{when} (INFO|WARNING|ERROR) \S|    ", line), line
    written = datetime.fromisoformat(lines[-1].split()[0])
    assert written.utcoffset() == timedelta(hours=5, minutes=45)
    assert abs(datetime.now(UTC) - written) < timedelta(minutes=1)
    assert "exits/broken.py" in next(line for line in lines if "broken" in line)
    assert "broken.py" in live.run("nqsd", "status").ok().out


# ---------------------------------------------------------------- queues.d
BROKEN = [
    (ONE_QUEUE + "set queue batch run_limits=3\n", ("line 6", "run_limits")),
    (ONE_QUEUE + "set queue nowhere run_limit=3\n", ("line 6", "nowhere")),
    (ONE_QUEUE + 'define shift day when=("99 9 * * *")\n  stop queue batch\nend\n', ("line 6", "99 9")),
    ("delete request 17\n", ("10-site.qmgr", "queues.d")),
]


def test_an_error_in_any_line_leaves_the_settings_in_force(live):
    before = live.qmgr("show all").out
    for times, (text, words) in enumerate(BROKEN, start=1):
        live.stop()
        (live.home / "queues.d" / "10-site.qmgr").write_text(text)
        former = len(live.log)
        done = live.run("nqsd", "start").ok()
        assert all(word in done.err for word in ("10-site.qmgr", *words)), done
        assert live.qmgr("show all").out == before
        assert all(word in live.run("nqsd", "status").out for word in words)
        log = live.log[former:]
        assert all(word in log for word in words)
        alarms = live.events("alarm")
        assert len(alarms) == times
        assert "10-site.qmgr" in alarms[-1]["text"]
        if "line 6" in words:
            lines = [line.removeprefix("    ") for line in log.splitlines()]
            row = next(n for n, line in enumerate(lines) if line == text.splitlines()[5])
            assert lines[row + 1].strip() == "^"
            assert lines[row][lines[row + 1].index("^")] != " "


# ---------------------------------------------------------------- homes that cannot be used
def test_a_home_without_rights_is_refused(make_live):
    live = make_live().site()
    weak: list[str] = []
    if os.geteuid() == 0:
        os.chown(live.home, pwd.getpwnam("nobody").pw_uid, -1)
        weak = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    for mode in (0o000 if weak else 0o100, 0o055 if weak else 0o500):
        live.home.chmod(mode)
        try:
            live.run("nqsd", "start", before=weak).refused(str(live.home), "--home")
            live.run("nqsd", "run", before=weak).refused(str(live.home), "--home")
        finally:
            live.home.chmod(0o755)
        assert {path.name for path in live.home.iterdir()} == {"queues.d", "exits"}


# ---------------------------------------------------------------- messages that are none
def test_a_client_that_hangs_up_costs_nothing(office):
    for message in (b'{"v":1,"id":1,"cmd":"wait","ids":["1"]}', b'{"v":1,"id":1,"cmd":"events","wait":true}'):
        id = office.submit("true", held=True)
        with office.connect() as sock:
            sock.sendall(message + b"\n")
        office.run("qdel", id).ok()
    assert until(lambda: office.client.call("ping"), "an answer")


NO_START = (
    (("--queues", "/nope"), "/nope is not a folder"),
    (("--exits", "/nope"), "/nope is not a folder"),
    (("--queues", ""), "--queues names no folder"),
    (("--exits", ""), "--exits names no folder"),
    (("--clock", "nonsense"), "is not a clock"),
    (("--clock", "2026-03-02T20:55:00 x360"), "offset"),
    (("--clock", "9999-12-31T23:59:59+01:00 x360"), "it needs a year from 1971 to 2999"),
)


@pytest.mark.parametrize("there", [False, True])
def test_a_start_refused_for_its_options_makes_nothing(make_live, there):
    live = make_live()
    if there:
        live.home.mkdir()
    for options, words in NO_START:
        live.run("nqsd", "run" if there else "start", *options).refused(words)
        assert live.home.exists() == there
        assert not there or not list(live.home.iterdir())


def test_queues_that_cannot_be_applied_leave_no_database_of_a_first_start(make_live, tmp_path):
    live = make_live().site("set nonsense 3\n")
    done = live.run("nqsd", "start", "--clock", "2026-03-02T12:00:00+01:00 x1")
    assert done.status == 1
    assert "10-site.qmgr, line 1" in done.err
    assert not [path.name for path in live.home.iterdir() if path.name.startswith(("nqs.db", "clock"))]
    live.site().start("--clock", "2020-03-02T12:00:00+01:00 x1")
    assert live.client.call("status")["alarms"] == []
    first = live.run("nqspy", "events", "--json").ok().lines[0]
    assert "2020-03-02" in first


@pytest.mark.parametrize("words", [("status",), ("start", "--clock", "noon")])
def test_whoever_starts_or_stops_it_waits_for_nothing_heavy(tmp_path, words):
    heavy = {"numpy", "peewee", "apscheduler", "pydantic"}
    told = f"atexit.register(lambda: print(sorted({heavy} & set(sys.modules))))"
    code = f"import atexit, sys; {told}; from nqspy.daemon.command import main; main()"
    command = [sys.executable, "-c", code, *words, "--home", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "[]\n")


# ---------------------------------------------------------------- starts that cannot be, and odd callers
@pytest.mark.parametrize(("word", "there"), [("start", False), ("run", True)])
def test_a_first_start_that_fails_leaves_the_home_as_it_was(make_live, tmp_path, word, there):
    live = make_live()
    if there:
        live.home.mkdir()
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "a.qmgr").write_text("create batch_queue batch\nset queue nowhere run_limit=3\n")
    done = live.run("nqsd", word, "--queues", str(rules))
    assert done.status == 1
    assert "a.qmgr, line 2" in done.err
    assert live.home.exists() == there
    assert not there or not list(live.home.iterdir())
    until(lambda: not live.leftovers(), "its processes have ended")


GONE = (
    *(("nqsd", name, "--home") for name in ("init", "start", "run", "status", "stop")),
    ("nqsd", "start", "--queues"), ("nqspy", "doctor", "--home"), ("nqspy", "counters", "--home"),
    ("qstat", "--home"),
)  # fmt: skip


def test_in_a_folder_that_is_gone_it_says_so_in_one_line(make_live):
    live = make_live()
    for words in GONE:
        (live.work / "gone").mkdir()
        done = live.run(*words, "rel", before=["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh"])
        assert (done.status, len(done.err.splitlines()), "rel" in done.err) == (1, 1, True), done


def test_no_process_to_be_had_is_one_line_and_leaves_nothing(make_live):
    live = make_live()
    done = live.run("nqsd", "start", "--site", "plain", before=["prlimit", "--nofile=6", "--"])
    assert done.status == 1
    assert len(done.err.splitlines()) == 1, done.err
    assert "Too many open files" in done.err
    assert not live.home.exists()


def test_descriptors_and_signals_of_an_odd_caller_are_the_daemons_own(make_live):
    """It has closed its standard descriptors, ignores the end of children and blocks all signals."""
    live = make_live().site()
    odd = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.closerange(0, 3); "
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); "
        "os.execvp(sys.argv[1], sys.argv[1:])"
    )
    for status in (0, 1):  # the second one finds the first
        assert live.run("nqsd", "start", before=[sys.executable, "-c", odd]).status == status
    live.ended(live.submit("true"))
    os.kill(live.pid, signal.SIGTERM)
    until(lambda: "INFO stopped" in live.log, "SIGTERM has ended it")


def test_a_home_whose_name_is_no_text_is_served_and_told(make_live, tmp_path):
    live = make_live()
    live.home = tmp_path / os.fsdecode(b"b\xff")
    live.environment["NQSPY_HOME"] = str(live.home)
    live.site().start()
    assert "nqsd serves" in live.run("nqsd", "status").ok().out
    assert r"b\xff: 0 requests" in live.run("nqsd", "status").ok().out
