"""Paths of ``-o``, ``-e`` and ``-s`` on this machine. Loaded only when used."""

import os
import stat

from nqspy.cli.fast import Failure
from nqspy.model.amounts import Wrong

_MARKS = ("%", "$PBS_", "${PBS_", "^array_index^")


def output_path(workdir: str, value: str) -> str:
    """Return the absolute path of an output, with a final slash for an existing folder. Raises Wrong if
    ``value`` is empty."""
    if not value:
        raise Wrong("the path is empty")
    path = os.path.join(workdir.replace("%", "%%"), value)
    plain = _plain(path)
    return path + "/" if plain and not path.endswith("/") and os.path.isdir(plain) else path


def _plain(path: str) -> str:
    """Return the path as it will be; empty if it has marks that the daemon fills in."""
    rest = path.replace("%%", "")
    return "" if any(mark in rest for mark in _MARKS) else path.replace("%%", "%")


def check_shell(path: str, place: str) -> None:
    """Raise Failure, with ``place`` in front, for a program that is missing or cannot be run."""
    if os.path.isdir(path) or not os.path.exists(path):
        raise Failure(f"{place}there is no program {path}; give the whole path of a shell, such as /bin/sh")
    if not os.access(path, os.X_OK):
        raise Failure(f"{place}you cannot run {path}; give the whole path of a shell, such as /bin/sh")


def objection(path: str) -> str:
    """Return the reason why a path of `output_path` cannot be written at present; empty if it can be."""
    folder = os.path.dirname(path)
    known = _plain(folder)
    if not known:
        return ""
    stays = "the output will stay in the spool"
    try:
        info = os.stat(known)
    except OSError as error:
        return f"folder {known}: {error.strerror}; {stays}"
    if not stat.S_ISDIR(info.st_mode):
        return f"{known} is not a folder; {stays}"
    file = _plain(path)
    if file and not path.endswith("/") and os.path.lexists(file):
        there, me = os.lstat(file), os.geteuid()  # the rules of `executors.places`
        if stat.S_ISCHR(there.st_mode) and there.st_uid == 0:
            return ""
        open_to_others = info.st_uid not in (0, me) or info.st_mode & 0o022
        if there.st_uid != me and (open_to_others or stat.S_ISLNK(there.st_mode)):
            return f"{file} belongs to another user; {stays}"
        return "" if os.access(file, os.W_OK) else f"you may not write {file}; {stays}"
    if not os.access(known, os.W_OK | os.X_OK):
        return f"you may not write in folder {known}; {stays}"
    return ""
