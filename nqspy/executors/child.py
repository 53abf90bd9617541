"""The job's first process, from the fork to the exec: session, cage, CPUs, user, folder, output, limits.

Whatever goes wrong before the exec travels back over a pipe as one line for people.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from typing import Any

from nqspy.executors import deliver, person
from nqspy.executors.cage import Cage

_LATE = ("CPU", "FSIZE", "CORE", "STACK", "DATA", "AS")
_DEFAULT_AGAIN = (
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGXCPU, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT,
    signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGTTIN,
    signal.SIGTTOU,
)  # fmt: skip


def launch(
    order: dict[str, Any], who: person.Person, cage: Cage, streams: tuple[int, int]
) -> tuple[int, str]:
    """Starts the job's leader; gives its pid and "" once it has exec'd, else the reason why it did not.

    ``streams``: file descriptors of the spooled stdout and stderr, -1 for one that is written in place.
    """
    reader, writer = os.pipe()
    pid = cage.fork()
    if pid == 0:
        try:
            _become_job(order, who, streams)
        except BaseException as error:
            os.write(writer, (str(error) or repr(error)).encode("utf-8", "replace"))
        os._exit(127)
    os.close(writer)
    text = b""
    while part := os.read(reader, 4096):
        text += part
    os.close(reader)
    return pid, text.decode("utf-8", "replace")


def _become_job(order: dict[str, Any], who: person.Person, streams: tuple[int, int]) -> None:
    os.setsid()
    _settle(order)
    script = _script(order, who)
    person.become(who)
    os.umask(order["umask"])
    folder = order["start_in"] or who.home
    _explain(f"cannot change to the folder {folder}", os.chdir, folder)
    _connect(order, who, streams)
    _reset_signals()
    shell = order["shell"] or who.shell
    name = "-" + os.path.basename(shell) if order["login"] else shell
    argv = [name, *order["shell_args"], script, *order["args"]]
    environment = {
        name.encode("latin-1"): value.encode("latin-1") for name, value in person.login(order, who).items()
    }
    _limit(order["rlimits"])
    _explain(f"cannot run {shell}", os.execve, shell, argv, environment)


def _explain(what: str, call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except OSError as error:
        raise RuntimeError(f"{what}: {error.strerror}") from None


def _settle(order: dict[str, Any]) -> None:
    """What root may do and the owner perhaps not: the killer's preference, niceness, CPUs."""
    if order["oom_score_adj"] != 0:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("0")
    if order["nice"]:
        nice = max(order["nice"], os.getpriority(os.PRIO_PROCESS, 0))
        os.setpriority(os.PRIO_PROCESS, 0, nice)
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
    fd: int = _explain(f"cannot open the output {path}", deliver.open_target, path, os.O_TRUNC | os.O_APPEND)
    return fd


def _reset_signals() -> None:
    """Python ignores some, and whoever started the daemon may have ignored others."""
    for number in _DEFAULT_AGAIN:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _limit(limits: dict[str, tuple[int, int]]) -> None:
    """The rlimits, those of memory last: from there to the exec nothing much may be allocated."""
    for name in _LATE:
        if name in limits:
            number = getattr(resource, f"RLIMIT_{name}")
            soft, hard = (resource.RLIM_INFINITY if value < 0 else value for value in limits[name])
            ceiling = resource.getrlimit(number)[1]
            if ceiling != resource.RLIM_INFINITY:
                hard = ceiling if hard == resource.RLIM_INFINITY else min(hard, ceiling)
                soft = min(soft, hard)
            soft = hard if soft == resource.RLIM_INFINITY else soft
            resource.setrlimit(number, (min(soft, sys.maxsize), min(hard, sys.maxsize)))
