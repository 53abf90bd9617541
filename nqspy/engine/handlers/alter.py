"""Changes by ``modify`` other than of resources: holds, output, mail, attributes; checks of changes of
running requests; deletions with all dependent requests (``qdel --cascade``)."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import fields, replace

from nqspy.core.consumables import with_units
from nqspy.core.runtime import wall_limit
from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import need_owner, role_of
from nqspy.engine.handlers.spec import tidy_array
from nqspy.engine.lifecycle import ages_when_eligible
from nqspy.model import events as ev
from nqspy.model.cause import Cause
from nqspy.model.commands import Delete
from nqspy.model.errors import Refusal
from nqspy.model.ids import Seq, array_of, is_array, rank_of, request_named
from nqspy.model.options import OPTIONS
from nqspy.model.people import Caller
from nqspy.model.requests import STARTED, Request, Spec, State
from nqspy.model.site import Site
from nqspy.model.units import format_time

WHILE_RUNNING = frozenset(("owner", *(option.path for option in OPTIONS if option.when == "running")))
"""Paths of a request's fields that can be changed while it runs; those of its mail always can."""
_PLACES = {
    "stdout": "stdout", "keep_stdout": "stdout", "stderr": "stderr", "keep_stderr": "stderr",
}  # fmt: skip
"""Fields that determine where an output stream goes, with the stream."""
_NO_NOTES = ("after", "")
"""Names that an attribute must not get here: dependencies (``after``) are set at submission only."""


def having(node: Any, name: str, value: Any) -> Any:
    """Return a structure (``node``) with another value of one field; None: its empty default, if it has one.
    Raises Refusal for a value of a wrong type."""
    if value is None:
        default = next((field.default for field in fields(node) if field.name == name), None)
        value = default if default in ("", ()) else None
    builtins: dict[str, Any] = msgspec.to_builtins(node)
    try:
        return msgspec.convert(builtins | {name: value}, type(node))
    except msgspec.ValidationError:
        raise Refusal("bad_modification", value=value, name=name) from None


def altered(site: Site, spec: Spec, head: str, rest: str, value: Any) -> Spec:
    """Return the specification with a new value of its field ``head/rest``: output, mail, the limit of its
    array (``array/limit``), an attribute (``attributes/NAME``: values; None: removed), or the number of units
    of a consumable (``units/NAME``). Raises Refusal."""
    if head == "units" and rest:
        wanted = with_units(site, spec.ask.consumables, rest, value)
        return replace(spec, ask=having(spec.ask, "consumables", wanted))
    if head == "array" and rest == "limit" and spec.array is not None:
        return replace(spec, array=tidy_array(having(spec.array, rest, None if value == 0 else value)))
    if head == "output" and rest in spec.output.__struct_fields__:
        return replace(spec, output=having(spec.output, rest, value))
    if head == "mail" and rest in spec.mail.__struct_fields__:
        return replace(spec, mail=having(spec.mail, rest, value))
    if head == "attributes" and rest not in _NO_NOTES and ":" not in rest:
        others = [each for each in spec.attributes if each.partition(":")[0] != rest]
        noted = value if isinstance(value, list) else [] if value is None else [value]
        more = [f"{rest}:{each}" if each is not True else rest for each in noted]
        changed: Spec = having(spec, head, (*others, *more))
        return changed
    raise Refusal("not_modifiable", path=f"{head}/{rest}" if rest else head)


# ---------------------------------------------------------------- of running requests


def need_alterable(tx: Transaction, request: Request, paths: Iterable[str]) -> None:
    """Raise Refusal unless all these fields (paths) can still change for a started request."""
    id = tx.site.id_of(request.seq)
    if request.state is State.EXITING:
        raise Refusal("in_delivery", id=id, state=request.state.value)
    output = request.spec.output
    direct = {"stdout": output.direct_stdout, "stderr": output.direct_stderr}
    for path in paths:
        head, _, rest = path.partition("/")
        if head == "output" and rest in _PLACES:
            if direct[_PLACES[rest]]:
                raise Refusal("written_in_place", id=id, stream=_PLACES[rest])
        elif path not in WHILE_RUNNING and head != "mail":
            raise Refusal("while_running", id=id, what=(rest or head).rpartition("/")[2])


def need_lower(tx: Transaction, request: Request, spec: Spec, user: bool) -> None:
    """Raise Refusal if a ``user`` (no operator) raises the wall limit of a running request: others'
    reservations rely on it."""
    settings = tx.site.settings
    before = wall_limit(settings, request.queue, request.spec.ask)
    after = wall_limit(settings, request.queue, spec.ask)
    if user and before is not None and (after is None or after > before):
        limit = format_time(before)
        raise Refusal("raised_by_operators", id=tx.site.id_of(request.seq), limit=limit)


def need_fitting(tx: Transaction, request: Request, values: dict[str, Any], owner: Any) -> None:
    """Raise Refusal if ``owner`` (``USER`` or ``USER@HOST``; None: not given) is not the request's present
    owner, if a request that is no array gets an array limit, or if an application becomes rerunnable: the
    command that waits for it serves one run only, so another would hold PEs in vain."""
    id = tx.site.id_of(request.seq)
    if owner is not None and request.owner not in (owner, str(owner).partition("@")[0]):
        raise Refusal("stays_its_owners", id=id, owner=request.owner, user=str(owner)[:40])
    if request.spec.caller is not None and values.get("rerunnable"):
        raise Refusal("not_rerunnable", id=id)
    if "array/limit" in values and request.array is None:
        raise Refusal("not_an_array", id=id)


# ---------------------------------------------------------------- holds


def check_letters(tx: Transaction, letters: Any, caller: Caller) -> None:
    """Raise Refusal unless these are hold letters (u, o, s; n: none) that the caller may set and remove."""
    if letters is None:
        return
    if not isinstance(letters, str) or not letters or (letters != "n" and letters.strip("uos")):
        raise Refusal("bad_hold", letter=letters)
    others = letters.strip("un")
    if others and role_of(tx.site.settings, caller) == "user":
        raise Refusal("hold_needs_operator", letter=others[0])


def letters_of(letters: str | None, usual: str) -> str:
    """Return the hold letters that a command gives (n: none); if it gives none (None), the ``usual`` ones."""
    return usual if letters is None else letters.replace("n", "")


def by(caller: Caller, request: Request) -> Cause:
    """Return the caller as a cause: as the owner of the request, else as an operator."""
    return Cause("owner" if caller.user == request.owner else "operator", caller.user)


def put_holds(tx: Transaction, request: Request, letters: str, caller: Caller) -> None:
    """Set these holds on a waiting request, if it does not have them yet."""
    for letter in dict.fromkeys(letters):
        if letter not in request.holds:
            tx.emit(ev.Held((request.seq,), letter, caller.user, cause=by(caller, request)))
            tx.dirty()


def remove_holds(tx: Transaction, request: Request, letters: str, caller: Caller) -> None:
    """Remove these holds from a held request."""
    aging = ages_when_eligible(tx.site, request.queue)
    tx.emit(ev.Released((request.seq,), letters, caller.user, aging))
    tx.dirty()


def set_holds(tx: Transaction, request: Request, letters: str, caller: Caller) -> None:
    """Give a waiting request exactly these holds. Raises Refusal if the caller may not remove the others."""
    surplus = "".join(letter for letter in request.holds if letter not in letters)
    if surplus.strip("u") and role_of(tx.site.settings, caller) == "user":
        raise Refusal("not_your_hold", id=tx.site.id_of(request.seq), letters=request.letters)
    put_holds(tx, request, letters, caller)
    if surplus:
        remove_holds(tx, request, surplus, caller)


# ---------------------------------------------------------------- deletions


def forgiven(tx: Transaction, command: Delete, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a deletion. With ``history`` each refusal of an ended request is replaced by the
    message that its record stays; otherwise, if ``lenient``, these refusals are left out."""
    ended = [each for each in answer["failed"] if each["code"] == "has_ended"]
    failed = [each for each in answer["failed"] if each["code"] != "has_ended"]
    if command.history:
        seqs = [request_named(each["id"], tx.site.names) for each in ended]
        names = [tx.site.id_of(seq) if seq is not None else ended[n]["id"] for n, seq in enumerate(seqs)]
        messages = [Refusal("record_stays", id=name).as_message() for name in names]
        failed += [{"id": each["id"]} | message for each, message in zip(ended, messages, strict=True)]
    elif not command.lenient:
        return answer
    return answer | {"failed": failed}


def with_dependants(tx: Transaction, command: Delete, caller: Caller) -> tuple[str, ...]:
    """Return the identifiers of a deletion, each behind those of all requests that wait for it, the latest
    first: so none gets a message that its prerequisite failed. Dependants of a request that is not deleted
    are left out."""
    known = (request_named(text, tx.site.names) for text in command.ids)
    named = {tx.site.named(seq) for seq in known if seq is not None}
    found: list[str] = []
    for text in command.ids:
        behind: list[Seq] = []
        try:
            request = tx.find(text, caller)
            need_owner(tx.site, caller, request, "delete")
            ends = command.kill or (command.signal is None and command.force)
            if command.owner in (None, request.owner) and (ends or request.state not in STARTED):
                behind = dependants(tx.site, request.seq)
        except Refusal:
            pass  # the deletion itself says so
        found += [tx.site.id_of(each) for each in behind if each not in named]
        named.update(behind)
        found.append(text)
    return tuple(found)


def dependants(site: Site, seq: Seq) -> list[Seq]:
    """Return all requests that wait for this one, directly or not, the latest first; for an array also those
    that wait for its indices."""
    found: set[Seq] = set()
    open_ = [seq]
    while open_:
        awaited = open_.pop()
        more = set(site.dependants.get(awaited, ()))
        if is_array(awaited):
            parts = [each for each in site.dependants if array_of(each) == awaited]
            more.update(*(site.dependants[each] for each in parts))
        open_ += more - found
        found |= more
    return sorted(found, key=rank_of, reverse=True)
