"""The daemon's process: begun in the background, or this one. Nothing heavy: a start waits for it."""

import contextlib
import gc
import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import msgspec

from nqspy.daemon.home import Home, HomeError, announce
from nqspy.daemon.starting import NotTold, StartOptions
from nqspy.model.errors import NqspyError


def begin(where: Home, options: StartOptions) -> str:
    """Start a daemon in the background; return what people should know of it. Raises HomeError, `NotTold`."""
    announce(where, coming=True)
    try:
        return _await_ready(_spawn(where, options), where)
    except OSError as error:
        announce(where, coming=False)
        raise HomeError(f"no daemon can be started: {error.strerror or error}") from None
    except HomeError:
        announce(where, coming=False)
        raise


def become(where: Home, options: StartOptions, ready: Callable[[str], None]) -> None:
    """This process is the daemon until it is asked to stop, as `running.serve` has it. Raises NqspyError."""
    # Threads of a numeric library would be lost in forked children, which may begin none.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    gc.disable()  # all that is loaded stays: to look for circles in it is a seventh of a start
    from nqspy.daemon.running import serve

    gc.enable()
    serve(where, options, ready)


def _spawn(where: Home, options: StartOptions) -> int:
    """A daemon of its own; gives the pipe in which it says how it came up. Raises OSError."""
    read, write = os.pipe()
    # -P: what lies where one stands is no module of ours, nor of Python.
    command = [sys.executable, "-P", "-m", "nqspy.daemon.process", str(where.path), str(write)]
    try:
        subprocess.Popen(
            [*command, msgspec.json.encode(options).decode()],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, close_fds=True, pass_fds=(write,),
        )  # fmt: skip
    except OSError:
        os.close(read)
        raise
    finally:
        os.close(write)
    return read


def _await_ready(read: int, where: Home) -> str:
    """Return what people should know of a daemon that has come up. Raises HomeError when it has not."""
    said = b""
    while select.select([read], [], [], 120)[0]:
        more = os.read(read, 65536)
        if not more:
            break
        said += more
    word, _, text = said.decode(errors="replace").partition("\n")
    if word == "ok":
        return text.strip()
    if said.strip():
        raise HomeError(said.decode(errors="replace").strip())
    raise NotTold(f"the daemon did not come up; see {where.log}")


def _say(ready: int, text: str) -> None:
    """Tell the starting process, which may have gone meanwhile."""
    with contextlib.suppress(OSError):
        os.write(ready, text.encode())
        os.close(ready)


def main() -> NoReturn:
    """In the background; its words: the home, a descriptor for how it came up, the options as JSON."""
    home, number, options = sys.argv[1:]
    ready = int(number)
    os.chdir("/")
    try:
        told = msgspec.json.decode(options, type=StartOptions)
        become(Home(Path(home)), told, lambda text: _say(ready, f"ok\n{text}"))
    except NqspyError as error:
        _say(ready, str(error))
        raise SystemExit(1) from None
    raise SystemExit(0)


if __name__ == "__main__":
    main()
