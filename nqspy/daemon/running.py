"""Run the daemon in this process: make and lock the home, set up log, signals and systemd; then the loop."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable

from nqspy.daemon import heap, log, systemd
from nqspy.daemon.home import Home, HomeError, lock, make, undo, unlock
from nqspy.daemon.inbox import Stop
from nqspy.daemon.log import LOG
from nqspy.daemon.main import Daemon
from nqspy.daemon.starting import StartOptions
from nqspy.model.errors import NqspyError
from nqspy.store import restoring
from nqspy.store.reserve import Reserve
from nqspy.system import urgency


def serve(home: Home, options: StartOptions, ready: Callable[[str], None]) -> None:
    """Run a daemon until it is stopped; ``ready`` gets its warnings once it answers. Raises NqspyError."""
    reserve = Reserve(home.reserve, time.monotonic)
    reserve.open_up()
    before, started = home.names(), False
    make(home)
    clean = True
    with contextlib.suppress(OSError):  # a lock file that names a process was not released
        clean = not home.pid_file.read_bytes().strip()
    fd = reserve.let(lambda: lock(home))
    log.set_up(home.log if options.background else None)
    heap.settle()
    urgency.hurry()
    sys.setswitchinterval(0.0005)

    def answers(text: str) -> None:
        nonlocal started
        started = True
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
        LOG.exception("nqsd ends because of an internal error")
        raise
    finally:
        if not started:
            undo(home, before)
        unlock(fd)


def _forget(home: Home, options: StartOptions) -> None:
    """Set the former state aside if the start asks for that. Raises NqspyError."""
    moved = restoring.forget(home.database, time.strftime("%Y%m%dT%H%M%S")) if options.forget else None
    if moved is not None:
        LOG.warning("started without the former state, which is now %s; running jobs are foreign", moved)


def _live(home: Home, options: StartOptions, ready: Callable[[str], None], clean: bool) -> None:
    _forget(home, options)
    daemon = Daemon(home, options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: daemon.inbox.put(Stop()))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # The parent may ignore or block these: then no child could be reaped, and no signal would end it.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        daemon.start(clean)
        heap.calm()
        clock = f", accelerated clock {daemon.clock.text}" if daemon.clock.accelerated else ""
        LOG.info("nqsd serves %s, process %d%s", home.path, os.getpid(), clock)
        warnings = (daemon.reloads.trouble, daemon.queue_files.trouble, *daemon.exits.problems)
        ready("\n".join(filter(None, warnings)))
        systemd.notify("READY=1")
        daemon.run()
    finally:
        systemd.notify("STOPPING=1")
        daemon.close()
        LOG.info("stopped")
