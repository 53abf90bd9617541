"""Jobs that a PBS form is about: identifiers, destinations, and what options narrow them to (pbs-clients.md
2, 8)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from nqspy.answers.named import Limit, seqs_of, state_named, with_indices
from nqspy.answers.serving import Serving
from nqspy.answers.visibility import Visibility
from nqspy.model import indices
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant, Seq, array_of, is_array, member, rank_in_list
from nqspy.model.people import Caller
from nqspy.model.requests import Request, State
from nqspy.model.site import Site
from nqspy.ports import EndedRow

_NARROWED = {
    "i": frozenset(
        {State.EXITING, State.HELD, State.QUEUED, State.ARRIVING, State.ROUTING, State.WAITING}
    ),
    "r": frozenset({State.RUNNING, State.SUSPENDED}),
    "H": frozenset({State.ENDED}),
}  # fmt: skip
_SLICE = 500
"""Ended indices of an array that are read at a time."""


class JobChoice:
    """The jobs asked for. ``letters``: options without a value. What is wrong with an operand is kept in
    ``wrong``, the others are shown. Raises Refusal for a queue or state of an option that there is not."""

    def __init__(self, serving: Serving, message: Mapping[str, Any], caller: Caller) -> None:
        self.site = serving.engine.site
        self.sight = Visibility(serving, caller)
        self.wrong: list[Refusal] = []
        self._reader = serving.readers.live
        letters = str(message.get("letters") or "")
        self._read_operands(serving, [str(word) for word in message.get("operands") or ()])
        if "E" in letters:
            self.seqs.sort(key=rank_in_list)
        self._places = {seq: place for place, seq in reversed(list(enumerate(self.seqs)))}
        queue = message.get("queue")
        self._queue = queue_of(self.site, str(queue)) if queue else ""
        self._users = owners(serving, str(message.get("user") or ""))
        self._states = _states(message.get("state"), letters, bool(message.get("ended")))
        self._history = "x" in letters or self._states == _NARROWED["H"]
        self._arrays_only, self._expand = "J" in letters, not {"t", "T"}.isdisjoint(letters)
        self._newest_first = self._states == _NARROWED["H"] and not self._expand
        keep = self.site.settings.history.keep
        kept = 0 if keep is None else serving.clock.now() - keep
        self._since = Instant(max(kept, message.get("since") or 0))
        self._limit = Limit(message)

    def _read_operands(self, serving: Serving, operands: list[str]) -> None:
        self.seqs: list[Seq] = []
        self._queues: set[str] = set()
        self._whole = not operands
        for word in operands:
            try:
                if word[:1].isdigit():
                    self.seqs += seqs_of(serving, self.sight, (word,))
                else:
                    self._queues.add(queue_of(self.site, word))
                    self._whole = True
            except Refusal as refusal:
                self.wrong.append(refusal)
        if "" in self._queues:
            self._queues.clear()

    # ------------------------------------------------------------ jobs

    def requests(self) -> Iterator[Request]:
        """Yield those that have not ended: the ones named in their order, then of destinations; an array as
        one, and behind it its indices where they are asked for."""
        seqs = dict.fromkeys(self.seqs)
        for seq in with_indices(self.site, seqs) if self._expand else seqs:
            found = self.site.to_be(seq)
            if found is not None and self._fits(found):
                yield found
        if self._whole and self._states != _NARROWED["H"]:
            yield from self._of_destinations()

    def _of_destinations(self) -> Iterator[Request]:
        named = set(self.seqs)
        shown = [seq for seq in self.site.requests if not array_of(seq)]
        for seq in with_indices(self.site, shown) if self._expand else shown:
            found = self.site.requests.get(seq) or self.site.to_be(seq)
            if found is not None and seq not in named and self._listed(found):
                yield found

    def rows(self) -> Iterator[EndedRow]:
        """Yield those that have ended; told of in ``wrong`` where they are named and not asked for, as are
        identifiers of no job."""
        yield from self._named_rows()
        if self._whole and self._history:
            named = set(self.seqs)
            owner = next(iter(self._users)) if len(self._users) == 1 else None
            for row in self._reader.newest(owner, self._since):
                seq = row["seq"]
                hidden = not self._expand and array_of(seq) is not None
                if seq not in named and not hidden and self._listed(row["request"], State.ENDED):
                    if self._limit.is_reached():
                        return
                    yield row

    def _named_rows(self) -> Iterator[EndedRow]:
        seqs = dict.fromkeys(self.seqs)
        missing = [seq for seq in seqs if not self.sight.shows(seq)]
        found = {row["seq"]: row for row in (self._reader.ended(seqs=missing) if missing else ())}
        for seq in missing:
            row, id = found.get(seq), self.site.id_of(seq)
            if row is None or not self.sight.sees(row["spec"]):
                self.wrong.append(Refusal("unknown_request", id=id))
            elif not self._history:
                self.wrong.append(Refusal("is_history", id=id))
            elif self._fits(row["request"], State.ENDED):
                yield row
        if self._expand and self._history:
            for seq in seqs:
                row = found.get(seq)
                yield from self._indices_over(row["request"] if row else self.site.requests.get(seq), seqs)

    def _indices_over(self, array: Request | None, named: Collection[Seq]) -> Iterator[EndedRow]:
        """Yield indices of an array that have ended, except those that are named themselves."""
        if array is None or array.array is None or not self.sight.sees(array.spec):
            return
        state = array.array
        over = indices.plus(indices.plus(state.well, state.badly), state.dropped)
        seqs = (seq for index in indices.each(over) if (seq := member(array.seq, index)) not in named)
        while some := list(islice(seqs, _SLICE)):
            for row in self._reader.ended(seqs=some):
                if self._fits(row["request"], State.ENDED):
                    yield row

    def orders(self, seqs: Iterable[Seq]) -> Iterable[int]:
        """Return the keys that sort jobs: the named ones in their order, indices behind their array, the
        others by their numbers. A list of what has ended has the newest first."""
        return map(self._order if self.seqs or self._newest_first else rank_in_list, seqs)

    def _order(self, seq: Seq) -> int:
        last = len(self.seqs)
        place = self._places.get(seq, self._places.get(array_of(seq) or 0, last))
        rank = 0 if self._newest_first and place == last else rank_in_list(seq)
        return (place << 64) + rank

    def _listed(self, request: Request, state: State | None = None) -> bool:
        return (not self._queues or request.queue in self._queues) and self._fits(request, state)

    def _fits(self, request: Request, state: State | None = None) -> bool:
        """True if a job is asked for; ``state``: of one that has ended."""
        seq = request.seq
        return (
            (self.sight.all or self.sight.sees(request.spec))
            and (self._states is None or (state or request.shown_state) in self._states)
            and (not self._users or request.owner in self._users)
            and (not self._queue or request.queue == self._queue)
            and (not self._arrays_only or (self._expand and array_of(seq) is not None) or is_array(seq))
        )

    # ------------------------------------------------------------ what was wrong

    def complaint(self) -> str:
        """A line for each operand that is wrong."""
        return "".join([f"{each}\n" for each in self.wrong]) + self._limit.note()

    def status(self) -> int:
        """The exit status of the command: that of the last failure."""
        return self.wrong[-1].status if self.wrong else 0


def owners(serving: Serving, text: str) -> frozenset[str]:
    """The users of ``USER[@HOST],...``; a word that is the name of a user who has submitted here is that
    user, whatever it holds."""
    live = serving.engine.site.requests.values()
    found = set()
    for word in filter(None, map(str.strip, text.split(","))):
        name, at, _ = word.partition("@")
        whole = not at or any(each.owner == word for each in live)
        found.add(word if whole or any(serving.readers.live.ended(owner=word)) else name)
    return frozenset(found)


def queue_of(site: Site, destination: str) -> str:
    """The queue of ``queue``, ``queue@server``; empty: ``@server``, all there are. Raises Refusal."""
    queue, at, server = destination.partition("@")
    if at:
        need_server(site, server)
    if queue and queue not in site.settings.queues:
        raise Refusal("unknown_queue", queue=queue)
    return queue


def need_server(site: Site, name: str) -> None:
    """Raises Refusal for a name that is not this server's."""
    if name not in (site.name, site.name.partition(".")[0], site.host, ""):
        raise Refusal("unknown_server", server=name, name=site.name)


def _states(word: Any, letters: str, ended: bool) -> frozenset[State] | None:
    if (state := state_named(word)) is not None:
        return frozenset({state})
    if ended:
        return _NARROWED["H"]
    return next((_NARROWED[letter] for letter in _NARROWED if letter in letters), None)
