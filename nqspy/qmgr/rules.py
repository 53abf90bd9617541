"""Rules that read settings commands: each takes the cursor behind the keywords and gives a `Configure`."""

import difflib
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

from nqspy.model import registry
from nqspy.model.commands import AutomaticShift, Command, Configure
from nqspy.model.events import Change
from nqspy.model.machine import WAYS
from nqspy.model.tree import Declared
from nqspy.qmgr import values
from nqspy.qmgr.attributes import BRANCHES, IGNORED, keywords_of, settings_of
from nqspy.qmgr.cursor import Cursor, keywords
from nqspy.qmgr.grammar import Form


class ClientWord(Struct, frozen=True):
    """A word for the qmgr client itself, nothing for the daemon: ``help`` (with the words of a command),
    ``exit`` or ``quit``."""

    verb: str
    args: tuple[str, ...] = ()


Order = Command | ClientWord
"""What one line of the language becomes."""

Rule = Callable[[Cursor, Form], Order]
Pair = tuple[str, Any]

_AUTOMATIC = keywords("automatic")
_STRATEGY = keywords("FIxed", "FRee", "Login", "LOGIN_Each")
_DEFAULT = keywords("default")
_RESERVED = {"queue": "all", "shift": "automatic"} | {
    kind.head: words.reserved for kind, words in registry.listed() if words.reserved
}


def configure(*changes: Change) -> Configure:
    """The command for some changes."""
    return Configure(changes)


def object_name(cursor: Cursor, kind: str) -> str:
    """The name of an object that comes next."""
    return cursor.name(f"the name of a {kind}" if kind != "exit" else "the name of an exit")


def _new_name(cursor: Cursor, kind: str) -> str:
    token = cursor.peek()
    name = object_name(cursor, kind)
    if name.lower() == _RESERVED.get(kind):
        raise cursor.bad(f"{name!r} cannot be the name of a {kind}: it is a word of the language", token)
    return name


# ---------------------------------------------------------------- attributes


def read_pairs(cursor: Cursor, kind: str) -> list[Pair]:
    """Read an attribute with its value: (path below the object, value), two for a limit with its warning."""
    words = keywords_of(kind)
    if kind == "queue" and cursor.may_be(words) is None and cursor.may_be(IGNORED):
        cursor.keyword(IGNORED)
        cursor.skip("=")
        cursor.words("a program and its arguments")
        return []
    name = cursor.keyword(words)
    if name == "queued_limit":
        return _queued_limit(cursor, kind)
    if name == "sched_factor":
        return [(f"sched_factor/{factor}", value) for factor, value in _factors(cursor, own=True)]
    if name in BRANCHES:
        return _branch_pairs(cursor, name)
    return [(name, values.read(cursor, settings_of(kind)[name]))]


def _queued_limit(cursor: Cursor, kind: str) -> list[Pair]:
    """``queued_limit=N``, ``queued_limit user=N`` for each user, or both: ``queued_limit=N user=M``."""
    known, found = settings_of(kind), list[Pair]()
    if not values.is_word(cursor.peek(), "user"):
        found.append(("queued_limit", values.read(cursor, known["queued_limit"])))
    if values.is_word(cursor.peek(), "user"):
        cursor.word("user")
        found.append(("user_queued_limit", values.read(cursor, known["user_queued_limit"])))
    return found


def _branch_pairs(cursor: Cursor, branch: str) -> list[Pair]:
    name = cursor.keyword(keywords_of("queue", branch))
    known = settings_of("queue", branch)
    names = [name]
    warning = name.replace("_limit", "_warning")
    if warning != name and warning in known:
        names.append(warning)
    cursor.skip("=")
    token = cursor.peek()
    found = values.read_several(cursor, known[name], len(names))
    if len(found) == 2 and found[0] is not None and (found[1] is None or found[1] > found[0]):
        raise cursor.bad(f"the warning of {name} lies above the limit", token)
    return [(f"{branch}/{key}", value) for key, value in zip(names, found, strict=False)]


def _factors(cursor: Cursor, own: bool) -> list[Pair]:
    found = [_factor(cursor, own)]
    while cursor.peek().text.lower() in settings_of("sched_factor") and not cursor.peek().quoted:
        found.append(_factor(cursor, own))
    return found


def _factor(cursor: Cursor, own: bool) -> Pair:
    name = cursor.keyword(keywords_of("sched_factor"))
    cursor.skip("=")
    if own and cursor.may_be(_DEFAULT):
        cursor.keyword(_DEFAULT)
        return name, None
    token = cursor.peek()
    value = values.read_several(cursor, settings_of("sched_factor")[name], 1)[0]
    if value is None:
        raise cursor.bad(f"{token.text!r} is no weight; expected a whole number from 0 upward", token)
    return name, value


def _all_pairs(cursor: Cursor, kind: str) -> list[Pair]:
    found: list[Pair] = []
    while not cursor.done():
        cursor.skip(",")
        found += read_pairs(cursor, kind)
    return found


def _sets(path: str, pairs: list[Pair]) -> Configure:
    return Configure(tuple(Change("set", f"{path}/{below}", value) for below, value in pairs))


# ---------------------------------------------------------------- create, define, delete


def create(cursor: Cursor, form: Form) -> Command:
    """``create batch_queue|pipe_queue|complex|group NAME attributes``; Sterling's ``create complex=(q)
    NAME``."""
    attributes: dict[str, Any] = {"kind": form.option} if form.option else {}
    if form.kind == "complex" and cursor.peek().kind in ("=", "("):
        cursor.skip("=")
        attributes["queues"] = cursor.names("a list of queues")
    name = _new_name(cursor, form.kind)
    return configure(
        Change("create", f"{form.kind}/{name}", attributes | dict(_all_pairs(cursor, form.kind)))
    )


def define_shift(cursor: Cursor, form: Form) -> Command:
    """The head ``define shift NAME when=(...) spill=... now``; the parser adds the lines."""
    name = _new_name(cursor, "shift")
    cursor.keyword(keywords("when"))
    given = {"when": values.read(cursor, settings_of("shift")["when"])} | dict(_shift_pairs(cursor))
    return configure(Change("create", f"shift/{name}", given | {"lines": [], "commands": []}))


def _shift_pairs(cursor: Cursor) -> list[Pair]:
    """``when``, ``spill`` and ``now`` of a shift, as far as they are given."""
    known = settings_of("shift")
    words = keywords("when", "now", "spill")
    found: list[Pair] = []
    while not cursor.done():
        cursor.skip(",")
        name = cursor.keyword(words)
        found.append(("counts", {}) if name == "now" else (name, values.read(cursor, known[name])))
    return found


def delete(cursor: Cursor, form: Form) -> Command:
    """``delete queue|complex|group|shift NAME``."""
    return configure(Change("delete", f"{form.kind}/{object_name(cursor, form.kind)}"))


# ---------------------------------------------------------------- set


def set_object(cursor: Cursor, form: Form) -> Command:
    """``set queue NAME attributes`` and ``set complex attributes NAME``: a word that is an attribute comes
    first unless the next one is an attribute too."""
    words = keywords_of(form.kind)
    if cursor.peek().kind == "cursor":
        raise cursor.fail(*words, f"the name of a {form.kind}")
    if cursor.may_be(words) is None or cursor.may_be(words, 1) is not None:
        name = object_name(cursor, form.kind)
        return _sets(f"{form.kind}/{name}", read_pairs(cursor, form.kind) + _all_pairs(cursor, form.kind))
    pairs = read_pairs(cursor, form.kind)
    while cursor.left() > 1:
        cursor.skip(",")
        pairs += read_pairs(cursor, form.kind)
    return _sets(f"{form.kind}/{object_name(cursor, form.kind)}", pairs)


def set_attribute(cursor: Cursor, form: Form) -> Command:
    """``set run_limit = 4 night``."""
    branch, _, name = form.option.rpartition("/")
    value = values.read(cursor, settings_of(form.kind, branch)[name])
    path = f"{form.kind}/{object_name(cursor, form.kind)}"
    return configure(Change("set", f"{path}/{form.option}", value))


def set_branch(cursor: Cursor, form: Form) -> Command:
    """``set per_process cpu_limit = (600, 590) normal``."""
    pairs = _branch_pairs(cursor, form.option)
    return _sets(f"queue/{object_name(cursor, 'queue')}", pairs)


def set_factors(cursor: Cursor, form: Form) -> Command:
    """``set sched_factor share 20``, several in one command too."""
    return _sets("sched_factor", _factors(cursor, own=False))


def set_single(cursor: Cursor, form: Form) -> Command:
    """Attributes of what there is one of: ``set global run_limit=6``; what can be switched may be first:
    ``set FEATURE on high=85``. ``option``: a word that could stand there too, and begins another
    command."""
    words = keywords_of(form.kind)
    if "enabled" in words and cursor.may_be(values.FLAGS) is not None:
        found: list[Pair] = [("enabled", cursor.keyword(values.FLAGS) == "on")]
        return _sets(form.kind, found + _all_pairs(cursor, form.kind))
    if form.option and cursor.may_be(words) is None:
        raise cursor.fail(*words, form.option)
    return _sets(form.kind, read_pairs(cursor, form.kind) + _all_pairs(cursor, form.kind))


def set_one(cursor: Cursor, form: Form) -> Command:
    """Read a setting that has a keyword of its own: ``set grace 10``."""
    value = values.read(cursor, settings_of(form.kind)[form.option])
    return configure(Change("set", f"{form.kind}/{form.option}", value))


def set_timezone(cursor: Cursor, form: Form) -> Command:
    """``set timezone Europe/Paris``, ``auto`` for the machine's."""
    cursor.skip("=")
    token = cursor.peek()
    zone = values.read(cursor, settings_of(form.kind)[form.option])
    if zone is not None:
        try:
            ZoneInfo(zone)
        except (KeyError, OSError, ValueError):  # ZoneInfoNotFoundError is a KeyError
            near = difflib.get_close_matches(zone, available_timezones(), 1, 0.8)
            text = f"did you mean {near[0]}?" if near else "write it like Europe/Paris"
            raise cursor.bad(f"there is no time zone {zone}; {text}", token) from None
    return configure(Change("set", "server/timezone", zone))


def shell_strategy(cursor: Cursor, form: Form) -> Command:
    """``set shell_strategy fixed=(/bin/sh) | free | login | login_each``."""
    cursor.skip("=")
    strategy = cursor.keyword(_STRATEGY)
    if strategy == "fixed":
        cursor.skip("=")
        token = cursor.peek()
        [path] = values.read_several(cursor, Declared("name", "", "path of a shell", name="fixed"), 1)
        if path[:1] != "/":
            raise cursor.bad(f"{path!r} is no shell; give its whole path: fixed=(/bin/sh)", token)
        strategy = f"fixed={path}"
    return configure(Change("set", "server/shell_strategy", strategy))


def set_mail(cursor: Cursor, form: Form) -> Command:
    """``set mail COMMAND|none``, or attributes; the way that is set takes the place of the others."""
    cursor.skip("=")
    if cursor.left() > 1 and cursor.may_be(keywords_of("mail")):
        start = cursor.peek()
        pairs = dict(_all_pairs(cursor, "mail"))
        given = [way for way in WAYS if pairs.get(way)]
        if len(given) > 1:
            raise cursor.bad(f"{' and '.join(given)} are two ways for one mail; set one of them", start)
    else:
        pairs = {"command": values.read(cursor, settings_of("mail")["command"])}
        if pairs["command"] is None:
            pairs = dict.fromkeys(WAYS)
    if any(pairs.get(way) for way in WAYS):
        pairs = {way: None for way in WAYS if way not in pairs} | pairs
    return _sets("mail", list(pairs.items()))


def no_default_queue(cursor: Cursor, form: Form) -> Command:
    """``set no_default batch_request queue`` and ``set no_default mpprun queue``."""
    return configure(Change("set", f"default/{form.option}", None))


def access(cursor: Cursor, form: Form) -> Command:
    """``set no_access`` and ``set unrestricted_access``: both forget the users and groups."""
    path = f"queue/{object_name(cursor, 'queue')}"
    return configure(
        Change("set", f"{path}/restricted", form.option == "none"),
        Change("set", f"{path}/users", []),
        Change("set", f"{path}/groups", []),
    )


def set_shift(cursor: Cursor, form: Form) -> Command:
    """``set shift automatic``, or ``set shift NAME when=(...) spill=... now``."""
    if cursor.peek().kind == "cursor":
        raise cursor.fail("automatic", "the name of a shift")
    if cursor.left() == 1 and cursor.may_be(_AUTOMATIC):
        cursor.keyword(_AUTOMATIC)
        return AutomaticShift()
    path = f"shift/{object_name(cursor, 'shift')}"
    if cursor.done():
        raise cursor.fail("when", "spill")
    return _sets(path, _shift_pairs(cursor))


def set_exit(cursor: Cursor, form: Form) -> Command:
    """``set exit NAME SETTING=VALUE ...``: what the exit declares is checked by the daemon, so values stay
    text."""
    path = f"exit/{object_name(cursor, 'exit')}"
    own = settings_of("exit")
    changes: list[Change] = []
    while not cursor.done() or not changes:
        cursor.skip(",")
        key = cursor.word("a setting of the exit").text
        if key.lower() in own:
            changes.append(Change("set", f"{path}/{key.lower()}", values.read(cursor, own[key.lower()])))
        else:
            cursor.skip("=")
            texts = [token.text for token in cursor.words("a value")]
            changes.append(Change("set", f"{path}/{key}", ",".join(texts)))
    return Configure(tuple(changes))


RULES: dict[str, Rule] = {
    "create": create, "define_shift": define_shift, "delete": delete, "set_object": set_object,
    "set_attribute": set_attribute, "set_branch": set_branch, "set_factors": set_factors,
    "set_single": set_single, "set_one": set_one, "set_timezone": set_timezone,
    "shell_strategy": shell_strategy, "no_default_queue": no_default_queue, "access": access,
    "set_shift": set_shift, "set_exit": set_exit, "set_mail": set_mail,
}  # fmt: skip
"""The rules of settings commands by name."""
