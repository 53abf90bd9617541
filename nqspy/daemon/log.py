"""The daemon's log: to stderr in the foreground, one line a message (``level=info text="..."``, further
lines as ``trace="..."``), else to a file that rotates by itself, what follows a message indented."""

import logging
import os
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG = logging.getLogger("nqspy")


class _Formatter(logging.Formatter):
    """Every line that does not begin with a date belongs to the one before it."""

    def format(self, record: logging.LogRecord) -> str:
        """The message; its further lines indented."""
        return super().format(record).rstrip("\n").replace("\n", "\n    ")


_PRIORITIES = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
"""Levels of syslog(3), which systemd reads from a line's beginning (sd-daemon(3))."""


class _OneLine(logging.Formatter):
    """``at=... level=info text="..." trace="..."``: never more than a line. Under systemd, which keeps the
    date itself, the line begins with its priority instead."""

    def __init__(self, journal: bool) -> None:
        super().__init__()
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        """The message in one line, in any case."""
        text, _, rest = super().format(record).rstrip("\n").partition("\n")
        trace = f" trace={_quoted(rest)}" if rest else ""
        line = f"level={record.levelname.lower()} text={_quoted(text)}{trace}"
        if self._journal:
            return f"<{_PRIORITIES.get(record.levelname, 6)}>{line}"
        return f"at={self.formatTime(record, '%Y-%m-%dT%H:%M:%S%z')} {line}"


def _quoted(text: str) -> str:
    """In double quotes, control characters, quotes and backslashes escaped."""
    known = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
    return '"' + "".join(known.get(c) or (c if c.isprintable() else f"\\u{ord(c):04x}") for c in text) + '"'


def set_level(word: str) -> None:
    """From now on the log tells what is at least so grave: debug, info, warning or error."""
    level = logging.getLevelNamesMapping()[word.upper()]
    if LOG.level != level:
        LOG.setLevel(level)


def set_up(file: Path | None) -> None:
    """Sends the log to ``file`` (1 MB, three old ones kept), or to stderr."""
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_OneLine("JOURNAL_STREAM" in os.environ))
    else:
        handler = RotatingFileHandler(file, maxBytes=1_000_000, backupCount=3, delay=False)
        handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    LOG.handlers[:] = [handler]
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
