"""The job log of NQS (``-j``, ``-J``): what befell a request, in a file of its own (``NAME.lSEQ``) or behind
its output. The order brings the lines of the beginning (`order`); the end is added by the shepherd. Standard
library only."""

from __future__ import annotations

import os
from typing import Any

from nqspy.executors.proc import Descriptor

FILE = "joblog"


def add(order: dict[str, Any], ending: dict[str, Any], stdout: int) -> None:
    """Writes the log, now that the job has ended: behind its output, or into a file of the spool. Raises
    OSError."""
    if not order.get("log"):
        return
    text = "".join(f"{line}\n" for line in [*order["log"], _ended(ending)]).encode("utf-8", "replace")
    if FILE not in order["output"]:
        os.write(stdout, text)
        return
    with Descriptor(os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666 & ~order["umask"])) as fd:
        if order["uid"] != os.geteuid() == 0:
            os.fchown(fd, order["uid"], -1)
        os.write(fd, text)
        os.fsync(fd)


def _ended(ending: dict[str, Any]) -> str:
    cpu, wall, memory = ending["used"]
    how = f"signal {ending['signal']}" if ending["signal"] is not None else f"exit status {ending['status']}"
    why = f" ({ending['text'] or ending['reason']})" if ending["reason"] not in ("exit", "signal") else ""
    used = f"CPU time {cpu / 1000:.2f} s, memory {memory / (1 << 20):.1f} MiB"
    return f"after {wall / 1000:.2f} s: ended, {how}{why}; {used}"
