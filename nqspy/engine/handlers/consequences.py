"""What a failed prerequisite brings about for those that waited for it, told once: one mail for each person
and failure, however many requests and however long the chain behind it."""

from msgspec import Struct

from nqspy.engine.handlers.context import Transaction
from nqspy.model.actions import Notify
from nqspy.model.ids import Seq
from nqspy.model.requests import Request

NAMED = 20
"""Requests that a mail names; the others are counted."""


class Consequences(Struct):
    """Gathers what is told at the end. ``roots``: what began it all, for each request that was deleted with
    its prerequisite; ``held`` and ``deleted``: names of requests by whom to tell and what began it."""

    roots: dict[Seq, str] = {}
    held: dict[tuple[str, str], list[tuple[Seq, str]]] = {}
    deleted: dict[tuple[str, str], list[tuple[Seq, str]]] = {}

    def holds(self, request: Request, prerequisite: Seq, text: str) -> None:
        """A request stays held as its prerequisite did what ``text`` says; its owner is always told."""
        self.held.setdefault(self._key(request, prerequisite, text), []).append((request.seq, request.name))

    def deletes(self, request: Request, prerequisite: Seq, text: str) -> None:
        """A request is deleted for it; its owner is told where that was asked for."""
        key = self._key(request, prerequisite, text)
        self.roots[request.seq] = key[1]
        if request.spec.mail.abort:
            self.deleted.setdefault(key, []).append((request.seq, request.name))

    def _key(self, request: Request, prerequisite: Seq, text: str) -> tuple[str, str]:
        return request.spec.mail.to or request.owner, self.roots.get(prerequisite, text)

    def tell(self, tx: Transaction) -> None:
        """Sends the mails, and begins anew."""
        for (to, text), some in self.held.items():
            said = f"{text}: what it waits for can never come about. It stays held: {_listed(tx, some)}."
            said += " An operator can release it, its owner delete it."
            tx.act(Notify(to, _subject(tx, some, "held"), said, some[0][0]))
        for (to, text), some in self.deleted.items():
            said = f"{text}. What waited for that was deleted: {_listed(tx, some)}."
            tx.act(Notify(to, _subject(tx, some, "deleted"), said, some[0][0]))
        self.held, self.deleted, self.roots = {}, {}, {}


def _subject(tx: Transaction, some: list[tuple[Seq, str]], done: str) -> str:
    if len(some) > 1:
        return f"nqspy: {len(some)} requests are {done}"
    return f"nqspy: {tx.site.id_of(some[0][0])} {'is ' * (done == 'held')}{done}"


def _listed(tx: Transaction, some: list[tuple[Seq, str]]) -> str:
    names = [f"{tx.site.id_of(seq)} ({name})" for seq, name in some[:NAMED]]
    more = f" and {len(some) - NAMED} more" if len(some) > NAMED else ""
    return ", ".join(names) + more
