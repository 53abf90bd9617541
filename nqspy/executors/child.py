"""The job's first process until the exec: session, cgroup, CPUs, user, folder, output, limits. `launch` forks
it into a cgroup and can do everything; errors before the exec come through a pipe. `spawn` starts plain
requests of the daemon's own user by posix_spawn, which copies no memory and costs a fifth less."""

import _signal  # type: ignore[import-not-found]
import contextlib
import errno
import os
import resource
import signal
from collections.abc import Callable
from typing import Any, NoReturn

from nqspy.executors import deliver, forks, login_env, person, proc, records, scratch
from nqspy.executors.cgroups import JobGroup
from nqspy.executors.deadline import Wait, end
from nqspy.executors.person import Person

Order = dict[str, Any]
Streams = tuple[int, int]
_LATE = ("NPROC", "CPU", "FSIZE", "CORE", "STACK", "DATA", "AS")
_DEFAULT_AGAIN = (
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGXCPU, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT,
    signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGTTIN,
    signal.SIGTTOU,
)  # fmt: skip


class Again(Exception):
    """Failed start by no fault of the request, which may succeed later. Its text is one line for people."""


class Stalled(Exception):
    """Failed start: the exec took too long, or the daemon ended it before. The argument is the `Wait`."""


class OldLogin(Exception):
    """Failed start: a profile of the owner was changed since the stored login was run."""


class NoInterpreter(Exception):
    """Failed start: the interpreter that the script names cannot be run. Its text is one line for people."""


_MARKS: dict[type[Exception], bytes] = {Again: b"\0", OldLogin: b"\1", NoInterpreter: b"\2"}
"""First byte of a message from a child that could not become the job."""


def plain(order: Order) -> bool:
    """True if `spawn` can start the job: it is of the daemon's own user, writes no output in place, and has
    no nice value, no measured CPU limit of a process, no OOM score and no rlimit except CPU and NPROC."""
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
    """Return rlimit NPROC for jobs of the daemon's own user, so that a tenth of its processes stays free for
    the daemon; empty without a limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft == resource.RLIM_INFINITY:
        return {}
    most = soft - max(16, soft // 10)
    return {"NPROC": (most, most)} if most > 0 else {}


def secure() -> None:
    """Sync the claim to the disk before the first instruction of a job. Raises Again."""
    try:
        records.make_durable(".")
    except OSError as error:
        raise Again(f"cannot write its claim to the disk: {error.strerror}") from None


def spawn(order: Order, who: Person, streams: Streams) -> tuple[int, str]:
    """Spawn the first process of a plain job; return its pid and "", or 0 and why it did not start. Raises
    Again, OldLogin, NoInterpreter."""
    _check_login(order, who)
    here, nothing = os.open(".", os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)
    umask = os.umask(_umask(order))
    try:
        program, words, environment = _command(order, who)
        _bind(order)
        _enter(order, who)
        _make_scratch(order)
        pid = int(_run(order, program, forks.spawn, program, words, environment, (nothing, *streams)))
    except (RuntimeError, ValueError, Again, NoInterpreter) as error:
        _unmake_scratch(order)
        if isinstance(error, Again | NoInterpreter):
            raise
        return 0, str(error)
    finally:
        os.fchdir(here)
        os.umask(umask)
        os.close(here)
        os.close(nothing)
    with contextlib.suppress(OSError):
        # Only after the exec: the shepherd must not have these limits. The job's matter once it is killed.
        _limit(order["rlimits"], pid)
    return pid, ""


def launch(
    order: Order, who: Person, group: JobGroup, streams: Streams, wait: Wait, born: Callable[[int], None]
) -> tuple[int, str]:
    """Start the job's first process; return its pid and "" once it has exec'd, else the reason why it did
    not. ``streams``: the spooled stdout and stderr, -1 if written in place; ``wait``: the deadline; ``born``
    is called with the pid. Raises Again, Stalled, OldLogin, NoInterpreter."""
    reader, writer = os.pipe()
    gate, opener = os.pipe()
    try:
        pid = group.fork()
        if pid == 0:
            os.close(opener)
            _be_the_job(order, who, group, streams, (gate, writer))
    except OSError as error:
        os.close(reader)
        os.close(opener)
        raise Again(f"cannot fork: {error.strerror}") from None
    finally:
        os.close(writer)
        os.close(gate)
    born(pid)
    refusal: Again | None = None
    with proc.Descriptor(opener), contextlib.suppress(OSError):  # it has ended already, and reports why
        try:
            secure()
            os.write(opener, b"1")
        except Again as error:
            refusal = error
    with proc.Descriptor(reader):
        text = _read_refusal(reader, pid, group, wait)
    if refusal is not None:
        os.waitpid(pid, 0)
        raise refusal
    for kind, mark in _MARKS.items():
        if text.startswith(mark):
            os.waitpid(pid, 0)
            raise kind(text[1:].decode("utf-8", "replace"))
    return pid, text.decode("utf-8", "replace")


def _read_refusal(reader: int, pid: int, group: JobGroup, wait: Wait) -> bytes:
    """Return the child's error from before its exec; empty if it has exec'd. Raises Stalled."""
    text, ended = wait.read(reader)
    if ended:
        return text
    # Once it is stopped it either has exec'd, and the pipe is closed, or it never will.
    proc.send([pid], signal.SIGSTOP)
    if proc.readable(reader):
        proc.send([pid], signal.SIGCONT)
        return text + os.read(reader, 4096)
    group.kill()
    end(pid)
    raise Stalled(wait)


def _be_the_job(
    order: Order, who: Person, group: JobGroup, streams: Streams, pipes: tuple[int, int]
) -> NoReturn:
    """Become the job, in the child, when the first pipe allows it; write errors to the second."""
    gate, writer = pipes
    try:
        try:
            group.enter()
        except OSError as error:
            text = f"cannot enter its cgroup: {error.strerror}"
            if error.errno in (errno.ENOENT, errno.ENODEV):
                raise Again(text) from None  # another spawner has removed it as empty
            raise RuntimeError(text) from None
        _become_job(order, who, streams, gate)
    except BaseException as error:
        _unmake_scratch(order)
        mark = next((mark for kind, mark in _MARKS.items() if isinstance(error, kind)), b"")
        os.write(writer, mark + (str(error) or repr(error)).encode("utf-8", "replace"))
    os._exit(127)


def _become_job(order: Order, who: Person, streams: Streams, gate: int) -> None:
    os.setsid()
    # Steps that root may take and the owner perhaps not.
    if order["oom_score_adj"] != 0:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("0")
    if order["nice"]:
        os.setpriority(os.PRIO_PROCESS, 0, max(order["nice"], os.getpriority(os.PRIO_PROCESS, 0)))
    _bind(order)
    if who.uid != os.geteuid():
        # The limits of a login, set while they may still be raised; the smaller of each and the request's.
        given = person.smaller(order["rlimits"], person.limits_of(who, person.groups_of(who)))
        order["rlimits"] = {name: pair for name, pair in given.items() if name in _LATE}
        for name in given.keys() - set(_LATE):
            number, pair = getattr(resource, f"RLIMIT_{name}"), person.pair(name, given[name])
            _explain("cannot set the limits of the login", resource.setrlimit, number, pair)
    person.become(who)
    _check_login(order, who)
    os.umask(_umask(order))
    _enter(order, who)
    _connect(order, who, streams)
    _make_scratch(order)
    # Python ignores some signals, and the daemon may have been started with others ignored.
    # (`signal.signal` would cost the child 60 copies of pages.)
    for signal_number in _DEFAULT_AGAIN:
        _signal.signal(signal_number, _signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    program, words, environment = _command(order, who)
    _explain("cannot set the limits", _limit, order["rlimits"], 0)
    if not os.read(gate, 1):
        _unmake_scratch(order)
        os._exit(127)  # it must not begin, or its shepherd has ended
    _run(order, program, os.execve, program, words, environment)


def _run(order: Order, program: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``call`` to exec or spawn the program; errors become RuntimeError, Again or NoInterpreter."""
    try:
        return _explain(f"cannot run {program}", call, *arguments)
    except RuntimeError as error:
        if order["login"] and order.get("interpreter"):
            raise NoInterpreter(f"{error} (the first line of the script names it)") from None
        raise


def _check_login(order: Order, who: Person) -> None:
    """Check, as the owner, that no profile was changed since the stored login was run. Raises OldLogin; never
    for a login that was just renewed."""
    stored: login_env.StoredLogin | None = order.get("stored_login")
    shell = order["shell"] or who.shell
    if stored is not None and not order.get("renewed") and login_env.profiles(shell, who.home) != stored.seen:
        raise OldLogin


def _umask(order: Order) -> int:
    """Return the umask that a profile has set, else the request's."""
    stored: login_env.StoredLogin | None = order.get("stored_login")
    umask: int = order["umask"]
    return umask if stored is None or stored.umask is None else stored.umask


def _command(order: Order, who: Person) -> tuple[str, list[str], dict[bytes, bytes]]:
    """Return program, arguments and environment of the job's first process. Of equal variables the last
    counts: of the login, its profiles, the request, the daemon; but profiles win over defaults."""
    stored: login_env.StoredLogin | None = order.get("stored_login")
    from_login = stored.variables if stored is not None else {}
    given = {name.encode("latin-1"): value.encode("latin-1") for name, value in order["environment"].items()}
    for name in order["defaults"]:
        if (encoded := name.encode("latin-1")) in from_login:
            given.pop(encoded, None)
    login, (mine, always) = person.variables(who), scratch.variables(order)
    always |= {"PBS_JOBDIR": order["start_in"] or who.home}
    return *_words(order, who), _bytes(login | mine) | from_login | given | _bytes(always)


def _words(order: Order, who: Person) -> tuple[str, list[str]]:
    """Return the program and its arguments: the interpreter, or a login shell that becomes it ("each"). A
    program of an unknown family of shells reads the script under the name of a login shell."""
    shell, script, args = order["shell"] or who.shell, scratch.script(order), order["args"]
    named, known = order.get("interpreter") or [shell], bool(login_env.family(shell))
    if not order["login"] or (order["login"] == "once" and known):
        return named[0], [*named, *order["shell_args"], script, *args]
    found = [*order["shell_args"], script, *args]
    if marks(order, who):
        mark = scratch.mark(order)
        if named == [shell]:
            found = login_env.read_command(mark, script, args)
        else:
            found = login_env.enter_command(shell, mark, [*named, script, *args])
    return shell, [f"-{os.path.basename(shell)}", *found]


def marks(order: Order, who: Person) -> bool:
    """True if the job's own login shell makes a file (`scratch.mark`) just before the script, which shows
    that no profile has ended the shell."""
    shell = order["shell"] or who.shell
    kind = login_env.family(shell)
    other = order.get("interpreter") not in ([], [shell])
    return order["login"] == "each" and (kind == "sh" or bool(kind and other))


def _bytes(variables: dict[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}


def _enter(order: Order, who: Person) -> None:
    folder = order["start_in"] or who.home
    queue = order["environment"].get("PBS_QUEUE", "Q")
    way = f"to start where it was submitted: set queue {queue} workdir=submit"
    hint = "" if order["start_in"] else f" (the home folder; {way})"
    _explain(f"cannot change to the folder {folder}{hint}", os.chdir, folder)


def _make_scratch(order: Order) -> None:
    try:
        scratch.make(order)
    except OSError as error:
        text = f"cannot make its scratch folder {order['scratch']}: {error.strerror}"
        raise (Again(text) if error.errno in records.NO_ROOM else RuntimeError(text)) from None


def _unmake_scratch(order: Order) -> None:
    if order.get("scratch"):
        scratch.removed(order["scratch"])


def _explain(what: str, call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise Again(f"{what}: {error.strerror}") from None
        raise RuntimeError(f"{what}: {error.strerror}") from None


def _bind(order: Order) -> None:
    if order["cpus"]:
        with contextlib.suppress(OSError):  # such a CPU was removed: better to run anywhere
            os.sched_setaffinity(0, order["cpus"])


def _connect(order: Order, who: Person, streams: Streams) -> None:
    """Connect standard input, output and error; other descriptors close at the exec (PEP 446)."""
    output, fds = order["output"], [os.open(os.devnull, os.O_RDONLY)]
    for name, fd in zip(("stdout", "stderr"), streams, strict=True):
        if name == "stderr" and output["join"]:
            fd = fds[1]
        elif fd < 0:
            try:
                fd = deliver.open_in_place(output[name], who.home)
            except OSError as error:
                raise RuntimeError(f"cannot open the output {error.filename}: {error.strerror}") from None
        fds.append(fd)
    for number, fd in enumerate(fds):
        os.dup2(fd, number)


def _limit(limits: dict[str, tuple[int, int]], pid: int) -> None:
    """Set the rlimits of a process (0: this one), memory last: after it little can be allocated."""
    for name in _LATE:
        if name in limits:
            number = getattr(resource, f"RLIMIT_{name}")
            hard = person.least(limits[name][1], resource.prlimit(pid, number)[1])
            resource.prlimit(pid, number, (person.least(limits[name][0], hard), hard))
