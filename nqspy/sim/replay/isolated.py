"""Run work with user exits in a separate process without rights, as the daemon does."""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from threading import Thread
from traceback import format_exc
from typing import Any, NoReturn

from nqspy.decider import sandbox
from nqspy.decider.heartbeat import Heartbeat
from nqspy.model.errors import NqspyError
from nqspy.model.ids import name_of


class NotReplayed(NqspyError):
    """Raised if there is nothing to replay, or a change is impossible; the text says why, in one line."""


MEMORY = 8 << 30
"""Bytes that the process may use in addition to those at its start."""

Progress = Callable[[int], None]
"""Function that gets the number of events done."""


def isolated(work: Callable[[Progress], Any], events: int = 0, heartbeat: Heartbeat | None = None) -> Any:
    """Return the result of ``work``, which must fit into JSON; it runs in a fork that can read only files
    that every user can read. A terminal shows how many of ``events`` are done; ``heartbeat``: shows which
    exit is at work. Raises NotReplayed with the refusal, or if the process was lost."""
    sys.stdout.flush()
    try:
        user = sandbox.user()
    except OSError as error:
        raise NotReplayed(str(error)) from None
    bar: AbstractContextManager[Progress] = nullcontext(lambda done: None)
    if events and sys.stderr.isatty():
        from nqspy.sim.tables import progress  # it takes a while to import

        bar = progress("replay", events)
    answers, answer = os.pipe()
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        os.close(answers)
        _live(work, user, answer, parent, max(1, events // 200))
    os.close(answer)
    Thread(target=_end_if_stopped, args=(pid,), daemon=True).start()
    body = b""
    try:
        with open(answers, "rb") as pipe, bar as done:
            for line in pipe:  # the answer has no end of line; lines before it are numbers of events done
                if line.endswith(b"\n") and line[:-1].isdigit():
                    done(int(line))
                else:
                    body += line
        status = os.waitpid(pid, 0)[1]
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    try:
        result = json.loads(body)
    except ValueError:
        by_signal = os.WIFSIGNALED(status)
        how = f"signal {os.WTERMSIG(status)}" if by_signal else f"status {os.WEXITSTATUS(status)}"
        call = None if heartbeat is None else heartbeat.read()
        who = "a user exit" if call is None else f"exit {call.exit}: {call.hook}"
        about = "" if call is None or call.seq is None else f" about request {name_of(call.seq)}"
        raise NotReplayed(
            f"{who}{about} ended the process ({how}): correct it or take another time (--since, --until)"
        ) from None
    if "refused" in result:
        raise NotReplayed(result["refused"])
    if "failed" in result:
        raise RuntimeError(result["failed"])
    return result["made"]


def _end_if_stopped(pid: int) -> None:
    """Kill a process that site code has stopped: its parent would wait for ever."""
    with suppress(ChildProcessError):  # it has ended, and was waited for
        changed = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if changed is not None and changed.si_code == os.CLD_STOPPED:
            os.kill(pid, signal.SIGKILL)


def _live(
    work: Callable[[Progress], Any], user: tuple[str, int, int] | None, answer: int, parent: int, step: int
) -> NoReturn:
    status, reported = 1, 0
    try:
        box = sandbox.Sandbox(MEMORY, True, 64, user)
        sandbox.enter(box, (answer,), 0, os.open(os.devnull, os.O_WRONLY), parent)
        with open(answer, "wb") as pipe:

            def progress(done: int) -> None:
                nonlocal reported
                if abs(done - reported) >= step:
                    reported = done
                    pipe.write(b"%d\n" % done)
                    pipe.flush()

            try:
                result = {"made": work(progress)}
            except NqspyError as error:
                result = {"refused": str(error)}
            except MemoryError:
                result = {
                    "refused": f"it needs more than {MEMORY >> 30} GiB of memory; choose a shorter time"
                }
            except BaseException:
                result = {"failed": format_exc()}
            pipe.write(json.dumps(result, ensure_ascii=False).encode("utf-8", "replace"))
        status = 0
    finally:
        os._exit(status)
