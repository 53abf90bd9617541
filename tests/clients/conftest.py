"""A site as clients of PBS find it, and who runs them: commands on PATH, a python of their own."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon.live import PATIENCE, ROOT, Live, command, until

SITE = """\
set machine pes=4
create batch_queue batch priority=10
enable queue batch
start queue batch
set default batch_request queue batch
set shell_strategy free
"""
COMMANDS = ("qsub", "qstat", "qdel")
DRIVERS = Path(__file__).parent / "drivers"


class Person:
    """Somebody who uses a client in ``folder``."""

    def __init__(self, live: Live, python: str, folder: Path) -> None:
        self.live, self.python, self.folder = live, python, folder
        path = folder / "bin"
        path.mkdir()
        for name in COMMANDS:
            words = shlex.join(["env", f"PYTHONPATH={ROOT}", f"NQSPY_HOME={live.home}", *command(name)])
            (path / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            (path / name).chmod(0o755)
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("PBS_", "NQSPY_"))}
        mine = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "NQSPY_HOME": str(live.home)}
        self.environment = kept | mine | {"PATH": f"{path}:{kept['PATH']}"}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.environment.pop("PYTHONPATH", None)

    def begin(self, *words: str | Path, folder: Path | None = None) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            words, cwd=folder or self.folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def call(self, *words: str | Path, folder: Path | None = None) -> str:
        with self.begin(*words, folder=folder) as run:
            try:
                message, _ = run.communicate(timeout=2 * PATIENCE)
            finally:
                run.kill()
        assert run.returncode == 0, f"{words} ended with {run.returncode}\n{message}\n{self.live.log}"
        return message

    def number(self, name: str, run: "subprocess.Popen[str] | None" = None) -> int:
        """The number that a job writes into a file; ``run``: the program without which it will not."""
        path = self.folder / name

        def there() -> bool:
            assert run is None or run.poll() is None, run.communicate()[0]
            return path.exists() and path.read_text().endswith("\n")

        until(there, name)
        return int(path.read_text())

    def drive(self, driver: str, *words: str) -> dict[str, Any]:
        """Runs a driver; what it saw."""
        lines = self.call(self.python, DRIVERS / driver, *words).splitlines()
        return dict(json.loads(lines[-1]))


@pytest.fixture(scope="session")
def clients_python() -> str:
    run = subprocess.run([ROOT / "scripts" / "clients"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A started daemon, its queue the default one."""
    folder = tmp_path_factory.mktemp("clients")
    live = Live(folder / "home", folder / "work").site(SITE).start()
    yield live
    live.close()


@pytest.fixture
def person(site: Live, clients_python: str, tmp_path: Path) -> Person:
    return Person(site, clients_python, tmp_path)
