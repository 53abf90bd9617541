"""The home of an installation: its folder, its socket (interfaces.md 1), a connection to its daemon; and the
encoding. Lean clients load this at start: it imports only what the interpreter has loaded, and `_socket`."""

import _socket
import os
import sys
import time

SOCKET = "nqsd.sock"
PID_FILE = "nqsd.pid"
SYSTEM_HOME = "/var/spool/nqspy"

SUN_PATH_MAX = 107
"""Longest path (bytes) that fits into ``sockaddr_un.sun_path`` with its closing NUL (unix(7))."""


def speak_utf8() -> None:
    """Run this program again in UTF-8 mode if the locale has another encoding: all names are UTF-8."""
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        words = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
        os.execv(sys.executable, words)  # noqa: S606 - no shell is meant


def resolve_home(option: str | None = None) -> str:
    """Return the home's absolute path: ``option``, else ``NQSPY_HOME``, else the system's home (for root, or
    if it exists), else the user's below ``XDG_STATE_HOME``. Raises OSError with one line for people."""
    if option == "":
        raise OSError("--home needs a folder; leave it out for the usual home")
    chosen = option or os.environ.get("NQSPY_HOME")
    try:
        return os.path.abspath(chosen) if chosen else _usual_home()
    except FileNotFoundError:
        raise OSError(f"home {chosen}: the current folder no longer exists; give the whole path") from None


def _usual_home() -> str:
    if os.geteuid() == 0 or os.path.isdir(SYSTEM_HOME):
        return SYSTEM_HOME
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.abspath(os.path.join(state, "nqspy"))


def nobody_there(home: str) -> str:
    """Return the message that no daemon listens in a home, with the command that starts one."""
    where = "" if home == _usual_home() else f" --home {home}"
    return f"no nqsd answers in {home}; start it with `nqsd start{where}`"


STOPPED, UP, LOST = "stopped", "up", "lost"
RETURN = 1.0
"""Seconds after a stop in which a daemon may be restarting (a restart is a stop and a start)."""


def standing(home: str) -> str:
    """Return the state of a daemon that does not answer: `STOPPED` (or never started); `UP`: it is starting,
    ending, or ended within the last `RETURN` seconds; `LOST`: it was killed, and may be started again."""
    import fcntl  # only now: no daemon answers

    try:
        fd = os.open(os.path.join(home, PID_FILE), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return STOPPED
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if os.read(fd, 64).split():
            return LOST
        now = time.time()  # noqa: TID251 - as the file's date, which is no date of the site
        return UP if now - os.fstat(fd).st_mtime < RETURN else STOPPED
    except BlockingIOError:
        return UP
    finally:
        os.close(fd)


def socket_path(home: str) -> str:
    """Return the path of the daemon's socket."""
    return os.path.join(home, SOCKET)


def connect(connection: "_socket.socket", path: str) -> None:
    """Connect a socket to a path that may be too long for a socket address. Raises OSError."""
    name, folder = with_short_path(path)
    try:
        connection.connect(name)
    finally:
        if folder >= 0:
            os.close(folder)


def with_short_path(path: str) -> tuple[str, int]:
    """Return a name for ``path`` that fits into a socket address, and the open folder's descriptor that makes
    it valid (-1: none needed). The caller closes the descriptor after bind or connect. Raises OSError."""
    if len(os.fsencode(path)) <= SUN_PATH_MAX:
        return path, -1
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}", folder


class DaemonSocket:
    """A connection to the daemon of ``home``, opened when needed. ``timeout``: seconds for an answer, None:
    no limit; ``connected``: True once the daemon was reached; ``pid``: its process, 0 if it has none here."""

    def __init__(self, home: str, timeout: "float | None" = None) -> None:
        self.home, self._timeout = home, timeout
        self.connected, self.pid = False, 0
        self._socket: _socket.socket | None = None
        self._rest = b""

    def exchange(self, line: bytes) -> bytes:
        """Send a line and return the daemon's answer. Raises TimeoutError, other OSErrors."""
        try:
            if self._socket is None or self._is_closed(self._socket):
                self.close()
                self._connect()
            assert self._socket is not None
            try:
                self._socket.sendall(line)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before all was sent: the reason can still be read
        except BlockingIOError:
            raise TimeoutError("timed out") from None
        return self.read_line()

    def _connect(self) -> None:
        connection = self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        if self._timeout is not None:
            whole, part = divmod(max(round(self._timeout * 1_000_000), 1), 1_000_000)
            moment = whole.to_bytes(8, sys.byteorder) + part.to_bytes(8, sys.byteorder)  # struct timeval
            connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_RCVTIMEO, moment)
            connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, moment)
        connect(connection, socket_path(self.home))
        self.connected = True
        peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        self.pid = int.from_bytes(peer[:4], sys.byteorder)  # struct ucred

    def read_line(self) -> bytes:
        """Return the next line that the daemon sends. Raises TimeoutError, other OSErrors."""
        assert self._socket is not None
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            try:
                piece = self._socket.recv(1 << 18)
            except BlockingIOError:
                raise TimeoutError("timed out") from None
            if not piece:
                raise ConnectionResetError("the connection was closed")
            parts.append(piece)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    @staticmethod
    def _is_closed(connection: "_socket.socket") -> bool:
        """True if the daemon has closed a connection that was idle for long."""
        try:
            return not connection.recv(1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Close the connection to the daemon."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest, self.connected = None, b"", False
