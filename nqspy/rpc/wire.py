"""JSON lines on the daemon's side: one object a line, ``{"v":1,"id":n,"cmd":"submit", ...}``."""

import re
from typing import Any

import msgspec

VERSION = 1
"""Version of the protocol; a message with another ``v`` is refused."""

MAX_LINE = 256 * 1024 * 1024
"""Bytes of the longest line: room for a script of 64 MiB with escapes."""

SMALL = 262_144
"""Bytes up to which a line is decoded at once; longer lines are decoded in part."""

MOST_VALUES = 400_000
"""Most values in a message that is no submission: a hundred thousand identifiers, and some more."""

_DECODER = msgspec.json.Decoder()


class WireError(Exception):
    """A line that is no message: ``text`` for people, ``code`` for programs, ``id`` if it could be read."""

    def __init__(self, text: str, code: str, id: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.code = code
        self.id = id


_SUBMISSION = re.compile(rb'"cmd"\s*:\s*"submit"')
_HEAD = 512
"""Bytes at the beginning of a line in which a submission has its command."""


class Lines:
    """Splits a client's bytes into lines. One over ``limit`` (no submission: ``usual``) becomes None."""

    __slots__ = ("_limit", "_line", "_skipping", "_usual")

    def __init__(self, limit: int = MAX_LINE, usual: int | None = None) -> None:
        self._limit = limit
        self._usual = limit if usual is None else min(usual, limit)
        self._line = bytearray()
        self._skipping = False

    @property
    def size(self) -> int:
        """Return the bytes stored of the last, incomplete line."""
        return len(self._line)

    @property
    def begun(self) -> bool:
        """True if an incomplete line is stored."""
        return bool(self._line) or self._skipping

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return the lines that ``data`` completes, without newlines; None for each that is too long."""
        found: list[bytes | None] = []
        *ended, rest = data.split(b"\n")
        for piece in ended:
            if self.begun or len(piece) > self._usual:
                self._add(piece, found)
                piece = bytes(self._line)
                self._line, self._skipping = bytearray(), False
            if piece:
                found.append(piece)
        self._add(rest, found)
        return found

    def _add(self, piece: bytes, found: list[bytes | None]) -> None:
        if self._skipping or not piece:
            return
        size, head = len(self._line) + len(piece), bytes(self._line[:_HEAD])
        small = size <= self._usual or _SUBMISSION.search(head + piece[: _HEAD - len(head)]) is not None
        if size > self._limit or not small:
            self._line, self._skipping = bytearray(), True
            found.append(None)
        else:
            self._line += piece


_NONE = msgspec.Raw(b"")


class _Submission(msgspec.Struct):
    """Fields of a long submission, undecoded; other fields are skipped."""

    v: msgspec.Raw = _NONE
    id: msgspec.Raw = _NONE
    cmd: msgspec.Raw = _NONE
    items: msgspec.Raw = _NONE
    key: msgspec.Raw = _NONE
    dry_run: msgspec.Raw = _NONE
    text: msgspec.Raw = _NONE


_SUBMISSION_DECODER = msgspec.json.Decoder(_Submission)
_STRING = re.compile(rb'"(?:[^"\\]+|\\.)*+"?', re.DOTALL)


def _decoded(line: bytes, usual: int) -> Any:
    """Return the decoded line. Objects may take 26 times the bytes of their text: of a long submission
    ``items`` stays a `msgspec.Raw`, and other long messages may have a limited number of values."""
    if len(line) <= SMALL:
        return _DECODER.decode(line)
    head = _SUBMISSION_DECODER.decode(line)
    if _short(head.cmd) != "submit":
        if len(line) > usual:
            raise WireError(f"a message other than a submission may have at most {usual} bytes", "too_big")
        marks = (
            b",",
            b"[",
            b"{",
        )  # about one for each value; those inside texts are subtracted if needed
        if sum(map(line.count, marks)) > MOST_VALUES and (
            strings(line) > MOST_VALUES or sum(map(_STRING.sub(b"", line).count, marks)) > MOST_VALUES
        ):
            number = _whole(_short(head.id))
            raise WireError(f"a message may hold at most {MOST_VALUES} values", "too_many", number)
        return _DECODER.decode(line)
    fields = {name: raw for name in head.__struct_fields__ if len(raw := getattr(head, name))}
    return {name: raw if name == "items" else _short(raw) for name, raw in fields.items()}


def _short(raw: msgspec.Raw) -> Any:
    if len(raw) > SMALL:
        raise WireError(f"not a JSON message: a field has more than {SMALL} bytes", "malformed")
    return _DECODER.decode(raw) if len(raw) else None


def _whole(value: object) -> int | None:
    """Return the value if it is a whole number, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def strings(data: bytes) -> int:
    """Return the number of strings in JSON data, names of fields included."""
    if b"\\\\" in data:
        data = data.replace(b"\\\\", b"")
    return (data.count(b'"') - data.count(b'\\"')) // 2


def read_message(line: bytes, usual: int = MAX_LINE) -> dict[str, Any]:
    """Return the message in a line. ``usual``: most bytes of one that is no submission. Raises WireError."""
    try:
        message = _decoded(line, usual)
    except (ValueError, RecursionError) as error:
        raise WireError(f"not a JSON message: {' '.join(str(error).split())[:200]}", "malformed") from None
    if not isinstance(message, dict):
        raise WireError('a message must be a JSON object such as {"v":1,"id":1,"cmd":"ping"}', "malformed")
    id = _whole(message.get("id"))
    if message.get("v") != VERSION or isinstance(message["v"], bool):
        text = f"this nqsd speaks version {VERSION} of the protocol, not {_shown(message.get('v'))}; "
        raise WireError(f"{text}use client and daemon of one installation", "version", id)
    if id is None:
        raise WireError(f'"id" must be a whole number, not {_shown(message.get("id"))}', "malformed")
    if not isinstance(cmd := message.get("cmd"), str):
        raise WireError(f'"cmd" must be the name of a command, not {_shown(cmd)}', "malformed", id)
    return message


def _shown(value: object) -> str:
    text = repr(value) if value is not None else "nothing"
    return text if len(text) <= 40 else text[:37] + "..."
