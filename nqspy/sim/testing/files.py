"""The exits of a test: files, modules or texts, loaded as in the daemon; failures and lines are stored."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from nqspy.model.actions import ExitFailure
from nqspy.sim.testing.record import BadExit, ExitFailed
from nqspy.userexit.guard import Guard
from nqspy.userexit.loader import Source
from nqspy.userexit.site_exits import SiteExits

PATIENCE = 2_000
"""Least budget (ms of CPU time) of an exit's call in a test, as the machine may be busy; wall: ten times."""

OneExit = str | Path | ModuleType
Exits = OneExit | Mapping[str, str] | Sequence[OneExit]
"""A file (or a folder of files), a module, or texts by the names of their exits; or several of these."""


class _Patient(Guard):
    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], budget: int, wall: int | None = None
    ) -> Any:
        """Call ``function`` and return its result, within `PATIENCE` or its own budget if that is more."""
        budget = max(budget, PATIENCE)
        return super().call(function, args, budget, max(10 * budget, wall or 0))


class ExitsUnderTest(SiteExits):
    """The exits of a test's files, texts or modules. ``failed``: failures since the last block under `blamed`
    began; ``printed``: all lines that exits printed, as ``exit: text``. Raises BadExit."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.failed: list[ExitFailure] = []
        self.printed: list[str] = []
        super().__init__(Path("exits"), sources=_in_order(sources), guard=_Patient)
        self._sound()

    def put(self, sources: Iterable[Source]) -> None:
        """Load these files too; each replaces one with the same name. Raises BadExit if any is wrong."""
        known = {source.path.stem: source for source in self._sources or ()}
        self._sources = _in_order((known | {source.path.stem: source for source in sources}).values())
        modules, self.problems = self._load()
        self._sound()
        self._install(modules)

    def reload(self) -> str:
        """Read the files again from disk (texts stay as they are), then reload like `SiteExits`."""
        known = self._sources or ()
        self._sources = [_read(each.path) if each.path.is_absolute() else each for each in known]
        return super().reload()

    def failures(self) -> tuple[ExitFailure, ...]:
        """Return and forget failures like `SiteExits`; add them to ``failed``."""
        found = super().failures()
        self.failed += found
        return found

    @contextmanager
    def blamed(self, strict: bool) -> Iterator[None]:
        """Raise ExitFailed after the block for the first exit that failed in it, if ``strict`` is set."""
        self.failed.clear()
        yield
        if strict and self.failed:
            first = self.failed[0]
            raise ExitFailed(f"exit {first.exit}: {first.text}\n{first.traceback}".rstrip())

    def _sound(self) -> None:
        if self.problems:
            raise BadExit("\n".join(self.problems))

    def _printed(self, exit: str, text: str) -> None:
        self.printed.append(f"{exit}: {text}")


def _in_order(sources: Iterable[Source]) -> list[Source]:
    return sorted(sources, key=lambda source: source.path.name)


def sources_of(given: Exits, beside: Path) -> list[Source]:
    """Read the exits that a test gives; a relative path is looked up in ``beside``, then in the current
    folder. Raises BadExit for a file that cannot be read."""
    if isinstance(given, Mapping):
        return [Source(Path("exits", f"{name}.py"), text.encode()) for name, text in given.items()]
    if isinstance(given, str | Path | ModuleType):
        given = (given,)
    return [_read(path.absolute()) for one in given for path in _files(one, beside)]


def _files(one: OneExit, beside: Path) -> Iterator[Path]:
    if isinstance(one, ModuleType):
        if one.__file__ is None:
            raise BadExit(f"module {one.__name__} has no file")
        path = Path(one.__file__)
    else:
        path = next((p for p in (beside / one, Path(one)) if p.exists()), beside / one)
    if path.is_dir():
        yield from (file for file in sorted(path.glob("*.py")) if file.name[0] not in "._")
    else:
        yield path


def _read(path: Path) -> Source:
    try:
        return Source(path, path.read_bytes())
    except OSError as error:
        raise BadExit(f"{path} cannot be read: {error.strerror}") from None


def under_test(test: Path) -> Path:
    """Return the exit that ``test_quiet.py`` is about, ``quiet.py``: beside it, in ``exits`` there, or in
    ``exits`` one folder above. Raises BadExit if it is in none of these."""
    name = test.stem.removeprefix("test_").removesuffix("_test").lstrip("_")
    folders = (test.parent, test.parent / "exits", test.parent.parent / "exits")
    for folder in folders:
        if (found := folder / f"{name}.py").is_file() and found != test:
            return found
    places = ", ".join(str(folder) for folder in folders)
    raise BadExit(f"{test.name} is about {name}.py, which is in none of {places}")
