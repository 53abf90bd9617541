"""Work in which user exits run, in a process of its own that has given up its rights: as in the daemon, no
code of a site runs with those of whoever asks."""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from traceback import format_exc
from typing import Any, NoReturn

from nqspy.decider import sandbox
from nqspy.model.errors import NqspyError
from nqspy.sim.replay.wrong import NotReplayed

MEMORY = 8 << 30
"""Bytes that it may take beyond what it begins with."""


def apart(work: Callable[[], Any]) -> Any:
    """What ``work`` gives, which JSON can hold; it finds everything as it is now, and can read no file that
    is not everybody's. Raises NotReplayed: what it was refused, or that its process was lost."""
    sys.stdout.flush()
    user = _user()
    answers, answer = os.pipe()
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        os.close(answers)
        _live(work, user, answer, parent)
    os.close(answer)
    Thread(target=_end_if_stopped, args=(pid,), daemon=True).start()
    try:
        with open(answers, "rb") as pipe:
            said = pipe.read()
        status = os.waitpid(pid, 0)[1]
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    return _read(said, status)


def _end_if_stopped(pid: int) -> None:
    """Site code that stops its process would keep whoever asks waiting for ever."""
    with suppress(ChildProcessError):  # it has ended, and was waited for
        changed = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if changed is not None and changed.si_code == os.CLD_STOPPED:
            os.kill(pid, signal.SIGKILL)


def _user() -> tuple[str, int, int] | None:
    try:
        return sandbox.user()
    except OSError as error:
        raise NotReplayed(str(error)) from None


def _live(work: Callable[[], Any], user: tuple[str, int, int] | None, answer: int, parent: int) -> NoReturn:
    status = 1
    try:
        box = sandbox.Sandbox(MEMORY, True, 64, user)
        sandbox.enter(box, (answer,), 0, os.open(os.devnull, os.O_WRONLY), parent)
        with open(answer, "wb") as pipe:
            pipe.write(json.dumps(_made(work), ensure_ascii=False).encode("utf-8", "replace"))
        status = 0
    finally:
        os._exit(status)


def _made(work: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"made": work()}
    except NqspyError as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"refused": f"it needs more than {MEMORY >> 30} GiB; take a shorter time"}
    except BaseException:
        return {"failed": format_exc()}


def _read(said: bytes, status: int) -> Any:
    try:
        found = json.loads(said)
    except ValueError:
        how = (
            f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
        )
        raise NotReplayed(
            f"the process in which user exits run was lost ({how}): one of them ends or stops it"
        ) from None
    if "refused" in found:
        raise NotReplayed(found["refused"])
    if "failed" in found:
        raise RuntimeError(found["failed"])
    return found["made"]
