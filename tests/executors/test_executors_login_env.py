"""The environment of a login is taken once for each user and shell, and what a job gets of it."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from nqspy.executors import cage, child, local, login_env, login_taker, proc
from nqspy.executors.order import make_order
from nqspy.executors.person import Person
from nqspy.model.actions import Kill, Start
from nqspy.model.observations import ObservedEnded, ObservedNote, ObservedNotStarted, ObservedVoid

BASH = "/bin/bash"


@pytest.fixture
def desk(bench, monkeypatch):
    """A bench whose login shell is a program of ours: ``profile`` is what it does in a login."""

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


def _run(desk, script, **spec):
    ending = desk.run(script, shell=None, **spec)
    return ending, (desk.work / f"job.o{desk.seq}").read_text()


def test_a_login_is_taken_once_for_all_jobs(desk):
    desk.profile("export GIVEN='a\nb'; umask 027")
    for _ in range(3):
        ending, text = _run(desk, 'echo "$GIVEN"; umask; echo $0\n')
        assert ending.status == 0
        assert text.splitlines()[:3] == ["a", "b", "0027"]
    assert desk.logins() == 1
    kept = list((desk.home / "spool" / "logins").iterdir())
    assert [stat.S_IMODE(each.stat().st_mode) for each in kept] == [0o600]


def test_functions_that_a_profile_exports_arrive(desk):
    desk.profile("greet() { echo hello $1; }; export -f greet")
    assert _run(desk, "greet you\n")[1] == "hello you\n"


def test_a_changed_profile_is_seen_by_the_next_job(desk):
    desk.profile("export GIVEN=old")
    assert _run(desk, "echo $GIVEN\n")[1] == "old\n"
    desk.profile("export GIVEN=new")
    assert _run(desk, "echo $GIVEN\n")[1] == "new\n"
    assert desk.logins() == 2


def test_a_login_is_renewed_after_its_age_and_in_the_background_before(desk):
    desk.profile("export GIVEN=$(wc -l < logins)".replace("logins", f"{desk.work}/logins"))
    assert _run(desk, "echo $GIVEN\n")[1] == "1\n"
    (kept,) = (desk.home / "spool" / "logins").iterdir()

    def aged(seconds: float) -> None:
        found = login_env.read(str(kept))
        found.at -= seconds
        login_env.write(str(kept), found)

    aged(1000)
    assert _run(desk, "echo $GIVEN\n")[1] == "2\n"
    aged(500)
    assert _run(desk, "echo $GIVEN\n")[1] == "2\n"
    desk.until(lambda: desk.logins() == 3, "a renewal in the background")


def test_what_the_request_brings_wins_over_the_login(desk):
    desk.profile("export PATH=/bin A=login NCPUS=77 TMPDIR=/tmp/own PBS_JOBID=forged")
    _, text = _run(desk, "echo $PATH $A $NCPUS $TMPDIR\n", env=b"PATH=/usr/bin:/bin:/mine\0A=mine")
    assert text.split() == ["/usr/bin:/bin:/mine", "mine", "77", "/tmp/own"]
    _, text = _run(desk, "echo $NCPUS $PBS_JOBID\n", env=b"NCPUS=5")
    assert text.split() == ["5", "2.ymp"]


FAILING = {
    "exit 0": "status 0", "exec /bin/sh </dev/null": "status 0", "exit 3": "status 3",
    "kill -9 $$": "signal 9", "exec 0<&- 1>&- 2>&-; exit 1": "status 1",
}  # fmt: skip


@pytest.mark.parametrize(("profile", "said"), FAILING.items())
def test_a_login_that_fails_gives_a_plain_environment_and_says_so(desk, profile, said):
    desk.profile(profile)
    ending, text = _run(desk, "echo ran; exit 7\n")
    assert (ending.reason, ending.status, text) == ("exit", 7, "ran\n")
    assert said in ending.text
    assert str(desk.shell) in ending.text


def test_descriptors_that_a_profile_closes_or_moves_do_not_matter(desk):
    desk.profile("export A=1; exec 0<&- 1>/dev/full 2>&-; echo noise")
    assert _run(desk, "echo $A\n")[1] == "1\n"


def test_where_the_site_says_so_a_failed_login_holds_the_job(desk):
    desk.site.settings.server.login_env_failed = "hold"
    desk.profile("exit 0")
    request = desk.start("exit 0\n", shell=None)
    assert str(desk.shell) in desk.expect(ObservedNotStarted, request).text


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


def test_what_a_profile_leaves_running_goes_on_until_it_is_through(desk):
    mark = desk.work / "mark"
    desk.profile(f"(sleep 0.3; touch {mark}) >/dev/null 2>&1 &\nexport A=1")
    assert _run(desk, "echo $A\n")[1] == "1\n"
    desk.until(mark.exists, "the end of what the profile left running")


def _sleepers(seconds: str) -> list[int]:
    found = subprocess.run(["pgrep", "-f", f"^sleep {seconds}$"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def test_a_login_ends_what_the_one_before_has_left_running(desk):
    seconds = f"9{os.getpid()}.5"
    for n in range(3):
        desk.profile(f"# {n}\nsleep {seconds} >/dev/null 2>&1 &\nexport A=1")
        assert _run(desk, "echo $A\n")[1] == "1\n"
    left = _sleepers(seconds)
    assert (desk.logins(), len(left)) == (3, 1)
    os.kill(left[0], signal.SIGKILL)


def test_a_login_that_is_cut_off_from_outside_leaves_nothing_and_no_job_pays_for_it(desk):
    seconds = f"9{os.getpid()}.25"
    desk.profile(f"sleep {seconds} </dev/null >/dev/null 2>&1")
    request = desk.start("echo ran\n", shell=None)
    desk.expect(ObservedNote, request)
    (pid,) = desk.until(lambda: _sleepers(seconds), "the profile")
    for _ in range(3):  # the shell, who waits for it as its user, the process of the login
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGKILL)
    assert "login" in desk.expect(ObservedVoid, request).text
    desk.until(lambda: not _sleepers(seconds), "the end of the profile")


def test_a_login_that_had_no_room_is_no_verdict_and_is_taken_again(tmp_path, monkeypatch):
    shell = tmp_path / "bash"
    shell.write_text("#!/bin/sh\nexit 125\n")
    shell.chmod(0o755)
    who = Person(os.geteuid(), os.getegid(), "me", str(tmp_path), str(shell), os.getegid())
    kept = login_taker._login(cage.Cage(), who, str(shell), proc.now() + 60)
    assert (kept.age(60.0), "status 125" in kept.failed) == ("fresh", True)
    disk = os.statvfs(tmp_path)
    full = os.statvfs_result((*disk[:4], 0, *disk[5:]))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    kept = login_taker._login(cage.Cage(), who, str(shell), proc.now() + 60)
    assert (kept.age(60.0), kept.failed) == ("old", login_env.NO_ROOM)


def test_a_login_without_bound_is_refused(desk):
    desk.profile(
        "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do export A$n=$(head -c 100000 /dev/zero | tr '\\0' x); done"
    )
    ending, text = _run(desk, "echo ran ${#A1}\n")
    assert text == "ran 0\n"
    assert "1 MiB" in ending.text


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


@pytest.mark.parametrize("data", [b"", b"0022\n", b"0022\nA=1", b"no umask\nA=1\0"])
def test_what_is_cut_off_is_no_login(data):
    assert login_env.printed("", data) is None


@pytest.mark.parametrize("data", [b"", b"[]\n", b"{}\n", b'{"seen":"","at":"x","failed":"","umask":null}\n'])
def test_what_is_damaged_in_the_spool_is_no_login(data):
    assert login_env.decode(data) is None


# ---------------------------------------------------------------- a login for each job


def _each(
    tmp_path, script: str, profile: str, interpreter: list[str]
) -> tuple[subprocess.CompletedProcess, bool]:
    """Runs what `child` would exec with ``login_each``; and whether the script was come to."""
    (tmp_path / ".bash_profile").write_text(profile)
    (tmp_path / "job.sh").write_text(script)
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
    script = 'echo "$0|$1|$GIVEN"; nosuch; exit 7\n'
    done, reached = _each(tmp_path, script, "export GIVEN=1; set -C\n", interpreter)
    assert (done.returncode, done.stdout, reached) == (7, f"{tmp_path}/job.sh|a b|1\n", True)
    assert done.stderr.startswith(f"{tmp_path}/job.sh: ")


@pytest.mark.parametrize("interpreter", [[], ["/bin/sh"]])
@pytest.mark.parametrize("profile", ["exit 0\n", "exec sh </dev/null\n"])
def test_a_profile_that_goes_away_leaves_no_mark(tmp_path, interpreter, profile):
    done, reached = _each(tmp_path, "exit 7\n", profile, interpreter)
    assert (done.returncode, reached) == (0, False)


def test_a_job_whose_own_login_goes_away_is_not_started(desk):
    desk.order(login="each")
    desk.profile("exit 0")
    ending = desk.run("exit 0\n", shell=None)
    assert (ending.reason, ending.status) == ("not_started", 127)
    desk.profile("export A=1")
    assert _run(desk, "echo $A; exit 3\n")[1] == "1\n"
    assert desk.logins() == 2


# ---------------------------------------------------------------- the script


def test_a_job_that_edits_its_script_changes_nothing_for_others(bench):
    script = 'echo STEP=1\nsed -i s/STEP=1/STEP=2/ "$0" && chmod a-w "$0"\n'
    for _ in range(2):
        request = bench.start(script, script_name="step.sh")
        assert bench.ending(request).status == 0
        assert bench.text(f"job.o{request.seq}") == "STEP=1\n"


@pytest.mark.parametrize(
    ("given", "named"), [("run me.sh", "run me.sh"), ("", "job"), ("hosts", "script.hosts")]
)
def test_a_script_has_its_name_in_zero_and_in_messages(bench, given, named):
    bench.run('echo "$0"; nosuch\n', script_name=given)
    path = bench.text("job.o1").strip()
    assert os.path.basename(path) == named
    assert not path.startswith((str(bench.home), "/proc"))
    assert bench.text("job.e1").startswith(f"{path}: ")
    bench.until(lambda: not os.path.exists(os.path.dirname(path)), "the end of its folder")


def test_an_interpreter_that_is_not_there_ends_the_job_as_not_started(desk):
    desk.profile("")
    desk.order(interpreter=["/no/such", "-x"])
    ending = desk.run("echo ran\n", shell=None)
    assert (ending.reason, ending.status) == ("not_started", 127)
    assert "/no/such" in ending.text
    assert "/no/such" in desk.text("job.e1")


def test_a_script_that_is_damaged_in_the_database_does_not_run(bench):
    request = bench.request("exit 0\n")
    bench.blobs[request.spec.script] = b"exit 1\n"
    bench.do(Start(request.seq, 1, (0,)), request)
    assert isinstance(bench.first(request, ObservedNotStarted, ObservedEnded), ObservedNotStarted)
