"""Mail about requests: when it is sent, its address and its text. The daemon sends it after the commit."""

from msgspec import Struct

from nqspy.core import features, runtime
from nqspy.engine.handlers.context import Transaction
from nqspy.model.actions import Notify
from nqspy.model.endings import End
from nqspy.model.ids import Seq
from nqspy.model.lifetimes import key_of
from nqspy.model.requests import Ending, Request, finite
from nqspy.model.texts import counted, some_of

NAMED = 20
"""Most requests that a mail names; the others are counted."""


def begun(tx: Transaction, request: Request, pes: int) -> None:
    """Mail that a request has begun, if it asked for that (``-mb``)."""
    if request.spec.mail.begin:
        _send(tx, request, "has started", f" on {counted(pes, 'PE')}")


def warn_of_shift(tx: Transaction, seq: Seq) -> None:
    """Mail, if any was asked for, that a shift may end or stop a starting request before its wall limit."""
    request = tx.site.requests[seq]
    mail = request.spec.mail
    asked = mail.begin or mail.end or mail.abort
    action = features.next_action(tx.site, request, tx.now) if asked else None
    if action is not None:
        name = tx.site.id_of(seq)
        subject = f"nqspy: {name} starts and may not end in time"
        tx.act(Notify(_address(request), subject, f"Request {name} ({request.name}): {action.text}", seq))


def requeued(tx: Transaction, request: Request, text: str) -> None:
    """Mail that a request is queued again, if it asked for that."""
    if request.spec.mail.rerun:
        _send(tx, request, "is queued again", f": {text}")


def held(tx: Transaction, request: Request, text: str) -> None:
    """Mail that a request was held because of an error, even if it asked for no mail."""
    _send(tx, request, "is held", f": {text}")


def ended(tx: Transaction, request: Request, ending: Ending) -> None:
    """Mail the end of a request, if it asked for that (``-me``; ``-ma``: if something went wrong)."""
    mail, bad = request.spec.mail, ending.reason not in ("exit", "deleted")
    if not (mail.end or (mail.abort and bad)):
        return
    end = End(ending.reason, ending.status, ending.signal)
    text = f": {end.words}" + (f". {ending.text}" if ending.text else "")
    if end.ok:
        site, limit = tx.site, finite(request.spec.ask.wall)
        hint = runtime.hint_on_wall(site.settings, site.lifetimes, key_of(request), limit)
        text += f". Hint: {hint}" if hint else ""
    _send(tx, request, "ended", text)


def deleted(tx: Transaction, request: Request, name: str, who: str, text: str) -> bool:
    """Mail the owner that another person deleted a request, if it asked for that; ``name``: its identifier or
    indices. Return True if mail is sent."""
    if not request.spec.mail.abort or who == request.owner:
        return False
    body = f"Request {name} ({request.name}) was deleted by {who}. {text}"
    tx.act(Notify(_address(request), f"nqspy: {name} is deleted", body, request.seq))
    return True


def _send(tx: Transaction, request: Request, what: str, text: str) -> None:
    name = tx.site.id_of(request.seq)
    body = f"Request {name} ({request.name}) {what}{text}"
    tx.act(Notify(_address(request), f"nqspy: {name} {what}", body, request.seq))


def _address(request: Request) -> str:
    return request.spec.mail.to or request.owner


class Consequences(Struct):
    """Collects requests held or deleted because prerequisites failed, to send one mail for each address and
    first failure. ``held``, ``deleted``: by address and text of that failure. ``roots``: that text for each
    deleted request, because others may wait for it in turn."""

    roots: dict[Seq, str] = {}
    held: dict[tuple[str, str], list[tuple[Seq, str]]] = {}
    deleted: dict[tuple[str, str], list[tuple[Seq, str]]] = {}

    def holds(self, request: Request, prerequisite: Seq, text: str) -> None:
        """Record that a request is held because its prerequisite failed; ``text``: how it failed."""
        self.held.setdefault(self._key(request, prerequisite, text), []).append((request.seq, request.name))

    def deletes(self, request: Request, prerequisite: Seq, text: str) -> None:
        """Record that a request is deleted because its prerequisite failed, if it asked for mail on that."""
        key = self._key(request, prerequisite, text)
        self.roots[request.seq] = key[1]
        if request.spec.mail.abort:
            self.deleted.setdefault(key, []).append((request.seq, request.name))

    def _key(self, request: Request, prerequisite: Seq, text: str) -> tuple[str, str]:
        return _address(request), self.roots.get(prerequisite, text)

    def send(self, tx: Transaction) -> None:
        """Send the mails and clear the collection."""
        for (to, text), some in self.held.items():
            body = f"{text}. Held, because it can never start now: {_listed(tx, some)}."
            body += " Delete it with qdel, or ask an operator to release it with qrls -h s."
            tx.act(Notify(to, _subject(tx, some, "held"), body, some[0][0]))
        for (to, text), some in self.deleted.items():
            body = f"{text}. Deleted, because it waited for that: {_listed(tx, some)}."
            tx.act(Notify(to, _subject(tx, some, "deleted"), body, some[0][0]))
        self.held, self.deleted, self.roots = {}, {}, {}


def _subject(tx: Transaction, some: list[tuple[Seq, str]], done: str) -> str:
    if len(some) > 1:
        return f"nqspy: {len(some)} requests are {done}"
    return f"nqspy: {tx.site.id_of(some[0][0])} is {done}"


def _listed(tx: Transaction, some: list[tuple[Seq, str]]) -> str:
    return some_of(some, NAMED, lambda each: f"{tx.site.id_of(each[0])} ({each[1]})")
