"""A daemon's life in this process: the home made and locked, the log, signals, systemd; then the loop."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable

from nqspy.daemon import heap, log, systemd
from nqspy.daemon.home import Home, HomeError, lock, make, take_back, unlock
from nqspy.daemon.inbox import Stop
from nqspy.daemon.log import LOG
from nqspy.daemon.main import Daemon
from nqspy.daemon.starting import StartOptions
from nqspy.model.errors import NqspyError
from nqspy.store.reserve import Reserve
from nqspy.system import urgency


def serve(home: Home, options: StartOptions, ready: Callable[[str], None]) -> None:
    """Run a daemon until it is to stop; ``ready`` gets what to say once it answers. Raises NqspyError."""
    reserve = Reserve(home.reserve, time.monotonic)
    reserve.open_up()
    before, came = home.names(), False
    make(home)
    clean = True
    with contextlib.suppress(OSError):  # a lock that still names a process was not given back
        clean = not home.pid_file.read_bytes().strip()
    held = reserve.let(lambda: lock(home))
    log.set_up(home.log if options.background else None)
    heap.settle()
    urgency.hurry()
    sys.setswitchinterval(0.0005)

    def answers(text: str) -> None:
        nonlocal came
        came = True
        ready(text)

    try:
        _live(home, options, answers, clean)
    except OSError as error:
        LOG.exception("nqsd cannot go on")
        raise HomeError(f"home {home.path} cannot be used: {error}") from None
    except NqspyError as error:
        LOG.error("%s", error)
        raise
    except Exception:
        LOG.exception("nqsd ends by an error of its own")
        raise
    finally:
        if not came:
            take_back(home, before)
        unlock(held)


def _live(home: Home, options: StartOptions, ready: Callable[[str], None], clean: bool) -> None:
    daemon = Daemon(home, options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: daemon.inbox.put(Stop()))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Whoever begins it may ignore or block these: no child could be waited for then, and none would end it.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        daemon.start(clean)
        heap.calm()
        clock = f", accelerated clock {daemon.clock.text}" if daemon.clock.accelerated else ""
        LOG.info("nqsd serves %s, process %d%s", home.path, os.getpid(), clock)
        told = (daemon.reloads.trouble, daemon.queue_files.trouble, *daemon.exits.problems)
        ready("\n".join(filter(None, told)))
        systemd.notify("READY=1")
        daemon.run()
    finally:
        systemd.notify("STOPPING=1")
        daemon.close()
        LOG.info("stopped")
