"""The job's first process, up to the exec: session, cage, CPUs, user, folder, output, limits.

Two ways. `launch` forks into a cage and can do everything; whatever goes wrong before the exec travels back
over a pipe as one line for people. `spawn` is for plain requests of the daemon's own user: without a cage, by
posix_spawn, which copies no memory (measured: 1.2 ms less for each request, a fifth of its whole cost).
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
from collections.abc import Callable
from typing import Any

from nqspy.executors import deliver, logins, patience, person, proc, records, scratch
from nqspy.executors.cage import Cage

_AGAIN = b"\0"
"""Mark of a reason that passes."""
_LATE = ("NPROC", "CPU", "FSIZE", "CORE", "STACK", "DATA", "AS")
_BOURNE, _CSH = ("sh", "bash", "dash", "ash", "ksh", "ksh93", "mksh", "zsh"), ("csh", "tcsh")
_BECOME = {
    **{shell: ['exec "$@"', "sh"] for shell in _BOURNE},
    **{shell: ["exec $argv:q"] for shell in _CSH},
    "fish": ["exec $argv"],
}
"""How a shell is told to become the program that follows. Others read the script themselves (among them those
that let nobody in)."""
_DEFAULT_AGAIN = (
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGXCPU, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT,
    signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGTTIN,
    signal.SIGTTOU,
)  # fmt: skip


class Again(Exception):
    """It did not start and no request is to blame; later it may. With one line for people."""


class StoodStill(Exception):
    """Its first process did not come to the exec in the time it was given, and was killed."""


def plain(order: dict[str, Any]) -> bool:
    """Whether `spawn` can start it: own user, no output in place, and no limits but the CPU backstop."""
    output = order["output"]
    return bool(
        order["uid"] == os.geteuid()
        and set(order["rlimits"]) <= {"CPU", "NPROC"}
        and order["limits"]["cpu_process"] is None
        and order["limits"]["cpu_process_warning"] is None
        and not order["nice"]
        and not order["oom_score_adj"]
        and not (output["stdout"]["direct"] or output["stderr"]["direct"])
    )


def room_for_the_daemon() -> dict[str, tuple[int, int]]:
    """The limit on processes of a daemon's own user, a tenth below what holds for the daemon: a request that
    forks without end must not keep the daemon from starting and ending others (root has no such limit)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft == resource.RLIM_INFINITY:
        return {}
    most = soft - max(16, soft // 10)
    return {"NPROC": (most, most)} if most > 0 else {}


def spawn(order: dict[str, Any], who: person.Person, streams: tuple[int, int]) -> tuple[int, str]:
    """Starts the leader of a plain request; gives its pid and "", or 0 and the reason why it did not start.
    Raises Again.

    The shepherd takes on what the job inherits, and gives back what is its own afterwards.
    """
    here = os.open(".", os.O_RDONLY)
    nothing = os.open(os.devnull, os.O_RDONLY)
    shell, argv, environment = _command(order, who, order["script_path"])
    targets = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate((nothing, *streams))]
    umask = os.umask(order["umask"])
    pid = 0
    try:
        _bind(order)
        _enter(order, who)
        _make_scratch(order)
        pid = _explain(
            f"cannot run {shell}",
            lambda: os.posix_spawn(
                shell, argv, environment, file_actions=targets, setsid=True, setsigmask=(),
                setsigdef=_DEFAULT_AGAIN,
            ),
        )  # fmt: skip
        with contextlib.suppress(OSError):
            # After the exec, as the shepherd must not have it: it only counts once the shepherd is killed.
            _limit(order["rlimits"], pid)
    except (RuntimeError, ValueError) as error:
        _unmake_scratch(order)
        return pid, str(error)
    except Again:
        _unmake_scratch(order)
        raise
    finally:
        os.fchdir(here)
        os.umask(umask)
        os.close(here)
        os.close(nothing)
    return pid, ""


def launch(
    order: dict[str, Any],
    who: person.Person,
    cage: Cage,
    streams: tuple[int, int],
    secure: Callable[[], None],
    wait: patience.Wait,
    born: Callable[[int], None],
) -> tuple[int, str]:
    """Starts the job's leader; gives its pid and "" once it has exec'd, else the reason why it did not.

    ``streams``: file descriptors of the spooled stdout and stderr, -1 for one that is written in place.
    ``secure``: what must be done before the job's first instruction, and is done while the child gets ready;
    ``wait``: how long its way to there may take; ``born`` is told the pid. Raises Again, StoodStill.
    """
    reader, writer = os.pipe()
    gate, opener = os.pipe()
    try:
        pid = cage.fork()
        if pid == 0:
            try:
                os.close(opener)
                _enter_cage(cage)
                _become_job(order, who, streams, gate)
            except BaseException as error:
                _unmake_scratch(order)
                mark = _AGAIN if isinstance(error, Again) else b""
                os.write(writer, mark + (str(error) or repr(error)).encode("utf-8", "replace"))
            os._exit(127)
    except OSError as error:
        os.close(reader)
        os.close(opener)
        raise Again(f"cannot fork: {error.strerror}") from None
    finally:
        os.close(writer)
        os.close(gate)
    born(pid)
    refusal = _open_gate(opener, secure)
    try:
        text = _heard(reader, pid, cage, wait)
    finally:
        os.close(reader)
    if refusal is not None:
        os.waitpid(pid, 0)
        raise refusal
    if text.startswith(_AGAIN):
        os.waitpid(pid, 0)
        raise Again(text[1:].decode("utf-8", "replace"))
    return pid, text.decode("utf-8", "replace")


def _open_gate(opener: int, secure: Callable[[], None]) -> Again | None:
    """Lets the child that waits go on to its exec, or end where that must not be: then why."""
    try:
        secure()
        os.write(opener, b"1")
    except Again as error:
        return error
    except OSError:
        pass  # it has ended already, and says why
    finally:
        os.close(opener)
    return None


def _heard(reader: int, pid: int, cage: Cage, wait: patience.Wait) -> bytes:
    """What the child says before its exec: nothing, where all is well. Its owner may have stopped it. Raises
    StoodStill."""
    text, ended = wait.read(reader)
    if ended:
        return text
    # Once it is stopped it either has exec'd, and the pipe is closed, or it never will.
    proc.send([pid], signal.SIGSTOP)
    if proc.readable(reader):
        proc.send([pid], signal.SIGCONT)
        return text + os.read(reader, 4096)
    cage.kill()
    patience.end(pid)
    raise StoodStill


def _enter_cage(cage: Cage) -> None:
    try:
        cage.enter()
    except OSError as error:
        text = f"cannot enter its cgroup: {error.strerror}"
        if error.errno in (errno.ENOENT, errno.ENODEV):
            raise Again(text) from None  # a starter that came or went has taken it away as empty
        raise RuntimeError(text) from None


def _log_in(order: dict[str, Any], who: person.Person) -> None:
    """The limits of a login, set while they may still be raised; the smaller of each and the request's."""
    given = logins.smaller(order["rlimits"], logins.limits_of(who, person.groups_of(who)))
    order["rlimits"] = {name: pair for name, pair in given.items() if name in _LATE}
    for name in given.keys() - set(_LATE):
        number = getattr(resource, f"RLIMIT_{name}")
        _explain("cannot set the limits of the login", resource.setrlimit, number, _pair(name, given[name]))


def _pair(name: str, pair: tuple[int, int]) -> tuple[int, int]:
    # The kernel knows no unlimited number of files: its own greatest is the most there is.
    if name == "NOFILE" and -1 in pair:
        with open("/proc/sys/fs/nr_open", encoding="ascii") as file:
            most = int(file.read())
        return (most if pair[0] < 0 else pair[0]), (most if pair[1] < 0 else pair[1])
    return pair


def _become_job(order: dict[str, Any], who: person.Person, streams: tuple[int, int], gate: int) -> None:
    os.setsid()
    _settle(order)
    script = _script(order, who)
    if who.uid != os.geteuid():
        _log_in(order, who)
    person.become(who)
    os.umask(order["umask"])
    _enter(order, who)
    _connect(order, who, streams)
    _make_scratch(order)
    _reset_signals()
    shell, argv, environment = _command(order, who, script)
    _explain("cannot set the limits", _limit, order["rlimits"], 0)
    if not os.read(gate, 1):
        _unmake_scratch(order)
        os._exit(127)  # it must not begin, or nobody watches over it any more
    _explain(f"cannot run {shell}", os.execve, shell, argv, environment)


def _command(
    order: dict[str, Any], who: person.Person, script: str
) -> tuple[str, list[str], dict[bytes, bytes]]:
    """Program, arguments and environment of the leader."""
    program, words = _words(order, who, script)
    environment = _environment(order, who).items()
    return (
        program,
        words,
        {name.encode("latin-1"): value.encode("latin-1") for name, value in environment},
    )


def _words(order: dict[str, Any], who: person.Person, script: str) -> tuple[str, list[str]]:
    """The program, and its name with its arguments. The owner's login shell makes the environment of a login
    and becomes the interpreter that the script names, if it is another."""
    shell = order["shell"] or who.shell
    name = "-" + os.path.basename(shell) if order["login"] else shell
    named = order.get("interpreter") or [shell]
    become = _BECOME.get(os.path.basename(shell), [])
    if named == [shell] or not become:
        return shell, [name, *order["shell_args"], script, *order["args"]]
    return shell, [name, "-c", *become, *named, script, *order["args"]]


def _environment(order: dict[str, Any], who: person.Person) -> dict[str, str]:
    """The job's environment: what the order holds, and what a login gives where that says nothing. One
    character is one byte, as the order has it."""
    given: dict[str, str] = order["environment"]
    login, (mine, always) = logins.variables(who), scratch.variables(order)
    always |= {"PBS_JOBDIR": order["start_in"] or who.home}
    return _latin(login | mine) | given | _latin(always)


def _latin(variables: dict[str, str]) -> dict[str, str]:
    return {name: os.fsencode(value).decode("latin-1") for name, value in variables.items()}


def _enter(order: dict[str, Any], who: person.Person) -> None:
    folder = order["start_in"] or who.home
    queue = order["environment"].get("PBS_QUEUE", "Q")
    way = f"to start where it was submitted: set queue {queue} workdir=submit"
    hint = "" if order["start_in"] else f" (the home folder; {way})"
    _explain(f"cannot change to the folder {folder}{hint}", os.chdir, folder)


def _make_scratch(order: dict[str, Any]) -> None:
    try:
        scratch.make(order)
    except OSError as error:
        text = f"cannot make its scratch folder {order['scratch']}: {error.strerror}"
        raise (Again(text) if error.errno in records.NO_ROOM else RuntimeError(text)) from None


def _unmake_scratch(order: dict[str, Any]) -> None:
    if order.get("scratch"):
        scratch.removed(order["scratch"])


def _explain(what: str, call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise Again(f"{what}: {error.strerror}") from None
        raise RuntimeError(f"{what}: {error.strerror}") from None


def _settle(order: dict[str, Any]) -> None:
    """What root may do and the owner perhaps not: the killer's preference, niceness, CPUs."""
    if order["oom_score_adj"] != 0:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("0")
    if order["nice"]:
        nice = max(order["nice"], os.getpriority(os.PRIO_PROCESS, 0))
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    _bind(order)


def _bind(order: dict[str, Any]) -> None:
    if order["cpus"]:
        try:
            os.sched_setaffinity(0, order["cpus"])
        except OSError:
            pass  # such a CPU is no longer there: better anywhere than not at all


def _script(order: dict[str, Any], who: person.Person) -> str:
    """Name under which the job reads its script; the spool is closed to other users, an open file is not."""
    path: str = order["script_path"]
    if who.uid == os.geteuid():
        return path
    fd = _explain("cannot open the script", os.open, path, os.O_RDONLY)
    os.set_inheritable(fd, True)
    return f"/proc/self/fd/{fd}"


def _connect(order: dict[str, Any], who: person.Person, streams: tuple[int, int]) -> None:
    """Standard input, output and error; every other descriptor closes at the exec (PEP 446)."""
    output = order["output"]
    out = streams[0] if streams[0] >= 0 else _in_place(output["stdout"], who)
    err = streams[1]
    if output["join"]:
        err = out
    elif err < 0:
        err = _in_place(output["stderr"], who)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)


def _in_place(stream: dict[str, Any], who: person.Person) -> int:
    path = deliver.destination(stream, who.home)
    flags = os.O_APPEND if deliver.appends(stream) else os.O_TRUNC | os.O_APPEND
    fd: int = _explain(f"cannot open the output {path}", deliver.open_target, path, flags)
    return fd


def _reset_signals() -> None:
    """Python ignores some, and whoever started the daemon may have ignored others."""
    for number in _DEFAULT_AGAIN:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _limit(limits: dict[str, tuple[int, int]], pid: int) -> None:
    """The rlimits of a process (0: this one), those of memory last: from there to the exec nothing much may
    be allocated."""
    for name in _LATE:
        if name in limits:
            number = getattr(resource, f"RLIMIT_{name}")
            soft, hard = (resource.RLIM_INFINITY if value < 0 else value for value in limits[name])
            ceiling = resource.prlimit(pid, number)[1]
            if ceiling != resource.RLIM_INFINITY:
                hard = ceiling if hard == resource.RLIM_INFINITY else min(hard, ceiling)
            if hard != resource.RLIM_INFINITY:
                soft = hard if soft == resource.RLIM_INFINITY else min(soft, hard)
            resource.prlimit(pid, number, (soft, hard))
