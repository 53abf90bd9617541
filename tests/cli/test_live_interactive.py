"""``qsub -I``: a session at a terminal, run as a request: keys, window, signals, the status of its shell."""

import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator

import pytest
from daemon.live import PATIENCE, command, until


class Person:
    """A user at a terminal who has called a command."""

    def __init__(self, live, *words, program="qsub", **env):
        self.master, slave = os.openpty()
        self.resize(24, 80)
        self.process = subprocess.Popen(
            [*command(program), *words], cwd=live.work, stdin=slave, stdout=slave, stderr=slave,
            env=live.environment | {"TERM": "vt100", "PS1": "$ "} | env,
            preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)),
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def types(self, text):
        os.write(self.master, text.encode())

    def reads(self, text):
        """Wait until a text is shown; return all from there on."""
        end = time.monotonic() + 60
        while text not in self.seen:
            left = max(0.0, end - time.monotonic())
            more = select.select([self.master], [], [], left)[0] and self._read()
            assert more, (text, self.seen)
        before, _, self.seen = self.seen.partition(text)
        return before

    def _read(self):
        try:
            self.seen += (data := os.read(self.master, 65536).decode())
        except OSError:
            return False
        return bool(data)

    def ends(self):
        """Return the exit status; read the rest of the output meanwhile."""

        def over():
            while select.select([self.master], [], [], 0)[0] and self._read():
                pass
            return self.process.poll() is not None

        until(over, "it ends", 60)
        return self.process.returncode

    def leave(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


@pytest.fixture
def person(office) -> Iterator:
    """Return a function that calls ``qsub`` at a terminal; end all calls after the test."""
    called = []

    def call(*words, **env):
        called.append(Person(office, *words, **env))
        return called[-1]

    yield call
    for each in called:
        each.leave()


def waiting(someone):
    """Return the identifier, once it is shown."""
    someone.reads("qsub: waiting for job ")
    return someone.reads(" to start")


def begun(someone):
    """Return the identifier, once the session has begun."""
    id = waiting(someone)
    someone.reads(f"qsub: job {id} ready")
    return id


def test_a_session_has_a_terminal_and_gives_the_status_of_its_shell(office, person):
    one = person("-I", "-S", "/bin/sh", "-N", "talk")
    id = begun(one)
    assert office.job(id)["state"] == "running"
    one.types("tty; stty size; echo $PBS_JOBID $PBS_ENVIRONMENT $TERM $((40+2))\n")
    assert "/dev/pts/" in one.reads("24 80")
    one.reads(f"{id} PBS_INTERACTIVE vt100 42")
    one.types("exit 7\n")
    assert one.ends() == 7
    assert f"qsub: job {id} completed" in one.seen
    job = office.ended(id)
    assert (job["exit_status"], job["name"]) == (7, "talk")


def test_a_session_ended_by_its_wall_limit_says_so_in_one_line(office, person):
    one = person("-I", "-S", "/bin/sh", "-l", "walltime=2")
    id = begun(one)
    assert one.ends() not in (0, None)
    assert one.seen.count("wall-clock limit of 2 s exceeded") == 1
    assert one.seen.count(f"qsub: job {id} was ended: ") == 1
    assert office.ended(id)["end_reason"] == "wall_limit"


def test_the_size_of_the_window_and_the_keys_that_interrupt_go_through(office, person):
    one = person("-I", "-S", "/bin/sh")
    begun(one)
    one.resize(50, 132)
    one.types("until [ \"$(stty size)\" = '50 132' ]; do :; done; echo wi''de\n")
    one.reads("wide")
    one.types("trap 'echo cau''ght' INT; echo list''ening; while :; do sleep 1; done\n")
    one.reads("listening")
    one.types("\x03")
    one.reads("caught")
    one.process.send_signal(signal.SIGINT)
    one.reads("caught")
    one.process.send_signal(signal.SIGTERM)
    assert one.ends() != 0


def test_a_terminal_that_hangs_up_ends_the_session(office, person):
    one = person("-I", "-S", "/bin/sh")
    id = begun(one)
    os.close(one.master)
    one.master = -1
    assert office.ended(id)["state"] == "ended"
    one.process.wait(PATIENCE)


def test_a_command_can_stand_in_for_the_shell_and_a_script_gives_directives(office, person):
    office.write("asks.sh", "#!/bin/sh\n#PBS -N asked -l walltime=100\nexit 99\n")
    one = person("-I", "-S", "/bin/sh", "asks.sh")
    id = begun(one)
    assert (office.job(id)["name"], office.job(id)["requested"]["wall_s"]) == ("asked", 100.0)
    one.types("exit\n")
    assert one.ends() == 0
    two = person("-I", "--", "sh", "-c", "tty; exit 3")
    begun(two)
    assert two.ends() == 3
    assert "/dev/pts/" in two.seen


def test_who_loses_patience_ends_the_request(office, person):
    one = person("-I", "-h")
    id = waiting(one)
    assert office.job(id)["state"] == "held"
    one.types("\x03")
    assert one.ends() == 3
    assert office.ended(id)["end_reason"] == "deleted"
    assert f"qsub: job {id} ended before it started" in one.seen
    two = person("-I", "-h")
    id = waiting(two)
    two.process.kill()
    assert office.ended(id)["end_reason"] == "deleted", "nobody waits for it any more"


def test_keys_typed_while_a_session_waits_are_not_run(office, person):
    one = person("-I", "-h", "-S", "/bin/sh")
    id = waiting(one)
    one.types(f"touch {office.work}/typed\n")
    office.run("qrls", id).ok()
    one.reads(f"qsub: job {id} ready")
    one.types("exit 4\n")
    assert one.ends() == 4
    assert not (office.work / "typed").exists()


def test_a_session_outlives_the_daemon(shared, request):
    one = Person(shared, "-I", "-S", "/bin/sh")
    request.addfinalizer(one.leave)
    id = begun(one)
    shared.kill()
    one.types("echo still he''re\n")
    one.reads("still here")
    shared.start()
    one.types("exit 5\n")
    assert one.ends() == 5
    assert shared.ended(id)["exit_status"] == 5


def test_without_a_terminal_or_with_what_does_not_go_with_it_it_is_refused(office, person):
    office.run("qsub", "-I").refused("-I", "terminal")
    office.run("qsub", "-X", stdin="").refused("-X", "not offered")
    for words in (("--json",), ("--list", "x"), ("--wait",), ("-u", "anne"), ("-J", "1-3")):
        one = person("-I", *words)
        assert one.ends() == 2
        assert words[0] in one.seen
    assert office.run("qsub", "-I", "-q", "nowhere").status != 0


def test_what_is_pasted_goes_through_while_the_job_writes(person):
    # without an echo, which would come in the middle of what the job writes
    someone = person("-I", "--", "sh", "-c", "stty -echo; echo quiet; exec cat")
    begun(someone)
    someone.reads("quiet")
    lines = [f"line {number:05} {'x' * 60}" for number in range(4_000)]
    pasted = ("\n".join(lines) + "\n").encode()
    os.set_blocking(someone.master, False)
    end = time.monotonic() + 60
    while pasted or lines[-1] not in someone.seen:
        left = max(0.0, end - time.monotonic())
        able = select.select([someone.master], [someone.master] if pasted else [], [], left)
        assert able[0] or able[1], "it stands still"
        if able[0]:
            someone.seen += os.read(someone.master, 65536).decode()
        if able[1]:
            pasted = pasted[os.write(someone.master, pasted[:2048]) :]
    os.set_blocking(someone.master, True)
    assert all(line in someone.seen for line in lines)
    someone.types("\x04")
    assert someone.ends() == 0


def test_a_job_that_closes_its_terminal_before_it_ends_ends_with_its_own_status(person):
    someone = person("-I", "--", "sh", "-c", "exec <&- >&- 2>&-; sleep 1; exit 3")
    begun(someone)
    assert someone.ends() == 3
