"""Output of requests, read in the spool without following links: regular files of its owner, or ours."""

import os
import stat
from pathlib import Path

from nqspy.executors import records
from nqspy.model.ids import Seq

CHUNK = 65_536
"""Most bytes of output in one answer."""
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def place(seq: Seq, attempt: int, stream: str) -> str:
    """Return the path of an attempt's stream in the spool: ``17.1/stdout``."""
    return f"{records.folder_name(seq, attempt)}/{stream}"


def stayed(seq: Seq, path: str | None) -> str:
    """Return the path in the spool if a delivery's ``path`` names output that stayed there; else empty."""
    folder, _, name = (path or "").rpartition("/")
    found = records.attempt_named(folder)
    if found is None or found[0] != seq or name not in ("stdout", "stderr"):
        return ""
    return place(seq, found[1], name)


def read(spool: Path, place: str, offset: int, uid: int) -> bytes:
    """Return up to CHUNK bytes of a stream from byte ``offset`` on, empty at its end; ``place``: its path in
    the spool. Raises OSError unless it is a regular file of ``uid`` or the daemon's user."""
    folder, _, name = place.partition("/")
    inside = os.open(spool / folder, _FOLDER)
    try:
        # Checked before it is opened: opening some devices has effects.
        _check(os.stat(name, dir_fd=inside, follow_symlinks=False), uid)
        fd = os.open(name, _FILE, dir_fd=inside)
    finally:
        os.close(inside)
    try:
        _check(os.fstat(fd), uid)
        return os.pread(fd, CHUNK, offset)
    finally:
        os.close(fd)


def _check(status: os.stat_result, uid: int) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_uid not in (uid, os.geteuid()):
        raise PermissionError("it is not an output file of the request")
