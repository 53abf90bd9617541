"""Daemons forked from a process that has loaded what a daemon loads: a start takes a fraction of the time.

`nqsd start` does the rest as ever: it checks the home and waits until the daemon says that it serves. The
daemon has the environment, session and descriptors of one that was begun anew, also as the kernel shows them.
"""

import ctypes
import functools
import gc
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from nqspy.daemon.home import Home
from nqspy.daemon.starting import StartOptions

ROOM = "x" * 20_000
"""Variable as long as the environment of any daemon may be."""


def spawn(home: Home, options: StartOptions, environment: Mapping[str, str]) -> int:
    """Begin a daemon, as `nqspy.daemon.process` does; return the pipe with its report."""
    read, write = os.pipe()
    words = (str(home.path), msgspec.json.encode(options).decode(), dict(environment))
    socket.send_fds(_door()[0], [json.dumps(words).encode()], [write])
    os.close(write)
    return read


@functools.cache
def _door() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Begin the process from which daemons are forked, which ends with this one; return it with its
    socket."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    root = str(Path(__file__).parents[2])
    begun = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.daemon.nursery"], stdin=there, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
        env={"PYTHONPATH": root, "PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1", "ROOM": ROOM},
    )  # fmt: skip
    there.close()
    return here, begun


def main() -> NoReturn:
    """Fork a daemon for each message, until the other end is closed."""
    gc.disable()
    from nqspy.daemon import process, running  # noqa: F401  (what a daemon loads)

    gc.freeze()
    door = socket.socket(fileno=0)
    while True:
        message, fds, *_ = socket.recv_fds(door, 1 << 17, 1)
        if not message:
            os._exit(0)
        if (child := os.fork()) == 0:
            if os.fork():  # it is nobody's child, as after the end of `nqsd start`
                os._exit(0)
            home, options, environment = json.loads(message)
            os.setsid()
            for fd in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            ready = os.dup2(fds[0], 3)
            os.closerange(4, 100)
            _live_in(environment)
            sys.argv = ["nqsd", home, str(ready), options]
            process.main()
        os.close(fds[0])
        os.waitpid(child, 0)


def _live_in(environment: dict[str, str]) -> None:
    """Adopt an environment, also in the memory that the kernel shows as the process's first one."""
    shown = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    begin, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[47:49])
    os.environ.clear()
    ctypes.memmove(begin, shown.ljust(end - begin, b"\0"), end - begin)
    os.environ.update(environment)
    time.tzset()


if __name__ == "__main__":
    main()
