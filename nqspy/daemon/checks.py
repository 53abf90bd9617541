"""Options that a start cannot use, refused before anything of the home is made. `nqsd start` waits for this
check, so the parser of queues is loaded only where there are any."""

from pathlib import Path

from nqspy.daemon.clock import check_clock
from nqspy.daemon.home import Home, unusable
from nqspy.daemon.options import StartOptions
from nqspy.model.errors import NqspyError


def check(home: Home, options: StartOptions) -> None:
    """Refuse what a start cannot use, before anything of the home is made. Raises NqspyError."""
    try:
        _check(home, options)
    except OSError as error:
        raise unusable(home, error) from None


def _check(home: Home, options: StartOptions) -> None:
    for name, folder in (("queues", options.queues), ("exits", options.exits)):
        if folder == "":
            raise NqspyError(f"--{name} names no folder; give one, or leave it out for the home's own")
    if options.clock is not None:
        check_clock(home.path, options.clock)
    if options.exits is not None and not Path(options.exits).is_dir():
        raise NqspyError(f"--exits: {options.exits} is no folder")
    if options.queues is not None and not home.database.exists():
        _check_queues(Path(options.queues), home)


def _check_queues(folder: Path, home: Home) -> None:
    from nqspy.daemon import files
    from nqspy.qmgr.parser import ParseError

    try:
        files.read_through(folder, home.owner())
    except ParseError as error:
        raise NqspyError(f"--queues: {error}\n{error.caret()}") from None
    except NqspyError as error:
        raise NqspyError(f"--queues: {error}") from None
