"""A small file system of its own, which can be filled."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, options: str, required: bool = True) -> Iterator[bool]:
    """Mount one on a folder. Where that may not be done: skip the test, or give False if not required."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode and required:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield not done.returncode
    finally:
        if not done.returncode:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(ballast: Path) -> None:
    """Let a file grow until nothing more fits on its disk."""
    with open(ballast, "ab") as file:
        size, part = file.tell(), 16 << 20
        while part:
            try:
                os.posix_fallocate(file.fileno(), size, part)
                size += part
            except OSError:
                part //= 2
