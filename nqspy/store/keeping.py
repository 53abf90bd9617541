"""Who keeps how much: scripts and environments of requests that wait, run or have ended, by owner.

A row of ``kept`` for each owner and blob. Blobs of requests that never ran go when the last of them ends;
others stay as long as a record names them (`rotation`).
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

from nqspy.model.events import Recorded, Submitted
from nqspy.model.requests import Spec
from nqspy.model.site import Site

Pair = tuple[str, str]
"""An owner, and the digest of what is kept."""

_NEW = """INSERT INTO kept (owner, digest, size, ran)
SELECT ?1, digest, length(body), 0 FROM blobs WHERE digest = ?2 ON CONFLICT DO NOTHING RETURNING size"""
_RAN = "UPDATE kept SET ran = 1 WHERE owner = ? AND digest = ?"
_GONE = "DELETE FROM kept WHERE owner = ? AND digest = ? AND ran = 0 RETURNING size"
_ALONE = "DELETE FROM blobs WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM kept WHERE digest = ?1)"
_TOTALS = "SELECT owner, sum(size) FROM kept GROUP BY owner"
_ONE = "SELECT 1 FROM kept WHERE owner = ? AND digest = ?"
_MOST = 10_000
"""Pairs that are remembered as there, or as run."""


def pairs_of(spec: Spec) -> tuple[Pair, Pair]:
    """What a request keeps."""
    return (spec.owner, spec.script), (spec.owner, spec.environment)


@dataclass(slots=True)
class CommitStep:
    """What a commit changes, to be remembered once it is durable: ``refs``: requests that have not ended;
    ``new``, ``ran``, ``gone``: pairs; ``sizes``: bytes more or less; ``dropped``: blobs that are no more."""

    refs: dict[Pair, int] = field(default_factory=dict)
    new: list[Pair] = field(default_factory=list)
    ran: set[Pair] = field(default_factory=set)
    gone: list[Pair] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)


class Keeping:
    """Belongs to the journal's thread; `forget` comes from the rotation's, in its turn."""

    def __init__(self) -> None:
        self._refs: dict[Pair, int] = {}
        self._known: set[Pair] = set()
        self._ran: set[Pair] = set()
        self._totals: dict[str, int] | None = None

    def load(self, site: Site) -> None:
        """The site was read again: what waits and runs is counted anew."""
        self._refs = dict(Counter(pair for each in site.requests.values() for pair in pairs_of(each.spec)))
        self.forget()

    def forget(self) -> None:
        """The rows have changed: they are read again."""
        self._known, self._ran, self._totals = set(), set(), None

    def total(self, connection: sqlite3.Connection, owner: str) -> int:
        """Bytes that a user keeps. Raises sqlite3.Error."""
        if self._totals is None:
            self._totals = dict(connection.execute(_TOTALS))
        return self._totals.get(owner, 0)

    def has(self, connection: sqlite3.Connection, owner: str, digest: str) -> bool:
        """Whether that is among it. Raises sqlite3.Error."""
        return connection.execute(_ONE, (owner, digest)).fetchone() is not None

    # ------------------------------------------------------------ a commit

    def step(self, events: Iterable[Recorded], site: Site) -> CommitStep:
        """What these events, and the requests that ended by them, change."""
        step = CommitStep()
        for recorded in events:
            if isinstance(recorded.event, Submitted):
                for pair in pairs_of(recorded.event.spec):
                    step.refs[pair] = step.refs.get(pair, 0) + 1
        step.new = [pair for pair in step.refs if pair not in self._known]
        for request, _ in site.touched.ended.values():
            pairs = pairs_of(request.spec)
            for pair in pairs:
                step.refs[pair] = step.refs.get(pair, 0) - 1
            if request.attempts:
                step.ran.update(pairs)
            else:
                step.gone += pairs
        step.gone = [pair for pair in dict.fromkeys(step.gone) if self._is_last(step, pair)]
        step.ran -= self._ran
        return step

    def _is_last(self, step: CommitStep, pair: Pair) -> bool:
        if pair in step.ran or pair in self._ran:
            return False
        return self._refs.get(pair, 0) + step.refs.get(pair, 0) <= 0

    def write(self, connection: sqlite3.Connection, step: CommitStep) -> None:
        """In the commit's transaction, after its blobs. Raises sqlite3.Error."""
        step.sizes.clear()
        step.dropped.clear()
        for pair in step.new:
            step.sizes[pair[0]] = step.sizes.get(pair[0], 0) + _size(connection, _NEW, pair)
        if step.ran:
            connection.executemany(_RAN, sorted(step.ran))
        for pair in step.gone:
            step.sizes[pair[0]] = step.sizes.get(pair[0], 0) - _size(connection, _GONE, pair)
            if connection.execute(_ALONE, (pair[1],)).rowcount:
                step.dropped.add(pair[1])

    def done(self, step: CommitStep) -> None:
        """It is durable."""
        for pair, more in step.refs.items():
            refs = self._refs.get(pair, 0) + more
            if refs > 0:
                self._refs[pair] = refs
            else:
                self._refs.pop(pair, None)
        if self._totals is not None:
            for owner, more in step.sizes.items():
                self._totals[owner] = self._totals.get(owner, 0) + more
        _remember(self._known, step.new)
        _remember(self._ran, step.ran)
        self._known.difference_update(step.gone)


def _size(connection: sqlite3.Connection, statement: str, pair: Pair) -> int:
    return sum(size for (size,) in connection.execute(statement, pair).fetchall())


def _remember(known: set[Pair], more: Iterable[Pair]) -> None:
    if len(known) > _MOST:
        known.clear()
    known.update(more)


def rows_named(spec_rows: Iterable[tuple[str, str | None, str | None]]) -> Iterator[Pair]:
    """Pairs of rows of owner, script and environment."""
    for owner, script, environment in spec_rows:
        for digest in (script, environment):
            if digest is not None:
                yield owner, digest


def digests_of(pairs: Set[Pair]) -> set[str]:
    """The blobs among pairs."""
    return {digest for _, digest in pairs}
