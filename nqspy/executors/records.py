"""The records of one attempt in its folder ``spool/SEQ.ATTEMPT`` (of an array ``SEQ_INDEX.ATTEMPT``), and how
they are written.

`claim`  its holder, once and for all: a shepherd's identity, or the word ``void``
`pid`    shepherd and job leader, and the job's cgroup
`exit`   how it ended and where its output goes; on the disk before it is reported
`done`   the whole story: how it ended and where its output lies
`kept`   its end is unknown: its output stays
`swept`  its shepherd was killed, and after that the last process of its job
`use`    what it had used at the last report, a file of its own

The first six are names of one file that grows by a line for each; a name appears when its line is complete.
(Each inode made and removed costs: up to 0.3 ms on an ext4 without a journal, which avoids inodes freed in
the last minute.) Standard library only: the shepherds use it as well as the daemon.
"""

import contextlib
import ctypes
import errno
import json
import os
from typing import Any

from nqspy.executors import proc
from nqspy.executors.proc import Descriptor, contents
from nqspy.model.keys import index_of, member, name_of, number_of

_fallocate = ctypes.CDLL(None, use_errno=True).fallocate
_fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_KEEP_SIZE = 1
PROTOCOL = 3
"""Version of orders, records and messages between shepherd and daemon. A daemon adopts shepherds of its own
version and of earlier ones; no release has any before this one."""
VOID = "void"
_ROOM = 16_384
"""Bytes allocated on the disk for the records of each running attempt, so that its end can be recorded."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Error numbers of a full or failing disk of the spool: no request causes them, and they pass."""
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems that cannot sync folders."""
AGAIN = 2.0
"""Real seconds that a shepherd waits after such an error; then it gives the attempt up for another one."""


class Gone(Exception):
    """An attempt's folder was removed: nothing more can be recorded."""


def folder_name(seq: int, attempt: int) -> str:
    """Return the name of an attempt's folder in the spool."""
    index = index_of(seq)
    return f"{seq}.{attempt}" if index is None else f"{number_of(seq)}_{index}.{attempt}"


def attempt_named(folder: str) -> tuple[int, int] | None:
    """Return the request and attempt that a folder's path or name means; None if it means none."""
    seq, dot, attempt = os.path.basename(folder).partition(".")
    number, mark, index = seq.partition("_")
    if not (dot and number.isdecimal() and attempt.isdecimal() and (index.isdecimal() or not mark)):
        return None
    return member(int(number), int(index)) if mark else int(number), int(attempt)


def shown_by(folder: str, *names: str) -> str:
    """Return the sentence about streams that stay in the spool: ``qcat 17 shows it``."""
    seq, _ = attempt_named(folder) or (0, 0)
    words = [f"qcat {'-e ' if name == 'stderr' else ''}{name_of(seq)}" for name in names]
    return f"{' and '.join(words)} {'show it' if len(words) > 1 else 'shows it'}"


def claim(folder: str, holder: str, version: int = 0, **more: Any) -> bool:
    """Claim an attempt for ``holder`` (``version``: its `PROTOCOL`, ``more``: see `claimed_with`); return
    False if another one has claimed it. Raises OSError."""
    draft = f"{folder}/claim.{os.getpid()}"
    with Descriptor(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)) as fd:
        line = "\n" + json.dumps({"protocol": version} | more) if version else ""
        os.write(fd, (holder + line).encode("ascii"))
    try:
        os.link(draft, f"{folder}/claim")
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)
    return True


def make_durable(folder: str) -> None:
    """Sync the claim to the disk: its file, its folder, and that folder's name in the spool. So an attempt
    without a claim has never begun, even after a power cut. Raises OSError."""
    for path in (f"{folder}/claim", folder, f"{folder}/.."):
        with Descriptor(os.open(path, os.O_RDONLY)) as fd:
            try:
                os.fsync(fd)
            except OSError as error:
                if error.errno not in _NO_SYNC:
                    raise


def reserve_room(folder: str) -> None:
    """Allocate disk room for the coming records (costly: not for short requests). Raises OSError."""
    with Descriptor(os.open(f"{folder}/claim", os.O_WRONLY)) as fd:
        if _fallocate(fd, _KEEP_SIZE, 0, _ROOM) != 0 and ctypes.get_errno() == errno.ENOSPC:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def holder(folder: str) -> str | None:
    """Return the holder of the claim (a shepherd's identity, or `VOID`); None if there is no claim."""
    with contextlib.suppress(FileNotFoundError):
        return contents(f"{folder}/claim").split(b"\n", 1)[0].decode("ascii", "replace")
    return None


def protocol(folder: str) -> int:
    """Return the protocol version of the shepherd that holds the claim. Raises OSError like `read`."""
    return _version(claimed_with(folder))


def claimed_with(folder: str) -> dict[str, Any]:
    """Return the fields of a shepherd's claim: ``protocol``, ``keeper`` (identity of the spawner that
    inherits its orphans), ``cage`` (kind and directory of the job's cgroup, if it was born in that),
    ``scratch`` (that folder, and its owner's uid); empty without a claim. Raises OSError like `read`."""
    return _claimed(_found(f"{folder}/claim") or b"")


def add(folder: str, name: str, record: dict[str, Any], *, durable: bool = False) -> None:
    """Add or replace a record of an attempt (``durable``: on the disk before it is named). Raises OSError."""
    with Descriptor(os.open(f"{folder}/claim", os.O_WRONLY | os.O_APPEND)) as fd:
        # A line end first: whatever a full disk cut off before stays a line of its own.
        proc.write(fd, b"\n" + json.dumps({name: record}).encode("ascii"))
        if durable:
            os.fsync(fd)
    with contextlib.suppress(FileExistsError):
        os.link(f"{folder}/claim", f"{folder}/{name}")


def read(folder: str, name: str, within: str = "") -> dict[str, Any] | None:
    """Return the record ``name``; None if there is none. ``within``: file in which to look, if not ``name``.
    Raises OSError if no descriptor is free."""
    data = _found(f"{folder}/{within or name}")
    return None if data is None else _record(data, name)


def story(folder: str) -> dict[str, Any] | None:
    """Return the ``done`` record of an attempt; None if there is none, or if a later version of nqspy wrote
    it. Raises OSError if no descriptor is free."""
    data = _found(f"{folder}/done")
    if data is None:
        return None
    return _record(data, "done") if _version(_claimed(data)) <= PROTOCOL else None


def _record(data: bytes, name: str) -> dict[str, Any] | None:
    """Return the last line with that name in the file of records."""
    mark = f'{{"{name}": '.encode("ascii")
    for line in reversed(data.split(b"\n")):
        if line.startswith(mark):
            with contextlib.suppress(ValueError):
                record: dict[str, Any] = json.loads(line)[name]
                return record
    return None


def _version(claimed: dict[str, Any]) -> int:
    version = claimed.get("protocol")
    return version if isinstance(version, int) else 1


def _claimed(data: bytes) -> dict[str, Any]:
    """Return the fields of a claim (`claimed_with`): the JSON object in the second line of the file of
    records; {} if that line is none."""
    try:
        found = json.loads(data.split(b"\n", 2)[1])
    except (ValueError, IndexError):
        return {}
    return found if isinstance(found, dict) else {}


def note_use(folder: str, used: list[int]) -> None:
    """Replace the file ``use``: CPU and wall time in ms, bytes of memory. Raises OSError."""
    with Descriptor(os.open(f"{folder}/use", os.O_WRONLY | os.O_CREAT, 0o600)) as fd:
        # One write of one length: a reader never sees half of two.
        os.write(fd, " ".join(f"{value:20d}" for value in used).encode("ascii"))


def noted_use(folder: str) -> list[int]:
    """Return what `note_use` wrote: CPU time (ms), wall time (ms), memory (bytes); [] if nothing."""
    with contextlib.suppress(OSError, ValueError):
        numbers = list(map(int, contents(f"{folder}/use").split()))
        return numbers if len(numbers) == 3 else []
    return []


def _found(path: str) -> bytes | None:
    """Return a file's contents; None if they cannot be read. Raises OSError if no descriptor is free."""
    try:
        return contents(path)
    except OSError as error:
        if error.errno in proc.SHORT:
            raise
        return None
