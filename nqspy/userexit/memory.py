"""What jobselect exits answered and what their answers rest on: as long as nothing of that has changed they
are not asked again.

An answer rests on the request it is about, on the settings, and on what the exit looked at: each call of
``view.running`` or ``view.waiting`` is noted with its words. Whatever happens to a request makes void what
rests on it. An answer made of anything else (time, use, shares, the candidates ahead) or by a file that may
remember things of its own (`purity`) is never kept.
"""

from collections.abc import Collection, Iterable, Mapping

from nqspy.model.ids import Seq
from nqspy.model.news import Stir
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.ports import Answer, Known
from nqspy.userexit.seats import Hook
from nqspy.userexit.view import Key

MANY = 1_000
"""More changes than these and all answers are forgotten, which costs less than to look for those meant."""
MOST = 200_000
"""Answers and what they rest on, at most; then all are forgotten."""

Rounds = dict[str, dict[Seq, Answer]]


class Memory:
    """Kept answers, by hook and request; ``rounds``: what candidates of a queue were refused with while not
    all of its line could be offered yet, by queue; ``live``: a pass is on that has caught up."""

    def __init__(self) -> None:
        self._site: Site | None = None
        self._count = self._general = self._size = 0
        self._hooks: tuple[Hook, ...] = ()
        self._index: dict[Key, list[tuple[Hook, Seq]]] = {}
        self._shapes: set[tuple[bool, bool, bool, bool]] = set()
        self._pending: list[Stir] = []
        self.rounds: Rounds = {}
        self.live = False

    def clear(self) -> None:
        """Forgets all answers."""
        for hook in self._hooks:
            hook.kept.clear()
        self._index.clear()
        self._shapes.clear()
        self._size = 0

    def catch_up(self, site: Site, hooks: tuple[Hook, ...]) -> None:
        """A pass over ``site`` begins: forgets what rests on anything that has changed since the last one, or
        that the last one proposed (it need not have come about)."""
        news = site.news
        stirs = news.since(self._count)
        if site is not self._site or self._general != news.general or stirs is None or hooks != self._hooks:
            if site is not self._site:
                self.rounds = {}
            self.clear()
        else:
            self._forget(list(dict.fromkeys([*self._pending, *stirs])))
        self._site, self._count, self._general, self._hooks = site, news.count, news.general, hooks
        self._pending = []
        self.live = True

    def stir(self, requests: Iterable[Request]) -> None:
        """The pass proposes to start these, or to change them."""
        found = [(r.seq, r.queue, r.spec.owner, r.spec.group, r.spec.name) for r in requests]
        stirs = list(dict.fromkeys(found))  # what starts is mostly the request itself
        self._pending += stirs
        self._forget(stirs)

    def put(self, hook: Hook, seq: Seq, answer: Answer | None, keys: Collection[Key]) -> None:
        """An answer that rests on requests chosen by these words, and on the request it is about."""
        if self._size > MOST:
            self.clear()
        hook.kept[seq] = answer
        self._size += 1 + len(keys)
        for key in keys:
            if (resting := self._index.get(key)) is None:
                resting = self._index[key] = []
                queue, owner, group, name = key
                self._shapes.add((queue is not None, owner is not None, group is not None, name is not None))
            resting.append((hook, seq))

    def _forget(self, stirs: list[Stir]) -> None:
        if len(stirs) > MANY:
            self.clear()
        for stir in stirs if self._size else ():
            for hook in self._hooks:
                hook.kept.pop(stir[0], None)
            for key in self._keys(stir):
                for hook, seq in self._index.pop(key, ()):
                    hook.kept.pop(seq, None)

    def _keys(self, stir: Stir) -> list[Key]:
        _, queue, owner, group, name = stir
        return [
            (queue if q else None, owner if o else None, group if g else None, name if n else None)
            for q, o, g, n in self._shapes
        ]

    def known(self, seq: Seq, hooks: tuple[Hook, ...]) -> Known | None:
        """What all exits together would answer again; None where one of them must be asked."""
        first: Answer | None = None
        for hook in hooks:
            kept = hook.kept
            if seq not in kept:
                return None
            answer = kept[seq]
            if answer is not None and answer.verdict != "force":
                return Known(answer)
            first = first or answer
        return Known(first)

    def keep(self, rounds: Mapping[str, Mapping[Seq, Answer]]) -> None:
        """Who was refused in lines that could not be offered to their end."""
        self.rounds = {queue: dict(refused) for queue, refused in rounds.items()}
