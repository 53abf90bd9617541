"""Requests that a list shows: identifiers, destinations, and options that narrow them (pbs-clients.md 2, 8).
A list is made in slices, each bound in time: between two of them the engine and submissions go on."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import gt, itemgetter
from typing import Any, TypeVar

from nqspy.answers.named import seqs_of, state_named, with_indices
from nqspy.answers.serving import Serving
from nqspy.answers.visibility import Visibility
from nqspy.model import indices
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant, Seq, array_of, is_array, member, rank_in_list, rank_of
from nqspy.model.people import Caller
from nqspy.model.requests import Request, State
from nqspy.model.site import Site
from nqspy.ports import EndedRow
from nqspy.rpc import messages

SLICE_TIME, SHORTEST, LONGEST = 0.004, 0.001, 0.01
"""CPU seconds of a slice: while the engine is free; least and most while other work waits."""
IDLE = 0.0005
"""Real seconds between two slices up to which no other work can have waited."""
SLICE = 32
"""Requests that are examined at once."""
_ROWS = 500
"""Ended requests that are read between two checks of the clock."""

_NARROWED = {
    "i": frozenset({State.EXITING, State.HELD, State.QUEUED, State.ARRIVING, State.ROUTING, State.WAITING}),
    "r": frozenset({State.RUNNING, State.SUSPENDED}),
    "H": frozenset({State.ENDED}),
}  # fmt: skip

T = TypeVar("T")


class RequestChoice:
    """Requests that a list shows, chosen by the fields of its message. ``wrong``: refusals of bad operands.
    ``strict``: for nqspy's own forms, where an unreadable operand is raised as Refusal, named requests are
    listed even if ended, and PBS's options without a value (``letters``) do not count."""

    def __init__(
        self, serving: Serving, message: Mapping[str, Any], caller: Caller, *, strict: bool = False
    ) -> None:
        self.site, self.view = serving.engine.site, Visibility(serving, caller)
        self.wrong: list[Refusal] = []
        self._reader, self._strict = serving.readers.live, strict
        letters = "" if strict else str(message.get("letters") or "")
        words = message.get("operands") or message.get("ids") or ()
        self.seqs: list[Seq] = []
        self._queues: set[str] = set()
        self._whole = not words
        for word in map(str, words):
            try:
                if word[:1].isdigit():
                    self.seqs += seqs_of(serving, self.view, (word,))
                else:
                    self._queues.add(queue_of(self.site, word))
                    self._whole = True
            except Refusal as refusal:
                if strict:
                    raise
                self.wrong.append(refusal)
        if "" in self._queues:
            self._queues.clear()
        if strict:
            self._whole = not self.seqs
        if "E" in letters:
            self.seqs.sort(key=rank_in_list)
        self._places = {seq: place for place, seq in reversed(list(enumerate(self.seqs)))}
        self._missing: list[Seq] = []  # named, and unknown or ended
        queue = message.get("queue")
        narrow = {queue_of(self.site, str(queue))} if queue else set()
        self._narrow = (narrow | self._queues if strict else narrow) - {""}
        self._users = owners(serving, str(message.get("user") or ""))
        ended = bool(message.get("ended")) and not (strict and self.seqs)
        self._states = _states(message.get("state"), letters, ended)
        self._history = bool("x" in letters or self._states == _NARROWED["H"] or message.get("history"))
        self._arrays_only = "J" in letters
        self._expand = bool(message.get("expand")) if strict else not {"t", "T"}.isdisjoint(letters)
        self._indices = strict and message.get("text") == "json" and not self._expand
        self._newest_first = self._states == _NARROWED["H"] and not self._expand
        span = None if strict else self.site.settings.history.keep
        oldest = 0 if span is None else serving.clock.now() - span
        self._since = Instant(max(oldest, message.get("since") or 0))
        self._most: int | None = message.get("limit")  # those that ended last
        self._cut = False

    def requests(self) -> Iterator[Request]:
        """Yield the live requests to list, named ones first, an array before its indices. Call this before
        `rows`: it also notes which named requests are not live."""
        seqs = dict.fromkeys(self.seqs)
        for seq in with_indices(self.site, seqs) if self._expand else seqs:
            found = self.site.to_be(seq)
            if found is None or not self.view.allows(found.spec):
                self._missing += (seq,) if seq in seqs else ()
            elif self._fits(found):
                yield found
        if not self._whole or self._states == _NARROWED["H"]:
            return
        shown = [seq for seq in self.site.requests if self._indices or not array_of(seq)]
        if self._strict and self.site.members:
            shown.sort(key=rank_of)
        for seq in with_indices(self.site, shown) if self._expand else shown:
            found = self.site.requests.get(seq) or self.site.to_be(seq)
            if found is not None and seq not in self._places and self._listed(found):
                yield found

    def rows(self) -> Iterator[EndedRow | None]:
        """Yield the ended requests to list: named ones, then the others from the latest end back; None now
        and then, so that the caller can look at the clock. Unknown operands are added to ``wrong``."""
        seqs, missing = dict.fromkeys(self.seqs), self._missing
        found = {row["seq"]: row for row in (self._reader.ended(seqs=missing) if missing else ())}
        for seq in missing:
            named, id = found.get(seq), self.site.id_of(seq)
            if named is None or not self.view.allows(named["spec"]):
                self.wrong.append(Refusal("unknown_request", id=id))
            elif not (self._history or self._strict):
                self.wrong.append(Refusal("is_history", id=id))
            elif self._strict or self._fits(named["request"], State.ENDED):
                yield named
        for seq in seqs if self._expand and self._history else ():
            array = found[seq]["request"] if seq in found else self.site.requests.get(seq)
            yield from self._indices_over(array, seqs)
        if not (self._whole and self._history):
            return
        owner = next(iter(self._users)) if len(self._users) == 1 else None
        shown = 0
        for number, row in enumerate(self._reader.newest(owner, self._since), 1):
            hidden = not (self._expand or self._indices) and array_of(row["seq"]) is not None
            if row["seq"] not in self._places and not hidden and self._listed(row["request"], State.ENDED):
                self._cut = shown == self._most
                if self._cut:
                    return
                shown += 1
                yield row
            if number % _ROWS == 0:
                yield None

    def _indices_over(self, array: Request | None, named: Collection[Seq]) -> Iterator[EndedRow]:
        """Yield ended indices of an array, except those that are named themselves."""
        if array is None or array.array is None or not self.view.allows(array.spec):
            return
        state = array.array
        over = indices.plus(indices.plus(state.well, state.badly), state.dropped)
        seqs = (seq for index in indices.each(over) if (seq := member(array.seq, index)) not in named)
        while some := list(islice(seqs, _ROWS)):
            for row in self._reader.ended(seqs=some):
                if self._fits(row["request"], State.ENDED):
                    yield row

    def orders(self, seqs: Sequence[Seq]) -> Iterable[int]:
        """Return sort keys: named requests as typed, indices behind their arrays, others in usual order."""
        if self._strict and not self.seqs:
            return [0] * len(seqs)
        return map(self._order if self.seqs or self._newest_first else rank_in_list, seqs)

    def _order(self, seq: Seq) -> int:
        last = len(self.seqs)
        place = self._places.get(seq, self._places.get(array_of(seq) or 0, last))
        rank = 0 if self._newest_first and place == last else rank_in_list(seq)
        return (place << 64) + rank

    def _listed(self, request: Request, state: State | None = None) -> bool:
        return (not self._queues or request.queue in self._queues) and self._fits(request, state)

    def _fits(self, request: Request, state: State | None = None) -> bool:
        """True if a request is to be listed; ``state``: of one that has ended."""
        seq = request.seq
        return (
            (self.view.all or self.view.allows(request.spec))
            and (self._states is None or (state or request.shown_state) in self._states)
            and (not self._users or request.owner in self._users)
            and (not self._narrow or request.queue in self._narrow)
            and (not self._arrays_only or (self._expand and array_of(seq) is not None) or is_array(seq))
        )

    def complaint(self) -> str:
        """Return a line for each bad operand, and one if ``limit`` left out ended requests."""
        lines = [str(each) for each in self.wrong]
        if self._cut:
            lines += [f"only the last {self._most} ended requests are shown; try --limit or --since"]
        return "".join(f"{line}\n" for line in lines)

    def status(self) -> int:
        """Return the exit status of the command: that of the last bad operand, 0 if all are good."""
        return self.wrong[-1].status if self.wrong else 0


class Listing:
    """Maker of the answer to a list: ``live`` makes its parts of live requests, ``ended`` of rows of ended
    ones."""

    def __init__(
        self, id: int, choice: RequestChoice, live: Callable[[list[Request]], list[Any]],
        ended: Callable[[list[EndedRow]], list[Any]],
    ) -> None:  # fmt: skip
        self.id, self.choice = id, choice
        self._live, self._ended = live, ended

    def collected(self, into: list[T], write: Callable[[list[Any]], list[T]]) -> Iterator[None]:
        """Add to ``into``, in order, what ``write`` makes of each batch; yield None after each slice."""
        orders, choice = list[int](), self.choice
        end = time.thread_time() + SLICE_TIME
        live = (([r.seq for r in some], self._live(some)) for some in _batches(choice.requests()))
        ended = (([row["seq"] for row in some], self._ended(some)) for some in _batches(choice.rows()))
        for seqs, made in chain(live, ended):
            orders += choice.orders(seqs)
            into += write(made)
            if time.thread_time() >= end:
                paused = time.monotonic()
                yield None
                end = time.thread_time() + _time_for_slice(time.monotonic() - paused)
        if any(map(gt, orders, islice(orders, 1, None))):
            into[:] = [part for _, part in sorted(zip(orders, into, strict=True), key=itemgetter(0))]

    def answer(self, text: str) -> bytes:
        """Return the answer: the text on stdout, a line on stderr for each bad operand."""
        return messages.text_answer(self.id, self.choice.status(), text, self.choice.complaint())


def _time_for_slice(away: float) -> float:
    """Return the CPU seconds for the next slice, ``away`` real seconds after the last: a quarter of these, so
    that lists take a fifth of the engine's time."""
    return SLICE_TIME if away < IDLE else min(max(away / 4, SHORTEST), LONGEST)


def _batches(things: Iterator[T | None]) -> Iterator[list[T]]:
    some: list[T] = []
    for thing in things:
        if thing is not None:
            some.append(thing)
        if thing is None or len(some) == SLICE:
            yield some
            some = []
    yield some


def owners(serving: Serving, text: str) -> frozenset[str]:
    """Return the users in ``USER[@HOST],...``: without the host, unless a user of the whole name has
    submitted."""
    live = serving.engine.site.requests.values()
    found = set()
    for word in filter(None, map(str.strip, text.split(","))):
        name, at, _ = word.partition("@")
        whole = not at or any(each.owner == word for each in live)
        found.add(word if whole or any(serving.readers.live.ended(owner=word)) else name)
    return frozenset(found)


def queue_of(site: Site, destination: str) -> str:
    """Return the queue of ``queue`` or ``queue@server``; empty (all queues) for ``@server``. Raises
    Refusal."""
    queue, at, server = destination.partition("@")
    if at:
        need_server(site, server)
    if queue and queue not in site.settings.queues:
        raise Refusal("unknown_queue", queue=queue)
    return queue


def need_server(site: Site, name: str) -> None:
    """Raise Refusal for a name that is not this server's."""
    if name not in (site.name, site.name.partition(".")[0], site.host, ""):
        raise Refusal("unknown_server", server=name, name=site.name)


def _states(word: Any, letters: str, ended: bool) -> frozenset[State] | None:
    if (state := state_named(word)) is not None:
        return frozenset({state})
    if ended:
        return _NARROWED["H"]
    return next((_NARROWED[letter] for letter in _NARROWED if letter in letters), None)
