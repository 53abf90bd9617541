"""The daemon's log: one line a message (what follows it, such as a traceback, is indented), to stderr in the
foreground, else to a file that rotates by itself; old ones are compressed."""

import gzip
import logging
import os
import shutil
import sys
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path

from nqspy.rpc.messages import plain

LOG = logging.getLogger("nqspy")


class _Formatter(logging.Formatter):
    """Every line that does not begin with a date belongs to the one before it."""

    def format(self, record: logging.LogRecord) -> str:
        """The message; its further lines indented, control characters made visible."""
        return plain(super().format(record)).rstrip("\n").replace("\n", "\n    ")


SIZE = 10_000_000
"""Bytes of a log file before a new one is begun."""
OLD = 5
"""Old ones kept: ``nqsd.log.1.gz`` is the youngest."""


class _Rotating(RotatingFileHandler):
    """Compresses what it puts away, on a thread of its own: whoever logs does not wait for that."""

    def rotation_filename(self, default_name: str) -> str:
        """Name of an old one."""
        return f"{default_name}.gz"

    def rotate(self, source: str, dest: str) -> None:
        """Puts the log away."""
        plain = dest.removesuffix(".gz")
        os.replace(source, plain)
        threading.Thread(target=_compress, args=(plain, dest), name="log", daemon=True).start()


def _compress(plain: str, dest: str) -> None:
    new = f"{dest}.new"
    with open(plain, "rb") as text, gzip.open(new, "wb", 6) as file:
        shutil.copyfileobj(text, file)
    os.replace(new, dest)
    os.unlink(plain)


def set_up(file: Path | None) -> None:
    """Sends the log to ``file``, or to stderr."""
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        handler = _Rotating(file, maxBytes=SIZE, backupCount=OLD, delay=False)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    LOG.handlers[:] = [handler]
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
