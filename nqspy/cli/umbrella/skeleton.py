"""``nqspy exits new``: an exit to begin with, and its tests beside it."""

import difflib
import os
import re
import sys
from importlib.resources import files
from pathlib import Path

from nqspy.cli.umbrella.asking import fail, write

_FOLDER = "userexit/skeletons"
_ENDING = ".py.txt"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def kinds() -> list[str]:
    """Return the hooks that have skeletons."""
    names = (each.name.removesuffix(_ENDING) for each in (files("nqspy") / _FOLDER).iterdir())
    return sorted(name for name in names if not name.endswith("_test"))


def new(kind: str, name: str | None) -> None:
    """Write an exit and its tests, or neither; ``name`` may be a path, and end with ``.py``."""
    known = kinds()
    if kind not in known:
        near = difflib.get_close_matches(kind, known, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        fail(f"{kind} is not an exit{meant}; exits are {', '.join(known)}", 2)
    named = Path(kind if name is None else name.removesuffix(".py"))
    path = named.with_name(f"{named.name}.py") if named.name else named
    if not _NAME.fullmatch(path.stem) or path.stem.endswith("_test"):
        fail(f"{path.stem!r} cannot be an exit's name: letters, digits, - and _ only, a letter first", 2)
    if path.stem in sys.stdlib_module_names:
        fail(f"{path.stem!r} is a module of Python's: tests in this folder would import the exit for it", 2)
    test = path.with_name(f"_{path.stem}_test.py")
    texts, written = {path: _text(kind, path.stem), test: _text(f"{kind}_test", path.stem)}, list[Path]()
    try:
        for file, text in texts.items():  # no other user may write it: the daemon would not load it
            with open(
                file, "x", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o644)
            ) as opened:
                written.append(file)
                opened.write(text)
    except OSError as error:
        for each in written:
            each.unlink(missing_ok=True)
        there = isinstance(error, FileExistsError)
        why = "is there already" if there else f"cannot be written: {error.strerror}"
        fail(f"{file} {why}; nothing was written")
    write(f"{path}: an exit of the kind {kind} to begin with\n")
    write(f"{test}: its tests, which the daemon ignores; run them with: pytest {test}\n")


def _text(which: str, name: str) -> str:
    skeleton = files("nqspy") / _FOLDER / f"{which}{_ENDING}"
    return skeleton.read_text(encoding="utf-8").replace("NAME", name)
