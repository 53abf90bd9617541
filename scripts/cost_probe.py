"""Clocks in a daemon, its spawner and its shepherds: CPU time by part, for `bench_cost`. Standard library
only.

Run as ``cost_probe.py daemon OUT ARGUMENTS`` instead of ``nqsd``; the daemon then runs its spawner by
``cost_probe.py spawner OUT SPAWNER ARGUMENTS``. Each process adds a line of JSON to OUT when it ends.
"""

import atexit
import json
import os
import resource
import runpy
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

DAEMON = {
    "nqspy.daemon.inbox:Inbox.drain": "inbox",
    "nqspy.daemon.inbox:Inbox.put_message": "counter: messages",
    "nqspy.rpc.peer:ServedConnection.data_received": "counter: messages",
    "nqspy.answers.dispatcher:Dispatcher.accept": "counter: commands and replies",
    "nqspy.answers.dispatcher:Dispatcher.reply": "counter: commands and replies",
    "nqspy.engine.loop:Engine.feed": "engine",
    "nqspy.engine.loop:Engine._pass": "pass",
    "nqspy.store.journal:SqliteJournal.commit": "store",
    "nqspy.executors.local:LocalExecutor.do": "orders to the spawner",
    "nqspy.executors.watch:Watch._handle": "reports of shepherds",
    "nqspy.daemon.notices:ExitNotices.notify": "telling",
}
SPAWNER = {
    "nqspy.executors.prepare:read": "order read",
    "nqspy.executors.pool:ShepherdPool.assign": "given to an idle shepherd",
    "nqspy.executors.spawner:Reaper.reap": "ends waited for",
    "nqspy.executors.cgroups:ShepherdCgroup.__init__": "cgroup",
    "nqspy.executors.cgroups:Cgroups.remove_for_shepherd": "cgroup",
    "os:fork": "fork",
    "nqspy.executors.cgroups:fork_into": "fork",
}
SHEPHERD = {
    "nqspy.executors.prepare:claim": "files: claim",
    "os:fsync": "syncs",
    "nqspy.executors.shepherd:Shepherd._open_stream": "files: output",
    "nqspy.executors.person:find": "preparation",
    "nqspy.executors.child:_command": "preparation",
    "os:posix_spawn": "spawn",
    "nqspy.executors.records:add": "files: records",
    "nqspy.executors.shepherd:Shepherd._listen": "files: control",
    "nqspy.executors.deliver:deliver": "delivery",
    "nqspy.executors.attempt_reporter:AttemptReporter.report": "reports",
    "nqspy.executors.prepare:read": "order read",
}


class Clocks:
    """CPU ns by part, each without the time of parts within it."""

    def __init__(self) -> None:
        self.taken: dict[str, int] = {}
        self._here = threading.local()

    def wrap(self, call: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Return the function with a clock around it."""

        def measured(*arguments: Any, **named: Any) -> Any:
            stack = self._here.__dict__.setdefault("stack", [])
            stack.append(0)
            began = time.thread_time_ns()
            try:
                return call(*arguments, **named)
            finally:
                took = time.thread_time_ns() - began
                self.taken[part] = self.taken.get(part, 0) + took - stack.pop()
                if stack:
                    stack[-1] += took

        return measured

    def install(self, places: dict[str, str]) -> None:
        """Put the clocks where ``module:name`` says; missing places are left out."""
        for place, part in places.items():
            module, _, path = place.partition(":")
            *owners, name = path.split(".")
            try:
                owner: Any = __import__(module, fromlist=["*"])
                for each in owners:
                    owner = getattr(owner, each)
                setattr(owner, name, self.wrap(getattr(owner, name), part))
            except (ImportError, AttributeError):
                continue


def _note(out: str, kind: str, clocks: Clocks) -> None:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = {"kind": kind, "whole": time.process_time_ns(), "parts": clocks.taken,
            "children": int((children.ru_utime + children.ru_stime) * 1e9)}  # fmt: skip
    fd = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, json.dumps(line).encode() + b"\n")
    os.close(fd)


def daemon(out: str, arguments: list[str]) -> None:
    """Run ``nqsd`` with clocks."""
    from nqspy.daemon import command
    from nqspy.executors import link

    clocks, plain = Clocks(), link.subprocess.Popen

    def begin(words: list[str], **more: Any) -> Any:
        return plain([*words[:6], __file__, "spawner", out, *words[6:]], **more)

    link.subprocess = type("", (), {**vars(link.subprocess), "Popen": staticmethod(begin)})  # type: ignore
    clocks.install(DAEMON)
    atexit.register(_note, out, "daemon", clocks)
    sys.argv = ["nqsd", *arguments]
    command.main()


def spawner(out: str, path: str, arguments: list[str]) -> None:
    """Run a spawner with clocks; its shepherds have their own."""
    sys.path.insert(0, path.rsplit("/", 3)[0])
    from nqspy.executors import spawner as ours

    mine, theirs, leave, serve = Clocks(), Clocks(), os._exit, ours.serve

    def served(*given: Any) -> None:
        theirs.taken.clear()
        theirs.install(SHEPHERD)
        serve(*given)

    def left(status: int) -> None:
        _note(out, "shepherd", theirs)
        leave(status)

    mine.install(SPAWNER)
    ours.serve = served
    ours.os._exit = left  # type: ignore
    ours.main(arguments)
    os._exit = leave  # type: ignore
    _note(out, "spawner", mine)


if __name__ == "__main__":
    if sys.argv[1] == "daemon":
        daemon(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "spawner":
        spawner(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        runpy.run_path(sys.argv[1])
