"""The site's clock, the only reader of real time: the wall clock, or an accelerated one (interfaces.md 1)."""

import json
import os
import re
import time
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant
from nqspy.system.private_files import Unsafe, read_regular

_FORM = re.compile(r"^\s*(?P<at>\S+)\s+x(?P<speed>\d+(\.\d+)?)\s*$")


class Clock(Struct, frozen=True):
    """Clock with site time = ``origin`` + (real time - ``real``) x ``speed``; instants in ms, ``real`` in
    seconds since the epoch. ``text``: option that sets it, "" for the wall clock. An accelerated clock's
    origin is stored in the home, so that a restart goes on from there."""

    origin: int = 0
    real: float = 0.0
    speed: float = 1.0
    text: str = ""

    def now(self) -> Instant:
        """Return the site's present time, in ms since the epoch."""
        if not self.text:
            return Instant(time.time_ns() // 1_000_000)
        return Instant(self.origin + int((time.time() - self.real) * 1000 * self.speed))

    def real_of(self, at: Instant) -> float:
        """Return the real seconds since the epoch at which the site's clock shows ``at``."""
        if not self.text:
            return at / 1000
        return self.real + (at - self.origin) / 1000 / self.speed

    @property
    def accelerated(self) -> bool:
        """True if the site's clock is not simply the wall clock."""
        return bool(self.text)


def parse_clock(text: str) -> Clock:
    """Return the clock that ``"2026-03-02T20:55:00+01:00 x360"`` describes, starting now. Raises BadValue."""
    bad = f'{text!r} is not a clock; write it like "2026-03-02T20:55:00+01:00 x360"'
    match = _FORM.match(text)
    if match is None:
        raise BadValue(bad)
    try:
        moment = datetime.fromisoformat(match["at"])
    except ValueError:
        raise BadValue(bad) from None
    speed = float(match["speed"])
    if moment.tzinfo is None or not 0.01 <= speed <= 100_000 or not 1970 < moment.year < 3000:
        needed = "a year from 1971 to 2999, an offset from UTC and a speed from 0.01 to 100000"
        raise BadValue(f"{bad}; it needs {needed}")
    return Clock(round(moment.timestamp() * 1000), time.time(), speed, text.strip())


def clock_of(home: Path, text: str | None) -> Clock:
    """Return the home's stored clock (none: the wall clock) if ``text`` is None or the same; else store and
    return the clock that ``text`` describes. Raises BadValue, OSError."""
    path = home / "clock.json"
    stored = _stored(path)
    if text is None or (stored is not None and stored.text == text.strip()):
        return stored or Clock()
    clock = parse_clock(text)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(clock)))
    os.replace(new, path)
    return clock


def check_clock(home: Path, text: str) -> None:
    """Check that `clock_of` would accept a text; write nothing. Raises BadValue, OSError."""
    stored = _stored(home / "clock.json")
    if stored is None or stored.text != text.strip():
        parse_clock(text)


def _stored(path: Path) -> Clock | None:
    try:
        return Clock(**json.loads(read_regular(path)[0]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError, Unsafe):
        raise BadValue(
            f"{path} is damaged; move it away and give --clock again, or none for the wall clock"
        ) from None
