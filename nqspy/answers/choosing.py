"""The message ``choose``: identifiers of requests named by ranges, names and states, for other commands."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from nqspy.answers.listing import SLICE
from nqspy.answers.named import state_named
from nqspy.answers.serving import Serving
from nqspy.answers.texts import either
from nqspy.answers.visibility import Visibility
from nqspy.model.errors import Refusal
from nqspy.model.ids import Seq, array_key, array_of, number_of, rank_of, request_named
from nqspy.model.requests import Spec, State
from nqspy.rpc import server as rpc

WIDEST = 100_000
"""Most numbers in one range of identifiers."""


class NameQuery:
    """Query for a user's requests by ranges, patterns and state; ``ended``: True if ended ones count too.
    Raises Refusal."""

    def __init__(self, serving: Serving, asked: rpc.Asked) -> None:
        self.site, message = serving.engine.site, asked.message
        self.user: str = message.get("user") or asked.caller.user
        self.name: str | None = message.get("name")
        self.state: State | None = state_named(message.get("state"))
        self.ended = bool(message.get("ended"))
        self.operands: list[str] = message.get("operands") or []
        self.patterns = [word for word in self.operands if not word[:1].isdigit()]
        self.ranges = [self._range(word) for word in self.operands if word[:1].isdigit()]

    def _range(self, word: str) -> range:
        number, dot, host = word.partition(".")
        first, dash, last = number.partition("-")
        begin = request_named(f"{first}{dot}{host}", self.site.names)
        end = request_named(f"{last}{dot}{host}", self.site.names) if dash else begin
        if begin is None or end is None or not 0 <= end - begin < WIDEST:
            raise Refusal("bad_range", text=word[:80], most=WIDEST)
        return range(begin, min(end + 1, self.site.next_seq))

    def means(self, seq: Seq, spec: Spec, state: State) -> bool:
        """True if a request is among those that the query asks for."""
        if spec.owner != self.user or self.state not in (None, state):
            return False
        if self.name and not fnmatchcase(spec.name, self.name):
            return False
        if not self.operands:
            return True
        by_name = any(fnmatchcase(spec.name, each) for each in self.patterns)
        return by_name or any(number_of(seq) in each for each in self.ranges)

    def what(self) -> str:
        """Return the query in words, for a refusal: ``sim*, state held of anne's``."""
        words = [" ".join(self.operands)] if self.operands else []
        words += [f"name {self.name}"] if self.name else []
        words += [f"state {self.state.value}"] if self.state else []
        return f"{', '.join(words)[:200] or 'any'} of {self.user}'s"


def choose(serving: Serving, asked: rpc.Asked) -> Iterator[bytes | None]:
    """Yield None after each slice, then the answer: the identifiers of all requests that fit and that the
    caller may see, by number. Raises Refusal if there are criteria and no request fits."""
    query, view = NameQuery(serving, asked), Visibility(serving, asked.caller)
    found: set[Seq] = set()
    for number, request in enumerate(list(query.site.requests.values()), 1):
        if query.means(request.seq, request.spec, request.state) and view.allows(request.spec):
            found.add(request.seq)
        if number % SLICE == 0:
            yield None
    if query.ended:
        for last in _ended(serving, query, bool(found)):
            yield None
            found.update(last)
    if not found and (query.operands or query.name or query.state):
        raise Refusal("none_chosen", what=query.what())
    whole = {seq for seq in found if array_of(seq) not in found}  # an array stands for its indices
    ids = [query.site.id_of(seq) for seq in sorted(whole, key=rank_of)]
    yield either(asked, {"ids": ids}, "".join(f"{id}\n" for id in ids))


def _ended(serving: Serving, query: NameQuery, found: bool) -> Iterator[list[Seq]]:
    """Yield, in slices, ended requests that the query means: by number all; by name only the last that ended,
    and none if live ones were ``found``."""
    numbers = {seq for each in query.ranges for seq in each}
    some = sorted({*numbers, *map(array_key, numbers)} - query.site.requests.keys())
    for start in range(0, len(some), SLICE):
        rows = serving.readers.live.ended(seqs=some[start : start + SLICE])
        yield [row["seq"] for row in rows if query.means(row["seq"], row["spec"], State.ENDED)]
    if found or query.ranges or not (query.name or query.patterns):
        return
    latest: list[Seq] = []
    for number, row in enumerate(serving.readers.live.ended(owner=query.user), 1):
        if query.means(row["seq"], row["spec"], State.ENDED):
            latest = [row["seq"]]
        if number % SLICE == 0:
            yield []
    yield latest
