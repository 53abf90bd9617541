"""Rules that read commands on requests, the daemon, shifts and displays."""

import re
from datetime import datetime
from typing import Any, Literal, cast

from nqspy.model import commands, units
from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant
from nqspy.model.tree import Declared
from nqspy.qmgr import values
from nqspy.qmgr.attributes import MODIFY, MODIFY_PROCESS, words_of
from nqspy.qmgr.cursor import Cursor, Keyword, keywords
from nqspy.qmgr.dates import is_absolute, parse_date
from nqspy.qmgr.grammar import AHEAD, FARTHEST, NAMED, TREE, Form
from nqspy.qmgr.lexer import Token
from nqspy.qmgr.rules import ClientWord, object_name

_ID = "a request identifier like 17 or 17.ymp"
_PLACES = keywords("first", "next", "now", "system")
_PRIME = keywords("prime")
_MODES = keywords("leave", "drain", "requeue")
_UNTIL = keywords("until")
_NEXT = keywords("next") | {"--next": Keyword.spelt("--next", "next")}
_TIME_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_TIME = "expected HH:MM from 00:00 to 23:59, or a date with its zone like 2026-03-02T08:30:00+01:00"
_SECONDS = Declared("time", 60_000, "seconds until KILL", low=0, name="the time")


def request_ids(cursor: Cursor) -> tuple[str, ...]:
    """Read and return identifiers, with or without parentheses and commas, each once."""
    cursor.skip("=")
    found: list[str] = []
    while not found or (_starts_id(cursor.peek()) or cursor.peek().kind in ("(", ",")):
        cursor.skip(",")
        for token in cursor.words(_ID):
            if not _starts_id(token):
                raise cursor.fail(_ID, token=token)
            found.append(token.text)
    return tuple(dict.fromkeys(found))


def _starts_id(token: Token) -> bool:
    return token.kind == "word" and token.text[:1].isdigit()


def on_requests(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``hold|release|delete|rerun|suspend|resume|abort request ID ...``."""
    ids = request_ids(cursor)
    verb = form.option
    if verb in ("suspend", "resume"):
        return commands.SuspendRequests(ids, resume=verb == "resume")
    if verb in ("delete", "abort"):
        return commands.Delete(ids, kill=verb == "abort")
    if verb == "rerun":
        return commands.RerunRequests(ids)
    return commands.HoldRequests(ids) if verb == "hold" else commands.ReleaseRequests(ids)


def move(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``move request = (ID, ...) QUEUE`` or ``move queue FROM TO``."""
    source = object_name(cursor, "queue") if form.option == "queue" else None
    ids = request_ids(cursor) if source is None else ()
    return commands.MoveRequests(ids, object_name(cursor, "queue"), source)


def modify(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``modify request ID ... ATTRIBUTE=VALUE ...``; keys of the changes are paths below `Spec`."""
    ids = request_ids(cursor)
    words = words_of(MODIFY, but="mpp_time_limit") | words_of(("per_process",))
    found: dict[str, Any] = {}
    for _ in cursor.more():
        name, table = cursor.keyword(words), MODIFY
        if name == "per_process":
            table = MODIFY_PROCESS
            name = cursor.keyword(words_of(table))
        found[table[name].path] = _asked(cursor, table[name].info)
    return commands.ModifyRequest(ids, found)


def _asked(cursor: Cursor, info: Declared) -> Any:
    """Read the value that an attribute is to have: ``unlimited`` is a value, ``none`` removes it."""
    if info.unit == "flag":
        return values.read(cursor, info)
    cursor.skip("=")
    if info.unit == "amounts":
        if values.is_word(cursor.peek(), "none"):
            cursor.word(values.what(info))
            return []
        pairs = (text.partition("=") for text in values.read_amounts(cursor, values.what(info)))
        return [(name, int(count)) for name, _, count in pairs]
    start = cursor.peek()
    tokens = cursor.words(values.what(info))
    if info.unit == "names":
        texts = [token.text for token in tokens]  # (nfs, licence) or nfs+licence
        nothing = [text.lower() for text in texts] == ["none"]
        return [] if nothing else list(dict.fromkeys(name for text in texts for name in text.split("+")))
    if len(tokens) != 1:
        raise cursor.bad(f"{info.name} needs one value here, not {len(tokens)}", start)
    [token] = tokens
    if values.is_word(token, "none") and info.name not in ("name", "pe_limit", "queue"):
        return None
    if info.name == "eligible":
        at = cursor.value(lambda text: parse_date(text, 0, "UTC"), token)
        return at if is_absolute(token.text) else token.text  # others depend on the site's clock and zone
    if (info.unit in ("time", "size") or info.name == "process_limit") and units.is_unlimited(token.text):
        return units.UNLIMITED
    value = values.convert(cursor, info, token)
    if value is None or (info.name == "pe_limit" and value < 1):
        wanted = "a whole number from 1 upward" if info.name == "pe_limit" else values.what(info)
        raise cursor.bad(f"{token.text!r} is not a valid {info.name}; expected {wanted}", token)
    return value


def prime(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``set request ID ... prime``."""
    ids = request_ids(cursor)
    cursor.keyword(_PRIME)
    return commands.ScheduleRequest(ids, "prime")


def schedule(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``schedule request ID ... first|next|now|system``."""
    ids = request_ids(cursor)
    place = cast(Literal["first", "next", "now", "system"], cursor.keyword(_PLACES))
    return commands.ScheduleRequest(ids, place)


def abort_queue(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``abort queue QUEUE [SECONDS]``."""
    name = object_name(cursor, "queue")
    if cursor.done():
        return commands.AbortQueue(name)
    return commands.AbortQueue(name, -(-int(values.read(cursor, _SECONDS)) // 1000))


def purge_queue(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``purge queue QUEUE``."""
    return commands.PurgeQueue(object_name(cursor, "queue"))


def correct_usage(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``set usage of group GROUP 12h``, or a change: ``+2h``, ``-30min``."""
    group = object_name(cursor, "group")
    cursor.skip("=")
    token = cursor.word("a time like 12h, +2h or -30min")
    sign = token.text[:1] if token.text[:1] in ("+", "-") else ""
    how = "like 12h, +2h or -30min"
    try:
        ms = units.parse_time(token.text.removeprefix(sign))
    except BadValue as error:
        raise cursor.bad(f"{str(error).partition(';')[0]}; write it {how}", token) from None
    if ms == units.UNLIMITED:
        raise cursor.bad(f"use cannot be unlimited; write a time {how}", token)
    return commands.CorrectUsage(group, -ms if sign == "-" else ms, bool(sign))


def reload(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``reload exits`` or ``reload queues``."""
    return commands.ReloadQueues() if form.option == "queues" else commands.ReloadExits()


def switch_shift(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``switch shift NAME [until=06:00]``: a time of day in the site's zone, or a date with its zone."""
    name = object_name(cursor, "shift")
    if cursor.done():
        return commands.SwitchShift(name)
    cursor.keyword(_UNTIL)
    cursor.skip("=")
    token = cursor.word("a time of day like 06:00")
    if (of_day := _TIME_OF_DAY.fullmatch(token.text)) is not None:
        return commands.SwitchShift(name, f"{int(of_day[1]):02d}:{of_day[2]}")
    try:
        moment = datetime.fromisoformat(token.text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise cursor.bad(f"{token.text!r} is not a time; {_TIME}", token)
    return commands.SwitchShift(name, Instant(round(moment.timestamp() * 1000)))


def shutdown(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``shutdown [leave|drain|requeue]``; with SECONDS (NQS) running requests are queued again."""
    if cursor.done():
        return commands.Shutdown()
    token = cursor.peek()
    if token.text[:1].isdigit():
        values.read(cursor, _SECONDS)
        return commands.Shutdown("requeue")
    mode = cast(Literal["leave", "drain", "requeue"], cursor.keyword(_MODES))
    return commands.Shutdown(mode)


def show(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``show WHAT [NAME ...]``. Options of the command: ``long`` for ``show long queue``, ``next`` (ms)
    for ``--next``."""
    options: dict[str, Any] = {"long": True} if form.words[1] == "long" else {}
    names: list[str] = []
    for _ in cursor.more(some=False):
        if form.option in AHEAD and cursor.may_be(_NEXT):
            cursor.keyword(_NEXT)
            cursor.skip("=")
            token = cursor.word("a time like 14d")
            options["next"] = ahead = cursor.value(units.parse_time, token)
            if not 0 < ahead <= FARTHEST:
                text = "too short; write it like 14d" if ahead <= 0 else "too long; write at most 366d"
                raise cursor.bad(f"{token.text!r} is {text}", token)
        elif form.option in NAMED:
            names += cursor.names("a name")
        else:
            raise cursor.fail(*(("--next",) if form.option in AHEAD else ()))
    return commands.ShowObject(form.option, tuple(dict.fromkeys(names)), options or None)


def snap(cursor: Cursor, form: Form) -> commands.Command:
    """Read ``snap [FILE]``: the client writes the file; the option ``file`` is its name."""
    if cursor.done():
        return commands.ShowObject("snap")
    return commands.ShowObject("snap", (), {"file": cursor.name("the name of a file")})


def client(cursor: Cursor, form: Form) -> ClientWord:
    """Read ``help [COMMAND]``, ``exit`` or ``quit``."""
    args, node = [], TREE
    while form.option == "help" and not cursor.done():
        args.append(cursor.peek().text)
        if node.keywords:
            node = node.below[cursor.keyword(node.keywords)]
        else:
            cursor.word("the words of a command")
    return ClientWord(form.option, tuple(args))
