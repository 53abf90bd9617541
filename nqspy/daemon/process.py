"""Process of the daemon: in the background, or this one. It imports little: a start waits for it."""

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
from nqspy.daemon.starting import NoReason, StartOptions
from nqspy.model.errors import NqspyError


def begin(where: Home, options: StartOptions) -> str:
    """Start a daemon in the background and wait until it answers; return its warnings. Raises HomeError, and
    `NoReason` if it reports nothing."""
    announce(where, coming=True)
    try:
        return _await_ready(_spawn(where, options), where)
    except OSError as error:
        announce(where, coming=False)
        raise HomeError(f"nqsd cannot be started: {error.strerror or error}") from None
    except HomeError:
        announce(where, coming=False)
        raise


def become(where: Home, options: StartOptions, ready: Callable[[str], None]) -> None:
    """Run the daemon in this process until it is stopped, by `running.serve`. Raises NqspyError."""
    # Threads of a numeric library would be lost in forked children, which may begin none.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    gc.disable()  # all loaded objects stay: searching them for cycles takes a seventh of a start
    from nqspy.daemon.running import serve

    gc.enable()
    serve(where, options, ready)


def _spawn(where: Home, options: StartOptions) -> int:
    """Start the daemon's process; return the pipe for its report. Raises OSError."""
    read, write = os.pipe()
    # -P: files in the current folder are not modules.
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
    """Wait for the report of a starting daemon; return its warnings. Raises HomeError if it fails."""
    data = b""
    while select.select([read], [], [], 120)[0]:
        more = os.read(read, 65536)
        if not more:
            break
        data += more
    word, _, text = data.decode(errors="replace").partition("\n")
    if word == "ok":
        return text.strip()
    if data.strip():
        raise HomeError(data.decode(errors="replace").strip())
    raise NoReason(f"nqsd did not start; see {where.log}")


def _report(ready: int, text: str) -> None:
    """Write the report for the starting process, which may have ended."""
    with contextlib.suppress(OSError):
        os.write(ready, text.encode())
        os.close(ready)


def main() -> NoReturn:
    """Run the daemon in the background; arguments: home, descriptor for the report, options as JSON."""
    home, number, options = sys.argv[1:]
    ready = int(number)
    os.chdir("/")
    try:
        given = msgspec.json.decode(options, type=StartOptions)
        become(Home(Path(home)), given, lambda text: _report(ready, f"ok\n{text}"))
    except NqspyError as error:
        _report(ready, str(error))
        raise SystemExit(1) from None
    raise SystemExit(0)


if __name__ == "__main__":
    main()
