"""``mail/`` of a home: mails from when they are taken until they were handed over, and which left of late."""

import contextlib
import itertools
import json
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from msgspec.structs import asdict

from nqspy.mail.message import MailMessage
from nqspy.model.ids import DAY, HOUR, Instant
from nqspy.system.private_files import write_private

NIGHT = "night."
"""Beginning of the ids of the nights' mails, which may be handed in twice."""

NOTED = 5_000
"""Mails after which what was sent long ago is forgotten."""

LOG = logging.getLogger("nqspy.mail")


class MailClock(Protocol):
    """The site's clock, by which the hour of the limit counts."""

    def now(self) -> Instant:
        """The site's time."""

    def real_of(self, at: Instant) -> float:
        """Real seconds since the epoch at which it shows ``at``."""


@dataclass(slots=True)
class KeptMail:
    """A mail on its way, with the file it lies in. ``due``: when it is tried again, real seconds of the
    monotonic clock; ``covers``: files of mails that it takes the place of, as its own could not be
    written."""

    message: MailMessage
    path: Path
    tries: int = 0
    due: float = 0.0
    covers: list[Path] = field(default_factory=list)


class MailFolder:
    """The folder. Mails are kept by one thread and noted as sent by another."""

    def __init__(self, path: Path, clock: MailClock) -> None:
        self.path = path
        self._clock = clock
        self._numbers = itertools.count(time.time_ns())
        self._sent: set[str] = set()
        self._noted = 0

    def keep(self, message: MailMessage) -> KeptMail:
        """Brings it to the disk; one that cannot be written is sent nevertheless."""
        path = self.path / f"{next(self._numbers):020d}.json"
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            write_private(path, [json.dumps(asdict(message))])
        except OSError as error:
            LOG.warning("a mail could not be kept in %s: %s", self.path, error)
        return KeptMail(message, path)

    def keep_instead(self, message: MailMessage, others: Iterable[KeptMail]) -> KeptMail:
        """One mail in place of others; their files go as soon as its own is there."""
        kept, files = self.keep(message), [each.path for each in others]
        if kept.path.exists():
            _remove(files)
        else:
            kept.covers = files
        return kept

    def drop(self, kept: KeptMail) -> None:
        """It is not on its way any more."""
        _remove((kept.path, *kept.covers))

    def left(self) -> list[KeptMail]:
        """What a former daemon left; one that has been sent is not on its way any more."""
        found = []
        for path in self._files():
            message = _read(path)
            if message is None or message.id in self._sent:
                _remove((path,))
            else:
                found.append(KeptMail(message, path))
        return found

    def unknown(self, messages: Iterable[MailMessage]) -> list[MailMessage]:
        """Those of these mails that are neither on their way nor sent."""
        # First what is there, then what was sent: one that leaves just now is in either.
        there = {message.id for message in map(_read, self._files()) if message is not None}
        return [each for each in messages if each.id not in there and each.id not in self._sent]

    def _files(self) -> list[Path]:
        return sorted(self.path.glob("*.json")) if self.path.is_dir() else []

    # ------------------------------------------------------------ what was sent

    def note(self, kept: KeptMail) -> None:
        """It was handed over: remembered, so that a restart keeps to the hourly limit and sends nothing
        twice."""
        if kept.message.id.startswith(NIGHT):
            self._sent.add(kept.message.id)
        self._noted += 1
        with contextlib.suppress(OSError):
            self.path.mkdir(mode=0o700, exist_ok=True)
            with open(self.path / "sent", "a", encoding="utf-8") as out:
                out.write(f"{self._clock.now()} {kept.message.to} {kept.message.id}\n")
            if self._noted % NOTED == 0:
                self._shorten()
        self.drop(kept)

    def sent_lately(self) -> list[tuple[str, Instant]]:
        """Remembers what former daemons sent; returns to whom and when within the last hour."""
        rows = self._shorten()
        self._sent.update(id for _, _, id in rows)
        hour = self._clock.now() - HOUR
        return [(address, Instant(int(at))) for at, address, _ in rows if int(at) > hour]

    def _shorten(self) -> list[list[str]]:
        """Forgets what was sent long ago: only the last hour counts, and the nights' mails for a week."""
        path, now = self.path / "sent", self._clock.now()
        if not path.exists():
            return []
        rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [row for row in rows if len(row) == 3 and row[0].isdigit()]
        ages = {True: 7 * DAY, False: HOUR}
        rows = [row for row in rows if int(row[0]) > now - ages[row[2].startswith(NIGHT)]]
        write_private(path, (f"{' '.join(row)}\n" for row in rows))
        return rows


def _read(path: Path) -> MailMessage | None:
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        fits = isinstance(row, dict) and set(row) == {"to", "subject", "text", "id"}
        return MailMessage(**row) if fits else None
    except (OSError, ValueError):
        return None


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
