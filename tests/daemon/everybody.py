"""Programs run as another user: by a Python and an nqspy that all users may read, also where only root may
enter the checkout. Only this module begins processes of other users (`tests/house` sees to it)."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest
from daemon.live import Done, Live

import nqspy

NOBODY = 65534


def begin(words: list[str], uid: int = NOBODY, gid: int = NOBODY, **more: Any) -> "subprocess.Popen[Any]":
    """Begin a program as another user, in a folder that all users may enter if ``cwd`` names no other."""
    return subprocess.Popen(words, user=uid, group=gid, extra_groups=[], **({"cwd": "/"} | more))


def run(
    words: list[str], uid: int = NOBODY, gid: int = NOBODY, **more: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a program as another user to its end, in text mode."""
    return subprocess.run(
        words, user=uid, group=gid, extra_groups=[], text=True, capture_output=True, check=False,
        **({"cwd": "/"} | more),
    )  # fmt: skip


def run_nqspy(live: Live, spare: Path, module: str, *words: str) -> Done:
    """Run a command of nqspy (``cli.qmgr``) as user nobody in the home of ``live``. ``spare``: a folder that
    all users may enter."""
    python = interpreter()
    environment = {"HOME": str(spare), "NQSPY_HOME": str(live.home), "PYTHONPATH": packages(python, spare)}
    code = f"from nqspy.{module} import main; main()"
    done = run([python, "-c", code, *words], env=environment, stdin=subprocess.DEVNULL)
    return Done((module, *words), done)


def open_way(to: Path) -> None:
    """Let all users enter a folder of root's."""
    for folder in (to, *to.parents):
        if folder.stat().st_uid == 0 and len(folder.parts) > 2:
            folder.chmod(folder.stat().st_mode | 0o055)


def interpreter() -> str:
    """Return a Python of this version that all users may run: this one may lie in a folder of root's."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for path in (sys.executable, f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        if os.path.exists(path) and _imports(path, "json"):
            return path
    pytest.skip(f"needs a {name} that ordinary users may run")


def packages(python: str, spare: Path) -> str:
    """Return the folder from which other users import nqspy and its requirements: the installed one, else a
    readable copy in ``spare``."""
    installed = Path(nqspy.__file__).parents[1]
    if _imports(python, "nqspy.rpc.client", str(installed)):
        return str(installed)
    copy = spare / "packages"
    ours = ((path, path.relative_to(installed)) for path in Path(nqspy.__file__).parent.rglob("*.*"))
    for path, name in (*ours, *_files("nqspy", set())):
        place = copy / name
        place.parent.mkdir(parents=True, exist_ok=True)
        _link(path, place)
    assert _imports(python, "nqspy.rpc.client", str(copy)), "the copy cannot be read either"
    return str(copy)


def _link(path: Path, place: Path) -> None:
    """A second name is much sooner made than a copy; another file system wants a copy."""
    try:
        place.hardlink_to(path)
    except FileExistsError:
        pass  # pip has listed it twice
    except OSError:
        shutil.copyfile(path, place)


def _files(name: str, seen: set[str]) -> Iterator[tuple[Path, Path]]:
    """Yield the installed files, with compiled forms, of a distribution and its requirements, each with its
    place below the installation folder (without commands in bin/)."""
    seen.add(name)
    found = metadata.distribution(name)
    home = Path(str(found.locate_file("")))
    names = [str(each) for each in found.files or () if ".." not in each.parts]
    names += [cache_from_source(each) for each in names if each.endswith(".py")]
    yield from ((path, Path(each)) for each in names if (path := home / each).is_file())
    for line in found.requires or ():
        needed = re.match(r"[\w.-]+", line)
        if needed and "extra ==" not in line and needed[0] not in seen:
            try:
                yield from _files(needed[0], seen)
            except metadata.PackageNotFoundError:  # for another system or Python
                continue


def _imports(python: str, module: str, path: str = "") -> bool:
    environment = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return run([python, "-c", f"import {module}"], env=environment).returncode == 0
    except PermissionError:
        return False
