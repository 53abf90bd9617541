"""The answers on the wire, byte for byte: a JSON object and a newline each. Order and spacing of the text
form are part of the protocol: lean clients find ``"exit":``, ``"out":"`` and ``"err":"`` by ``str.find``."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from nqspy.model.errors import NqspyError, as_refusal

_ENCODER = msgspec.json.Encoder()


def result_answer(id: int, result: Any) -> bytes:
    """Return the answer ``{"id":n,"ok":true,"result":...}``; ``result``: whatever msgspec can encode."""
    return b'{"id":%d,"ok":true,"result":%b}\n' % (id, _ENCODER.encode(result))


def error_answer(id: int | None, text: str, code: str = "refused", status: int = 1) -> bytes:
    """Return the answer ``{"id":n,"ok":false,"error":{"text":..,"code":..,"status":..}}``; ``id`` None: null,
    because the message had no id that could be read."""
    number = b"null" if id is None else b"%d" % id
    fields = (number, _text(plain(text)), _text(code), status)
    return b'{"id":%b,"ok":false,"error":{"text":%b,"code":%b,"status":%d}}\n' % fields


_QUIET = bytes([*range(9), *range(11, 32), 127])
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Return a text with its control characters (except tab and newline), and Unicode's marks of direction
    and line separators, written as JSON escapes that people see."""
    if text.isascii():
        data = text.encode()
        if len(data.translate(None, _QUIET)) == len(data):
            return text
    return _CONTROL.sub(lambda hit: f"\\u{ord(hit[0]):04x}", text)


def output_answer(id: int, out: str, **more: Any) -> bytes:
    """Return an answer in text form with a job's own output as Latin-1 text, one character for each byte."""
    return _text_form(id, 0, out, "", more)


def text_answer(id: int, status: int, out: str = "", err: str = "", **more: Any) -> bytes:
    """Return an answer in text form: ``ok`` is true for status 0; ``more``: further fields. Control
    characters are made visible (`plain`)."""
    return _text_form(id, status, plain(out), plain(err), more)


def escaped(text: str) -> bytes:
    """Return a part of a text as JSON without quotes, for the ``out`` of an answer."""
    return _text(plain(text))[1:-1]


def pieces_answer(
    id: int, status: int, pieces: Iterable[bytes], err: str = "", shared: Iterable[bytes] | None = None
) -> bytes:
    """Return a `text_answer`; its text is all ``pieces`` together, each made by `escaped`. ``shared``:
    escaped texts that stand in the answer once; pieces name one by the `reference` of its place (from 0)."""
    head = b'{"id":%d,"ok":%b,"exit":%d,"out":"' % (id, b"true" if status == 0 else b"false", status)
    rest = b"" if shared is None else b',"shared":[%b]' % b",".join([b'"%b"' % each for each in shared])
    return b"".join((head, *pieces, b'","err":%b%b}\n' % (_text(plain(err)), rest)))


def reference(number: int) -> bytes:
    """Return the mark that stands in a piece for the shared text at this place (from 0): characters that no
    other text has (`plain`)."""
    return b"\\u0001%d\\u0001" % number


def list_answer(id: int, pieces: Iterable[bytes]) -> bytes:
    """Return the `result_answer` for a list; each piece is JSON of one element, or several with commas."""
    return b'{"id":%d,"ok":true,"result":[%b]}\n' % (id, b",".join(pieces))


def _text_form(id: int, status: int, out: str, err: str, more: dict[str, Any]) -> bytes:
    rest = b"".join(b",%b:%b" % (_text(name), _ENCODER.encode(value)) for name, value in more.items())
    head = b'{"id":%d,"ok":%b,"exit":%d' % (id, b"true" if status == 0 else b"false", status)
    return b'%b,"out":%b,"err":%b%b}\n' % (head, _text(out), _text(err), rest)


def answer_of_error(id: int, error: NqspyError) -> bytes:
    """Return the answer with an exception's text, code and status."""
    refusal = as_refusal(error)
    return error_answer(id, str(refusal), refusal.code, refusal.status)


def _text(text: str) -> bytes:
    """Return a text as JSON; lone surrogates (undecodable bytes of a file name) become ``?``."""
    try:
        return _ENCODER.encode(text)
    except UnicodeEncodeError:
        return _ENCODER.encode(text.encode("utf-8", "replace").decode())
