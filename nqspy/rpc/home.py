"""Which folder is the home of an installation, and where its socket is (interfaces.md 1).

Lean clients use this at start: it imports nothing that the interpreter has not loaded already.
"""

import os

SOCKET = "nqsd.sock"
PID_FILE = "nqsd.pid"
SYSTEM_HOME = "/var/spool/nqspy"

SUN_PATH_MAX = 107
"""Longest path (bytes) that fits into ``sockaddr_un.sun_path`` with its closing NUL (unix(7))."""


def resolve_home(option: str | None = None) -> str:
    """The home's absolute path: ``option``, else ``NQSPY_HOME``, else the system's for root or where it
    exists, else the user's own below ``XDG_STATE_HOME``."""
    chosen = option or os.environ.get("NQSPY_HOME")
    return os.path.abspath(chosen) if chosen else _usual_home()


def _usual_home() -> str:
    if os.geteuid() == 0 or os.path.isdir(SYSTEM_HOME):
        return SYSTEM_HOME
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.abspath(os.path.join(state, "nqspy"))


def nobody_there(home: str) -> str:
    """The sentence for a home where no daemon listens: what starts it, wherever that is typed."""
    where = "" if home == _usual_home() else f" --home {home}"
    return f"no nqsd answers in {home}; start it with `nqsd start{where}`"


def socket_path(home: str) -> str:
    """Path of the daemon's socket."""
    return os.path.join(home, SOCKET)


def pid_path(home: str) -> str:
    """Path of the file whose first word is the daemon's pid."""
    return os.path.join(home, PID_FILE)


def with_short_path(path: str) -> tuple[str, int]:
    """A name for ``path`` that fits into a socket address, and the folder's descriptor that makes it
    valid (-1: none needed). The caller closes the descriptor after bind or connect. Raises OSError."""
    if len(os.fsencode(path)) <= SUN_PATH_MAX:
        return path, -1
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}", folder
