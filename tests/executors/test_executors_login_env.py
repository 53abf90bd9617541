"""The environment of a login is made once for each user and shell; what a job gets of it."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from nqspy.executors import cgroups, child, local, login_env, logins, proc
from nqspy.executors.order import make_order
from nqspy.executors.person import Person, limits_of, smaller, variables
from nqspy.model.actions import Kill
from nqspy.model.observations import ObservedNote, ObservedNotStarted, ObservedVoid

BASH = "/bin/bash"


@pytest.fixture
def desk(bench, monkeypatch):
    """Return a bench whose login shell is our program; ``profile``: what it does at a login."""

    def profile(text: str) -> None:
        draft = bench.home / "draft"
        draft.write_text(f"#!/bin/bash\ncase $1 in -c) echo login >> {bench.work}/logins\n{text}\n;; esac\n"
                         'exec /bin/bash "$@"\n')  # fmt: skip
        draft.chmod(0o755)
        draft.rename(bench.shell)

    bench.shell = bench.home / "bash"
    bench.profile = profile
    bench.site.settings.server.shell_strategy = f"fixed={bench.shell}"
    bench.order = lambda **fields: monkeypatch.setattr(
        local, "make_order", lambda *given, **named: make_order(*given, **named) | fields
    )
    bench.logins = lambda: (bench.work / "logins").read_text().count("login")
    return bench


def output(desk, script, **spec):
    """Return the output of a job with its owner's login."""
    assert desk.run(script, shell=None, **spec).status == 0
    return (desk.work / f"job.o{desk.seq}").read_text()


def test_a_login_is_taken_once_for_all_jobs_until_the_profile_changes(desk):
    desk.profile("export GIVEN='a\nb'; umask 027; greet() { echo hello $1; }; export -f greet")
    for _ in range(3):
        text = output(desk, 'echo "$GIVEN"; umask; greet you\n')
        assert text.splitlines() == ["a", "b", "0027", "hello you"]
    assert desk.logins() == 1
    stored = list((desk.home / "spool" / "logins").iterdir())
    assert [stat.S_IMODE(each.stat().st_mode) for each in stored] == [0o600]
    desk.profile("export GIVEN=new")
    assert output(desk, "echo $GIVEN\n") == "new\n"
    assert desk.logins() == 2


def test_a_login_is_renewed_after_its_age_and_in_the_background_before(desk):
    desk.profile("export GIVEN=$(wc -l < logins)".replace("logins", f"{desk.work}/logins"))
    assert output(desk, "echo $GIVEN\n") == "1\n"
    (stored,) = (desk.home / "spool" / "logins").iterdir()
    for seconds in (1000, 500):
        found = login_env.read(str(stored))
        found.at -= seconds
        login_env.write(str(stored), found)
        assert output(desk, "echo $GIVEN\n") == "2\n"
    desk.until(lambda: desk.logins() == 3, "a renewal in the background")


def test_what_the_request_brings_wins_over_the_login(desk):
    desk.profile("export PATH=/bin A=login NCPUS=77 TMPDIR=/tmp/own PBS_JOBID=forged")
    text = output(desk, "echo $PATH $A $NCPUS $TMPDIR\n", env=b"PATH=/usr/bin:/bin:/mine\0A=mine")
    assert text.split() == ["/usr/bin:/bin:/mine", "mine", "77", "/tmp/own"]
    assert output(desk, "echo $NCPUS $PBS_JOBID\n", env=b"NCPUS=5").split() == ["5", "2.ymp"]


LONG = "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do export A$n=$(head -c 100000 /dev/zero | tr '\\0' x); done"
FAILING = {
    "exit 0": "status 0", "exec /bin/sh </dev/null": "status 0", "exit 3": "status 3",
    "kill -9 $$": "signal 9", "exec 0<&- 1>&- 2>&-; exit 1": "status 1", LONG: "1 MiB",
}  # fmt: skip


@pytest.mark.parametrize(("profile", "why"), FAILING.items())
def test_a_login_that_fails_gives_a_plain_environment_and_says_so(desk, profile, why):
    desk.profile(profile)
    ending = desk.run("echo ran ${#A1}; exit 7\n", shell=None)
    assert (ending.reason, ending.status, desk.text("job.o1")) == ("exit", 7, "ran 0\n")
    assert why in ending.text
    assert str(desk.shell) in ending.text
    desk.site.settings.server.login_env_failed = "hold"
    held = desk.start("exit 0\n", shell=None)
    assert str(desk.shell) in desk.expect(ObservedNotStarted, held).text, "where the site says so"


def test_a_job_waits_for_the_first_login_and_others_do_not(desk):
    gate = desk.work / "gate"
    os.mkfifo(gate)
    desk.profile(f"read line < {gate}; export A=$line")
    request = desk.start("echo $A\n", shell=None)
    assert str(desk.shell) in desk.expect(ObservedNote, request).text
    assert desk.run("exit 4\n").status == 4  # one that names its shell needs no login
    killed = desk.start("echo $A\n", shell=None)
    desk.expect(ObservedNote, killed)
    desk.do(Kill(killed.seq, 1, "deleted", 60_000))
    assert desk.ending(killed).reason == "deleted"
    gate.write_text("through\n")
    assert desk.ending(request).status == 0
    assert desk.text(f"job.o{request.seq}") == "through\n"
    assert desk.logins() == 1


def test_what_a_profile_closes_or_leaves_running_does_not_matter(desk):
    mark = desk.work / "mark"
    closes = "exec 0<&- 1>/dev/full 2>&-; echo noise"
    desk.profile(f"(sleep 0.3; touch {mark}) >/dev/null 2>&1 &\nexport A=1; {closes}")
    assert output(desk, "echo $A\n") == "1\n"
    desk.until(mark.exists, "the end of what the profile left running")


def _sleepers(seconds: str) -> list[int]:
    found = subprocess.run(["pgrep", "-f", f"^sleep {seconds}$"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def test_a_login_ends_what_the_one_before_has_left_running(desk):
    seconds = f"9{os.getpid()}.5"
    for n in range(3):
        desk.profile(f"# {n}\nsleep {seconds} >/dev/null 2>&1 &\nexport A=1")
        assert output(desk, "echo $A\n") == "1\n"
    left = _sleepers(seconds)
    assert (desk.logins(), len(left)) == (3, 1)
    os.kill(left[0], signal.SIGKILL)


def test_a_login_that_is_cut_off_from_outside_leaves_nothing_and_no_job_pays_for_it(desk):
    seconds = f"9{os.getpid()}.25"
    desk.profile(f"sleep {seconds} </dev/null >/dev/null 2>&1")
    request = desk.start("echo ran\n", shell=None)
    desk.expect(ObservedNote, request)
    (pid,) = desk.until(lambda: _sleepers(seconds), "the profile")
    for _ in range(3):  # the shell, what waits for it as its user, the process of the login
        pid = proc.Stat(pid).parent
    os.kill(pid, signal.SIGKILL)
    assert "login" in desk.expect(ObservedVoid, request).text
    desk.until(lambda: not _sleepers(seconds), "the end of the profile")


def test_a_login_that_had_no_room_is_no_verdict_and_is_taken_again(tmp_path, monkeypatch):
    shell = tmp_path / "bash"
    shell.write_text("#!/bin/sh\nexit 125\n")
    shell.chmod(0o755)
    who = Person(os.geteuid(), os.getegid(), "me", str(tmp_path), str(shell), os.getegid())
    stored = logins._login(cgroups.JobGroup(), who, str(shell), proc.now() + 60)
    assert (stored.age(60.0), "status 125" in stored.failed) == ("fresh", True)
    disk = os.statvfs(tmp_path)
    full = os.statvfs_result((*disk[:4], 0, *disk[5:]))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    stored = logins._login(cgroups.JobGroup(), who, str(shell), proc.now() + 60)
    assert (stored.age(60.0), stored.failed) == ("old", login_env.NO_ROOM)


# ---------------------------------------------------------------- pure
def test_profiles_are_those_of_the_shell(tmp_path):
    for shell, name in (("/bin/bash", ".bash_profile"), ("/bin/tcsh", ".login"), ("/bin/zsh", ".zprofile")):
        before = login_env.profiles(shell, str(tmp_path))
        (tmp_path / name).write_text("true\n")
        assert login_env.profiles(shell, str(tmp_path)) != before
        assert login_env.profiles("/bin/other", str(tmp_path)) == login_env.profiles("/bin/other", "/nowhere")


@pytest.mark.parametrize(
    ("data", "umask", "variables"),
    [
        (b"0022\nA=1\0B=x\ny\0_=/usr/bin/env\0SHLVL=1\0PWD=/\0", 0o022, {b"A": b"1", b"B": b"x\ny"}),
        (b"76\nBASH_FUNC_f%%=() { :\n}\0", None, {b"BASH_FUNC_f%%": b"() { :\n}"}),
    ],
)
def test_what_a_login_prints_is_read_exactly(data, umask, variables):
    found = login_env.printed("seen", data)
    assert (found.umask, found.variables) == (umask, variables)
    again = login_env.decode(found.encoded())
    assert (again.umask, again.variables, again.seen) == (umask, variables, "seen")


def test_what_is_cut_off_or_damaged_in_the_spool_is_no_login():
    for data in (b"", b"0022\n", b"0022\nA=1", b"no umask\nA=1\0"):
        assert login_env.printed("", data) is None
    for data in (b"", b"[]\n", b"{}\n", b'{"seen":"","at":"x","failed":"","umask":null}\n'):
        assert login_env.decode(data) is None


# ---------------------------------------------------------------- a login for each job
def _each(tmp_path, profile: str, interpreter: list[str]) -> tuple[subprocess.CompletedProcess, bool]:
    """Run what `child` would exec with ``login_each``; return the process, and True if the script was
    reached."""
    (tmp_path / ".bash_profile").write_text(profile)
    (tmp_path / "job.sh").write_text('echo "$0|$1|$GIVEN"; nosuch; exit 7\n')
    order = {"shell": None, "login": "each", "interpreter": interpreter, "shell_args": [], "args": ["a b"],
             "script_name": "job.sh", "scratch": str(tmp_path)}  # fmt: skip
    who = Person(0, 0, "me", str(tmp_path), BASH, 0)
    assert child.marks(order, who)
    program, words = child._words(order, who)
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(words, executable=program, env=env, capture_output=True, text=True, check=False)
    return done, (tmp_path / "entered").exists()


@pytest.mark.parametrize("interpreter", [[], ["/bin/sh"], ["/bin/bash"]])
def test_with_a_login_for_each_job_it_is_known_whether_the_script_was_come_to(tmp_path, interpreter):
    for profile in ("exit 0\n", "exec sh </dev/null\n"):
        done, reached = _each(tmp_path, profile, interpreter)
        assert (done.returncode, reached) == (0, False)
    done, reached = _each(tmp_path, "export GIVEN=1; set -C\n", interpreter)
    assert (done.returncode, done.stdout, reached) == (7, f"{tmp_path}/job.sh|a b|1\n", True)
    assert done.stderr.startswith(f"{tmp_path}/job.sh: ")


def test_a_job_whose_own_login_goes_away_is_not_started(desk):
    desk.order(login="each")
    desk.profile("exit 0")
    ending = desk.run("exit 0\n", shell=None)
    assert (ending.reason, ending.status) == ("not_started", 127)
    desk.profile("export A=1")
    assert output(desk, "echo $A\n") == "1\n"
    assert desk.logins() == 2


# ---------------------------------------------------------------- the script
def test_a_job_that_edits_its_script_changes_nothing_for_others(bench):
    script = 'echo STEP=1\nsed -i s/STEP=1/STEP=2/ "$0" && chmod a-w "$0"\n'
    for _ in range(2):
        request = bench.start(script, script_name="step.sh")
        assert bench.ending(request).status == 0
        assert bench.text(f"job.o{request.seq}") == "STEP=1\n"


def test_a_script_has_its_name_in_zero_and_in_messages(bench):
    for seq, (given, named) in enumerate((("run me.sh",) * 2, ("", "job"), ("hosts", "script.hosts")), 1):
        bench.run('echo "$0"; nosuch\n', script_name=given)
        path = Path(bench.text(f"job.o{seq}").strip())
        assert path.name == named
        assert not str(path).startswith((str(bench.home), "/proc"))
        assert bench.text(f"job.e{seq}").startswith(f"{path}: ")
        bench.until(lambda path=path: not path.parent.exists(), "the end of its folder")


def test_an_interpreter_that_is_not_there_ends_the_job_as_not_started(desk):
    desk.profile("")
    desk.order(interpreter=["/no/such", "-x"])
    ending = desk.run("echo ran\n", shell=None)
    assert (ending.reason, ending.status) == ("not_started", 127)
    assert "/no/such" in ending.text
    assert "/no/such" in desk.text("job.e1")


# ---------------------------------------------------------------- without PAM: the files in /etc
ANNE = Person(1001, 1001, "anne", "/home/anne", "/bin/bash", 1001)
ROOT = Person(0, 0, "root", "/root", "/bin/sh", 0)
GROUPS = {"anne": 1001, "users": 100}


@pytest.fixture
def etc(tmp_path: Path):
    (tmp_path / "etc/security/limits.d").mkdir(parents=True)

    def write(name: str, text: str) -> str:
        (tmp_path / "etc" / name).write_text(text)
        return str(tmp_path)

    return write


def test_files_that_are_not_there_say_nothing(tmp_path):
    assert limits_of(ANNE, GROUPS, str(tmp_path)) == {}
    assert variables(ANNE, str(tmp_path)) == {
        "HOME": "/home/anne", "USER": "anne", "LOGNAME": "anne", "SHELL": "/bin/bash",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("anne hard nofile 100", {"NOFILE": (None, 100)}),
        ("anne - nproc 50", {"NPROC": (50, 50)}),
        ("@users soft stack 64", {"STACK": (65536, None)}),
        ("@100: soft core 0", {"CORE": (0, None)}),
        ("1000:2000 hard cpu 2", {"CPU": (None, 120)}),
        ("* hard memlock unlimited", {"MEMLOCK": (None, -1)}),
        ("ben hard nofile 100", {}),
        ("@wheel hard nofile 100", {}),
        ("% hard nofile 100", {}),
        ("* hard maxlogins 3", {}),
        ("* hard nofile many   # no number", {}),
        ("# anne hard nofile 100", {}),
    ],
)
def test_each_kind_of_line(etc, line, found):
    assert limits_of(ANNE, GROUPS, etc("security/limits.conf", line + "\n")) == found


def test_the_closest_line_counts_then_the_last_and_root_gets_only_what_names_root(etc):
    etc("security/limits.conf", "anne hard nofile 10\n@users hard nofile 20\n* hard nofile 30\n* hard as 1\n")
    root = etc("security/limits.d/50-more.conf", "* hard as 2\n")
    assert limits_of(ANNE, GROUPS, root) == {"NOFILE": (None, 10), "AS": (None, 2048)}
    root = etc("security/limits.conf", "* hard nofile 10\n@users hard nproc 20\nroot hard core 0\n")
    assert limits_of(ROOT, {"root": 0, "users": 100}, root) == {"CORE": (None, 0)}


def test_of_queue_and_login_the_smaller_limit_counts():
    asked = {"CORE": (100, 100), "CPU": (10, 15), "AS": (500, 500)}
    login = {"CORE": (0, 200), "CPU": (None, 12), "AS": (None, -1), "NPROC": (5, None)}
    assert smaller(asked, login) == {
        "CORE": (0, 100), "CPU": (10, 12), "AS": (500, 500), "NPROC": (5, -1),
    }  # fmt: skip


def test_the_environment_of_a_login(etc):
    etc("login.defs", "ENV_SUPATH\tPATH=/sbin:/bin\nENV_PATH\tPATH=/site/bin:/bin\n")
    root = etc("environment", 'LANG="fr_FR.UTF-8"\nexport TZ=Europe/Paris\nnot a line\nHOME=/tmp\n')
    found = variables(ANNE, root)
    assert (found["PATH"], found["LANG"], found["TZ"]) == ("/site/bin:/bin", "fr_FR.UTF-8", "Europe/Paris")
    assert found["HOME"] == "/home/anne"
    assert variables(ROOT, root)["PATH"] == "/sbin:/bin"
