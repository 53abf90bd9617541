"""The home of an installation: its files, its rights, the lock of its daemon, and how a new one is filled."""

import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import Literal

from nqspy.model.errors import NqspyError
from nqspy.rpc.home import resolve_home
from nqspy.system.shipped import shipped

SiteName = Literal["day-night", "plain"]
_NETWORK = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "lustre", "gpfs", "beegfs",
)  # fmt: skip
PLAIN = """\
# One queue on all CPUs, no shifts.
create batch_queue batch priority=10
enable queue batch
start queue batch
set default batch_request queue batch
"""


class HomeError(NqspyError):
    """The home cannot be used; the text says why, and what would be right."""


SITES = frozenset({"queues.d", "exits"})
"""Folders with the site's configuration."""
MADE = frozenset({"spool", "log", "mail", "reports", "history", "backups"})
"""Folders that a daemon makes in its home."""


class Home:
    """Paths of the files and folders in a home."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "nqs.db"
        self.socket = path / "nqsd.sock"
        self.pid_file = path / "nqsd.pid"  # also the lock that keeps a second daemon out
        self.spool = path / "spool"
        self.reports = path / "reports"  # a folder for each night
        self.mail = path / "mail"  # mails that have not been sent yet
        self.log = path / "log" / "nqsd.log"

    @property
    def reserve(self) -> Path:
        """Return the path of the file reserved for full disks: on the database's disk, also if ``spool`` is
        on another."""
        try:
            apart = os.stat(self.spool).st_dev != os.stat(self.path).st_dev
        except OSError:
            apart = False
        return (self.path if apart else self.spool) / "reserve"

    def owner(self) -> int:
        """Return the uid of the home's owner, or of its future owner if there is no home yet."""
        try:
            return self.path.stat().st_uid
        except OSError:
            return os.geteuid()

    def is_new(self) -> bool:
        """True if the home is missing or empty. Raises HomeError if it cannot be read."""
        return not self.names()

    def is_one(self) -> bool:
        """True if a database, ``queues.d`` or ``exits`` shows that the folder is a home. Raises HomeError."""
        names = self.names()
        if any(name.startswith(self.database.name) for name in names):
            return True
        folders = {name for name in names if (self.path / name).is_dir()}
        others = {name for name in folders - SITES - MADE if not name.startswith(".")}
        return bool(folders & SITES) and not others

    def names(self) -> set[str]:
        """Return the names in the folder. Raises HomeError if it cannot be read."""
        try:
            return set(os.listdir(self.path)) - {"lost+found"}  # each new file system has that one
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise unusable(self, error) from None


def home_of(option: str | None) -> Home:
    """Return the home that a command's option means (None: the default). Raises HomeError."""
    try:
        return Home(Path(resolve_home(option)))
    except OSError as error:
        raise HomeError(str(error)) from None


def unusable(home: Home, error: OSError) -> HomeError:
    """Return the error for a home that the system does not let this process use."""
    why = error.strerror or error
    return HomeError(f"home {home.path} cannot be used: {why}; choose another with --home DIR")


def not_empty(home: Home) -> HomeError:
    """Return the error for a folder that is used for something else."""
    return HomeError(f"{home.path} is not empty; a new home is an absent or empty folder")


def init_if_new(home: Home, site: SiteName | None = None) -> None:
    """Fill a new home; leave an existing one as it is. Raises HomeError for any other folder."""
    if home.is_new():
        init(home, site)
    elif not home.is_one():
        raise not_empty(home)


def init(home: Home, site: SiteName | None = None) -> SiteName:
    """Fill a new home; return the site's name (None: day-night for root, else plain). Raises HomeError."""
    if not home.is_new():
        raise not_empty(home)
    site = site or ("day-night" if os.geteuid() == 0 else "plain")
    make(home)
    try:
        if site == "plain":
            (home.path / "queues.d" / "10-batch.qmgr").write_text(PLAIN)
            return site
        for folder, pattern in (("queues.d", "*.qmgr"), ("exits", "*.py")):
            for file in sorted((shipped() / folder).glob(pattern)):
                shutil.copyfile(file, home.path / folder / file.name)
                os.chmod(home.path / folder / file.name, 0o644)
    except OSError as error:
        raise unusable(home, error) from None
    return site


def undo(home: Home, before: set[str]) -> None:
    """Remove what a refused first start has made; ``before``: names in the home before it. Do nothing if the
    home had a database."""
    if home.database.name in before:
        return
    for name in home.names() - before:
        if name.startswith(home.database.name) or name in ("clock.json", "exits.memory"):
            (home.path / name).unlink(missing_ok=True)


def make(home: Home) -> None:
    """Make the missing folders, and check that the home can be used. Raises HomeError."""
    try:
        if (kind := file_system(home.path)) in _NETWORK:
            where = f"home {home.path} lies on a network file system ({kind})"
            raise HomeError(f"{where}; file locks are not safe there: choose a home on a local disk")
        _make_folder(home.path, 0o755 if os.geteuid() == 0 else None)
        for name, mode in (("spool", 0o700), ("log", 0o700), ("exits", 0o755), ("queues.d", 0o755)):
            _make_folder(home.path / name, mode)
        for name in ("spool", "log"):  # the log names the requests of all users
            if (home.path / name).stat().st_uid == os.geteuid():
                os.chmod(home.path / name, 0o700)
    except OSError as error:
        raise unusable(home, error) from None
    if not os.access(home.path, os.W_OK | os.X_OK):
        raise HomeError(f"home {home.path} cannot be written; choose another with --home DIR")


def _make_folder(path: Path, mode: int | None) -> None:
    """Make a missing folder with that mode, whatever the umask; leave an existing one as it is."""
    if not path.is_dir():
        path.mkdir(parents=True)
        if mode is not None:
            os.chmod(path, mode)


def file_system(path: Path) -> str:
    """Return the kind of a path's file system (like ``ext4``), by the longest mount point above it."""
    real = str(path.resolve())  # a missing file counts where its parent is
    best, kind = "", ""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        where, what = line.split()[1:3]
        where = where.encode().decode("unicode_escape")
        if (real == where or real.startswith(where.rstrip("/") + "/")) and len(where) >= len(best):
            best, kind = where, what
    return kind


def lock(home: Home) -> int:
    """Lock the home for the life of this process; return the descriptor. Raises HomeError if it is locked."""
    try:
        fd = os.open(home.pid_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise unusable(home, error) from None
    for attempt in range(20):  # `running_pid` holds the lock for an instant
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            time.sleep(0.01 * (attempt > 0))
    else:
        pid = os.pread(fd, 64, 0).split()
        os.close(fd)
        who = f" (process {pid[0].decode()})" if pid else ""
        raise HomeError(f"an nqsd serves {home.path} already{who}; stop it with `nqsd stop`") from None
    line = f"{os.getpid()}\n".encode()
    try:
        os.pwrite(fd, line, 0)  # where a line is there already this needs no room on the disk
        os.ftruncate(fd, len(line))
    except OSError:
        os.close(fd)
        raise
    return fd


def unlock(fd: int) -> None:
    """Unlock the home; the file stays without a pid, so that clients know that a daemon may return."""
    os.ftruncate(fd, 0)
    os.close(fd)


COMING = 15.0
"""Real seconds for which clients believe that a daemon is starting."""


def announce(home: Home, coming: bool) -> None:
    """Show clients (`rpc.home.standing`) by the lock file's date that a daemon is starting (``coming``), or
    that none is. Do nothing if the file names a process."""
    date = time.time() + COMING if coming else 0.0
    with contextlib.suppress(OSError):
        if not home.pid_file.read_bytes().strip():
            os.utime(home.pid_file, (date, date))


def running_pid(home: Home) -> int | None:
    """Return the pid of the daemon that has locked the home; None without one."""
    try:
        fd = os.open(home.pid_file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        words = os.read(fd, 64).split()
        return int(words[0]) if words else None
    finally:
        os.close(fd)
