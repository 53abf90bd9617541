"""Checks of the fields of messages, before a question or command is carried out."""

import threading
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from nqspy.model.commands import Submission
from nqspy.model.errors import Refusal
from nqspy.model.events import Change
from nqspy.model.registry import brought
from nqspy.rpc.wire import strings

IDS_MAX = 100_000
"""Most requests that one message may name."""
ITEM_WORDS_MAX = 100
WORDS_MAX = 1_000_000
"""Most texts in a submission (names of fields included): for each request, and for the rest."""
NUMBER_MAX = 2**53
LATEST = 253_370_764_800_000
"""The latest instant that a question may name: the first of January 9999."""

Word = Annotated[str, msgspec.Meta(max_length=4096)] | None
Flag = bool | None
Number = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)] | None
Ids = Annotated[list[Annotated[str, msgspec.Meta(max_length=300)]], msgspec.Meta(max_length=IDS_MAX)]
Criteria = Annotated[
    list[tuple[Annotated[str, msgspec.Meta(max_length=1)], Annotated[str, msgspec.Meta(max_length=4096)]]],
    msgspec.Meta(max_length=100),
]
"""Options of ``qselect``, each a letter with its value."""

_LIST = {"ids": Ids | None, "queue": Word, "user": Word, "state": Word, "ended": Flag, "history": Flag}
_LIST |= {"limit": Number, "since": Number}

FIELDS: dict[str, dict[str, Any]] = {
    "shutdown": {"mode": Word},
    "qmgr": {"script": str, "source": Word}
    | dict.fromkeys(("atomic", "check", "plan", "json", "file"), Flag),
    "qstat": _LIST
    | {"operands": Ids | None, "request": Word}
    | dict.fromkeys(("json", "mpp", "posix", "shared"), Flag)
    | dict.fromkeys(("letters", "format", "delimiter"), Word),
    "qselect": _LIST | {"criteria": Criteria | None, "letters": Word},
    "pbsnodes": {"operands": Ids | None} | dict.fromkeys(("letters", "format", "delimiter"), Word),
    "list_requests": _LIST | {"operands": Ids | None},
    "limits": {"hosts": Ids | None, "verbose": Flag},
    "wait": {"ids": Annotated[Ids, msgspec.Meta(min_length=1)], "any": Flag},
    "choose": {"operands": Ids | None, "name": Word, "state": Word, "user": Word, "ended": Flag},
    "graph": {"ids": Ids | None},
    "events": {"after": Number, "since": Number, "limit": Number, "wait": Flag, "request": Word},
    "cat": {"request": str, "offset": Number, "stream": Word, "follow": Flag, "attempt": Number},
    "report_night": {"date": Word, "group": Word, "final": Flag},
    "report_quota": {"shift": Word},
    "report_swf": {"fractions": Flag},
    "exits_trace": {"request": str},
}
"""Fields that a question reads, each with its type; None may stand for a missing field."""

_KINDS = {
    name: msgspec.defstruct(
        name,
        [
            (field, kind, None) if type(None) in getattr(kind, "__args__", ()) else (field, kind)
            for field, kind in kinds.items()
        ],
        kw_only=True,
    )
    for name, kinds in FIELDS.items()
}


def check_list(message: dict[str, Any]) -> None:
    """Raise Refusal if a command's ``items``, ``ids`` or ``changes`` are too many for one message."""
    for name in ("items", "ids", "changes"):
        listed = message.get(name)
        if isinstance(listed, msgspec.Raw):
            _check_undecoded(listed)
        elif isinstance(listed, list) and len(listed) > IDS_MAX:
            raise Refusal("too_many_requests", most=IDS_MAX, count=len(listed))


def check_changes(changes: Sequence[Change]) -> None:
    """Raise Refusal if changes set the ``lines`` of a shift: only qmgr makes these, with its commands."""
    for change in changes:
        if change.path.startswith("shift/") and brought(change).get("lines"):
            raise Refusal("lines_of_shift")


def _check_undecoded(items: msgspec.Raw) -> None:
    """Raise Refusal for too many undecoded items or words, before objects are made of them."""
    _counting.remaining = IDS_MAX
    try:
        msgspec.json.decode(items, type=list[_Counted])
    except msgspec.ValidationError:
        if _counting.remaining < 0:
            raise Refusal("too_many_requests", most=IDS_MAX, count="more") from None
        raise
    count = IDS_MAX - int(_counting.remaining)
    most = WORDS_MAX + ITEM_WORDS_MAX * count
    data = bytes(items)
    if data.count(b'"') // 2 > most and strings(data) > most:
        raise Refusal("too_many_words", count=count, most=most)


_counting = threading.local()


class _Counted(msgspec.Struct):
    """An item that is only counted."""

    def __post_init__(self) -> None:
        _counting.remaining -= 1
        if _counting.remaining < 0:
            raise ValueError("too many")


_ITEMS = msgspec.json.Decoder(tuple[Submission, ...])


def items_of(items: msgspec.Raw) -> tuple[Submission, ...]:
    """Return the requests of an undecoded submission. Raises msgspec.ValidationError."""
    try:
        return _ITEMS.decode(items)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(str(error).replace("`$", "`$.items", 1)) from None


def check(message: dict[str, Any]) -> None:
    """Raise Refusal if a field of a question is missing or of another kind."""
    kind = _KINDS.get(message["cmd"])
    if kind is None:
        return
    try:
        msgspec.convert(message, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise bad_message(message["cmd"], error) from None


def bad_message(cmd: str, error: Exception) -> Refusal:
    """Return the refusal of an unreadable message, at most 300 characters."""
    text = str(error)
    over = len(str(Refusal("bad_message", cmd=cmd, error=text))) - 300
    return Refusal("bad_message", cmd=cmd, error=text[: len(text) - max(0, over)])
