"""Runs logins (`login_env`): the spawner runs each in a process of its own, which no end of a job interrupts.
A shepherd reads the stored login, and asks for a missing or old one. Standard library only."""

import contextlib
import errno
import json
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from nqspy.executors import cgroups, child, deadline, forks, login_env, person, proc, records
from nqspy.executors.attempt_reporter import AttemptReporter
from nqspy.executors.control import JobLimits
from nqspy.executors.person import Person
from nqspy.executors.wall_limit import within

DEADLINE = 120.0
"""Real seconds that a login may take."""
_CPU = 30
"""Seconds of CPU time that a process of a login may use: profiles may start themselves without end."""
LEAVE = 2.0
_PAUSE = 0.05


class LoginServer:
    """Runs the logins that shepherds ask for, in the spawner: one at a time for each user and shell.
    ``asks``: socket where shepherds ask, which they inherit; ``runners``: pids of processes that run logins.
    A runner stays for processes that its profiles started, and kills them when that login is run again."""

    def __init__(self, spool: str, groups: cgroups.Cgroups, most_processes: int, poll: select.poll) -> None:
        self._spool, self._cgroups, self._most, self._poll = spool, groups, most_processes, poll
        self._here, self.asks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._here.setblocking(False)
        self._waiting: dict[str, list[int]] = {}
        self._done: dict[int, str] = {}
        self.runners: set[int] = set()
        self._last: dict[str, int] = {}
        poll.register(self._here, select.POLLIN)

    def serve(self, ready: list[int]) -> None:
        """Handle ready descriptors: run logins that shepherds ask for; wake these when one is done."""
        for fd in [fd for fd in ready if fd in self._done]:
            self._poll.unregister(fd)
            path = self._done.pop(fd)
            for each in (fd, *self._waiting.pop(path)):
                os.close(each)
        while self._here.fileno() in ready:
            try:
                message, fds, _, _ = socket.recv_fds(self._here, 1 << 16, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            if not fds:
                continue
            try:
                *fields, shell = json.loads(message)
                who = Person(*fields)
                path = login_env.path_of(self._spool, who, shell)
                if path not in self._waiting:
                    self._fork(who, shell, path)
                self._waiting[path] += fds
            except (OSError, ValueError, TypeError):
                for fd in fds:
                    os.close(fd)  # no process is free: the shepherd finds no login, and reports that

    def _fork(self, who: Person, shell: str, path: str) -> None:
        reader, writer = os.pipe()
        former = [pid for pid in (self._last.get(path),) if pid in self.runners]
        proc.send(former, signal.SIGTERM)
        try:
            pid = forks.begin(lambda: self._serve_login(who, shell, path, writer, former), log=True)
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self.runners.add(pid)
        self._last[path] = pid
        self._waiting[path] = []
        self._done[reader] = path
        self._poll.register(reader, select.POLLIN)

    def close(self) -> None:
        """Close all descriptors of the spawner's logins, in a newly forked shepherd."""
        for fds in ([*self._done], *self._waiting.values()):
            for fd in fds:
                os.close(fd)
        self._done, self._waiting = {}, {}
        self._here.close()

    def _serve_login(self, who: Person, shell: str, path: str, writer: int, former: list[int]) -> None:
        """Run a login and store it; in a process that was just forked for it."""
        superseded: list[int] = []
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, lambda number, _: superseded.append(number))
        os.setsid()
        os.closerange(3, writer)
        os.closerange(writer + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        forks.become_subreaper()
        proc.await_ends(former, 2 * LEAVE)
        until = proc.now() + DEADLINE
        limits = JobLimits(processes=self._most) if who.uid != os.geteuid() else None
        group = self._cgroups.for_job(f"login-{os.path.basename(path)}-{os.getpid()}", limits)
        try:
            login_env.write(path, _login(group, who, shell, until))
            os.close(writer)  # wakes the shepherds that wait
            _clear(group, until, superseded)
        finally:
            group.kill()
            group.remove()


def _login(group: cgroups.JobGroup, who: Person, shell: str, until: float) -> login_env.StoredLogin:
    """Run the login shell as its user; return its login, or one that says why it failed."""
    reader, writer = os.pipe()

    def work() -> None:
        try:
            os.setsid()
            group.enter()
            stored = _as_the_user(who, shell, until)
        except BaseException as error:
            full = isinstance(error, OSError) and error.errno in records.NO_ROOM
            failed = login_env.NO_ROOM if full else f"it could not be run: {error}"
            stored = login_env.StoredLogin("", failed=failed)
        proc.write(writer, stored.encoded())

    forks.begin(work, group.fork)
    os.close(writer)
    data = b""
    with proc.Descriptor(reader):  # not beyond the deadline, and not much beyond the bound
        while len(data) <= login_env.LARGEST + (1 << 16) and proc.readable(
            reader, max(0.0, until + LEAVE - proc.now())
        ):
            if not (part := os.read(reader, 1 << 16)):
                break
            data += part
    stored = login_env.decode(data) or login_env.StoredLogin("", failed="it was killed")
    stored.at = 0.0 if stored.failed == login_env.NO_ROOM else login_env.clock()
    return stored


def _as_the_user(who: Person, shell: str, until: float) -> login_env.StoredLogin:
    """Become the user, at home and with the limits of a login; run the shell and return its login."""
    if who.uid != os.geteuid():
        given = person.smaller({}, person.limits_of(who, person.groups_of(who)))
        for name, pair in given.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), person.pair(name, pair))
    person.become(who)
    os.chdir("/")
    with contextlib.suppress(OSError):
        os.chdir(who.home)
    seen = login_env.profiles(shell, who.home)
    folder = f"/tmp/nqspy-login.{os.urandom(8).hex()}"  # noqa: S108 - it is new
    path = f"{folder}/env"
    os.mkdir(folder, 0o700)
    try:
        failed, data = _run(who, shell, path, until), b""
        with contextlib.suppress(OSError), open(path, "rb") as file:
            data = file.read(login_env.LARGEST + 1)
        disk = os.statvfs(folder) if failed else None
        if disk is not None and (not disk.f_bavail or (disk.f_files and not disk.f_favail)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # an ordinary user can write no more
        if len(data) > login_env.LARGEST:
            failed = "its environment has more than 1 MiB"
        early = "it ended with status 0 before it had read its profiles: one of them calls exit or exec"
        stored = None if failed else login_env.printed(seen, data)
        return stored or login_env.StoredLogin(seen, failed=failed or early)
    finally:
        for call, made in ((os.unlink, path), (os.rmdir, folder)):
            with contextlib.suppress(OSError):
                call(made)


def _run(who: Person, shell: str, path: str, until: float) -> str:
    """Run the login shell until it ends or until ``until`` (`proc.now`); return why it failed, or ""."""
    os.umask(login_env.UMASK)
    environment = person.variables(who) | {"ENVIRONMENT": "BATCH", "PBS_ENVIRONMENT": "PBS_BATCH"}
    nothing = os.open(os.devnull, os.O_RDWR)
    words = [f"-{os.path.basename(shell)}", *login_env.print_command(shell, path)]
    pid = forks.spawn(shell, words, {os.fsencode(k): os.fsencode(v) for k, v in environment.items()},
                      (nothing,) * 3)  # fmt: skip
    os.umask(0o077)
    with contextlib.suppress(OSError, ValueError):  # it has ended, or may use less already
        resource.prlimit(pid, resource.RLIMIT_CPU, (_CPU, _CPU + 5))
    if not proc.readable(os.pidfd_open(pid), max(0.0, until - proc.now())):
        return f"it took longer than {DEADLINE:.0f} s"
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == -signal.SIGXCPU:
        return f"it used {_CPU} s of CPU time and did not end"
    if code < 0:
        return f"signal {-code} ended it"
    return f"it ended with status {code}" if code else ""


def _clear(group: cgroups.JobGroup, until: float, superseded: list[int]) -> None:
    """Wait for processes of the profiles until the deadline or the next login; then kill them."""
    while proc.children(os.getpid()):
        while not superseded and proc.now() < until and group.pids():
            time.sleep(_PAUSE * 10)
            forks.reap()
        if group.pids():
            if not superseded:
                group.signal(signal.SIGTERM)
                time.sleep(LEAVE)
            group.kill()
        forks.reap()
        time.sleep(_PAUSE)


class LoginLoader:
    """Loads the owner's login into the order of an attempt that is starting. ``note``: why the job has a
    plain environment, "" if it has not; ``messages``: those that the daemon sent meanwhile."""

    def __init__(self, reporter: AttemptReporter, who: Person) -> None:
        self._reporter, self._order, self._who = reporter, reporter.order, who
        self._shell = self._order["shell"] or who.shell
        self._wanted = self._order["login"] == "once" and bool(login_env.family(self._shell))
        self._path = login_env.path_of(reporter.station.spool, who, self._shell)
        self.messages: list[dict[str, Any]] = []
        self.note = ""

    def ready(self) -> str:
        """Put the login into the order, run first if it is missing or old; return why the job may not begin,
        or "" if it may. Raises Again, Stalled."""
        if not self._wanted:
            return ""
        stored = login_env.read(self._path)
        if stored is None:
            stored = self._first()
        elif (age := stored.age(self._order["login_env"]["age"] / 1000)) != "fresh":
            stored = self._renewed(stored, login_env.CHANGED if age == "old" else 0.0)
        return self._settle(stored)

    def renew(self) -> str:
        """Run the login again, because a profile was changed, and load it; if that takes over 2 s, load the
        former one. Return and raise like `ready`."""
        stored = self._renewed(self._order["stored_login"], login_env.CHANGED)
        self._order["renewed"] = True
        return self._settle(stored)

    def _settle(self, stored: login_env.StoredLogin) -> str:
        self._order["stored_login"], self.note = stored, ""
        if stored.failed:
            shell = f"the login shell {self._shell} of {self._who.name}"
            problem = f"{shell} gave no environment: {stored.failed}"
            if stored.failed == login_env.NO_ROOM:
                raise child.Again(problem)
            if self._order["login_env"]["failed"] == "hold":
                return problem
            self.note = f"it runs with a plain environment: {problem}"
            self._reporter.report("note", text=self.note)
        return ""

    def _first(self) -> login_env.StoredLogin:
        most = DEADLINE + login_env.CHANGED + LEAVE
        limit = within(self._order, most)

        def hear() -> socket.socket:
            control = self._reporter.listen()
            text = f"it waits for the login shell {self._shell} of {self._who.name}"
            self._reporter.report("note", text=text)
            return control

        ended = self._wait(limit, hear)
        stored = login_env.read(self._path)
        if stored is None and (ended or limit < most):
            why = "was cut off" if ended else "took longer than its wall limit"
            raise child.Again(f"its owner's login {why}")
        # A check of the profiles would find them changed.
        self._order["renewed"] = stored is None
        self._reporter.report("note")
        return stored or login_env.StoredLogin("", failed="it did not end")

    def _renewed(self, stored: login_env.StoredLogin, seconds: float) -> login_env.StoredLogin:
        self._wait(seconds, self._reporter.listen)
        return login_env.read(self._path) or stored

    def _wait(self, seconds: float, hear: Callable[[], socket.socket]) -> bool:
        """Ask the spawner for the login, and wait at most so many real seconds; return True if it is done.
        Raises Again, Stalled."""
        reader, writer = os.pipe()
        with proc.Descriptor(reader):
            with proc.Descriptor(writer):
                fields = [*self._who._replace(gid=self._who.primary), self._shell]
                try:
                    socket.send_fds(self._reporter.station.logins, [json.dumps(fields).encode()], [writer])
                except OSError as error:
                    raise child.Again(f"cannot ask for its owner's login: {error.strerror}") from None
            if not seconds:
                return False
            wait = deadline.Wait(seconds, hear, at_once=True)
            ended = wait.read(reader)[1]
            self.messages += wait.others
            if wait.kill is not None:
                raise child.Stalled(wait)
            return ended
