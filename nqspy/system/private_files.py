"""Files that only their owner reads, written whole or not at all."""

import os
from collections.abc import Iterable
from pathlib import Path


def write_private(path: Path, pieces: Iterable[str], encoding: str = "utf-8") -> None:
    """Write a file that only its owner reads, whole or not at all, and durable. Raises OSError."""
    new = path.with_name(path.name + ".new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding=encoding, errors="replace", newline="") as out:
        out.writelines(pieces)
        out.flush()
        os.fsync(out.fileno())
    os.replace(new, path)
