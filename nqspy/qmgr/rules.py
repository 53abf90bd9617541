"""Rules for settings commands, named by `grammar.Form`: each reads what follows and returns a `Configure`."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

from nqspy.model import registry
from nqspy.model.amounts import NO_SHELL
from nqspy.model.commands import AutomaticShift, Command, Configure
from nqspy.model.events import Change
from nqspy.model.machine import WAYS
from nqspy.model.tree import Declared
from nqspy.qmgr import values
from nqspy.qmgr.attributes import BRANCHES, IGNORED, keywords_of, settings_of
from nqspy.qmgr.cursor import Cursor, Keyword, keywords
from nqspy.qmgr.grammar import Form
from nqspy.qmgr.lexer import Token


class ClientWord(Struct, frozen=True):
    """A word for the qmgr client only: ``help`` (with the words of a command), ``exit`` or ``quit``."""

    verb: str
    args: tuple[str, ...] = ()


Order = Command | ClientWord
"""Command for the daemon, or word for the client, that one command of the language means."""

Rule = Callable[[Cursor, Form], Order]
Pair = tuple[str, Any]
Op = Literal["add", "remove", "set"]

_AUTOMATIC = keywords("automatic")
_STRATEGY = keywords("FIxed", "FRee", "Login", "LOGIN_Each")
_DEFAULT = keywords("default")

_OPS: dict[str, Op] = {"add": "add", "remove": "remove", "delete": "remove", "set": "set"}
_RESERVED = {"queue": "all", "shift": "automatic"} | {
    kind.head: words.reserved for kind, words in registry.listed() if words.reserved
}


def object_name(cursor: Cursor, kind: str) -> str:
    """Read and return the name of an object of this kind."""
    return cursor.name(f"the name of a {kind}" if kind != "exit" else "the name of an exit")


def _new_name(cursor: Cursor, kind: str) -> str:
    token = cursor.peek()
    name = object_name(cursor, kind)
    if name.lower() == _RESERVED.get(kind):
        raise cursor.bad(f"{name!r} is not a name for a {kind}: it is a word of qmgr", token)
    return name


def _sets(path: str, *pairs: Pair) -> Configure:
    return Configure(tuple(Change("set", f"{path}/{below}", value) for below, value in pairs))


# ---------------------------------------------------------------- attributes


def read_pairs(cursor: Cursor, kind: str) -> list[Pair]:
    """Read one attribute; return (path below the object, value), several pairs with a warning or weights."""
    words, known = keywords_of(kind), settings_of(kind)
    if kind == "queue" and cursor.may_be(words) is None and cursor.may_be(IGNORED):
        cursor.keyword(IGNORED)
        cursor.skip("=")
        cursor.words("a program and its arguments")
        return []
    name = cursor.keyword(words)
    if name == "queued_limit":  # queued_limit=N, queued_limit user=N for each user, or queued_limit=N user=M
        found: list[Pair] = []
        if not values.is_word(cursor.peek(), "user"):
            found.append((name, values.read(cursor, known[name])))
        if values.is_word(cursor.peek(), "user"):
            cursor.word("user")
            found.append(("user_queued_limit", values.read(cursor, known["user_queued_limit"])))
        return found
    if name == "sched_factor":
        return [(f"sched_factor/{factor}", value) for factor, value in _factors(cursor, own=True)]
    if name in BRANCHES:
        return _branch_pairs(cursor, name)
    return [(name, values.read(cursor, known[name]))]


def _branch_pairs(cursor: Cursor, branch: str) -> list[Pair]:
    name = cursor.keyword(keywords_of("queue", branch))
    known = settings_of("queue", branch)
    warning = name.replace("_limit", "_warning")
    names = [name, warning] if warning != name and warning in known else [name]
    cursor.skip("=")
    token = cursor.peek()
    found = values.read_several(cursor, known[name], len(names))
    if len(found) == 2 and found[0] is not None and (found[1] is None or found[1] > found[0]):
        raise cursor.bad(f"the warning of {name} is above the limit; write a lower one", token)
    return [(f"{branch}/{key}", value) for key, value in zip(names, found, strict=False)]


def _factors(cursor: Cursor, own: bool) -> list[Pair]:
    """Read weights; return them as pairs. ``own``: of a queue: ``default`` (None) stands for the site's."""
    known = settings_of("sched_factor")
    found: list[Pair] = []
    while not found or (cursor.peek().text.lower() in known and not cursor.peek().quoted):
        name = cursor.keyword(keywords_of("sched_factor"))
        cursor.skip("=")
        token = cursor.peek()
        if own and cursor.may_be(_DEFAULT):
            cursor.keyword(_DEFAULT)
            found.append((name, None))
            continue
        [value] = values.read_several(cursor, known[name], 1)
        if value is None:
            raise cursor.bad(f"{token.text!r} is not a weight; expected a whole number from 0 upward", token)
        found.append((name, value))
    return found


def _all_pairs(cursor: Cursor, kind: str, some: bool = True) -> list[Pair]:
    return [pair for _ in cursor.more(some) for pair in read_pairs(cursor, kind)]


# ---------------------------------------------------------------- create, define, delete


def create(cursor: Cursor, form: Form) -> Command:
    """Read ``create batch_queue|pipe_queue|complex|group NAME attributes``, ``create complex=(q) NAME``."""
    attributes: dict[str, Any] = {"kind": form.option} if form.option else {}
    if form.kind == "complex" and cursor.peek().kind in ("=", "("):
        cursor.skip("=")
        attributes["queues"] = cursor.names("a list of queues")
    name = _new_name(cursor, form.kind)
    attributes |= dict(_all_pairs(cursor, form.kind, some=False))
    return Configure((Change("create", f"{form.kind}/{name}", attributes),))


def define_shift(cursor: Cursor, form: Form) -> Command:
    """Read the head ``define shift NAME when=(...) spill=... now``; the parser adds the lines."""
    name = _new_name(cursor, "shift")
    cursor.keyword(keywords("when"))
    given = {"when": values.read(cursor, settings_of("shift")["when"])} | dict(_shift_pairs(cursor))
    return Configure((Change("create", f"shift/{name}", given | {"lines": [], "commands": []}),))


def _shift_pairs(cursor: Cursor) -> list[Pair]:
    """Read ``when``, ``spill`` and ``now`` of a shift, as far as given; return (setting, value) pairs."""
    known, words = settings_of("shift"), keywords("when", "now", "spill")
    names = (cursor.keyword(words) for _ in cursor.more(some=False))
    return [("counts", {}) if name == "now" else (name, values.read(cursor, known[name])) for name in names]


def delete(cursor: Cursor, form: Form) -> Command:
    """Read ``delete queue|complex|group|shift NAME``."""
    return Configure((Change("delete", f"{form.kind}/{object_name(cursor, form.kind)}"),))


# ---------------------------------------------------------------- set


def set_object(cursor: Cursor, form: Form) -> Command:
    """Read ``set queue NAME attributes``, or ``set queue attributes NAME`` if an attribute comes first."""
    words = keywords_of(form.kind)
    if cursor.peek().kind == "cursor":
        raise cursor.fail(*words, f"the name of a {form.kind}")
    if cursor.may_be(words) is None or cursor.may_be(words, 1) or _is_name(cursor, form.kind, words):
        name = object_name(cursor, form.kind)
        return _sets(f"{form.kind}/{name}", *_all_pairs(cursor, form.kind))
    pairs = read_pairs(cursor, form.kind)
    while cursor.remaining() > 1:
        cursor.skip(",")
        pairs += read_pairs(cursor, form.kind)
    return _sets(f"{form.kind}/{object_name(cursor, form.kind)}", *pairs)


def _is_name(cursor: Cursor, kind: str, words: Mapping[str, Keyword]) -> bool:
    """True for a name that abbreviates an attribute, before a mistyped attribute: ``w resrve=0``."""
    if cursor.peek().text.lower() in words or (cursor.peek(1).kind, cursor.peek(2).kind) != ("word", "="):
        return False
    meant = cursor.may_be(words)
    return cursor.may_be(keywords_of(kind, meant) if meant in BRANCHES else keywords("user"), 1) is None


def set_attribute(cursor: Cursor, form: Form) -> Command:
    """Read one attribute of an object, with its keyword behind ``set``: ``set run_limit = 4 night``."""
    branch, _, name = form.option.rpartition("/")
    value = values.read(cursor, settings_of(form.kind, branch)[name])
    return _sets(f"{form.kind}/{object_name(cursor, form.kind)}", (form.option, value))


def set_branch(cursor: Cursor, form: Form) -> Command:
    """Read a limit of each request or process of a queue: ``set per_process cpu_limit = (600, 590) day``."""
    pairs = _branch_pairs(cursor, form.option)
    return _sets(f"queue/{object_name(cursor, 'queue')}", *pairs)


def set_factors(cursor: Cursor, form: Form) -> Command:
    """Read ``set sched_factor share 20``, with one or several weights."""
    return _sets("sched_factor", *_factors(cursor, own=False))


def set_single(cursor: Cursor, form: Form) -> Command:
    """Read attributes of a single object: ``set global run_limit=6``, with a switch first: ``set FEATURE on
    high=85``. ``option``: a word that would begin another command here."""
    words = keywords_of(form.kind)
    if "enabled" in words and cursor.may_be(values.FLAGS) is not None:
        enabled = cursor.keyword(values.FLAGS) == "on"
        return _sets(form.kind, ("enabled", enabled), *_all_pairs(cursor, form.kind, some=False))
    if form.option and cursor.may_be(words) is None:
        raise cursor.fail(*words, form.option)
    return _sets(form.kind, *_all_pairs(cursor, form.kind))


def set_one(cursor: Cursor, form: Form) -> Command:
    """Read a setting that has a keyword of its own: ``set grace 10``."""
    return _sets(form.kind, (form.option, values.read(cursor, settings_of(form.kind)[form.option])))


def set_timezone(cursor: Cursor, form: Form) -> Command:
    """Read ``set timezone Europe/Paris``, ``auto`` for the machine's."""
    cursor.skip("=")
    token = cursor.peek()
    zone = values.read(cursor, settings_of("server")["timezone"])
    if zone is not None:
        try:
            ZoneInfo(zone)
        except (KeyError, OSError, ValueError):  # ZoneInfoNotFoundError is a KeyError
            near = difflib.get_close_matches(zone, available_timezones(), 1, 0.8)
            text = f"did you mean {near[0]}?" if near else "write it like Europe/Paris"
            raise cursor.bad(f"there is no time zone {zone}; {text}", token) from None
    return _sets("server", ("timezone", zone))


def shell_strategy(cursor: Cursor, form: Form) -> Command:
    """Read ``set shell_strategy fixed=(/bin/sh) | free | login | login_each``."""
    cursor.skip("=")
    strategy = cursor.keyword(_STRATEGY)
    if strategy == "fixed":
        cursor.skip("=")
        token = cursor.peek()
        [path] = values.read_several(cursor, Declared("name", "", "path of a shell", name="fixed"), 1)
        if path[:1] != "/":
            raise cursor.bad(NO_SHELL.format(shell=path), token)
        strategy = f"fixed={path}"
    return _sets("server", ("shell_strategy", strategy))


def set_mail(cursor: Cursor, form: Form) -> Command:
    """Read ``set mail COMMAND|none``, or attributes; the way that is set replaces the others."""
    cursor.skip("=")
    if cursor.remaining() > 1 and cursor.may_be(keywords_of("mail")):
        start = cursor.peek()
        pairs = dict(_all_pairs(cursor, "mail"))
        given = [way for way in WAYS if pairs.get(way)]
        if len(given) > 1:
            raise cursor.bad(f"{' and '.join(given)} exclude each other; set one of them", start)
    else:
        pairs = {"command": values.read(cursor, settings_of("mail")["command"])}
        if pairs["command"] is None:
            pairs = dict.fromkeys(WAYS)
    if any(pairs.get(way) for way in WAYS):
        pairs = {way: None for way in WAYS if way not in pairs} | pairs
    return _sets("mail", *pairs.items())


def no_default_queue(cursor: Cursor, form: Form) -> Command:
    """Read ``set no_default batch_request queue`` and ``set no_default mpprun queue``."""
    return _sets("default", (form.option, None))


def access(cursor: Cursor, form: Form) -> Command:
    """Read ``set no_access`` and ``set unrestricted_access``: both remove all users and groups."""
    path = f"queue/{object_name(cursor, 'queue')}"
    return _sets(path, ("restricted", form.option == "none"), ("users", []), ("groups", []))


def set_shift(cursor: Cursor, form: Form) -> Command:
    """Read ``set shift automatic``, or ``set shift NAME when=(...) spill=... now``."""
    if cursor.peek().kind == "cursor":
        raise cursor.fail("automatic", "the name of a shift")
    if cursor.remaining() == 1 and cursor.may_be(_AUTOMATIC):
        cursor.keyword(_AUTOMATIC)
        return AutomaticShift()
    path = f"shift/{object_name(cursor, 'shift')}"
    if cursor.done():
        raise cursor.fail("when", "spill")
    return _sets(path, *_shift_pairs(cursor))


def set_exit(cursor: Cursor, form: Form) -> Command:
    """Read ``set exit NAME SETTING=VALUE ...``: values stay text for the daemon."""
    path, own = f"exit/{object_name(cursor, 'exit')}", settings_of("exit")
    pairs: list[Pair] = []
    for _ in cursor.more():
        key = cursor.word("a setting of the exit").text
        if key.lower() in own:
            pairs.append((key.lower(), values.read(cursor, own[key.lower()])))
        else:
            cursor.skip("=")
            pairs.append((key, ",".join(token.text for token in cursor.words("a value"))))
    return _sets(path, *pairs)


# ---------------------------------------------------------------- lists, and what is switched on and off


def change_list(cursor: Cursor, form: Form) -> Command:
    """Read ``add|remove|set users = (...) QUEUE`` and the like."""
    cursor.skip("=")
    names = cursor.names(f"a list of {form.option}")
    path = f"{form.kind}/{object_name(cursor, form.kind)}/{form.option}"
    return Configure((Change(_OPS[form.words[0]], path, names),))


def change_dates(cursor: Cursor, form: Form) -> Command:
    """Read ``add|remove ... extra=(2026-12-24)``."""
    known = {name: info for name, info in settings_of(form.kind).items() if info.unit == "names"}
    names, op = (cursor.keyword(keywords(*known)) for _ in cursor.more()), _OPS[form.words[0]]
    changes = (Change(op, f"{form.kind}/{name}", values.read(cursor, known[name])) for name in names)
    return Configure(tuple(changes))


def managers(cursor: Cursor, form: Form) -> Command:
    """Read ``add|remove|set managers = (anne:m, bob:o)``; a name without a role is a manager's."""
    cursor.skip("=")
    op, texts = _OPS[form.words[0]], list[str]()
    for _ in cursor.more():  # Sterling: names one after another, without parentheses
        texts += [_role(cursor, token, op) for token in cursor.words("a list like (anne:m, bob:o)")]
        if not texts:
            break
    roles = {user: role for user, _, role in (text.rpartition(":") for text in texts)}
    return Configure((Change(op, "managers", roles if op == "set" else texts),))


def _role(cursor: Cursor, token: Token, op: Op) -> str:
    user, colon, role = token.text.rpartition(":")
    if not colon:
        return token.text if op == "remove" else f"{token.text}:m"
    if role.lower() not in ("m", "o") or not user:
        raise cursor.bad(f"{token.text!r} has no role; write USER:m (manager) or USER:o (operator)", token)
    return f"{user}:{role.lower()}"


def gate(cursor: Cursor, form: Form) -> Command:
    """Read ``enable|disable|start|stop queue NAME|all`` and ``enable|disable exit NAME``."""
    value, names = form.words[0] in ("enable", "start"), list[str]()
    if form.kind == "queue" and values.is_word(cursor.peek(), "all"):
        cursor.keyword(keywords("all"))
        return _sets("queue/*", (form.option, value))
    for _ in cursor.more():
        names += cursor.names(f"the name of a {form.kind}")
        if not names:
            raise cursor.fail(f"the name of a {form.kind}")
    return _sets(form.kind, *((f"{name}/{form.option}", value) for name in names))
