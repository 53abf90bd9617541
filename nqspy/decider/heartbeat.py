"""A page of memory that the daemon and a worker share: the worker notes which exit it is about to run, so
that the daemon sees what hangs and what died. The worker's code is not trusted: the page is read with
care."""

import ctypes
import mmap
import struct
import time
from contextlib import suppress

import msgspec
from msgspec import Struct

from nqspy.model.ids import Seq
from nqspy.userexit.call_stats import CallWatch, Subject

SIZE = 4096
_HEAD = struct.Struct("<qH")


class Call(Struct, frozen=True, array_like=True):
    """Site code at work: which hook of which exit (``load``: the file itself), about what, since when (ns of
    the monotonic clock); ``owner``: of the request or submission, empty: there is none."""

    exit: str
    hook: str
    subject: int | tuple[str, str] | None
    since: int
    owner: str = ""

    @property
    def seq(self) -> Seq | None:
        """The request it is about, None when it is about none."""
        return self.subject if isinstance(self.subject, int) else None

    def age(self) -> float:
        """Real seconds since it began."""
        return (time.monotonic_ns() - self.since) / 1e9


class Heartbeat(CallWatch):
    """The page. Made before the fork; the worker writes (`CallWatch`), the daemon reads."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, SIZE)

    @property
    def address(self) -> int:
        """Return where it lies, the same in both processes."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def enter(self, exit: str, hook: str, subject: Subject, owner: str = "") -> None:
        """Code of this exit is about to run."""
        now, about = time.monotonic_ns(), subject if isinstance(subject, int | tuple) else None
        call = _encode(Call(exit, hook, about, now, owner))
        self._map[_HEAD.size : _HEAD.size + len(call)] = call
        _HEAD.pack_into(self._map, 0, now, len(call))

    def leave(self) -> None:
        """Note that it has come back."""
        _HEAD.pack_into(self._map, 0, 0, 0)

    def read(self) -> Call | None:
        """Return which code runs; None: none, or the page makes no sense."""
        since, length = _HEAD.unpack_from(self._map, 0)
        with suppress(msgspec.DecodeError):
            return _decode(self._map[_HEAD.size : _HEAD.size + length]) if since > 0 else None
        return None


_encode, _decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Call).decode
