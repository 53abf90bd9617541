"""The daemon's log: one line a message (what follows it, such as a traceback, is indented), to stderr in the
foreground, else to a file that rotates by itself."""

import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

from nqspy.rpc.messages import plain

LOG = logging.getLogger("nqspy")


class _Formatter(logging.Formatter):
    """Every line that does not begin with a date belongs to the one before it."""

    def format(self, record: logging.LogRecord) -> str:
        """The message; its further lines indented, control characters made visible."""
        return plain(super().format(record)).rstrip("\n").replace("\n", "\n    ")


def set_up(file: Path | None) -> None:
    """Sends the log to ``file`` (1 MB, three old ones kept), or to stderr."""
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        handler = RotatingFileHandler(file, maxBytes=1_000_000, backupCount=3, delay=False)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    LOG.handlers[:] = [handler]
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
