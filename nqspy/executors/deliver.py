"""Delivers a finished job's output from the spool to its place, as the owner; to repeat it is harmless. An
own file is renamed at once; all else is done by a child, with a deadline. Output that cannot be delivered
stays in the spool. Runs in the shepherd, in the attempt's folder."""

import contextlib
import errno
import json
import os
import select
import stat
from collections.abc import Iterator
from typing import Any

from nqspy.executors import deadline, forks, person, records, scratch
from nqspy.executors.places import SpoolPlace
from nqspy.executors.proc import Descriptor

_CHUNK = 1 << 20
_READ_SECONDS = 2.0
"""Real seconds in which a reader of a fifo must read something."""
Sources = dict[str, int | None]
"""Streams to deliver, with the open file of each in the spool; None: no such file."""


def deliver(record: dict[str, Any], wait: deadline.Wait) -> dict[str, Any]:
    """Deliver the output as an ``exit`` record says. Return the path at which each stream now lies, with
    ``text``: why some stay in the spool (empty: none does), and ``kept``: True if one stays there."""
    sources: Sources = dict.fromkeys(_streams(record))
    with contextlib.ExitStack() as opened:
        for name in sources:
            with contextlib.suppress(FileNotFoundError):
                source = Descriptor(os.open(name, os.O_RDONLY | os.O_NOFOLLOW))
                sources[name] = opened.enter_context(source)
        own, path = record["uid"] == os.geteuid(), record.get("scratch")
        done = _at_once(record, sources) if own else {}
        rest = {name: fd for name, fd in sources.items() if name not in done}
        if rest or not (own and (not path or scratch.removed(path))):
            done |= _by_child(record, rest, wait)
        for name in rest:
            if not done[name]["why"]:
                with contextlib.suppress(OSError):
                    os.unlink(name)
    found: dict[str, Any] = {name: each["at"] for name, each in done.items()}
    if record["output"]["join"]:
        found["stderr"] = found["stdout"]
    stayed = {name: each for name, each in done.items() if each["why"]}
    return found | {"text": _why(record, stayed) if stayed else "", "kept": bool(stayed)}


def size_of(record: dict[str, Any]) -> int:
    """Return the bytes that the spooled streams have on the disk, not the files' lengths."""
    found = 0
    for name in _streams(record):
        with contextlib.suppress(OSError):
            found += os.stat(name).st_blocks * 512
    return found


def destination(output: dict[str, Any], home: str) -> str:
    """Return the path to which a stream goes; ``output``: its part of the order. Without a path that is a
    default name in the folder of submission (``keep``: in ``home``); in a given folder it is a default name,
    too. A rerun may add the attempt's number."""
    path = output["path"]
    if output["keep"] or not path:
        path = os.path.join(home if output["keep"] else output["folder"], output["name"])
    elif os.path.isdir(path):
        path = os.path.join(path, output.get("inside") or output["name"])
    elif not _shares(output):
        path = f"{path}{output.get('clash', '')}"
    numbered = output.get("rerun") == "number" and _written_before(output, path)
    return f"{path}.{output['attempt']}" if numbered else str(path)


def join(output: dict[str, Any]) -> None:
    """Join both streams in an order's output if they have the same path: else one would replace the other."""
    ways = [output["stdout"], output["stderr"]]
    named = [os.path.normpath(each["path"]) for each in ways if each["path"] and not each["keep"]]
    one = len(named) == 2 and named[0] == named[1] and not ways[0]["path"].endswith("/")
    output["join"] = output["join"] or (one and not os.path.isdir(named[0]))


def _shares(output: dict[str, Any]) -> bool:
    """True if a stream goes to the end of a file that another request writes too (`clash`)."""
    return bool(output.get("clash") == "append")


def _written_before(output: dict[str, Any], path: str) -> bool:
    """True if an earlier attempt may have written the stream to that path, which is a regular file or
    missing. ``former`` in ``output``: paths that earlier attempts wrote; ``[""]``: unknown ones."""
    former = output.get("former", ())
    written = bool(former) and (output["direct"] or path in former or former == [""])
    return written and (os.path.isfile(path) or not os.path.exists(path))


def _mark(output: dict[str, Any], path: str) -> str:
    """Return the line above an output that is appended to an earlier attempt's; "" if none is needed."""
    appended = output.get("rerun") == "append" and _written_before(output, path)
    return f"{output['mark']}\n" if appended else ""


def open_in_place(output: dict[str, Any], home: str) -> int:
    """Open the file of a stream that the job itself writes; return its descriptor. Raises OSError."""
    path = destination(output, home)
    mark = _mark(output, path)
    try:
        if not mark:
            return open_target(path, os.O_APPEND if _shares(output) else os.O_TRUNC | os.O_APPEND)
        fd, path = _open_again(output, path)
        if os.fstat(fd).st_size:  # programs take an error file that is not empty for a failure
            _write_mark(fd, mark)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    return fd


def _open_again(output: dict[str, Any], path: str) -> tuple[int, str]:
    """Open a file to append to it; return descriptor and path. In a folder where other users may create files
    it is a new file ``PATH.ATTEMPT``."""
    try:
        return open_target(path, os.O_APPEND), path
    except PermissionError:
        path = f"{path}.{output['attempt']}"
        return open_target(path, os.O_TRUNC | os.O_APPEND), path


def _write_mark(fd: int, mark: str) -> None:
    """Write the separating line (`_mark`) into a file, on a line of its own; only into regular files."""
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode):
        last = _read_at(fd, max(0, found.st_size - 1), 1)
        os.write(fd, (b"" if last in (b"\n", b"") else b"\n") + mark.encode("utf-8", "replace"))


def _read_at(fd: int, at: int, size: int) -> bytes:
    """Read from a file open for writing; return b"" if its owner may not read it or it has no more."""
    try:
        reader = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    except OSError:
        return b""
    with Descriptor(reader):
        return os.pread(reader, size, at)


def open_target(path: str, flags: int = os.O_TRUNC) -> int:
    """Open a path that the owner named for writing, as the owner; return its descriptor. Another user's
    symbolic link is refused (`places`). Raises OSError."""
    with contextlib.closing(SpoolPlace(path)) as place:
        return place.open(flags)


def append_line(target: str, line: str) -> None:
    """Append a line to a file that the owner named. Raises OSError."""
    with Descriptor(open_target(target, os.O_APPEND)) as fd:
        _write(fd, line.encode("utf-8", "replace"))


def _streams(record: dict[str, Any]) -> list[str]:
    log = ["joblog"] if "joblog" in record["output"] else []
    return ["stdout", *log] if record["output"]["join"] else ["stdout", "stderr", *log]


def _why(record: dict[str, Any], stayed: dict[str, dict[str, str]]) -> str:
    """Return why these streams stay in the spool: each cause once, with all places that it concerns."""
    causes: dict[str, list[str]] = {}
    for each in stayed.values():
        causes.setdefault(each["why"], []).append(each.get("target", ""))
    parts = [
        f"cannot write {' and '.join(dict.fromkeys(to))}: {why}" if any(to) else why
        for why, to in causes.items()
    ]
    [first, *others] = stayed
    place = record["spool"] if others else stayed[first]["at"]
    shown = records.shown_by(record["spool"], *stayed)
    return f"{'; '.join(parts)}; the output stays in {place} ({shown})"


def _at_once(record: dict[str, Any], sources: Sources) -> dict[str, dict[str, str]]:
    """Deliver the streams that need only a rename or nothing; return the results of these streams only:
    ``at`` (path of the output) and ``why`` (empty)."""
    done = {}
    os.umask(record["umask"])
    for name, source in sources.items():
        target = destination(record["output"][name], record["home"])
        if record["output"][name]["direct"]:
            moved = not _lines_for(record, name)
        else:
            added = _shares(record["output"][name]) or _mark(record["output"][name], target)
            moved = source is None or (not added and _renamed(source, name, target))
        if moved:
            done[name] = {"at": target, "why": ""}
    os.umask(0)
    return done


def _renamed(source: int, name: str, target: str) -> bool:
    """Rename a spooled stream to its target; return False if it must be copied instead."""
    if os.fstat(source).st_uid != os.geteuid():
        return False
    try:
        with contextlib.closing(SpoolPlace(target)) as place:
            kind = place.kind()
            if kind is not None and not stat.S_ISREG(kind):
                return False
            os.rename(name, place.name, dst_dir_fd=place.folder)
    except OSError:
        return False  # a wrong path, another file system, a folder that takes no new names: copied instead
    return True


_INTERRUPTED = "the delivery was interrupted"
_ABSENT = "absent"
"""Key of a result for all streams: the user database has no entry for the owner."""
_SHORTEST, _PAUSE, _LONGEST = 1.0, 60.0, 86_400.0
"""Real seconds: shortest and longest pause between two searches for the owner, and most in all."""


def _by_child(record: dict[str, Any], sources: Sources, wait: deadline.Wait) -> dict[str, dict[str, str]]:
    """Deliver as the owner, in a child; return the result by stream. If the child was killed, a second one
    goes on; while the user database has no entry for the owner, try again (for a day at most)."""
    pause = waited = 0.0
    done, why = _in_child(record, sources, wait)
    while absent := done.pop(_ABSENT, None):
        why, pause = absent["why"], min(2 * pause or _SHORTEST, _PAUSE)
        if waited >= _LONGEST or not wait.pause(pause, "" if waited else why):
            break
        waited += pause
        done, why = _in_child(record, sources, wait)
    remaining = {name: source for name, source in sources.items() if name not in done}
    if remaining and why == _INTERRUPTED:
        more, why = _in_child(record | {"once_more": True}, remaining, wait)
        done |= more
    return _stayed(record, sources, why) | done


def _in_child(
    record: dict[str, Any], sources: Sources, wait: deadline.Wait
) -> tuple[dict[str, dict[str, str]], str]:
    """Deliver in a child; return the results that it reports, by stream, and why it reports no more."""
    reader, writer = os.pipe()
    parent = os.getpid()
    with Descriptor(reader):
        try:
            pid = forks.begin(lambda: _deliver_all(record, sources, writer, parent))
        except OSError as error:
            return {}, f"cannot deliver: {error.strerror}"
        finally:
            os.close(writer)
        data, ended = wait.read(reader)
    why = _INTERRUPTED
    if ended:
        os.waitpid(pid, 0)
    else:
        deadline.end(pid)
        why = f"the delivery {'took too long and was' if wait.kill is None else 'was'} ended"
    done: dict[str, dict[str, str]] = {}
    for line in data.split(b"\n")[:-1]:
        done |= json.loads(line)
    return done, why


def _deliver_all(record: dict[str, Any], sources: Sources, writer: int, parent: int) -> None:
    """Deliver in the child, which is killed if the shepherd ends: another shepherd delivers then."""

    def report(done: dict[str, dict[str, str]]) -> None:
        os.write(writer, json.dumps(done).encode("ascii") + b"\n")

    try:
        person.become(person.find(record))
        forks.die_with_parent(parent)
    except person.NotFound as error:
        report({_ABSENT: {"why": str(error)}})
    except BaseException as error:
        report(_stayed(record, sources, f"cannot deliver as {record['owner']}: {error}"))
    else:
        os.umask(record["umask"])
        for name, source in sources.items():
            report({name: _deliver_one(record, name, source)})
        if record.get("scratch"):
            scratch.remove(record["scratch"])


def _stayed(record: dict[str, Any], sources: Sources, why: str) -> dict[str, dict[str, str]]:
    """Return the results for undelivered streams: each with its path ``at`` and the reason ``why``. One that
    is not in the spool was written in place: its reason is empty."""
    found = {}
    for name, source in sources.items():
        output = record["output"][name]
        at = output["path"]
        if source is not None:
            at = os.path.join(record["spool"], name)
        elif output["keep"] or not at:
            at = os.path.join(record["home"] if output["keep"] else output["folder"], output["name"])
        found[name] = {"at": at, "why": why if source is not None else ""}
    return found


def _deliver_one(record: dict[str, Any], name: str, source: int | None) -> dict[str, str]:
    output = record["output"][name]
    at = target = destination(output, record["home"])
    try:
        if output["direct"]:
            if lines := _lines_for(record, name):
                with contextlib.suppress(OSError):  # the record has it, too
                    append_line(target, lines)
        elif source is not None and (mark := _mark(output, target)):
            again, at = _open_again(output, target)
            with Descriptor(again) as fd:
                _append(fd, source, mark, once_more=bool(record.get("once_more")))
        elif source is not None:
            _copy(source, target, os.O_APPEND if _shares(output) else os.O_TRUNC)
    except OSError as error:
        at = os.path.join(record["spool"], name)
        return {"at": at, "why": str(error.strerror), "target": target}
    return {"at": at, "why": ""}


def _append(fd: int, source: int, mark: str, *, once_more: bool) -> None:
    """Write an attempt's output behind an earlier attempt's; ``once_more``: only the part that is missing."""
    size = os.fstat(source).st_size
    if not size and not os.fstat(fd).st_size:
        return
    begin = _there_already(fd, source, mark.encode("utf-8", "replace")) if once_more else None
    if begin is None:
        begin = 0
        _write_mark(fd, mark)
    while begin < size and (data := os.pread(source, _CHUNK, begin)):
        _write(fd, data)
        begin += len(data)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.fsync(fd)


def _there_already(fd: int, source: int, mark: bytes) -> int | None:
    """Return how many bytes of a source are already in the target behind its mark; None without the mark."""
    at, end = _place_of(fd, mark), os.fstat(fd).st_size
    if at is None:
        return None
    found = 0
    while found < end - at:
        there, ours = _read_at(fd, at + found, _CHUNK), os.pread(source, _CHUNK, found)
        pairs = enumerate(zip(there, ours, strict=False))
        least = min(len(there), len(ours))
        same = least if there[:least] == ours[:least] else next(n for n, (a, b) in pairs if a != b)
        found += same
        if not same or same < len(there):
            break
    return found


def _place_of(fd: int, mark: bytes) -> int | None:
    """Return the offset just behind the last line in a file that is this mark; None if there is none."""
    at, found = 0, None
    while data := _read_at(fd, at, _CHUNK):
        if (here := data.rfind(mark)) >= 0:
            found = at + here + len(mark)
        if len(data) < _CHUNK:
            break
        at += len(data) - len(mark)
    return found


def _lines_for(record: dict[str, Any], name: str) -> str:
    """Return lines to add to an output in place: unwritten ones of `qmsg`, and one about a limit."""
    about_limit = name == ("stdout" if record["output"]["join"] else "stderr")
    lines: str = record.get("said", {}).get(name, "")
    return lines + (record["line"] if about_limit else "")


def _copy(source: int, target: str, flags: int) -> None:
    with Descriptor(open_target(target, flags)) as fd:
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and flags == os.O_TRUNC:
            for begin, end in regions(source):  # holes stay holes, and the length is that of the source
                while begin < end and (data := os.pread(source, min(_CHUNK, end - begin), begin)):
                    begin += os.pwrite(fd, data, begin)
            os.ftruncate(fd, os.fstat(source).st_size)
            os.fsync(fd)
        elif found.st_rdev != os.stat(os.devnull).st_rdev:
            os.lseek(source, 0, os.SEEK_SET)
            while data := os.read(source, _CHUNK):
                _write(fd, data)


def regions(fd: int) -> Iterator[tuple[int, int]]:
    """Yield the regions (begin, end) of a file that hold data, not holes."""
    end, size = 0, os.fstat(fd).st_size
    while end < size:
        try:
            begin = os.lseek(fd, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # only a hole remains
            raise
        end = os.lseek(fd, begin, os.SEEK_HOLE)
        yield begin, end


def _write(fd: int, data: bytes) -> None:
    """Write all bytes. Raises OSError; TimeoutError if a fifo (or the like) has no reader for 2 s."""
    os.set_blocking(fd, False)
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    while data:
        if not poll.poll(_READ_SECONDS * 1000):
            raise TimeoutError(errno.ETIMEDOUT, "no program reads it")
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(fd, data) :]
