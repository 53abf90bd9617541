"""Memory that outlives the process in which exits run: where they failed and what they answered."""

from collections.abc import Iterable, Mapping
from itertools import chain, repeat
from typing import Any

import msgspec
from msgspec import Struct

from nqspy.model.ids import Instant
from nqspy.userexit.call_stats import Mark, Trace
from nqspy.userexit.seats import Exit, Hook

Named = int | tuple[str, str] | None
"""A subject as it is written down."""


class Kept(msgspec.Struct):
    """Memory of exits over their process: ``files``: content hash of each when this was so; rows
    of failures and what is not asked about again (``[exit, hook, subjects]``, ``[exit, hook, subject, at,
    text]``), the latest answers (``[request, exit, hook, at, answer, error]``). ``owners``: those of the
    subjects of each row (older ones have none); ``resting``: whose requests are not asked about, and since
    when."""

    files: dict[str, str]
    rows: list[tuple[str, str, list[Named]]]
    spared: list[tuple[str, str, Named, int, str]]
    answers: list[tuple[int, str, str, int, str | None, str | None]]
    owners: list[list[str]] = []
    resting: list[tuple[str, str, str, int]] = []


class Spare(Struct, frozen=True):
    """Subject that an exit died on: it is not asked about that for a while."""

    exit: str
    hook: str
    subject: Named
    at: Instant
    text: str


class OwnerRest(Struct, frozen=True):
    """Owner whose requests an exit died on more than once: it is not asked about any of theirs for a
    while."""

    exit: str
    owner: str
    at: Instant


def stamp(exits: Mapping[str, Exit]) -> int:
    """Another number when a failure was added to what is remembered, or forgotten."""
    return sum(hook.record.changes for one in exits.values() for hook in one.hooks.values())


def dump(exits: Mapping[str, Exit], trace: Trace, files: Mapping[str, str]) -> Kept:
    """Return what is to be remembered; ``files``: content hash of each exit."""
    hooks = [(name, hook) for name, one in exits.items() for hook in one.hooks.values()]
    rows = [(name, hook.name, row) for name, hook in hooks if (row := hook.record.row())]
    return Kept(
        dict(files),
        [(name, hook, [subject for subject, _ in row]) for name, hook, row in rows],
        [(name, hook.name, *each) for name, hook in hooks for each in hook.record.spares()],
        trace.dump(),
        [[owner for _, owner in row] for _, _, row in rows],
        [(name, hook.name, *each) for name, hook in hooks for each in hook.record.resting()],
    )


def resume(exits: Mapping[str, Exit], listing: Iterable[Mapping[str, Any]]) -> None:
    """Goes on counting from the figures of an earlier listing."""
    for row in listing:
        for name, figures in row["by_hook"].items():
            if (found := _hook(exits, row["name"], name)) is not None:
                found.record.resume(figures)


def load(exits: Mapping[str, Exit], trace: Trace, former: Kept, files: Mapping[str, str]) -> None:
    """Goes on from there; failures of files that are others now are forgotten."""
    trace.load(former.answers)
    same = {name for name, digest in files.items() if former.files.get(name) == digest}
    for (name, hook, row), owners in zip(former.rows, chain(former.owners, repeat([])), strict=False):
        if name in same and (found := _hook(exits, name, hook)) is not None:
            found.record.take_over(zip(row, chain(owners, repeat("")), strict=False))
    for name, hook, owner, at in former.resting:
        if name in same and (found := _hook(exits, name, hook)) is not None:
            found.record.rest(owner, Mark(Instant(at)))
    for name, hook, subject, at, text in former.spared:
        if name in same and (found := _hook(exits, name, hook)) is not None:
            found.record.spare(subject, Mark(Instant(at), text))


def lost(exits: Mapping[str, Exit], spares: Iterable[Spare], rests: Iterable[OwnerRest]) -> None:
    """Processes were lost at these: they are not asked about for a while."""
    for each in spares:
        if (found := _hook(exits, each.exit, each.hook)) is not None:
            found.record.spare(each.subject, Mark(each.at, each.text, lost=True))
    for rest in rests:
        for hook in exits[rest.exit].hooks.values() if rest.exit in exits else ():
            hook.record.rest(rest.owner, Mark(rest.at, lost=True))


def _hook(exits: Mapping[str, Exit], exit: str, hook: str) -> Hook | None:
    return exits[exit].hooks.get(hook) if exit in exits else None
