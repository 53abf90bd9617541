"""Try a file of exits on a recorded time (`sim.replay`), with run times as observed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nqspy.model.errors import Unreachable
from nqspy.model.events import Recorded
from nqspy.model.ids import Seq
from nqspy.model.requests import Request
from nqspy.report.time_text import parse_since, short
from nqspy.sim.replay.comparison import MovedStart, NightComparison, exits_object
from nqspy.sim.replay.exits import Files
from nqspy.sim.replay.home_journal import HomeJournal
from nqspy.sim.replay.isolated import isolated
from nqspy.sim.replay.what_if import UNCHANGED, Alternative, read_input, replayed, throughout
from nqspy.sim.trying.copied import NotTried, home_of, loaded_exits
from nqspy.userexit.loader import Source

KINDS = ("submission", "earlier", "later", "new", "never")
"""Changes of a request: refused at submission, starts earlier, later, only now, or no longer."""


def tried_since(home: str | None, candidate: Source, since: str) -> dict[str, Any]:
    """Replay a home from ``since`` with that file among the exits; return its effects. Raises NqspyError."""
    past = HomeJournal(home_of(home))
    try:
        in_force = loaded_exits(past.home)
    except Unreachable:
        in_force = None  # no daemon reports the loaded ones: use the files of the folder
    source = read_input(past, parse_since(since, past.zone, past.last), now=in_force)
    name = candidate.path.stem
    known = past.now_site.settings.exits.get(name)
    off = known is not None and not known.enabled

    def with_it(files: Files) -> Sequence[Source]:
        others = (each for each in source.versions.sources(files) if each.path.stem != name)
        return sorted((*others, candidate), key=lambda each: each.path.name)

    replaces = any(each.path.stem == name for each in source.versions.now)
    change = throughout(f"enable exit {name}\n") if off else UNCHANGED.change
    other = Alternative(change, with_it, f"exit {name}")
    result: dict[str, Any] = isolated(
        lambda done: _data(NightComparison(replayed(source, other, done)), name),
        len(source.recording.events),
        source.versions.heartbeat,
    )
    return {"exit": name, "replaces": replaces, "off": off} | result


def _data(comparison: NightComparison, name: str) -> dict[str, Any]:
    """Return the exit's effects; runs in the process without rights. Raises NotTried for the loaded file."""
    result, zone = comparison.found, comparison.found.zone
    if result.exits is None or result.would is None:
        raise NotTried(f"exit {name} is the loaded one: there is nothing to try")
    row = next(each for each in result.exits.listing() if each["name"] == name)
    histories = comparison.was.histories
    rows = [
        {"kind": "submission"} | _row(comparison, histories[seq].request, "accepted", "refused", text)
        for seq, text in sorted(comparison.refused().items())
        if seq in histories
    ]
    rows += [_moved(comparison, each) for each in comparison.moved]
    rows = sorted(rows, key=lambda each: KINDS.index(each["kind"]))
    counts = Counter(each["kind"] for each in rows)
    return {
        "since": zone.text(comparison.begin),
        "until": zone.text(comparison.end - 1),
        "requests": sum(at < comparison.end for at in comparison.was.starts.values()),
        "as_it_was": comparison.wrong,
        "exits": exits_object(comparison),
        "counts": {kind: counts[kind] for kind in KINDS},
        "changed": rows,
        "calls": row["calls"],
        "hooks": row["by_hook"],
        "failures": list(_failures(comparison, result.would.made, row)),
        "long": [],
    }


def _moved(comparison: NightComparison, moved: MovedStart) -> dict[str, Any]:
    stamp, reason = comparison.found.zone.stamp, moved.reason
    kind = "never" if moved.would is None else "new" if moved.was is None else ""
    kind = kind or ("earlier" if (moved.by or 0) < 0 else "later")
    was, would = (
        "waits" if at is None else f"starts {short(comparison.found.zone.text(at))}"
        for at in (moved.was, moved.would)
    )
    why = "" if reason is None else f"{reason.text} ({reason.who})" if reason.who else reason.text
    row = {"kind": kind} | _row(comparison, moved.request, was, would, why)
    return row | {"was_start": stamp(moved.was), "would_start": stamp(moved.would)}


def _row(comparison: NightComparison, request: Request, was: str, would: str, reason: str) -> dict[str, Any]:
    return {
        "id": comparison.found.site.id_of(request.seq), "name": request.name, "owner": request.owner,
        "queue": request.queue, "was": was, "would": would, "reason": reason,
    }  # fmt: skip


def _failures(
    comparison: NightComparison, made: Sequence[Recorded], row: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the exit's failures in ``made``, each text once; the hook is known if only one has failed."""
    name, named = row["name"], comparison.found.site.id_of
    failing = [hook for hook, figures in row["by_hook"].items() if figures["failures"]]
    times: Counter[tuple[Seq | None, str]] = Counter()
    for recorded in made:
        failures = getattr(recorded.event, "failures", ())
        times.update((failure.seq, failure.text) for failure in failures if failure.exit == name)
    for (seq, text), count in times.items():
        about = None if seq is None else named(seq)
        hook = failing[0] if len(failing) == 1 else ""
        yield {"exit": name, "hook": hook, "id": about, "text": text, "times": count}
