"""Shifts: named sets of qmgr commands that run at cron-style times."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from nqspy.model.ids import Instant
from nqspy.model.tree import setting

APART = "one of them must fire at another minute"
"""What to do about two shifts that begin at the same time."""


class Leaving(Struct, frozen=True):
    """Queues after a shift's commands, True: started, False: stopped; ``rest``: others (None: as before)."""

    named: dict[str, bool]
    rest: bool | None

    def stops(self, queue: str) -> bool:
        """True if the commands leave that queue stopped."""
        return self.named.get(queue, self.rest) is False


@dataclass(slots=True)
class Shift:
    """A shift. ``lines``: commands as written; ``commands``: the same, parsed and checked
    (`commands.encode`). ``counts``: by cron expression, the instant after which its firings count."""

    name: str
    when: tuple[str, ...] = setting("crons", (), "cron expressions in the site's time zone")
    lines: tuple[str, ...] = setting("names", (), "qmgr commands run on entering")
    spill: str = setting(
        "name", "leave", "action for running requests whose queue it stops on entering",
        words=("leave", "drain", "suspend", "requeue"),
    )  # fmt: skip
    commands: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, Instant] = field(default_factory=dict)

    def changes(self) -> Iterator[dict[str, Any]]:
        """Yield the changes of settings in its commands (``path``, ``op``, ``value``), in order."""
        return (change for each in self.commands for change in each.get("changes", ()))

    def leaving(self) -> Leaving:
        """Return which queues its commands start and stop, computed once for questions about many queues."""
        named: dict[str, bool] = {}
        rest: bool | None = None
        for change in self.changes():
            head, *below = change["path"].split("/")
            if change["op"] != "set" or head != "queue" or below[1:] != ["started"]:
                continue
            if below[0] == "*":
                named, rest = {}, bool(change["value"])
            else:
                named[below[0]] = bool(change["value"])
        return Leaving(named, rest)

    def values(self, paths: Iterable[str]) -> dict[str, Any]:
        """Return the values that its commands give to these settings, without those that they do not change.
        A limit becomes None (no limit) if they change a list or replace the object that has it."""
        names = {path: path.rpartition("/")[::2] for path in paths}
        found: dict[str, Any] = {}
        for change in self.changes():
            where = change["path"]
            for path, (parent, name) in names.items():
                if where in (path, f"{parent.partition('/')[0]}/*/{name}"):
                    found[path] = change["value"] if change["op"] == "set" else None
                elif where in (parent, f"{parent}/queues"):
                    found[path] = None
        return found

    def stops(self, queue: str) -> bool:
        """True if its commands leave that queue stopped."""
        return self.leaving().stops(queue)

    def starts(self, queue: str) -> bool:
        """True if its commands leave that queue started."""
        leaving = self.leaving()
        return leaving.named.get(queue, leaving.rest) is True


def values_by_shifts(shifts: Iterable[Shift], path: str) -> Iterator[Any]:
    """Yield the value that each of these shifts gives to the setting at ``path``, if it changes it."""
    return (values[path] for shift in shifts if path in (values := shift.values((path,))))


class UpcomingStop(Struct, frozen=True):
    """Next stop of a queue by a shift (`Site.upcoming_stops`): its instant, ``shift``, and ``spill`` as in
    `Shift`; ``clock``: the time as text for people."""

    at: Instant
    shift: str
    spill: str
    clock: str = ""


@dataclass(slots=True)
class Calendar:
    """Settings of the days that count as Sundays: holidays of a country, and days named by hand."""

    holidays: str | None = setting(
        "name", None, "country (or country-part, like DE-BY) whose public holidays count as Sundays"
    )
    extra: tuple[str, ...] = setting("names", (), "further days that count as Sundays, like 2026-12-24")
    workdays: tuple[str, ...] = setting("names", (), "holidays that are working days, like 2026-11-11")


@dataclass(slots=True)
class ShiftState:
    """The shift in force (`Site.shift`), ``since`` when. ``fired``: instant of the firing last applied.
    ``manual``: an operator switched to it, ``until`` an instant if given. ``failed``: a shift that could not
    be put in force, and why (``failed_text``, a whole sentence)."""

    current: str | None = None
    fired: Instant | None = None
    manual: bool = False
    until: Instant | None = None
    failed: str | None = None
    since: Instant | None = None
    failed_text: str = ""
