"""Bytes kept by each owner: scripts, environments and large specifications (`specs.text_size`), of requests
that wait, run or have ended. A row of ``kept`` for each owner and blob, and for each request with a large
specification. The blobs of requests that never ran go with the last of them, others with their record."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

from nqspy.model.arrays import counted
from nqspy.model.events import Modified, Recorded, Submitted
from nqspy.model.ids import Seq, index_of, number_of
from nqspy.model.requests import Request, Spec
from nqspy.model.site import Site
from nqspy.model.specs import text_size

Pair = tuple[str, str]
"""An owner, and the digest of what is kept."""

_NEW = """INSERT INTO kept (owner, digest, size, ran)
SELECT ?1, digest, length(body), 0 FROM blobs WHERE digest = ?2 ON CONFLICT DO NOTHING RETURNING size"""
_TEXT = """INSERT INTO kept (owner, digest, size, ran) VALUES (?, ?, ?, 0)
ON CONFLICT DO UPDATE SET size = size + excluded.size"""
_RAN = "UPDATE kept SET ran = 1 WHERE owner = ? AND digest = ?"
_DELETE = "DELETE FROM kept WHERE owner = ? AND digest = ? AND ran = 0 RETURNING size"
# The text of an array counts once, and once for each index; of one that never ran twice, as any other.
_LESS = """UPDATE kept SET size = size * 2 / ?3 WHERE owner = ?1 AND digest = ?2 AND ran = 0
RETURNING size * ?3 / 2 - size"""
_ALONE = "DELETE FROM blobs WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM kept WHERE digest = ?1)"
_TOTALS = "SELECT owner, sum(size) FROM kept GROUP BY owner"
_ONE = "SELECT 1 FROM kept WHERE owner = ? AND digest = ?"
TEXT = "="
"""What stands for the text of a request begins with this, a digest does not; its number follows."""
_MOST = 10_000
"""Pairs that are remembered as there, or as run."""


def pairs_of(spec: Spec) -> tuple[Pair, Pair]:
    """The script and the environment that a request keeps."""
    return (spec.owner, spec.script), (spec.owner, spec.environment)


def text_of(seq: Seq, spec: Spec) -> Pair:
    """Return what stands for the text of a request itself: an array and its indices have one."""
    return spec.owner, f"{TEXT}{number_of(seq)}"


@dataclass(slots=True)
class CommitStep:
    """Changes of a commit, remembered once it is durable: ``refs``: requests that have not ended; ``new``,
    ``ran``, ``removed``: pairs; ``texts``: bytes of large specifications; ``sizes``: bytes more or less;
    ``dropped``: blobs that are gone; ``arrays``: texts of ended arrays, and how often each counts."""

    refs: Counter[Pair] = field(default_factory=Counter)
    new: list[Pair] = field(default_factory=list)
    texts: Counter[Pair] = field(default_factory=Counter)
    ran: set[Pair] = field(default_factory=set)
    removed: list[Pair] = field(default_factory=list)
    sizes: Counter[str] = field(default_factory=Counter)
    dropped: set[str] = field(default_factory=set)
    arrays: list[tuple[Pair, int]] = field(default_factory=list)


class StoredBytes:
    """Belongs to the journal's thread; `forget` comes from the rotation's, in its turn."""

    def __init__(self) -> None:
        self._refs: dict[Pair, int] = {}
        self._known: set[Pair] = set()
        self._ran: set[Pair] = set()
        self._totals: Counter[str] | None = None

    def load(self, site: Site) -> None:
        """The site was read again: what waits and runs is counted anew."""
        whole = (each for seq, each in site.requests.items() if index_of(seq) is None)
        self._refs = dict(Counter(pair for each in whole for pair in pairs_of(each.spec)))
        self.forget()

    def forget(self) -> None:
        """The rows have changed: they are read again."""
        self._known, self._ran, self._totals = set(), set(), None

    def total(self, connection: sqlite3.Connection, owner: str) -> int:
        """Bytes that a user keeps. Raises sqlite3.Error."""
        if self._totals is None:
            self._totals = Counter(dict(connection.execute(_TOTALS)))
        return self._totals[owner]

    def has(self, connection: sqlite3.Connection, owner: str, digest: str) -> bool:
        """True if that is among it. Raises sqlite3.Error."""
        return connection.execute(_ONE, (owner, digest)).fetchone() is not None

    def step(self, events: Iterable[Recorded], site: Site) -> CommitStep:
        """Return what these events, and the requests that ended by them, change."""
        step = CommitStep()
        for recorded in events:
            if isinstance(recorded.event, Submitted):
                step.refs.update(pairs_of(recorded.event.spec))
            if isinstance(recorded.event, Submitted | Modified):
                spec = recorded.event.spec
                if size := text_size(spec):
                    step.texts[text_of(recorded.event.seq, spec)] += size
        step.new = [pair for pair in step.refs if pair not in self._known]
        for request, _ in site.touched.ended.values():
            self._end(step, request)
        ran = step.ran | self._ran
        refs = {pair: self._refs.get(pair, 0) + step.refs[pair] for pair in step.removed}
        step.removed = [pair for pair, remaining in refs.items() if remaining <= 0 and pair not in ran]
        step.ran -= self._ran
        return step

    def _end(self, step: CommitStep, request: Request) -> None:
        """Let go of the blobs of a request that ended. An index keeps nothing of its own: its array is there
        as long. A large specification stays: the history has it in an event and in a record, that of an array
        once more for each index that was a request of its own."""
        pairs = pairs_of(request.spec)
        if index_of(request.seq) is None:
            step.refs.subtract(pairs)
            step.removed += () if request.attempts else pairs
            if request.spec.array is not None:
                step.arrays.append((text_of(request.seq, request.spec), 1 + counted(request.spec.array)))
        elif text_size(request.spec):
            step.ran.add(text_of(request.seq, request.spec))
        if request.attempts:
            step.ran.update(pairs)

    def write(self, connection: sqlite3.Connection, step: CommitStep) -> None:
        """In the commit's transaction, after its blobs. Raises sqlite3.Error."""
        step.sizes.clear()
        step.dropped.clear()
        for pair in step.new:
            step.sizes[pair[0]] += _size(connection, _NEW, pair)
        for (owner, text), size in step.texts.items():
            connection.execute(_TEXT, (owner, text, size))
            step.sizes[owner] += size
        if step.ran:
            connection.executemany(_RAN, sorted(step.ran))
        for pair, times in step.arrays:
            step.sizes[pair[0]] -= _size(connection, _LESS, (*pair, times))
        for pair in step.removed:
            step.sizes[pair[0]] -= _size(connection, _DELETE, pair)
            if connection.execute(_ALONE, (pair[1],)).rowcount:
                step.dropped.add(pair[1])

    def done(self, step: CommitStep) -> None:
        """Remember the changes of a commit that is durable."""
        for pair, more in step.refs.items():
            refs = self._refs.get(pair, 0) + more
            if refs > 0:
                self._refs[pair] = refs
            else:
                self._refs.pop(pair, None)
        if self._totals is not None:
            self._totals.update(step.sizes)
        _remember(self._known, step.new)
        _remember(self._ran, step.ran)
        self._known.difference_update(step.removed)


def _size(connection: sqlite3.Connection, statement: str, values: Pair | tuple[str, str, int]) -> int:
    return sum(size for (size,) in connection.execute(statement, values).fetchall())


def _remember(known: set[Pair], more: Iterable[Pair]) -> None:
    if len(known) > _MOST:
        known.clear()
    known.update(more)


def rows_named(spec_rows: Iterable[tuple[str, str | None, str | None, str | None]]) -> Iterator[Pair]:
    """Pairs of rows of owner, script, environment and text."""
    for owner, *digests in spec_rows:
        for digest in digests:
            if digest is not None:
                yield owner, digest


def digests_of(pairs: Set[Pair]) -> set[str]:
    """The blobs among pairs."""
    return {digest for _, digest in pairs}
