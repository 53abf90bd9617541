"""Two looks at the requests that wait, side by side: which of them change."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request
from nqspy.report.time_text import Zone, short, zone_of
from nqspy.sim.trying.copied import NotTried, SiteCopy, copied
from nqspy.sim.trying.looks import Said
from nqspy.sim.trying.trial import OneLook, Tried, try_out
from nqspy.userexit.loader import Source

FEW = 1_000
"""Starts closer together than this count as the same, ms."""

KINDS = ("starts", "waits", "submission", "earlier", "later", "answer", "place")
"""What can become of one: it starts now, it does not any more, a submission of it is answered otherwise, it
starts earlier or later, the exits say something else when they are asked about it, its place changes; in this
order the first one that is true is told, and of submissions always."""


class _Side(Struct, frozen=True):
    """A look at a request; ``horizon``: so far both looked."""

    look: OneLook
    seq: Seq
    now: Instant
    horizon: int | None

    @property
    def place(self) -> int | None:
        return self.look.seen.places.get(self.seq)

    @property
    def start(self) -> int | None:
        at = self.look.seen.starts.get(self.seq)
        return at if at is not None and (self.horizon is None or at <= self.horizon) else None

    @property
    def at_once(self) -> bool:
        return self.look.seen.starts.get(self.seq) == self.now

    @property
    def submission(self) -> Said | None:
        return self.look.said.submissions.get(self.seq)

    @property
    def answer(self) -> Said | None:
        return self.look.said.starts.get(self.seq)

    @property
    def why(self) -> str:
        text, who = self.look.seen.reasons.get(self.seq, ("", ""))
        return f"{text} ({who})" if who else text


class Comparison:
    """Findings of a trial, as data for programs and people."""

    def __init__(self, copy: SiteCopy, tried: Tried, zone: Zone) -> None:
        self._copy, self._tried, self._zone = copy, tried, zone
        ends = [each for each in (tried.was.seen.until, tried.would.seen.until) if each is not None]
        self._horizon = min(ends, default=None)

    def changed(self) -> list[dict[str, Any]]:
        """Return the requests that change, first those that start or wait now; a request that would be
        answered otherwise at submission besides stands twice."""
        rows = [row for each in self._copy.waiting() for row in self._rows(each)]
        return sorted(rows, key=lambda row: KINDS.index(row["kind"]))

    def data(self) -> dict[str, Any]:
        """All of it (manual page ``exits``)."""
        rows, tried, site = self.changed(), self._tried, self._copy.site
        name = tried.row["name"]
        counts = Counter(row["kind"] for row in rows)
        return {
            "exit": name,
            "replaces": any(each.path.stem == name for each in self._copy.loaded),
            "at": self._zone.text(self._copy.now),
            "waiting": len(self._copy.waiting()) - tried.left,
            "left_out": tried.left,
            "until": self._zone.stamp(self._horizon),
            "counts": {kind: counts[kind] for kind in KINDS},
            "changed": rows,
            "calls": tried.row["calls"],
            "hooks": {
                hook: {key: round(n, 3) if isinstance(n, float) else n for key, n in figures.items()}
                for hook, figures in tried.row["by_hook"].items()
            },
            "failures": [
                {"exit": each.exit, "hook": each.hook, "id": self._id(each.seq), "text": each.text,
                 "times": each.times}
                for each in tried.failed
            ],
            "long": [
                {"exit": each.exit, "hook": each.hook, "id": self._id(each.seq), "ms": each.ms,
                 "budget_ms": each.budget}
                for each in tried.long
            ],
            "off": not getattr(site.settings.exits.get(name), "enabled", True),
        }  # fmt: skip

    def _id(self, seq: Seq | None) -> str | None:
        return None if seq is None else self._copy.site.id_of(seq)

    # ------------------------------------------------------------ one request

    def _rows(self, request: Request) -> Iterator[dict[str, Any]]:
        tried, now, horizon = self._tried, self._copy.now, self._horizon
        was, would = (_Side(look, request.seq, now, horizon) for look in (tried.was, tried.would))
        for kinds in (_OF_SUBMISSION, _OF_WAITING):
            kind = next((kind for kind, is_so in kinds.items() if is_so(was, would)), None)
            if kind is not None:
                yield self._row(request, kind, was, would)

    def _row(self, request: Request, kind: str, was: _Side, would: _Side) -> dict[str, Any]:
        if kind in _ASKED:
            (before, _), (then, reason) = (_ASKED[kind](side) or ("", "") for side in (was, would))
        else:
            before, then = (self._words(side) for side in (was, would))
            reason = would.why if would.why or not was.why else f"until now: {was.why}"
        return {
            "id": self._copy.site.id_of(request.seq), "name": request.name, "owner": request.owner,
            "queue": request.queue, "kind": kind, "was": before, "would": then, "reason": reason,
            "was_place": was.place, "would_place": would.place,
            "was_start": self._zone.stamp(was.start), "would_start": self._zone.stamp(would.start),
        }  # fmt: skip

    def _words(self, side: _Side) -> str:
        """``starts`` or ``waits``; of one that waits its place, and when it starts if that is known."""
        if side.at_once:
            return "starts"
        words = ["waits"]
        if side.place is not None:
            words.append(f"place {side.place}")
        if side.start is not None:
            words.append(f"starts {short(self._zone.text(side.start))}")
        elif self._horizon is None:
            words.append("never starts")
        else:
            words.append(f"starts after {short(self._zone.text(self._horizon))}")
        return ", ".join(words)


_ASKED: Mapping[str, Callable[[_Side], Said | None]] = {
    "submission": lambda side: side.submission,
    "answer": lambda side: side.answer,
}
_Sides = Callable[[_Side, _Side], bool]


def _otherwise(was: Said | None, would: Said | None) -> bool:
    """True if both were asked, and said something else."""
    return was is not None and would is not None and was != would


def _earlier(was: _Side, would: _Side) -> bool:
    """True if the second one starts earlier; no start in the time that was looked at is the last one."""
    if would.start is None:
        return False
    return was.start is None or would.start <= was.start - FEW


_OF_SUBMISSION: Mapping[str, _Sides] = {
    "submission": lambda was, would: _otherwise(was.submission, would.submission)
}
_OF_WAITING: Mapping[str, _Sides] = {
    "starts": lambda was, would: would.at_once and not was.at_once,
    "waits": lambda was, would: was.at_once and not would.at_once,
    "earlier": _earlier,
    "later": lambda was, would: _earlier(would, was),
    "answer": lambda was, would: _otherwise(was.answer, would.answer),
    "place": lambda was, would: was.place != would.place and not was.at_once,
}


def tried_now(home: str | None, candidate: Source) -> dict[str, Any]:
    """Try a file on the requests that wait now; return the result as data. Raises NqspyError."""
    copy = copied(home, candidate)
    tried = try_out(copy, candidate)
    if tried.problems:
        raise NotTried(tried.problems[0])
    return Comparison(copy, tried, zone_of(copy.site.timezone)).data()
