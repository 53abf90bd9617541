"""The daemon's log: to stderr in the foreground, a line a message (``level=info text="..."``, more lines as
``trace="..."``), else to a file that rotates (old ones compressed), further lines indented."""

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
"""Levels of syslog(3), which systemd reads from a line's beginning (sd-daemon(3))."""


class _Form(logging.Formatter):
    """Form of a message in a ``file``, on ``stderr``, in the ``journal``. ``zone`` None: the machine's."""

    named = ""
    zone: tzinfo | None = None

    def __init__(self, kind: Literal["file", "stderr", "journal"]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s" if kind == "file" else None)
        self._kind = kind

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """``2026-03-02T21:00:00.123+01:00``: when a line was written, by the machine's clock."""
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
    """Use the site's zone for times from now on; the machine's if it is unknown."""
    for handler in LOG.handlers:
        form = handler.formatter
        if isinstance(form, _Form) and form.named != name:
            form.named = name
            try:
                form.zone = ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                form.zone = None


SIZE = 10_000_000
"""Bytes of a log file before a new one is begun."""
OLD = 5
"""Old logs that stay: ``nqsd.log.1.gz`` is the youngest."""


class _Rotating(RotatingFileHandler):
    """Compresses old logs on a thread of its own: no caller waits for that."""

    _work: threading.Thread | None = None

    def doRollover(self) -> None:  # noqa: N802
        """Begin a new log, once the last one is compressed; try once more if that failed."""
        if self._work is not None:
            self._work.join()
        last = f"{self.baseFilename}.1"
        if os.path.exists(last):
            _compress(last, f"{last}.gz")
        super().doRollover()

    def rotation_filename(self, default_name: str) -> str:
        """Return the name of an old log."""
        return f"{default_name}.gz"

    def rotate(self, source: str, dest: str) -> None:
        """Rename the log and compress it."""
        plain = dest.removesuffix(".gz")
        os.replace(source, plain)
        self._work = threading.Thread(target=_compress, args=(plain, dest), name="log", daemon=True)
        self._work.start()


def _compress(plain: str, dest: str) -> None:
    """Compress a file. If that fails (a full disk) it stays as it is."""
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
    """Set the least level of logged messages: debug, info, warning or error."""
    level = logging.getLevelNamesMapping()[word.upper()]
    if LOG.level != level:
        LOG.setLevel(level)


def set_up(file: Path | None) -> None:
    """Send the log to ``file``, or to stderr."""
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Form("journal" if "JOURNAL_STREAM" in os.environ else "stderr"))
    else:
        handler = _Rotating(file, maxBytes=SIZE, backupCount=OLD, delay=False)
        handler.setFormatter(_Form("file"))
    LOG.handlers[:] = [handler]
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
