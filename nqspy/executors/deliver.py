"""Brings a finished job's output from the spool to where its owner wants it, as the owner.

Runs in the shepherd (or in one started for this alone, when the first was cut off), in the attempt's folder.
Doing it twice is harmless. Output that cannot be brought stays in the spool.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import stat
from typing import Any

from nqspy.executors import person
from nqspy.executors.places import Place

_CHUNK = 1 << 20
_PATIENCE = 2.0
"""Real seconds in which a reader of a fifo must take something: meanwhile nobody can end the request."""


def deliver(record: dict[str, Any]) -> dict[str, Any]:
    """Delivers both streams of an exit record; gives ``stdout`` and ``stderr`` (where they lie now),
    ``text`` (what went wrong) and ``kept`` (whether something had to stay)."""
    sources = {name: _open_source(name) for name in _streams(record)}
    try:
        if record["uid"] == os.geteuid():
            return _deliver_all(record, sources)
        result = _as_owner(record, sources)
        for name in sources:
            if name not in result["stayed"]:
                _remove(name)
        return result
    finally:
        for fd in sources.values():
            if fd is not None:
                os.close(fd)


def destination(output: dict[str, Any], home: str) -> str:
    """Path where one stream goes; a folder stands for the default name in it."""
    if output["keep"]:
        return os.path.join(home, output["name"])
    path = output["path"] or output["folder"]
    return os.path.join(path, output["name"]) if os.path.isdir(path) else str(path)


def open_target(path: str, flags: int = os.O_TRUNC) -> int:
    """Opens a path that the owner named, as the owner, and not by somebody else's link. Raises OSError."""
    place = Place(path)
    try:
        return place.open(flags)
    finally:
        place.close()


def _streams(record: dict[str, Any]) -> list[str]:
    return ["stdout"] if record["output"]["join"] else ["stdout", "stderr"]


def _open_source(name: str) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None


def _as_owner(record: dict[str, Any], sources: dict[str, int | None]) -> dict[str, Any]:
    """The same in a child that has become the owner."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            person.become(person.find(record))
            result = _deliver_all(record, sources)
        except BaseException as error:
            result = _all_stayed(record, sources, f"cannot deliver as {record['owner']}: {error}")
        os.write(writer, json.dumps(result).encode("ascii"))
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    if data:
        found: dict[str, Any] = json.loads(data)
        return found
    return _all_stayed(record, sources, "the delivery was interrupted")


def _all_stayed(record: dict[str, Any], sources: dict[str, int | None], text: str) -> dict[str, Any]:
    stayed = [name for name, fd in sources.items() if fd is not None]
    found = {name: os.path.join(record["spool"], name) for name in stayed}
    return {"stdout": None, "stderr": None, **found, "text": text, "kept": bool(stayed), "stayed": stayed}


def _deliver_all(record: dict[str, Any], sources: dict[str, int | None]) -> dict[str, Any]:
    os.umask(record["umask"])
    result: dict[str, Any] = {"stdout": None, "stderr": None, "stayed": []}
    problems = []
    for name, source in sources.items():
        target = destination(record["output"][name], record["home"])
        result[name] = target
        try:
            _deliver_one(record, name, source, target)
        except OSError as error:
            result["stayed"].append(name)
            result[name] = os.path.join(record["spool"], name)
            problems.append(f"cannot write {target}: {error.strerror}; the output stays in {result[name]}")
    if record["output"]["join"]:
        result["stderr"] = result["stdout"]
    return result | {"text": "; ".join(problems), "kept": bool(result["stayed"])}


def _deliver_one(record: dict[str, Any], name: str, source: int | None, target: str) -> None:
    if record["output"][name]["direct"]:
        last = "stdout" if record["output"]["join"] else "stderr"
        if record["line"] and name == last:
            with contextlib.suppress(PermissionError, TimeoutError):  # the record says it too
                _append(target, record["line"])
        return
    if source is None:
        return  # it has been delivered before the cut
    if not _renamed(source, name, target):
        _copy(source, target)
        _remove(name)


def _renamed(source: int, name: str, target: str) -> bool:
    """Moves a file of the owner's own, where a plain file or nothing is. Raises OSError when the place
    cannot be reached."""
    if os.fstat(source).st_uid != os.geteuid():
        return False
    place = Place(target)
    try:
        kind = place.kind()
        if kind is not None and not stat.S_ISREG(kind):
            return False
        os.rename(name, place.name, dst_dir_fd=place.folder)
    except OSError:
        return False  # another file system, or a folder that takes no new names: copied instead
    finally:
        place.close()
    return True


def _copy(source: int, target: str) -> None:
    fd = open_target(target)
    try:
        os.lseek(source, 0, os.SEEK_SET)
        while data := os.read(source, _CHUNK):
            _write(fd, data)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            os.fsync(fd)
    finally:
        os.close(fd)


def _write(fd: int, data: bytes) -> None:
    """Writes all of it. Raises OSError, TimeoutError when it is a fifo (or the like) that nobody reads."""
    os.set_blocking(fd, False)
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    while data:
        if not poll.poll(_PATIENCE * 1000):
            raise TimeoutError(errno.ETIMEDOUT, "nobody reads it")
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(fd, data) :]


def _append(target: str, line: str) -> None:
    fd = open_target(target, os.O_APPEND)
    try:
        _write(fd, line.encode("utf-8", "replace"))
    finally:
        os.close(fd)


def _remove(name: str) -> None:
    # In the owner's child the spool is out of reach: the shepherd removes it there.
    try:
        os.unlink(name)
    except OSError:
        pass
