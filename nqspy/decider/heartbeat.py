"""A page of shared memory in which the worker notes the exit that it is about to run, so that the daemon sees
what hangs or died. The worker is not trusted: whatever bytes it writes, `Heartbeat.read` returns a call or
None."""

import ctypes
import mmap
import struct
import time

from msgspec import Struct

from nqspy.model.ids import Seq
from nqspy.userexit.call_stats import CallWatch, Subject

SIZE = 4096
_HEAD = struct.Struct("<qH")
_LONGEST = 2048


class Call(Struct, frozen=True):
    """A running call of site code: ``hook`` of ``exit`` (``load``: the file itself), about ``subject``
    (request, or owner and group), since when (ns of the monotonic clock). ``owner``: of the request or
    submission, or empty."""

    exit: str
    hook: str
    subject: int | tuple[str, str] | None
    since: int
    owner: str = ""

    @property
    def seq(self) -> Seq | None:
        """Number of the request that the call is about; None: it is about none."""
        return self.subject if isinstance(self.subject, int) else None

    def age(self) -> float:
        """Return the real seconds since the call began."""
        return (time.monotonic_ns() - self.since) / 1e9


class Heartbeat(CallWatch):
    """Shared page that shows a worker's running call, made before the fork; the worker writes it
    (`CallWatch`), the daemon reads it."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, SIZE)

    @property
    def address(self) -> int:
        """Return the page's address, the same in both processes."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def enter(self, exit: str, hook: str, subject: Subject, owner: str = "") -> None:
        """Note that code of this exit is about to run, and on which subject and owner; long names are cut."""
        about = "\1".join(subject) if isinstance(subject, tuple) else "" if subject is None else str(subject)
        text = f"{exit}\0{hook}\0{about}\0{owner}".encode("utf-8", "replace")[:_LONGEST]
        self._map[_HEAD.size : _HEAD.size + len(text)] = text
        _HEAD.pack_into(self._map, 0, time.monotonic_ns(), len(text))

    def leave(self) -> None:
        """Note that the exit's code has returned: no call runs."""
        _HEAD.pack_into(self._map, 0, 0, 0)

    def read(self) -> Call | None:
        """Return the call that runs; None if none does, or the page is not readable."""
        since, length = _HEAD.unpack_from(self._map, 0)
        if since <= 0 or length > _LONGEST:
            return None
        text = bytes(self._map[_HEAD.size : _HEAD.size + length])
        words = text.decode("utf-8", "replace").split("\0")
        if len(words) != 4:
            return None
        exit, hook, about, owner = words
        who, mark, group = about.partition("\1")
        subject: int | tuple[str, str] | None = (who, group) if mark else None
        if about.isascii() and about.isdigit() and len(about) < 19:
            subject = int(about)
        return Call(exit, hook, subject, since, owner)
