"""Rules that change lists: names of queues and groups, days that count as Sundays, managers; and what is
switched on and off."""

from functools import partial
from typing import Any

from nqspy.model.commands import Command, Configure
from nqspy.model.events import Change
from nqspy.qmgr import values
from nqspy.qmgr.attributes import settings_of
from nqspy.qmgr.cursor import Cursor, keywords
from nqspy.qmgr.grammar import Form
from nqspy.qmgr.rules import Rule, configure, object_name


def change_list(op: Any, cursor: Cursor, form: Form) -> Command:
    """``add|remove|set users = (...) QUEUE`` and the like."""
    cursor.skip("=")
    names = cursor.names(f"a list of {form.option}")
    path = f"{form.kind}/{object_name(cursor, form.kind)}/{form.option}"
    return configure(Change(op, path, names))


def change_dates(op: Any, cursor: Cursor, form: Form) -> Command:
    """``add|remove ... extra=(2026-12-24)``."""
    known = {name: info for name, info in settings_of(form.kind).items() if info.unit == "names"}
    changes: list[Change] = []
    while not changes or not cursor.done():
        cursor.skip(",")
        name = cursor.keyword(keywords(*known))
        changes.append(Change(op, f"{form.kind}/{name}", values.read(cursor, known[name])))
    return Configure(tuple(changes))


def managers(op: Any, cursor: Cursor, form: Form) -> Command:
    """``add|remove|set managers = (anne:m, bob:o)``; without a role a name is a manager's."""
    cursor.skip("=")
    texts: list[str] = []
    while not texts or not cursor.done():  # Sterling: names one after another, without parentheses
        cursor.skip(",")
        texts += [_role(cursor, token, op) for token in cursor.words("a list like (anne:m, bob:o)")]
        if not texts:
            break
    if op != "set":
        return configure(Change(op, "managers", texts))
    roles = {user: role for user, _, role in (text.rpartition(":") for text in texts)}
    return configure(Change("set", "managers", roles))


def _role(cursor: Cursor, token: Any, op: str) -> str:
    user, colon, role = token.text.rpartition(":")
    if not colon:
        return token.text if op == "remove" else f"{token.text}:m"
    if role.lower() not in ("m", "o") or not user:
        raise cursor.bad(f"{token.text!r} names no role; write USER:m (manager) or USER:o (operator)", token)
    return f"{user}:{role.lower()}"


def gate(value: bool, cursor: Cursor, form: Form) -> Command:
    """``enable|disable|start|stop queue NAME|all`` and ``enable|disable exit NAME``."""
    if form.kind == "queue" and values.is_word(cursor.peek(), "all"):
        cursor.keyword(keywords("all"))
        return configure(Change("set", f"queue/*/{form.option}", value))
    names: list[str] = []
    while not names or not cursor.done():
        cursor.skip(",")
        names += cursor.names(f"the name of a {form.kind}")
        if not names:
            raise cursor.fail(f"the name of a {form.kind}")
    return Configure(tuple(Change("set", f"{form.kind}/{n}/{form.option}", value) for n in names))


RULES: dict[str, Rule] = {
    "gate_on": partial(gate, True),
    "gate_off": partial(gate, False),
    **{
        f"{op}_{what}": partial(rule, op)
        for what, rule in (("list", change_list), ("managers", managers), ("dates", change_dates))
        for op in ("add", "remove", "set")
    },
}
"""The rules of these commands by name."""
