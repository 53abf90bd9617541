"""Why a job ended that nobody ended: by itself, or by a limit that the kernel keeps."""

from __future__ import annotations

import signal
from typing import Any

from nqspy.executors.cage import Cage
from nqspy.executors.meter import Meter


def of(
    cage: Cage, meter: Meter, order: dict[str, Any], status: int | None, number: int | None
) -> tuple[str, str]:
    """End reason and a sentence, by the leader's ``status`` or the signal that killed it (128+N: its shell
    saw that)."""
    if cage.held.killed():
        return "memory_limit", meter.memory_text()
    died = number if number is not None else (status or 0) - 128
    soft, hard = order["rlimits"].get("CPU", (-1, -1))
    if died == signal.SIGXCPU and soft >= 0:
        return "cpu_limit", "CPU limit of a process exceeded"
    if died == signal.SIGKILL and 0 <= hard <= meter.cpu + 0.1:
        return "cpu_limit", "CPU limit of a process exceeded"
    if died == signal.SIGXFSZ and "FSIZE" in order["rlimits"]:
        return "file_limit", "file size limit exceeded"
    if cage.held.refused():
        return "process_limit", meter.process_text()
    return ("exit", "") if number is None else ("signal", "")
