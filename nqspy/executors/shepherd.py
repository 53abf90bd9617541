"""A process for each attempt: it starts and watches the job, records its end, and outlives the daemon."""

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

from nqspy.executors import cgroups, child, deadline, deliver, forks, person, prepare, proc, records, scratch
from nqspy.executors.attempt_reporter import AttemptReporter, Station, if_possible, persist
from nqspy.executors.control import JobLimits, joined
from nqspy.executors.control_messages import ControlMessages
from nqspy.executors.logins import LoginLoader
from nqspy.executors.meter import Meter, SpoolMeter
from nqspy.executors.pageout import PageOut
from nqspy.executors.proc import now
from nqspy.executors.slot_clock import SlotClock
from nqspy.executors.wall_limit import size_text, within

_HEAD_START = 20  # ms in which a very short job may end before it is reported as running
_AGAIN = 0.1
_LONG = 64 << 20
"""Bytes of output above which the job is reported as exiting before its output is synced to the disk."""
_LIMITS = ("cpu_limit", "wall_limit", "memory_limit", "file_limit", "process_limit", "contract")


class Shepherd(AttemptReporter):
    """Serves one attempt, from the claim to the last report, in the attempt's folder. ``born``: this
    process's own cgroup, or None; ``wake``: descriptor that is readable when a child has ended; ``ready``:
    called before the end is reported if all went well, to offer this process for another attempt."""

    def __init__(
        self, order: dict[str, Any], station: Station, born: cgroups.ShepherdCgroup | None, wake: int,
        ready: Callable[[], None] | None,
    ) -> None:  # fmt: skip
        super().__init__(order, station)
        self.wake = wake
        self.ready = ready
        self.born = born
        self.cgroup: cgroups.JobGroup = born or cgroups.JobGroup()
        self.leader = 0
        self.raw: int | None = None
        self.childless = False
        self.traced = False
        self.reason = ""
        self.text = ""
        self.again = self.unknown = False
        self.kill_at: float | None = None
        self.suspended = False
        self.pause: Literal["", "stopped", "idle"] = ""
        self.turns: SlotClock | None = None
        self.reserved = False
        self.paging_out: PageOut | None = None
        self.early: list[dict[str, Any]] = []
        self.home = "/"
        self.lines: dict[str, str] = {}
        self.note = ""
        self.marks = ""
        self.status: int | None = None
        self.noted = False

    def live(self) -> bool:
        """Serve the attempt to its last report; return True if the job ran and its end was reported."""
        try:
            problem = self._launch()
        except child.Stalled as error:
            self._give_up(*error.args)
            return False
        if problem:
            self.cgroup.remove()
            if self.again:
                time.sleep(records.AGAIN)
            more = {"again": self.again or self.unknown, "unknown": self.unknown, "status": self.status}
            ending = {"reason": "not_started", "text": problem} | more
            self._record(ending, None if self.status is None else self._write_line(f"nqspy: {problem}\n"))
            return False
        self._watch(self.wake)
        reported = self._close()
        for fd in {*self.streams, self.oom} - {-1}:
            os.close(fd)
        if self.control is not None:
            self.control.close()
        return reported

    def _open_stream(self, name: str) -> int:
        """Return a stream's new file in the spool, open; -1 if the job writes in place. Raises OSError."""
        if self.order["output"][name]["direct"]:
            return -1
        mode = 0o666 & ~self.order["umask"]
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, mode)
        if self.order["uid"] != os.geteuid() == 0:
            os.fchown(fd, self.order["uid"], -1)
        return fd

    def _launch(self) -> str:
        order = self.order
        try:
            who = person.find(order)
            self.home = who.home
            deliver.join(order["output"])
            out = self._open_stream("stdout")
            self.streams = out, out if order["output"]["join"] else self._open_stream("stderr")
        except person.NotFound as error:
            self.unknown = True
            return str(error)
        except PermissionError as error:
            return str(error)
        except OSError as error:
            self.again = error.errno in records.NO_ROOM
            return f"cannot make its output files in the spool: {error.strerror}"
        begun = now()
        try:
            pid, problem = self._start(who)
        except child.Again as error:
            self.again = True
            return str(error)
        except child.NoInterpreter as error:
            self.status = 127
            return str(error)
        self.leader = pid
        if problem and pid:
            self.cgroup.kill()
            os.waitpid(pid, 0)
        if not problem:
            self.meter = Meter(self.cgroup, order, begun)
            self.messages = ControlMessages(order, self.streams, self.home)
            self.spool = SpoolMeter([fd for fd in set(self.streams) if fd >= 0])
            self.marks = scratch.mark(order) if child.marks(order, who) else ""
            del order["environment"], order["script"]
        return problem

    def _start(self, who: person.Person) -> tuple[int, str]:
        """Start the job after its owner's login; return its pid and "", else why it did not start, with 0 or
        the pid of a process to be reaped. Raises Again, NoInterpreter, Stalled."""
        order, loader = self.order, LoginLoader(self, who)
        try:
            problem, pid = loader.ready(), 0
            name = records.folder_name(order["seq"], order["attempt"])
            if not problem and not prepare.plain(order, self.station):
                self.cgroup = self.station.cgroups.for_job(name, self._kernel_limits())
                prepare.renumber_devices(order, self.cgroup)
            elif not problem and prepare.joins(order, self.station):
                self.cgroup.held = self.station.cgroups.controls.hold(self._kernel_limits(), name, "")
            try:
                pid, problem = (0, problem) if problem else self._begin(who)
            except child.OldLogin:
                problem = loader.renew()
                pid, problem = (0, problem) if problem else self._begin(who)
            self.note = loader.note
            return pid, problem
        finally:
            self.early = [*loader.messages, *self.early]

    def _begin(self, who: person.Person) -> tuple[int, str]:
        """Start the job with the login that is loaded; return like `_start`. Raises OldLogin if a profile of
        the owner was changed since that login was run."""
        order = self.order
        if prepare.plain(order, self.station):
            child.secure()
            try:
                with joined(self.cgroup.held):
                    return child.spawn(order, who, self.streams)
            except OSError as error:
                raise child.Again(str(error)) from None

        def listen() -> socket.socket:
            control = self._listen()
            self.report("here")  # earlier messages come at once
            return control

        wait = deadline.Wait(within(order, order.get("patience", [deadline.LAUNCH])[0]), listen)

        def born(pid: int) -> None:
            self.leader = pid

        try:
            return child.launch(order, who, self.cgroup, self.streams, wait, born)
        finally:
            self.early = [*self.early, *wait.unhandled()]

    def _give_up(self, waited: deadline.Wait) -> None:
        """Record an attempt that was ended before the script began, or did not begin in time."""
        self.meter = Meter(self.cgroup, self.order, waited.begun)
        self.cgroup.remove()
        kill, wall = waited.kill, self.meter.passed(now())
        reason, text = (kill["reason"], "") if kill is not None else wall or ("", "")
        if reason:
            used = self.meter.used(now())
            self._record({"reason": reason, "signal": int(signal.SIGKILL), "text": text, "used": used}, "")
        else:
            text = f"it did not begin within {now() - waited.begun:.0f} s: its first process did not go on"
            self._record({"reason": "not_started", "text": text}, None)

    def _kernel_limits(self) -> JobLimits:
        """Return the limits that the kernel is to enforce. A job of the daemon's own user gets no limit of
        CPUs, and one of processes only if the request or queue sets it: each controller costs 1 ms."""
        order, own = self.order, self.order["uid"] == os.geteuid()
        processes = min(order.get("processes") or sys.maxsize, self.station.most_processes)
        return JobLimits(
            order["limits"]["memory"],
            None if own else order["cpus"] or None,
            None if own and not order.get("keep_processes") else processes,
            order.get("denied") or None,
        )

    # ------------------------------------------------------------ while it runs

    def _watch(self, wake: int) -> None:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        self.oom = -1
        if (event := self.cgroup.held.oom_event()) is not None:  # the kernel reports that its memory is full
            self.oom, priority = event
            poll.register(self.oom, select.POLLPRI if priority else select.POLLIN)
        if self.control is not None:
            poll.register(self.control, select.POLLIN)
            if not self.noted:
                self._listen()
        poll.poll(min(_HEAD_START, self.meter.due(now()) * 1000))
        reported = False
        while True:
            forks.silence(wake)
            self._reap()
            if self.childless and self.raw is not None:
                for message in [*self.early, *deadline.messages(self.control)]:  # sent before its end
                    self.messages.apply(message)
                return
            if self.control is None:
                poll.register(self._listen(), select.POLLIN)
            reported = reported or self.report("run", [0, 0, 0])
            self._handle_messages()
            self._stop_or_go()
            out = self.paging_out  # slice by slice; the bytes that really left are reported at the end
            if out and not out.step() and self.report("out", [out.before, out.after, int(out.refused)]):
                self.paging_out = None
            wait = self._enforce()
            for fd, _ in poll.poll(wait if self.paging_out is None else 0):
                if fd == self.oom:
                    forks.silence(fd)
                    self.meter.hurry()

    def _listen(self) -> socket.socket:
        """Return the socket for messages; record leader and cgroup, in case this process is killed."""
        self.control, self.noted = self.control or deadline.listen(), True
        job, group = "", [self.cgroup.kind, self.cgroup.folder]
        with contextlib.suppress(OSError):  # it exists until it is reaped
            job = self.station.identifier.of(self.leader).text()
        if_possible(records.add, ".", "pid", {"leader": job, "cage": group, "controls": self.cgroup.held.own})
        return self.control

    def _reap(self) -> None:
        """Reap ended processes; the job's orphans are children of this subreaper."""
        try:
            while (ended := os.wait4(-1, os.WNOHANG))[0]:
                pid, status, usage = ended
                if not self.messages.reaped(pid):
                    self.meter.reap(usage)
                    self.raw = status if pid == self.leader else self.raw
        except ChildProcessError:
            self.childless = True
        if self.raw is not None and self.messages.writer > 0 and not self.childless:
            # A line that is being written must hold no PE: its target may block.
            self.childless = proc.children(os.getpid()) == [self.messages.writer]

    def _settle_traced(self) -> None:
        """Count the job's dead processes as ended if only a tracer (the owner's debugger) delays their
        reaping: they must occupy no PEs."""
        reading = proc.stat(self.leader) if self.raw is None else None
        if reading is not None and reading.dead:
            self._reap()
            if self.raw is None:
                self.raw, self.traced = reading.code, True
                self.meter.reaped += reading.cpu + reading.reaped
        if self.raw is None or self.childless:
            return
        others = {*self.cgroup.pids(), *proc.children(os.getpid())} - {self.messages.writer}
        if all(reading is None or reading.dead for reading in map(proc.stat, others)):
            self._reap()
            self.traced = self.traced or not self.childless
            self.childless = True

    def _handle_messages(self) -> None:
        """Read and carry out the daemon's messages (kill, suspend, resume, changes)."""
        found, self.early = [*self.early, *deadline.messages(self.control)], []
        for message in found:
            match message["do"]:
                case "kill":
                    self._end(message["reason"], "", message["signal"], message["grace"] / 1000)
                case "signal":
                    self.cgroup.signal(message["signal"])
                case "suspend":
                    self.suspended = True
                    self._stop_or_go()
                    if message.get("page_out"):  # reported each time: the first report may be lost
                        self.paging_out = PageOut(self.cgroup.pids(), self.cgroup.folder)
                case "resume":
                    cgroups.move(self.cgroup, self.order, message.get("cpus"))
                    self._resume()
                case "turns":
                    self.turns = SlotClock(message) if message["lengths"] else None
                case _:
                    self.messages.apply(message)

    def _resume(self) -> None:
        if self.suspended:
            self.suspended, self.paging_out = False, None
        self._stop_or_go()

    def _stop_or_go(self) -> None:
        """Stop the job's processes while it is suspended or others have the slot, or let them run only where
        a PE is idle (``partial``); in its slots let them go on. Its wall time stands still outside."""
        at, before = now(), self.pause
        self.pause = "stopped" if self.suspended else ""
        if not self.suspended and self.turns is not None and not self.turns.runs(at):
            self.pause = "idle" if self.turns.partial else "stopped"
        if self.pause == before:
            return
        if before == "idle":
            self.cgroup.run_when_idle(False)
        if self.pause == "stopped":
            self.cgroup.freeze()
        elif before == "stopped":
            self.cgroup.thaw()
        if self.pause == "idle":
            self.cgroup.run_when_idle(True)
        self.meter.frozen = self.pause == "stopped"
        (self.meter.wall.stop if self.pause else self.meter.wall.resume)(at)

    def _enforce(self) -> int:
        """Measure the job and enforce its limits; return the real ms until the next check."""
        at = now()
        if self.raw is None and min(self.meter.due(at), self.spool.due(at)) <= 0:
            self._sample(at)
        elif self.raw is not None:  # processes remain after the leader: they get the grace time
            if self.kill_at is None:
                self._end("", "", signal.SIGTERM, self.order["grace"] / 1000)
            if self.meter.remaining(at) <= 0:
                self.meter.sample(at)
                if (passed := self.meter.outlived(at)) is not None:
                    self.reason, self.text = (self.reason, self.text) if self.reason else passed
                    self.kill_at = at
        if self.kill_at is not None and at >= self.kill_at:
            self.cgroup.kill()
            self.kill_at = at + _AGAIN
        self._settle_traced()
        self.messages.go_on(at)
        meters = [self.meter.due, self.spool.due] if self.raw is None else [self.meter.remaining]
        waits = [due(at) for due in (*meters, self.messages.due)]
        if self.turns is not None:
            waits.append(self.turns.due(at))
        if self.kill_at is not None:
            waits.append(max(0.0, self.kill_at - at))
        # Rounded up: a wait that ends just before its time would be followed by a spin.
        return int(min(waits) * 1000) + 1

    def _sample(self, at: float) -> None:
        if not self.reserved:
            self.reserved = True
            if_possible(records.reserve_room, ".")
        self.meter.sample(at)
        passed = self.meter.passed(at) or self.spool.passed(at)
        if passed is not None and self.kill_at is None:
            # Without a controller it would start more processes in the grace time.
            free = passed[0] == "process_limit" and "pids" not in self.cgroup.held.places
            self._end(passed[0], passed[1], signal.SIGTERM, 0 if free else self.order["grace"] / 1000)
        elif self.meter.warning_due():
            self.cgroup.signal(signal.SIGXCPU)
        if self.meter.notable():
            used = self.meter.used(at)
            if_possible(records.note_use, ".", used)
            self.report("use", used)

    def _end(self, reason: str, text: str, number: int, grace: float) -> None:
        """End the whole job: send it signal ``number`` now, KILL after ``grace`` seconds. ``reason``,
        ``text``: why, for the record of the end; the first reason counts, "" gives none."""
        if self.raw is None and not self.reason:
            self.reason, self.text = reason, text
        if reason:
            self.messages.drop()
        deadline = now() + grace
        self.kill_at = deadline if self.kill_at is None else min(self.kill_at, deadline)
        self.meter.closing = True
        self.cgroup.signal(number)
        self.turns = None
        self._resume()

    # ------------------------------------------------------------ the end

    def _close(self) -> bool:
        self.meter.wall.resume(now())
        self.meter.finish()
        ending = self._ending()
        self.lines = self.messages.close()
        line = ""
        if self.reason in _LIMITS or ending["reason"] in ("memory_limit", "process_limit"):
            line = self._write_line(f"nqspy: request {self.order['id']} was ended: {ending['text']}\n")
        elif ending["reason"] == "not_started":
            line = self._write_line(f"nqspy: {ending['text']}\n")
        self.cgroup.remove()
        if_possible(self._write_log, ending)
        files = [(fd, os.fstat(fd)) for fd in set(self.streams) - {-1}]
        if sum(each.st_blocks * 512 for _, each in files) > _LONG:
            self.used = ending["used"]
            self.exiting()  # the PEs are free before much output is on the disk
        for fd, each in files:
            if each.st_size:
                if_possible(os.fsync, fd)
        clean = not (self.reason or self.traced or self.messages.writer) and self.kill_at is None
        clean = clean and self.paging_out is None
        return self._record(ending, line, self.ready if clean else None)

    def _write_line(self, line: str) -> str:
        """Write a line to the job's stderr; if the job writes that in place, return it instead."""
        if self.streams[1] < 0:
            return line
        if_possible(os.write, self.streams[1], line.encode("utf-8"))
        return ""

    def _write_log(self, ending: dict[str, Any]) -> None:
        """Write the job log of NQS, if there is one: behind the output (``-J m``), or into a file of its own
        in the spool (``-j FILE``, ``-J y``, and if the output is written in place). Raises OSError."""
        if not self.order.get("log"):
            return
        cpu, wall, memory = ending["used"]
        number = ending["signal"]
        how = f"signal {number}" if number is not None else f"exit status {ending['status']}"
        why = f" ({ending['text'] or ending['reason']})" if ending["reason"] not in ("exit", "signal") else ""
        used = f"CPU time {cpu / 1000:.2f} s, memory {size_text(memory)}"
        lines = [*self.order["log"], f"after {wall / 1000:.2f} s: ended, {how}{why}; {used}"]
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        if "joblog" not in self.order["output"]:
            os.write(self.streams[0], text)
            return
        with proc.Descriptor(self._open_stream("joblog")) as fd:
            os.write(fd, text)
            os.fsync(fd)

    def _ending(self) -> dict[str, Any]:
        assert self.raw is not None
        number = os.WTERMSIG(self.raw) if os.WIFSIGNALED(self.raw) else None
        status = None if number is not None else os.WEXITSTATUS(self.raw)
        reason, text = self.reason, self.text
        if not reason:
            reason, text = self.meter.verdict(self.order, status, number)
            here = bool(self.marks) and os.path.lexists(os.path.dirname(self.marks))
            if reason in ("exit", "signal") and here and not os.path.lexists(self.marks):
                reason = "not_started"
                text = "its login shell ended before the script began: a profile calls exit or exec"
                status = status or 127 if number is None else None
        text = "; ".join(filter(None, (text, self.note)))
        used = self.meter.used(now())
        return {"reason": reason, "status": status, "signal": number, "used": used, "text": text}

    def _record(
        self, ending: dict[str, Any], line: str | None, ready: Callable[[], None] | None = None
    ) -> bool:
        """Write the ``exit`` record to the disk, then deliver and report; return True if the end was
        reported. ``line``: text that the delivery adds to stderr; None: there is no output to deliver."""
        order = self.order
        whole = {"status": None, "signal": None, "used": [0, 0, 0], "kept": False} | ending
        record = {"ending": whole, "output": None if line is None else order["output"], "line": line,
                  "spool": self.folder, "home": self.home, "scratch": order.get("scratch"),
                  "said": self.lines}  # fmt: skip
        record |= {name: order[name] for name in ("owner", "uid", "gid", "umask")}
        persist("exit", record, durable=True)
        return self.finish(record, ready)
