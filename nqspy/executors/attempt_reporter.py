"""Parts common to all shepherds; records and reports of an attempt: first on the disk, then to the daemon."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable
from typing import Any

from nqspy.executors import cgroups, deadline, deliver, person, proc, records
from nqspy.executors.proc import Identifier

_PAUSE = 0.1
_TRIES = 20
"""Most times, each `_PAUSE` s, that a report is sent to a busy daemon: the pidfd shows the end anyway."""
_RETRY = 2.0
_LEAST_PROCESSES = 64
"""Least value of `Station.most_processes`, which is else a quarter of the pids that the machine has."""


class Station:
    """Things that the spawner prepares once for all its shepherds: spool, lock, sockets, cgroups."""

    def __init__(
        self, spool: str, lock: int, reports: socket.socket, groups: cgroups.Cgroups, offers: socket.socket
    ) -> None:
        """``lock``: descriptor of the spawner's lock; ``reports``: socket to the daemon; ``offers``: socket
        where idle shepherds offer themselves (`pool`); ``logins`` (set later): where all ask for logins."""
        self.spool = spool
        self.lock = lock
        self.reports = reports
        self.cgroups = groups
        self.offers = offers
        self.logins: socket.socket
        self.cpus = os.sched_getaffinity(0)
        self.identifier = Identifier()
        self.me = self.identifier.of(os.getpid()).text()
        person.warm_up()
        self.oom_score_adj = int(proc.contents("/proc/self/oom_score_adj"))
        most = min(int(proc.contents(f"/proc/sys/kernel/{name}")) for name in ("pid_max", "threads-max"))
        self.most_processes = max(_LEAST_PROCESSES, most // 4)


class AttemptReporter:
    """Writes the records of one attempt, in the current folder, and reports them to the daemon."""

    def __init__(self, order: dict[str, Any], station: Station) -> None:
        self.order = order
        self.station = station
        self.folder = os.path.join(station.spool, records.folder_name(order["seq"], order["attempt"]))
        self.control: socket.socket | None = None
        self.used: list[int] = [0, 0, 0]

    def report(self, kind: str, used: list[int] | None = None, text: str = "") -> bool:
        """Send one report to the daemon: ``kind`` here (it listens), run, use, out (paged out), left (ended,
        output remains), note or end, with the numbers ``used`` that this kind needs. Return False if the
        daemon is busy for 2 s; True without a daemon, as the next one reads the records."""
        message: dict[str, Any] = {"k": kind, "s": self.order["seq"], "a": self.order["attempt"], "u": used}
        if text or kind == "note":
            message["t"] = text
        data = json.dumps(message).encode("ascii")
        for _ in range(_TRIES):
            try:
                self.station.reports.sendto(data, "../reports.sock")
            except BlockingIOError:
                # The socket counts as writable whether or not the daemon's queue is full: waiting would spin.
                time.sleep(_PAUSE)
            except OSError:
                return True  # no daemon: the next one reads the records
            else:
                return True
        return False

    def finish(self, record: dict[str, Any], ready: Callable[[], None] | None = None) -> bool:
        """Deliver the output as an ``exit`` record says, write the ``done`` record, call ``ready`` and report
        the end; return False if the report could not be sent."""
        done = dict(record["ending"])
        self.used = done["used"]
        if record["output"] is not None:
            deadline.messages(self.control)  # reported while the job ended: not about the delivery
            most = self.order.get("patience", [0, deadline.DELIVERY])[1]
            wait = deadline.Wait(most + deliver.size_of(record) / deadline.PACE, self.exiting)
            result = deliver.deliver(record, wait)
            done |= {name: result[name] for name in ("stdout", "stderr", "kept")}
            done["text"] = "; ".join(filter(None, (done["text"], result["text"])))
        persist("done", done, durable=False)
        if ready is not None:
            ready()
        return self.report("end")

    def listen(self) -> socket.socket:
        """Return the socket for the daemon's messages; the first call opens and reports it."""
        if self.control is None:
            self.control = deadline.listen()
            self.report("here")
        return self.control

    def exiting(self, text: str = "") -> socket.socket:
        """Report that the job has ended and its output takes a while (``text``: why), so that its PEs are
        free; return the socket for the daemon's messages."""
        if self.control is None:
            self.control = deadline.listen()
        self.report("left", self.used, text)
        return self.control


def persist(name: str, record: dict[str, Any], *, durable: bool) -> None:
    """Write a record of that name into the current folder; try again every 2 s until the disk takes it.
    ``durable``: sync it. Raises records.Gone if the folder was removed."""
    while True:
        try:
            records.add(".", name, record, durable=durable)
        except FileNotFoundError:
            raise records.Gone(name) from None
        except OSError:
            time.sleep(_RETRY)
        else:
            return


def if_possible(call: Any, *arguments: Any) -> None:
    """Call a function and ignore its disk errors: the shepherd and the record of the end matter more."""
    with contextlib.suppress(OSError):
        call(*arguments)
