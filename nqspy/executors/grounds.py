"""Where this home's cgroups are or were: a starter in another login session has its own elsewhere, and what
an earlier one left is found by this list (``cgroups`` in the spool, one path a line). Standard library only.
"""

from __future__ import annotations

import contextlib
import os

from nqspy.executors.control import rmdir


def tend(spool: str, name: str, own: list[str]) -> None:
    """Takes away what is empty of the places noted that are not ``own``, and notes those that are there.

    ``name``: of this home's directory among the cgroups; what does not end in it is not touched. The
    starter's lock must be held. Where the list cannot be read or written it stays as it was.
    """
    path = f"{spool}/cgroups"
    with contextlib.suppress(OSError):
        noted = _read(path)
        for folder in noted:
            if folder not in own and _is_ours(folder, name):
                _clear(folder)
        there = [
            each for each in dict.fromkeys((*noted, *own)) if _is_ours(each, name) and os.path.isdir(each)
        ]
        if there != noted:
            _write(path, there)


def _is_ours(folder: str, name: str) -> bool:
    plain = os.path.isabs(folder) and os.path.normpath(folder) == folder and "\n" not in folder
    return plain and os.path.basename(folder) == name and os.path.realpath(folder) == folder


def _clear(folder: str) -> None:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                rmdir(entry.path)
    rmdir(folder)


def _read(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().split("\n")[:-1]
    except FileNotFoundError:
        return []


def _write(path: str, folders: list[str]) -> None:
    if not folders:
        os.unlink(path)
        return
    draft = f"{path}.new"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(f"{each}\n" for each in folders)
        file.flush()
        os.fsync(fd)
    os.rename(draft, path)
