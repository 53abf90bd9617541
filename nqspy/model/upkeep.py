"""What the daemon does for its own database: backups, and how long the history stays in it."""

from dataclasses import dataclass

from nqspy.model.ids import DAY
from nqspy.model.tree import setting


@dataclass(slots=True)
class Backup:
    """Copies of the database that are made by themselves."""

    every: int | None = setting(
        "time", DAY, "time between two backups; off: none by itself", low=60_000, nothing="off"
    )
    keep: int = setting("number", 7, "backups that are kept", low=1, high=10_000)


@dataclass(slots=True)
class History:
    """What has been: how long it stays in the database before it moves into files, how long reports stay."""

    keep: int | None = setting(
        "time",
        90 * DAY,
        "age at which events and ended requests move into files",
        low=14 * DAY,
        nothing="unlimited",
    )
    size: int | None = setting(
        "size", None, "size of the database beyond which the oldest of them move into files, too", low=1 << 20
    )
    reports: int | None = setting(
        "time",
        366 * DAY,
        "age at which the folders of night reports are removed: they can be made again",
        low=DAY,
        nothing="unlimited",
    )
