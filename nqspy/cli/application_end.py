"""The job's end of an application (`mpprun`): runs the program for its caller, passes signals on, reports how
it ended. Its text is the script of the request: standard library only; `signal` and `socket` only by their
modules in C, as their enumerations take as long to load as all the rest."""

import _signal as signal  # type: ignore[import-not-found]
import _socket as socket
import _struct
import os
import select
import sys

OURS = (b"NQSPY_", b"QSUB_", b"PBS_")
"""Variables of the job itself, with those listed in `OWN`; all others are the caller's."""
OWN = b"NQSPY_OWN"
PATIENCE = 5000
"""Milliseconds between HUP and KILL for a program whose caller has ended."""


def main(place: str) -> None:
    """Run the job: connect to the caller's socket ``place``, run the program, and end as it does."""
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(place)
        # The user who waits there: in a folder open to all, another may have put a socket of their own.
        if _struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] != os.getuid():
            sys.exit(f"{place} is not the socket of the mpprun that started this application")
        fds, body = _received(link)
    except OSError as error:
        sys.exit(f"the mpprun that started this application does not answer ({error.strerror})")
    if not body:
        sys.exit("the mpprun that started this application has ended")
    caught: list[int] = []
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT}:
        try:
            signal.signal(number, lambda number, frame: caught.append(number))
        except OSError:
            pass  # kept by the C library
    pid = os.fork()
    if pid == 0:
        _become_program(fds, body)
    for fd in fds:
        os.close(fd)
    _lead(pid)
    status = _attend(link, pid)
    doubtful = signal.SIGTERM in caught or signal.SIGXCPU in caught  # perhaps it is past a limit
    try:
        link.sendall(b"%d %d" % (status, doubtful))
    except OSError:
        pass
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if not number:
        os._exit(os.WEXITSTATUS(status))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _received(link: socket.socket) -> "tuple[list[int], bytes]":
    """Return the three streams, and the rest of the caller's message; nothing if the caller has ended."""
    head, sent, _, _ = link.recvmsg(8, socket.CMSG_SPACE(12))
    if len(head) < 8 or not sent:
        return [], b""
    raw = sent[0][2]
    fds = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw), 4)]
    body, size = b"", int.from_bytes(head, "big")
    while len(body) < size:
        piece = link.recv(min(size - len(body), 1 << 16))
        if not piece:
            return fds, b""
        body += piece
    return fds, body


def _lead(pid: int) -> None:
    """Give a process a group of its own; called in it and in its parent, as either may run first."""
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass


def _become_program(fds: "list[int]", body: bytes) -> None:
    folder, count, *rest = body.split(b"\0")
    words, variables = rest[: int(count)], rest[int(count) :]
    try:
        _lead(0)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        os.closerange(3, max(fds) + 1)
        os.chdir(folder)
        listed = os.environb.pop(OWN, b"").split()
        given = dict(os.environb) | dict(each.split(b"=", 1) for each in variables)
        own = {name: each for name, each in os.environb.items() if name.startswith(OURS) or name in listed}
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(words[0], words, given | own)  # noqa: S606 - no shell is meant
    except OSError as error:
        os.write(2, b"mpprun: cannot run %b: %b\n" % (words[0], os.fsencode(error.strerror or "")))
    finally:
        os._exit(127)


def _attend(link: socket.socket, pid: int) -> int:
    """Pass signals on until the program ends; return its wait status. If its caller ends, send HUP."""
    ended, poll = os.pidfd_open(pid), select.poll()
    patience = None
    for fd in (ended, link.fileno()):
        poll.register(fd, select.POLLIN)
    while True:
        found = [fd for fd, _ in poll.poll(patience)]
        if ended in found:
            return os.waitpid(pid, 0)[1]
        numbers: tuple[int, ...] = (signal.SIGKILL,)
        if not found:
            patience = None
        else:
            try:
                numbers = tuple(link.recv(64))
            except OSError:
                numbers = ()
            if not numbers:
                poll.unregister(link.fileno())
                patience, numbers = PATIENCE, (signal.SIGHUP, signal.SIGCONT)
        for number in numbers:
            try:
                os.killpg(pid, number)
            except OSError:
                pass  # it has ended, or is another user's by now
