"""Bytes stored for each user: scripts, environments and large specifications (`specs.text_size`) of waiting,
running and ended requests. The table ``kept`` has a row for each owner and blob, and for each large
specification. Blobs of requests that never ran are deleted with their last request, others with their
record."""

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
"""An owner, and the digest of a stored blob (or the name of a request's text, see `TEXT`)."""

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
"""Begin of the name for a request's own text, followed by its number; no digest begins so."""
_MOST = 10_000
"""Most pairs that are cached as stored, or as having run."""


def pairs_of(spec: Spec) -> tuple[Pair, Pair]:
    """Return the pairs of a request's script and environment."""
    return (spec.owner, spec.script), (spec.owner, spec.environment)


def text_of(seq: Seq, spec: Spec) -> Pair:
    """Return the pair for the text of a request's specification; an array and its indices share one."""
    return spec.owner, f"{TEXT}{number_of(seq)}"


@dataclass(slots=True)
class CommitStep:
    """Changes of one commit in the stored bytes, cached once it is durable. ``refs``: change in the number of
    requests not ended, by pair; ``new``: pairs perhaps not stored yet; ``ran``: pairs of requests that were
    started; ``removed``: pairs to delete; ``texts``: bytes of large specifications; ``sizes``: bytes more or
    less by owner; ``dropped``: deleted blobs; ``arrays``: texts of ended arrays, and how often each
    counts."""

    refs: Counter[Pair] = field(default_factory=Counter)
    new: list[Pair] = field(default_factory=list)
    texts: Counter[Pair] = field(default_factory=Counter)
    ran: set[Pair] = field(default_factory=set)
    removed: list[Pair] = field(default_factory=list)
    sizes: Counter[str] = field(default_factory=Counter)
    dropped: set[str] = field(default_factory=set)
    arrays: list[tuple[Pair, int]] = field(default_factory=list)


class StoredBytes:
    """Bytes stored by user, cached. For the journal's thread; rotation calls `forget` under the lock."""

    def __init__(self) -> None:
        self._refs: dict[Pair, int] = {}
        self._known: set[Pair] = set()
        self._ran: set[Pair] = set()
        self._totals: Counter[str] | None = None

    def load(self, site: Site) -> None:
        """Count anew, for each blob, the requests of a site that name it, and drop the cached counts."""
        whole = (each for seq, each in site.requests.items() if index_of(seq) is None)
        self._refs = dict(Counter(pair for each in whole for pair in pairs_of(each.spec)))
        self.forget()

    def forget(self) -> None:
        """Drop cached counts, because rows have changed: they are read again."""
        self._known, self._ran, self._totals = set(), set(), None

    def total(self, connection: sqlite3.Connection, owner: str) -> int:
        """Return the bytes stored for a user. Raises sqlite3.Error."""
        if self._totals is None:
            self._totals = Counter(dict(connection.execute(_TOTALS)))
        return self._totals[owner]

    def has(self, connection: sqlite3.Connection, owner: str, digest: str) -> bool:
        """True if this blob is stored for the user. Raises sqlite3.Error."""
        return connection.execute(_ONE, (owner, digest)).fetchone() is not None

    def step(self, events: Iterable[Recorded], site: Site) -> CommitStep:
        """Return what a commit changes in the stored bytes: by its events, and by the requests that end in it
        (``site.touched.ended``)."""
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
        """Add the end of a request to ``step``: its blobs lose a reference (those of an index do not: its
        array exists at least as long). A large specification stays, because the history has it in an event
        and a record; that of an array counts once more for each index that was a request of its own."""
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
        """Write the changes to the table, in the commit's transaction and after its blobs. Raises
        sqlite3.Error."""
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
        """Apply a commit's step to the cached counts, once the commit is durable."""
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
    """Yield (owner, name) for each name that is not None in rows of owner, script, environment and text."""
    for owner, *digests in spec_rows:
        for digest in digests:
            if digest is not None:
                yield owner, digest


def digests_of(pairs: Set[Pair]) -> set[str]:
    """Return the digests in these pairs of owner and digest."""
    return {digest for _, digest in pairs}
