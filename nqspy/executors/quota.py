"""A request whose output would fill the disk of the spool is ended before it does: the largest first."""

from __future__ import annotations

import os

_RESERVE = 64 << 20
"""Bytes of the disk that output may not take, or a quarter of a disk that is smaller than four times that."""
_NOTABLE = 1 << 20
_IDLE = 60.0
_FASTEST = 0.02


class Spool:
    """What a request's output takes of the disk of the spool. ``streams``: the open files of its output."""

    def __init__(self, streams: list[int]) -> None:
        self._streams = streams
        self._size = 0
        self._seen: float | None = None
        self._next = 0.0

    def due(self, now: float) -> float:
        """Real seconds until it must be looked at, sooner than else where it grows fast."""
        return _IDLE if self._seen is None else max(0.0, self._next - now)

    def passed(self, now: float) -> tuple[str, str] | None:
        """End reason and sentence when the disk is nearly full and this request's output takes more of it
        than is left: so the greatest writer goes first, and who writes little stays."""
        size, held = _sizes(self._streams)
        if size < _NOTABLE:
            self._size, self._seen, self._next = size, now, now + _IDLE
            return None
        disk = os.fstatvfs(self._streams[0])
        free = disk.f_bavail * disk.f_frsize
        reserve = min(_RESERVE, disk.f_blocks * disk.f_frsize // 4)
        if size - held > free:
            return "file_limit", (
                f"its output is {size} bytes long, the disk of the spool has {free} bytes left"
            )
        if free < reserve and size > free:
            return "file_limit", (
                f"the disk of the spool is nearly full: {free} bytes are left, its output takes {size}"
            )
        speed = (size - self._size) / max(now - (self._seen or now), _FASTEST)
        self._next = now + (max(_FASTEST, (free - reserve) / speed / 2) if speed > 0 else _IDLE)
        self._size, self._seen = size, now
        return None


def _sizes(streams: list[int]) -> tuple[int, int]:
    """What these files count as, and what they hold of the disk. A file counts by its length: one with holes
    would fill the disk as soon as somebody wrote it out."""
    seen = [os.fstat(fd) for fd in streams]
    return sum(max(each.st_size, each.st_blocks * 512) for each in seen), sum(
        each.st_blocks * 512 for each in seen
    )
