"""Watches attempts: one thread waits for reports, for the ends of shepherds, and for the spawner; without a
timeout while no attempt runs. A job of the daemon's own user can stop its shepherd (SIGSTOP), which then sees
no end, no limit and no order. So the daemon checks the shepherds now and then, and continues them."""

import contextlib
import errno
import json
import logging
import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nqspy.executors import proc, records, scan
from nqspy.executors.link import Key, SpawnerLink
from nqspy.executors.proc import Identifier, now, readable
from nqspy.model import observations as ob
from nqspy.model.requests import Used

_log = logging.getLogger("nqspy.executor")
_RESPAWN = 0.2
_TRIES = 50
"""Most checks, one each `_RESPAWN` real seconds, whether the processes of a lost attempt have ended."""
_RECEIVE_BUFFER = 1 << 20
_PACE, _SOON = 5.0, 0.2
"""Real seconds between two checks of the shepherds: usual pace, and pace while one is stopped."""
_MOST = 25
"""Number of the stop at which a shepherd is killed instead of continued: by then it was stopped for 5 s."""


@dataclass(slots=True)
class WatchedAttempt:
    """Attempt that the daemon watches. ``order``: for its shepherd, None once the spawner has answered;
    ``pending``: messages until the shepherd listens; ``reported``: True once reported as running;
    ``redelivered``: True if a shepherd was started only to deliver its output; ``tries``: checks so far
    whether the processes of a lost job have ended; ``stops``: how often its shepherd was found stopped;
    ``keeper``: pid of the former daemon's spawner that inherits its orphans, 0: of this daemon's."""

    order: dict[str, Any] | None
    reported: bool = False
    pending: list[bytes] = field(default_factory=list)
    pidfd: int | None = None
    redelivered: bool = False
    tries: int = 0
    stops: int = 0
    keeper: int = 0

    def resume(self, name: str) -> bool:
        """Continue the shepherd if it was stopped (kill it at the `_MOST`-th stop); return True if it was."""
        pid = -1 if self.pidfd is None else proc.pid_of(self.pidfd)
        reading = proc.stat(pid) if pid > 0 else None
        if self.pidfd is None or reading is None or not reading.still:
            return False
        self.stops += 1
        if self.stops == 1:
            _log.warning("the shepherd of %s was stopped and is continued", name)
        if self.stops == _MOST:
            _log.warning("the shepherd of %s was stopped again and again and is killed", name)
        proc.send_by(self.pidfd, signal.SIGCONT if self.stops < _MOST else signal.SIGKILL)
        return True


class Watch:
    """Watches all attempts in one thread, passes the engine's orders and messages to their shepherds, and
    gives each observation to ``put``."""

    def __init__(
        self, home: str, spool: str, put: Callable[[ob.Observation], None], link: SpawnerLink
    ) -> None:
        self._home = home
        self._spool = spool
        self._put = put
        self._link = link
        self._attempts: dict[Key, WatchedAttempt] = {}
        self._by_pidfd: dict[int, Key] = {}
        self._guard = threading.RLock()
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._folder = os.open(spool, os.O_RDONLY | os.O_DIRECTORY)
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._reports: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._unsettled: dict[Key, bool] = {}
        self._refusal_logged = False
        self._check_at = 0.0
        self.identifier = Identifier()

    def lock(self) -> None:
        """Get the spawner's lock and, once, bind the socket for reports. Raises OSError."""
        self._link.lock()
        if self._reports is not None:
            return
        path = f"/proc/self/fd/{self._folder}/reports.sock"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self._reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._reports.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._reports.bind(path)
        self._epoll.register(self._reports.fileno(), select.EPOLLIN)

    def start(self) -> None:
        """Start the spawner and the watching thread. Raises OSError."""
        self.lock()
        self._spawn()
        self._thread = threading.Thread(target=self._run, name="executor", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and disconnect from the spawner; jobs and their shepherds go on."""
        self._stopping = True
        os.eventfd_write(self._wake, 1)
        if self._thread is not None:
            self._thread.join()
        self._link.close()
        for fd in (*self._by_pidfd, self._wake, self._folder):
            os.close(fd)
        self._by_pidfd.clear()
        if self._reports is not None:
            self._reports.close()
        self._control.close()
        self._epoll.close()

    # ------------------------------------------------------------ called by the engine

    def begin(self, key: Key, order: dict[str, Any]) -> None:
        """Start an attempt by an order to the spawner (as soon as one is up); do nothing if it is watched
        already. If the order cannot be sent, raise OSError or ValueError, and never send it."""
        with self._guard:
            if key in self._attempts:
                return
            if not self._attempts:
                self._link.resume()  # not checked while nothing ran
            self._attempts[key] = WatchedAttempt(order)
            try:
                if self._link.up:
                    self._send_order(key, order)
            except BaseException:
                del self._attempts[key]  # reported as not started: the order must not be sent later
                raise

    def adopt(self, key: Key, pidfd: int) -> None:
        """Watch an attempt that was found running after a restart; take over the pidfd."""
        with self._guard:
            attempt = self._attempts.setdefault(key, WatchedAttempt(None, reported=True))
            with contextlib.suppress(OSError, KeyError, ValueError, AttributeError):
                keeper = records.claimed_with(self.path(key))["keeper"]
                attempt.keeper = proc.Identity.parse(keeper).pid
            self._hold(key, attempt, pidfd)
        os.eventfd_write(self._wake, 1)  # its shepherd may have been stopped

    def redeliver(self, key: Key) -> None:
        """Start a shepherd that only finishes delivering the output of an attempt that has ended."""
        with self._guard:
            attempt = self._attempts.setdefault(key, WatchedAttempt(None, reported=True))
            attempt.redelivered = True
            attempt.order = {"seq": key[0], "attempt": key[1], "deliver": True}
        if self._link.up:
            self._send_order(key, attempt.order)

    def await_remaining(self, key: Key) -> None:
        """Have the thread end the processes of a lost attempt, and then report the loss."""
        with self._guard:
            self._attempts.setdefault(key, WatchedAttempt(None, reported=True))
            self._unsettled[key] = False

    def set_aside(self, key: Key, grace: int) -> None:
        """End a stray attempt if it runs (KILL after ``grace`` real ms); rename its folder in the spool."""
        message = {"do": "kill", "reason": "void", "grace": grace, "signal": 15}
        self._deliver(key, json.dumps(message).encode("ascii"), True)
        try:
            scan.set_aside(self.path(key), self.identifier)
        except FileNotFoundError:
            pass  # it had no folder
        except OSError as error:
            _log.error("cannot put %s aside: %s", self.path(key), error)

    def let_go(self, key: Key) -> None:
        """Let an attempt that is left alone run all the time: it is not suspended, and takes no turns."""
        for message in ({"do": "turns", "lengths": []}, {"do": "resume"}):
            self._deliver(key, json.dumps(message).encode("ascii"), True)

    def send(self, key: Key, message: dict[str, Any]) -> None:
        """Send a message to a watched attempt's shepherd, at once or as soon as the shepherd listens. Do
        nothing if the attempt is not watched."""
        data = json.dumps(message).encode("ascii")
        with self._guard:
            attempt = self._attempts.get(key)
            if attempt is None:
                return
            if attempt.pending or not self._deliver(key, data, attempt.reported):
                attempt.pending.append(data)
            attempt.resume(records.folder_name(*key))

    def own(self) -> set[int]:
        """Return the pids of this daemon, its spawners and shepherds: with the processes below them, these
        are all that nqspy has started. May be called in any thread."""
        with self._guard:
            watched = list(self._attempts.values())
            shepherds = {proc.pid_of(each.pidfd) for each in watched if each.pidfd is not None}
        keepers = {each.keeper for each in watched}
        return {pid for pid in shepherds | keepers | self._link.pids() | {os.getpid()} if pid > 0}

    def path(self, key: Key) -> str:
        """Return the path of the attempt's folder in the spool."""
        return f"{self._spool}/{records.folder_name(*key)}"

    # ------------------------------------------------------------ the thread

    def _run(self) -> None:
        while not self._stopping:
            pause = None  # nothing to do before something arrives
            if self._unsettled or not self._link.up:
                pause = _RESPAWN
            elif self._attempts:
                pause = max(0.0, self._check_at - now())
            for fd, _ in self._epoll.poll(pause):
                try:
                    self._handle(fd)
                except Exception:
                    # The ends of the others must be handled even if this one fails.
                    _log.exception("a report could not be handled")
            try:
                if not self._link.up and not self._stopping:
                    with contextlib.suppress(OSError):  # tried again after a pause
                        self._spawn()
                again, self._unsettled = self._unsettled, {}
                for key, reported in again.items():
                    self._settle(key, reported)
                self._resume_stopped()
            except Exception:
                _log.exception("the spawner or an attempt could not be checked")

    def _resume_stopped(self) -> None:
        """If a check is due, continue the spawner and the shepherds that were stopped."""
        if not self._attempts or now() < self._check_at:
            return
        with self._guard:
            watched = list(self._attempts.items())
        trouble = self._link.resume()
        for key, attempt in watched:
            with self._guard:  # its descriptor stays open meanwhile
                trouble = attempt.resume(records.folder_name(*key)) or trouble
        self._check_at = now() + (_SOON if trouble else _PACE)

    def _handle(self, fd: int) -> None:
        if self._reports is not None and fd == self._reports.fileno():
            self._read_reports(self._reports)
        elif fd == self._link.fileno():
            self._read_answers()
        elif fd == self._wake:
            os.eventfd_read(fd)
        elif fd in self._by_pidfd and readable(fd):
            # Checked again: the event may be that of a former pidfd with the same number.
            with self._guard:
                key = self._by_pidfd[fd]
                self._release(fd)
                attempt = self._attempts.get(key)
                if attempt is not None and attempt.pidfd == fd:
                    attempt.pidfd = None
            self._settle(key)

    def _read_reports(self, reports: socket.socket) -> None:
        while True:
            try:
                report = json.loads(reports.recv(8192))
                key, kind = (report["s"], report["a"]), report["k"]
            except BlockingIOError:
                return
            except (ValueError, KeyError, TypeError):
                continue
            match kind:
                case "end":
                    self._settle(key, reported=True)
                    continue
                case "here":
                    self._flush(key)
                    continue
                case "note":
                    self._put(ob.ObservedNote(*key, report["t"]))
                    continue
            with self._guard:
                attempt = self._attempts.get(key)
                if attempt is not None and not attempt.reported:
                    attempt.reported = True
                    self._put(ob.ObservedRunning(*key))
            self._flush(key)
            if kind == "out":
                self._put(ob.ObservedMovedOut(*key, self._paged_out(key[0], *report["u"])))
            elif kind == "use" and attempt is not None:
                self._put(ob.ObservedUse(*key, Used(*report["u"])))
            elif kind == "left" and attempt is not None:
                self._put(ob.ObservedExiting(*key, Used(*report["u"]), report.get("t", "")))

    def _paged_out(self, seq: int, before: int, after: int, refused: int) -> int:
        """Return how many bytes of a preempted request left memory, and log it. ``before``, ``after``: its
        bytes in memory; ``refused``: 1 if the kernel refused to page them out (then 0 is returned)."""
        freed = 0 if refused else max(0, before - after)
        if not refused:
            _log.info("request %d gives way: %d of %d MB are paged out", seq, freed >> 20, before >> 20)
        elif not self._refusal_logged:
            self._refusal_logged = True
            text = "requests that give way are stopped and keep their memory: paging out needs CAP_SYS_NICE"
            _log.warning(text)
        return freed

    def _flush(self, key: Key) -> None:
        """Send the messages that waited until the shepherd listens."""
        with self._guard:
            attempt = self._attempts.get(key)
            while attempt and attempt.pending and self._deliver(key, attempt.pending[0], attempt.reported):
                attempt.pending.pop(0)

    def _read_answers(self) -> None:
        for answer in self._link.answers():
            if answer is None:
                self._epoll.unregister(self._link.fileno())
                self._link.down()
                return
            key, pidfd = answer
            with self._guard:
                attempt = self._attempts.get(key)
                if attempt is not None:
                    attempt.order = None
                    if pidfd is not None:
                        self._hold(key, attempt, pidfd)
                elif pidfd is not None:
                    os.close(pidfd)
            if attempt is not None and pidfd is None:
                self._settle(key)
        if self._link.flush():
            self._epoll.modify(self._link.fileno(), select.EPOLLIN)

    def _spawn(self) -> None:
        """Start a spawner, and send it all orders that no spawner has answered. Raises OSError."""
        self._link.spawn()
        self._epoll.register(self._link.fileno(), select.EPOLLIN)
        with self._guard:
            open_orders = [(key, a.order) for key, a in self._attempts.items() if a.order is not None]
        for key, order in open_orders:
            try:
                if order.get("deliver") or records.holder(self.path(key)) is None:
                    self._send_order(key, order)
                else:
                    self._settle(key)
            except Exception:  # the others' orders must be given whatever is wrong with this one
                _log.exception("the order for attempt %d.%d could not be sent again", *key)
                self._settle(key)

    # ------------------------------------------------------------ ends of attempts

    def _settle(self, key: Key, reported: bool = False) -> None:
        """Handle what the records of an attempt show, after its shepherd has ended or (``reported``) has
        reported the end. If they cannot be read now, the thread tries again."""
        try:
            self._conclude(key, reported)
        except OSError:
            # No descriptor or no room for a record: that passes, and shows nothing about the attempt.
            self._unsettled[key] = reported and self._unsettled.get(key, True)

    def _conclude(self, key: Key, reported: bool) -> None:
        with self._guard:
            attempt = self._attempts.get(key)
        if attempt is None:
            return
        finding = scan.examine(self.path(key), self.identifier)
        match finding.fate:
            case "done":
                self._ended(key, attempt, finding.record)
            case "alive":  # another shepherd holds the claim: that one is watched
                assert finding.pidfd is not None
                with self._guard:
                    if attempt.pidfd is None:
                        attempt.order = None
                        self._hold(key, attempt, finding.pidfd)
                    else:
                        finding.close()
            case "undelivered" if not attempt.redelivered:
                self.redeliver(key)
                self._put(ob.ObservedExiting(*key, finding.used))
            case "undelivered":
                self._ended(key, attempt, scan.give_up_delivery(self.path(key), finding.record))
            case "later":
                finding.close()
            case "unclaimed" if reported:
                pass  # that was a stray of the same name: this one is still to begin
            case "unclaimed" if not scan.claim_void(self.path(key)):
                self._conclude(key, reported)
            case "unclaimed" | "void":
                if attempt.reported:  # it ran, and its folder was removed
                    scan.kill_remaining(self.path(key), self._home, self.identifier)
                self._drop(key, ob.ObservedVoid(*key))
            case "lost":
                loss = self.loss(key, finding.used, wait=attempt.tries < _TRIES)
                if loss is not None:
                    self._drop(key, loss)
                else:
                    attempt.tries += 1
                    self._unsettled[key] = False

    def loss(self, key: Key, used: Used, text: str = "", *, wait: bool) -> ob.ObservedLost | None:
        """Kill the processes of a lost job; return the observation of its loss (``used``: last known use;
        ``text``: cause, may be empty). With ``wait``, return None while the spawner above them lives: it
        kills them, and reports the last one's end."""
        folder = self.path(key)
        brief = scan.brief(folder)
        sure = scan.kill_remaining(folder, self._home, self.identifier)
        if wait and not sure and scan.inherited(folder, self.identifier):
            return None
        files = map(scan.spooled(folder).get, ("stdout", "stderr"))
        return ob.ObservedLost(*key, used, text, not sure, brief, *files)

    def _ended(self, key: Key, attempt: WatchedAttempt, record: dict[str, Any]) -> None:
        if not attempt.reported and record["reason"] != "not_started":
            self._put(ob.ObservedRunning(*key))
        self._drop(key, scan.observation(*key, record))

    def _drop(self, key: Key, last: ob.Observation) -> None:
        with self._guard:
            attempt = self._attempts.pop(key, None)
            if attempt is None:
                return
            if attempt.pidfd is not None:
                self._release(attempt.pidfd)
        self._put(last)

    # ------------------------------------------------------------ descriptors

    def _send_order(self, key: Key, order: dict[str, Any]) -> None:
        if not self._link.send(key, order) and self._link.up:
            self._epoll.modify(self._link.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _deliver(self, key: Key, data: bytes, listens: bool) -> bool:
        """Send a message to an attempt's shepherd; return False if it must be sent again: the shepherd is
        busy or does not listen yet. ``listens``: True if it has listened before: a refusal means its end."""
        name = records.folder_name(*key)
        try:
            self._control.sendto(data, f"/proc/self/fd/{self._folder}/{name}/control")
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ECONNREFUSED):
                _log.error("cannot reach the shepherd of %s: %s", name, error)
            # Refused: it has ended. Not there: it does not listen yet, even if it was adopted as running.
            return listens and error.errno != errno.ENOENT
        return True

    def _hold(self, key: Key, attempt: WatchedAttempt, pidfd: int) -> None:
        if attempt.pidfd is not None:
            self._release(attempt.pidfd)
        attempt.pidfd = pidfd
        self._by_pidfd[pidfd] = key
        self._epoll.register(pidfd, select.EPOLLIN)

    def _release(self, pidfd: int) -> None:
        del self._by_pidfd[pidfd]
        self._epoll.unregister(pidfd)
        os.close(pidfd)
