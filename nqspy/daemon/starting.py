"""Checks before a daemon starts: wrong options are refused; a failed first start is undone."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from nqspy.daemon.home import MADE, SITES, Home, HomeError, lock, unusable
from nqspy.model.errors import NqspyError
from nqspy.system.shipped import shipped


class StartOptions(Struct, frozen=True):
    """Options of a start: folders of queues and exits (None: the home's), the clock, background or not, and
    ``forget``: without the former state."""

    queues: str | None = None
    exits: str | None = None
    clock: str | None = None
    background: bool = False
    forget: bool = False


def check(home: Home, options: StartOptions) -> None:
    """Refuse options that a start cannot use, before it makes anything in the home. Raises NqspyError."""
    for name, folder in (("queues", options.queues), ("exits", options.exits)):
        if folder == "":
            raise NqspyError(f"--{name} names no folder; give one, or leave it out for the home's own")
    try:
        if options.clock is not None:
            from nqspy.daemon.clock import check_clock

            check_clock(home.path, options.clock)
        if options.exits is not None and not Path(options.exits).is_dir():
            raise NqspyError(f"--exits: {options.exits} is not a folder")
        queues = Path(options.queues or home.path / "queues.d")
        if options.forget or (options.queues is not None and not home.database.exists()):
            from nqspy.daemon import files
            from nqspy.qmgr.parser import ParseError

            where = "queues.d" if options.queues is None else "--queues"
            try:
                for name, _, text in files.read(queues, home.owner()):
                    files.parse(name, text)
            except ParseError as error:
                raise NqspyError(f"{where}: {error}\n{error.caret()}") from None
            except NqspyError as error:
                raise NqspyError(f"{where}: {error}") from None
    except OSError as error:
        raise unusable(home, error) from None


class NoReason(HomeError):
    """A daemon did not start and sent no reason; its log may have one."""


@contextlib.contextmanager
def undone_on_failure(home: Home) -> Iterator[None]:
    """Undo in a new home what the block made if it fails, unless only the log says why. Raises HomeError."""
    new, there = home.is_new(), os.path.lexists(home.path)
    try:
        yield
    except NqspyError as error:
        if new and not isinstance(error, NoReason):
            with contextlib.suppress(NqspyError, OSError):  # a daemon uses it, or removing fails
                if not home.is_new():
                    _clear(home)
                if not there:
                    home.path.rmdir()
        raise


def _clear(home: Home) -> None:
    """Remove only the files that a start makes: others may have been added."""
    fd = lock(home)
    try:
        if home.database.exists():
            return
        for name in MADE:
            shutil.rmtree(home.path / name, ignore_errors=True)
        for folder in SITES:
            names = {"10-batch.qmgr"} if folder == "queues.d" else set[str]()
            with contextlib.suppress(OSError):
                names |= set(os.listdir(shipped() / folder))
            for name in names:
                (home.path / folder / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                (home.path / folder).rmdir()
        home.pid_file.unlink()
    finally:
        os.close(fd)
