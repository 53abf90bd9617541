"""A person at a terminal: a command with a pseudo-terminal (pty(7)) for stdout or stderr, or both."""

import fcntl
import os
import select
import struct
import subprocess
import termios
import time

from daemon.live import PATIENCE, Done, Live, command


def at_a_terminal(
    live: Live, name: str, *words: str, stdin: str = "", out: bool = False, tty: bool = False,
    columns: int = 80, **env: str,
) -> Done:  # fmt: skip
    """Run a command whose stderr is a terminal; with ``out`` also its stdout (both come in ``err``), with
    ``tty`` stdin."""
    master, slave = os.openpty()
    _shape(slave, columns)
    called = subprocess.Popen(
        [*command(name), *words], cwd=live.work, env=live.environment | {"TERM": "xterm"} | env,
        stdin=slave if tty else subprocess.PIPE, stdout=slave if out else subprocess.PIPE, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    if called.stdin is not None:
        called.stdin.write(stdin.encode())
        called.stdin.close()
    shown = _read(master)
    message = called.stdout.read().decode() if called.stdout is not None else ""
    if called.stdout is not None:
        called.stdout.close()
    status = called.wait(PATIENCE)
    done = subprocess.CompletedProcess(words, status, message, shown.replace("\r\n", "\n"))
    return Done((name, *words), done)


def _shape(terminal: int, columns: int) -> None:
    attributes = termios.tcgetattr(terminal)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def _read(master: int) -> str:
    """Return all that is shown until no process has the terminal open any more."""
    parts, end = [], time.monotonic() + PATIENCE
    while select.select([master], [], [], max(0.0, end - time.monotonic()))[0]:
        try:
            data = os.read(master, 65536)
        except OSError:  # EIO: the last writer has gone
            break
        if not data:
            break
        parts.append(data)
    os.close(master)
    return b"".join(parts).decode()
