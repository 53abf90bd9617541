"""The daemon's log: in the foreground on stderr, a line for each message (``level=info text="..."``, further
lines as ``trace="..."``), else in a file that rotates (old ones compressed), further lines indented."""

import contextlib
import gzip
import logging
import os
import shutil
import sys
import threading
from datetime import UTC, datetime, tzinfo
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nqspy.rpc.messages import plain

LOG = logging.getLogger("nqspy")


_PRIORITIES = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
"""Number of each level in syslog(3), which systemd reads from a line's beginning (sd-daemon(3))."""


class _Form(logging.Formatter):
    """Formats messages for a ``file``, ``stderr`` or the ``journal``. ``zone`` None: the machine's."""

    named = ""
    zone: tzinfo | None = None

    def __init__(self, kind: Literal["file", "stderr", "journal"]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s" if kind == "file" else None)
        self._kind = kind

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """Return the time of a message by the machine's clock: ``2026-03-02T21:00:00.123+01:00``."""
        moment = datetime.fromtimestamp(record.created, UTC).astimezone(self.zone)
        return moment.isoformat(timespec="milliseconds")

    def format(self, record: logging.LogRecord) -> str:
        """Return the message with visible control characters."""
        whole = super().format(record)
        if self._kind == "file":
            return plain(whole).rstrip("\n").replace("\n", "\n    ")
        text, _, rest = whole.rstrip("\n").partition("\n")
        trace = f" trace={_quoted(rest)}" if rest else ""
        line = f"level={record.levelname.lower()} text={_quoted(text)}{trace}"
        if self._kind == "journal":
            return f"<{_PRIORITIES.get(record.levelname, 6)}>{line}"
        return f"at={self.formatTime(record)} {line}"


def _quoted(text: str) -> str:
    """Return a text in double quotes, with control characters, quotes and backslashes escaped."""
    known = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
    return '"' + "".join(known.get(c) or (c if c.isprintable() else f"\\u{ord(c):04x}") for c in text) + '"'


def set_zone(name: str) -> None:
    """Write times in the site's zone from now on; in the machine's if that is unknown."""
    for handler in LOG.handlers:
        form = handler.formatter
        if isinstance(form, _Form) and form.named != name:
            form.named = name
            try:
                form.zone = ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                form.zone = None


SIZE = 10_000_000
"""Bytes of a log file at which a new one is begun."""
OLD = 20
"""Number of old logs that stay; ``nqsd.log.1.gz`` is the youngest. A start begins a new one, too."""


class _Rotating(RotatingFileHandler):
    """A log file that rotates; old logs are compressed on a thread, for which no caller waits."""

    _work: threading.Thread | None = None

    def doRollover(self) -> None:  # noqa: N802
        """Begin a new log, after the last one is compressed; try again once if that failed."""
        if self._work is not None:
            self._work.join()
        last = f"{self.baseFilename}.1"
        if os.path.exists(last):
            _compress(last, f"{last}.gz")
        super().doRollover()

    def rotation_filename(self, default_name: str) -> str:
        """Return the name of an old log: that of the compressed file."""
        return f"{default_name}.gz"

    def rotate(self, source: str, dest: str) -> None:
        """Rename a full log and have it compressed."""
        plain = dest.removesuffix(".gz")
        os.replace(source, plain)
        self._work = threading.Thread(target=_compress, args=(plain, dest), name="log", daemon=True)
        self._work.start()


def _compress(plain: str, dest: str) -> None:
    """Compress a file. If that fails (a full disk) the file stays as it is."""
    new = f"{dest}.new"
    try:
        with open(plain, "rb") as text, gzip.open(new, "wb", 6) as file:
            shutil.copyfileobj(text, file)
        os.replace(new, dest)
        os.unlink(plain)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(new)


def set_level(word: str) -> None:
    """Set the lowest level of messages that are logged: debug, info, warning or error."""
    level = logging.getLevelNamesMapping()[word.upper()]
    if LOG.level != level:
        LOG.setLevel(level)


def set_up(file: Path | None) -> None:
    """Write the log to ``file``, as a new one if there is a former; None: to stderr."""
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Form("journal" if "JOURNAL_STREAM" in os.environ else "stderr"))
    else:
        handler = _Rotating(file, maxBytes=SIZE, backupCount=OLD, delay=False)
        handler.setFormatter(_Form("file"))
        if file.stat().st_size:
            handler.doRollover()
    LOG.handlers[:] = [handler]
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
