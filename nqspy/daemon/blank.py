"""What was no home before a first start, and is none again when that start fails."""

import contextlib
import os
import shutil
from collections.abc import Iterator

from msgspec import Struct

from nqspy.daemon.home import MADE, Home, HomeError, lock
from nqspy.model.errors import NqspyError
from nqspy.system.shipped import shipped


class NotTold(HomeError):
    """A daemon did not come up and has not said why: its log may."""


class Blank(Struct, frozen=True):
    """A home before a start: ``new``: nothing lay in it; ``there``: its folder was there."""

    home: Home
    new: bool
    there: bool

    @contextlib.contextmanager
    def else_taken_back(self) -> Iterator[None]:
        """A start: where it raises, what it has made in a new home is taken away again; not when only its
        log can say why."""
        try:
            yield
        except NqspyError as error:
            if self.new and not isinstance(error, NotTold):
                with contextlib.suppress(NqspyError, OSError):
                    self._take_back()
            raise

    def _take_back(self) -> None:
        """Raises HomeError when a daemon has it; OSError when something is in the way."""
        if not self.home.is_new():
            held = lock(self.home)
            try:
                if not self.home.database.exists():
                    self._clear()
            finally:
                os.close(held)
        if not self.there:
            self.home.path.rmdir()

    def _clear(self) -> None:
        """Only what a start makes: somebody may have laid something of his own there meanwhile."""
        home = self.home
        for name in MADE:
            shutil.rmtree(home.path / name, ignore_errors=True)
        filled = {"queues.d": {"10-batch.qmgr"}, "exits": set[str]()}
        for folder, names in filled.items():
            with contextlib.suppress(OSError):
                names |= set(os.listdir(shipped() / folder))
            for name in names:
                (home.path / folder / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                (home.path / folder).rmdir()
        home.pid_file.unlink()


def blank(home: Home) -> Blank:
    """How a home stands before a start. Raises HomeError when it cannot be looked at."""
    return Blank(home, home.is_new(), os.path.lexists(home.path))
