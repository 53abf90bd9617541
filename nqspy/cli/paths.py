"""Paths of ``-o``, ``-e`` and ``-s``, as this machine has them. Only loaded when one is given."""

import os
import stat

from nqspy.cli.fast import Failure
from nqspy.model.amounts import Wrong

_MARKS = ("%", "$PBS_", "${PBS_", "^array_index^")


def output_path(workdir: str, value: str) -> str:
    """The absolute path of an output; a folder that is there gets its final slash. Raises Wrong."""
    if not value:
        raise Wrong("the path is empty")
    path = os.path.join(workdir.replace("%", "%%"), value)
    plain = _plain(path)
    return path + "/" if plain and not path.endswith("/") and os.path.isdir(plain) else path


def _plain(path: str) -> str:
    """The path as it will be, empty where the daemon has a name to fill in."""
    rest = path.replace("%%", "")
    return "" if any(mark in rest for mark in _MARKS) else path.replace("%%", "%")


def check_shell(path: str, place: str) -> None:
    """Raise Failure, ``place`` before it, for a program that is not there or cannot be run."""
    if os.path.isdir(path) or not os.path.exists(path):
        raise Failure(f"{place}there is no program {path}; give the whole path of a shell, such as /bin/sh")
    if not os.access(path, os.X_OK):
        raise Failure(f"{place}{path} cannot be run by you; give the whole path of a shell, such as /bin/sh")


def objection(path: str) -> str:
    """The reason why a path of `output_path` cannot be written as things are; empty when it can be."""
    folder = os.path.dirname(path)
    known = _plain(folder)
    if not known:
        return ""
    stays = "the output would stay in the spool"
    try:
        info = os.stat(known)
    except OSError as error:
        return f"folder {known}: {error.strerror}; unless that changes {stays}"
    if not stat.S_ISDIR(info.st_mode):
        return f"{known} is no folder; {stays}"
    file = _plain(path)
    if file and not path.endswith("/") and os.path.lexists(file):
        there, me = os.lstat(file), os.geteuid()  # the rules of `executors.places`
        if stat.S_ISCHR(there.st_mode) and there.st_uid == 0:
            return ""
        open_to_others = info.st_uid not in (0, me) or info.st_mode & 0o022
        if there.st_uid != me and (open_to_others or stat.S_ISLNK(there.st_mode)):
            return f"{file} is somebody else's; {stays}"
        return "" if os.access(file, os.W_OK) else f"{file} may not be written by you; {stays}"
    if not os.access(known, os.W_OK | os.X_OK):
        return f"you may not write in folder {known}; {stays}"
    return ""
