"""Comparison of two examinations of the waiting requests: which of them change."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from nqspy.model.ids import Seq
from nqspy.model.requests import Request
from nqspy.report.time_text import Zone, short, zone_of
from nqspy.sim.trying.copied import NotTried, SiteCopy, copied
from nqspy.sim.trying.examine import Answer, Examination
from nqspy.sim.trying.trial import Tried, try_out
from nqspy.userexit.loader import Source

FEW = 1_000
"""Starts less than this apart count as the same, ms."""


class _Side(Struct, frozen=True):
    """A request in one examination: its ``place``; its ``start`` in the time that both cover; ``at_once``: it
    starts now; answers of exits to a ``submission`` and to its start (``answer``); ``why`` it waits."""

    place: int | None
    start: int | None
    at_once: bool
    submission: Answer | None
    answer: Answer | None
    why: str


def _side(copy: SiteCopy, result: Examination, seq: Seq, horizon: int | None) -> _Side:
    at, (text, who) = result.starts.get(seq), result.reasons.get(seq, ("", ""))
    start = None if at is None or (horizon is not None and at > horizon) else at
    why = f"{text} ({who})" if who else text
    replies = result.submissions.get(seq), result.answers.get(seq)
    return _Side(result.places.get(seq), start, at == copy.now, *replies, why)


def _differ(was: Answer | None, would: Answer | None) -> bool:
    """True if both were asked, and the answers differ."""
    return was is not None and would is not None and was != would


def _earlier(was: _Side, would: _Side) -> bool:
    """True if the second one starts earlier; no start in the simulated time counts as the latest."""
    return would.start is not None and (was.start is None or would.start <= was.start - FEW)


KINDS: Mapping[str, Callable[[_Side, _Side], bool]] = {
    "starts": lambda was, would: would.at_once and not was.at_once,
    "waits": lambda was, would: was.at_once and not would.at_once,
    "submission": lambda was, would: _differ(was.submission, would.submission),
    "earlier": _earlier,
    "later": lambda was, would: _earlier(would, was),
    "answer": lambda was, would: _differ(was.answer, would.answer),
    "place": lambda was, would: was.place != would.place and not was.at_once,
}
"""Changes of a request, in order of report: the first that is true, and that of its submission."""


def tried_now(home: str | None, candidate: Source) -> dict[str, Any]:
    """Try a file on a home's waiting requests; return data (manual page ``exits``). Raises NqspyError."""
    copy = copied(home, candidate)
    tried = try_out(copy, candidate)
    if tried.problems:
        raise NotTried(tried.problems[0])
    name, zone = tried.row["name"], zone_of(copy.site.timezone)
    horizon = min((each.until for each in (tried.was, tried.would) if each.until is not None), default=None)
    rows = [row for each in copy.waiting() for row in _rows(copy, tried, each, horizon, zone)]
    counts = Counter(row["kind"] for row in rows)
    return {
        "exit": name,
        "replaces": any(each.path.stem == name for each in copy.loaded),
        "at": zone.text(copy.now),
        "waiting": len(copy.waiting()) - tried.skipped,
        "left_out": tried.skipped,
        "until": zone.stamp(horizon),
        "counts": {kind: counts[kind] for kind in KINDS},
        "changed": sorted(rows, key=lambda row: list(KINDS).index(row["kind"])),
        "calls": tried.row["calls"],
        "hooks": {
            hook: {key: round(n, 3) if isinstance(n, float) else n for key, n in figures.items()}
            for hook, figures in tried.row["by_hook"].items()
        },
        "failures": [asdict(each) for each in tried.failed],
        "long": [asdict(each) for each in tried.long],
        "off": not getattr(copy.site.settings.exits.get(name), "enabled", True),
    }


def _rows(
    copy: SiteCopy, tried: Tried, request: Request, horizon: int | None, zone: Zone
) -> Iterator[dict[str, Any]]:
    """Yield a row for the first change of a request, and one for another answer to its submission."""
    was, would = (_side(copy, result, request.seq, horizon) for result in (tried.was, tried.would))
    kinds = [kind for kind, is_so in KINDS.items() if is_so(was, would)]
    others = [kind for kind in kinds if kind != "submission"]
    for kind in kinds:
        if kind not in ("submission", *others[:1]):
            continue
        if kind in ("submission", "answer"):
            (before, _), (then, reason) = (getattr(side, kind) or ("", "") for side in (was, would))
        else:
            before, then = (_words(side, horizon, zone) for side in (was, would))
            reason = would.why if would.why or not was.why else f"without the exit: {was.why}"
        yield {
            "id": copy.id_of(request.seq), "name": request.name, "owner": request.owner,
            "queue": request.queue, "kind": kind, "was": before, "would": then, "reason": reason,
            "was_place": was.place, "would_place": would.place,
            "was_start": zone.stamp(was.start), "would_start": zone.stamp(would.start),
        }  # fmt: skip


def _words(side: _Side, horizon: int | None, zone: Zone) -> str:
    """Return ``starts``, or words such as ``waits, place 3, starts 2026-03-02 21:00:00``. Without a start
    they are ``starts after`` the horizon (end of the simulated time), or ``never starts`` if that is None."""
    if side.at_once:
        return "starts"
    place = [] if side.place is None else [f"place {side.place}"]
    if side.start is not None:
        when = f"starts {short(zone.text(side.start))}"
    else:
        when = "never starts" if horizon is None else f"starts after {short(zone.text(horizon))}"
    return ", ".join(["waits", *place, when])
