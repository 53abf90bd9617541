"""Files that others may not read, written whole or not at all; and files that others may not write, read."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path


class Unsafe(Exception):
    """A file was not read; the text says why, as the end of a sentence: ``is not a file``."""


LARGEST = 1 << 20
"""Most bytes of a file that is read."""


def write_private(path: Path, pieces: Iterable[str], encoding: str = "utf-8") -> None:
    """Write the pieces durably into a file that only its owner reads, whole or not at all. Raises OSError."""
    new = path.with_name(path.name + ".new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding=encoding, errors="replace", newline="") as out:
        out.writelines(pieces)
        out.flush()
        os.fsync(out.fileno())
    os.replace(new, path)


def read_regular(path: Path) -> tuple[bytes, os.stat_result]:
    """Return the bytes and the state of a regular file of at most `LARGEST` bytes; never wait for a FIFO.
    Raises Unsafe, OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        of = os.fstat(file.fileno())
        if not stat.S_ISREG(of.st_mode):
            raise Unsafe("is not a file")
        data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise Unsafe("is larger than 1 MiB")
        return data, of


def read_own(path: Path, owner: int | None) -> bytes:
    """Return the bytes of such a file (`read_regular`) that only ``owner`` (a uid; None: whoever owns it) and
    root may write. Raises Unsafe, OSError."""
    data, of = read_regular(path)
    why = writable_by_others(of, of.st_uid if owner is None else owner)
    if why is not None:
        raise Unsafe(why)
    return data


def writable_by_others(of: os.stat_result, owner: int) -> str | None:
    """Return which users besides ``owner`` (uid) and root may write a file, to end a sentence; None: none."""
    if of.st_uid not in (owner, 0):
        return "does not belong to the owner of the home"
    if of.st_mode & stat.S_IWOTH:
        return "is writable by all users (chmod go-w)"
    if of.st_mode & stat.S_IWGRP and not _private_group(of.st_gid, owner):
        return "is writable by its group (chmod go-w)"
    return None


def _private_group(gid: int, owner: int) -> bool:
    """True if the owner is the only member of this group, as where each user has a group."""
    import grp  # only where a file is writable by its group
    import pwd

    try:
        mine, members = pwd.getpwuid(owner).pw_name, grp.getgrgid(gid).gr_mem
    except KeyError:
        return False
    primary = {user.pw_name for user in pwd.getpwall() if user.pw_gid == gid}
    return (primary | set(members)) <= {mine}
