"""The live driver: builds the parts, feeds the engine under the site's clock, and sends its replies."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nqspy.answers.dispatcher import DIRECT, Dispatcher
from nqspy.answers.serving import Readers
from nqspy.answers.turns import PART, Enough, after
from nqspy.core import consumables
from nqspy.core.resource_health import tried
from nqspy.daemon import devices, log, systemd
from nqspy.daemon.callers import CallerWatch
from nqspy.daemon.clock import clock_of
from nqspy.daemon.failpoints import Failpoints
from nqspy.daemon.files import QueueFiles
from nqspy.daemon.heap import Clearance
from nqspy.daemon.home import Home, HomeError
from nqspy.daemon.inbox import EngineCall, Inbox, Stop, WakeUp
from nqspy.daemon.log import LOG
from nqspy.daemon.maintenance import Maintenance
from nqspy.daemon.memory import PressureWatch
from nqspy.daemon.night_report_job import NightReportJob
from nqspy.daemon.notices import ExitNotices, Notices
from nqspy.daemon.probes import Last, Probes
from nqspy.daemon.reality import ForeignWatch
from nqspy.daemon.reloads import Reloads
from nqspy.daemon.run_times import RunTimes
from nqspy.daemon.starting import StartOptions
from nqspy.daemon.troubles import Troubles
from nqspy.daemon.wake_up import WakeUpTimer
from nqspy.decider.backoff import Loss
from nqspy.decider.client import DeciderClient
from nqspy.decider.notice_runner import NoticeRunner
from nqspy.decider.process import FromWorker
from nqspy.decider.remote_exits import RemoteExits
from nqspy.engine import restart
from nqspy.engine.handlers import exits as exits_desk
from nqspy.engine.handlers.context import Reply
from nqspy.engine.inputs import CommandAsked, Input, Outcome
from nqspy.engine.loop import Engine
from nqspy.executors.local import LocalExecutor
from nqspy.mail.mail_queue import MailQueue
from nqspy.model.commands import Command, Delete, RerunRequests
from nqspy.model.events import Alarm, DaemonStarted, Event, SettingsChanged
from nqspy.model.ids import Seq
from nqspy.model.machine import Found
from nqspy.model.observations import Observation, ObservedMachine, SiteObservation
from nqspy.model.people import Caller
from nqspy.model.requests import STARTED, State
from nqspy.model.tree import copy_node
from nqspy.report.pbs_forms import Written
from nqspy.rpc import server as rpc
from nqspy.rpc.limits import person
from nqspy.store import open_mark, restoring
from nqspy.store.journal import SqliteJournal
from nqspy.store.reserve import Reserve

PENDING = 0.1
"""Real seconds for which events may stay uncommitted if no reply waits for them."""
MESSAGES = 512
"""Most messages in one turn."""


class Daemon:
    """Daemon of one home: builds the parts, feeds the engine with what arrives, and sends what the engine
    answers. Its methods run in the main thread, which is the engine's."""

    def __init__(self, home: Home, options: StartOptions) -> None:
        self.home = home
        self.options = options
        self.inbox = Inbox()
        failpoints = Failpoints.here()
        self.clock = failpoints.clock(clock_of(home.path, options.clock))
        self.owner = Caller("nqsd", os.geteuid(), os.getegid(), (), True)
        reserve = Reserve(home.reserve, time.monotonic)
        self.journal = reserve.let(lambda: SqliteJournal.open(home.database))
        self.journal.reserve = reserve
        site, folder = self.journal.load(), Path(options.exits or home.path / "exits")
        put = self.inbox.put
        self.decider = DeciderClient(site, folder, put, self.clock.now, self.exits_lost, home=home.path)
        self.exits = RemoteExits(self.decider)
        note = restoring.rewound(home.database)
        self.executor = LocalExecutor(
            str(home.path), put, self.journal.blob, speed=self.clock.speed, pids=failpoints.pids,
            leave=options.forget or (note is not None and note.forgotten),
        )  # fmt: skip
        self.engine = Engine(site, self.journal, self.executor, self.exits, self.decider, LOG.error)
        self.upkeep = Maintenance(self.journal, home.reports, self.inbox.put, self.report_trouble)
        self.notices = Notices(MailQueue(home.mail, self.clock, self.report_trouble))
        self.notice_runner = NoticeRunner(self.decider, lambda work: self.inbox.put(EngineCall(work)))
        self.hooks = ExitNotices(self.exits, self.notices, self.notice_runner)
        self.hooks.adopt(self.engine.site)
        self.timer = WakeUpTimer(self.clock, lambda: self.inbox.put(WakeUp()))
        self.probes = Probes(self.inbox.put, self.clock.now)
        self.reality = ForeignWatch(self.inbox.put, self.executor.foreign)
        self.memory = PressureWatch(self.inbox.put, self.executor.resident)
        self.callers = CallerWatch(lambda seq: self.inbox.put(EngineCall(lambda: self.caller_gone(seq))))
        self.run_times = RunTimes(self.clock)
        self.engine.clock_moved = self.decider.clock_moved = self.run_times.moved
        self.server = rpc.RpcServer(
            str(home.socket), self.inbox.put_message, backlog=self.inbox.backlog, report=LOG.warning,
            allow_uid=lambda uid: os.geteuid() in (0, uid) or uid == 0,
            mode=0o666 if os.geteuid() == 0 else 0o600,
        )  # fmt: skip
        self.readers = Readers(home.database)
        self.written = Written()
        self.dispatcher = Dispatcher(self)
        self.night_report = NightReportJob(self, self.dispatcher.slow.work, self.notices, self.hooks)
        self.queue_files = QueueFiles(self, Path(options.queues or home.path / "queues.d"))
        self.reloads = Reloads(self, self.go)
        mails = self.notices.mail_queue
        self.troubles = Troubles(self, self.queue_files, self.reloads, self.notice_runner, mails)
        self.exits.beside = self.reloads.for_shift
        self.stopping: str | None = None
        self.damage: list[str] = []
        self.clearance = Clearance()
        self.watchdog = systemd.Watchdog()
        self.part: Callable[[], Enough] = lambda: after(PART)
        self._pending: float | None = None
        self._found: Found | None = None
        failpoints.arm(self.journal, self.executor, self.upkeep, self.dispatcher, self)

    # ------------------------------------------------------------ coming up

    def start(self, clean: bool = True) -> None:
        """Adopt running requests, apply changed files of ``queues.d``, then serve clients. ``clean``: the
        last daemon, if any, was stopped properly. Raises NqspyError."""
        log.set_zone(self.engine.site.timezone)
        loaded = self.reloads.start()
        self.engine.paused = True  # nothing starts before the settings are those of the files
        self.executor.start()
        self.notices.start(self.engine.site)
        self.timer.start()
        if self.engine.site.n:
            self.note(DaemonStarted(self.engine.site.at, clean))
        for each in self.journal.ignored:
            self.damage.append(f"setting {each} has no effect: nothing defines it now (is a file missing?)")
            self.note(Alarm("settings", self.damage[-1]))
        host, zone = socket.gethostname().split(".")[0], _zone()
        later, found = self._later(), self._examine()
        self._found = found
        # Before any request ends: a command that waits for a lost application must learn of it.
        abandoned = self.callers.begin(self.engine.site)
        self.run_times.begin(self.engine.site)
        self.pump(restart.begin(self.engine, found, host, zone, self.clock.now(), later))
        self.commit()
        if later is not None and not self.engine.commits:
            raise HomeError("the state after a restore could not be written; start nqsd again")
        restoring.drop_note(self.home.database)
        for seq in abandoned:
            self.caller_gone(seq)
        if loaded:
            exits_desk.loaded_at_start(self.engine.transaction(self.clock.now()))
            self.queue_files.apply_changed()
            log.set_zone(self.engine.site.timezone)
            self.engine.paused = False
            seen: list[Input] = [*self.reality.begin(self.engine.site)]
        else:
            seen = []
            self.dispatcher.hold_back()
        for line in consumables.found_now(self.engine.site):
            LOG.info("%s", line)
        self.readers.open()
        self.server.start()
        self._follow_probes()
        self.pump(self.engine.feed(seen, self.clock.now()))
        self.night_report.begin()
        self.journal.reserve_room()

    def go(self) -> None:
        """Apply ``queues.d``, begin passes and handle the commands held back while the exits were being
        loaded. Raises NqspyError."""
        exits_desk.loaded_at_start(self.engine.transaction(self.clock.now()))
        try:
            self.queue_files.apply_changed()
        finally:
            self.engine.paused = self.stopping is not None
            self.engine.transaction(self.clock.now()).dirty()
            held_back: list[Input] = [*self.reality.begin(self.engine.site), *self.dispatcher.let_go()]
            self.pump(self.engine.feed(held_back, self.clock.now()))

    def _later(self) -> restart.Later | None:
        """Return what a restore or a damaged database log has lost, with the attempts in the spool that the
        database does not have; None if nothing is missing."""
        note, later = restoring.rewound(self.home.database), None
        if note is not None:
            later = restart.Later(note.text, note.next_seq, note.attempts, forgotten=note.forgotten)
        elif self.journal.lost is not None:  # committed before a crash, lost with the database's log
            count, next_seq = self.journal.lost
            self.damage.append(open_mark.loss_text(count))
            later = restart.Later(self.damage[-1], next_seq, subject="the database's log was damaged")
        return restart.later_than(self.engine.site, self.executor.latest(), later)

    def _examine(self) -> Found:
        """Return the machine's resources now; search for devices only if some are consumables."""
        last = None if self._found is None or self.engine.site.settings.consumables else self._found.devices
        return replace(self.executor.found(), devices=devices.found() if last is None else last)

    # ------------------------------------------------------------ the loop

    def run(self) -> None:
        """Serve until the daemon is asked to stop and has finished."""
        while not self._done():
            self.watchdog.beat()
            times = [each for each in (self._timeout(), self.watchdog.timeout()) if each is not None]
            self.turn(self.inbox.drain(min(times, default=None)))

    def _timeout(self) -> float | None:
        if self._pending is not None:
            return max(0.0, self._pending + PENDING - time.monotonic())
        times = (
            self.dispatcher.patience(), self.decider.timeout(), self.clearance.timeout(),
            None if self.stopping is None else 0.2,
        )  # fmt: skip
        return min((each for each in times if each is not None), default=None)

    def turn(self, items: list[Any]) -> None:
        """Handle items that have arrived, and as many messages as there is time for."""
        inputs: list[Input] = []
        for item in items:
            if isinstance(item, Observation | SiteObservation):
                inputs.append(item)
            elif isinstance(item, rpc.Asked):
                self.inbox.put_message(item)
            elif isinstance(item, FromWorker):
                decision = self.decider.receive(item)
                inputs += [decision] if decision is not None else []
            elif isinstance(item, WakeUp):
                found = self._examine()
                if found != self._found:
                    self._found = found
                    inputs.append(ObservedMachine(found.cpus, found.memory, found.devices))
            elif isinstance(item, Stop):
                self.stop(item.mode)
            elif isinstance(item, EngineCall):
                item.work()
        now = self.clock.now()
        if self.decider.check():
            self.engine.transaction(now).dirty()
        self.pump(self.engine.feed(inputs, now, self._commands(self.part())))
        if self._pending is not None and time.monotonic() >= self._pending + PENDING:
            self.pump(self.engine.flush(now))
        log.set_level(self.engine.site.settings.server.log_level)
        log.set_zone(self.engine.site.timezone)
        self.inbox.put_back(self.dispatcher.answer_questions(self.part()))
        self.dispatcher.after_turn(self.part)
        self.decider.ask_estimate()
        if self.stopping is None:
            self.night_report.check()
        self.clearance.check()

    def _commands(self, enough: Enough) -> Iterator[CommandAsked]:
        """Yield the commands among this turn's messages, of each user in turn, until ``enough``; other
        messages are left to `Dispatcher`. Messages of one connection are handled in their order."""
        carrying = self.dispatcher.slow.carrying()
        asking = set(carrying)
        later = self.dispatcher.slow.crowded()
        for _ in range(MESSAGES):
            asked = self.inbox.next_message(later)
            if asked is None:
                break
            direct = asked.message["cmd"] in DIRECT
            if asked.handle.place in (asking if direct else carrying):
                self.inbox.put_back([asked])
                later.add(person(asked.caller))
                continue
            self.clearance.received(asked.size)
            command = self.dispatcher.accept(asked)
            if command is not None:
                yield command
            elif not direct:
                asking.add(asked.handle.place)
            if enough():
                break

    def pump(self, outcome: Outcome) -> None:
        """Send an outcome's replies, mail its notices, and tell those who follow events; feed the engine and
        do the same while a pass is due. Then set the time of the next wake-up."""
        while True:
            self.dispatcher.reply(outcome.replies)
            self.hooks.notify(outcome.happened, self.engine.site)
            self.callers.follow(outcome.happened, self.engine.site)
            self.run_times.follow(outcome.happened)
            self.night_report.watch(outcome.happened)
            self.troubles.watch(outcome.happened)
            if any(_is_of(("probe/", "consumable/"), recorded.event) for recorded in outcome.happened):
                self._follow_probes()
            if any(_is_of("mail/", recorded.event) for recorded in outcome.happened):
                self.notices.follow(self.engine.site)
            for notice in outcome.notices:
                self.notices.mail(notice, self.engine.site)
            if not outcome.pending:
                self._pending = None
            elif self._pending is None:
                self._pending = time.monotonic()
            if not outcome.again:
                break
            outcome = self.engine.feed((), self.clock.now())
        if not self.engine.paused:
            self.upkeep.check(self.engine.site.settings, self.clock.now())
        self.timer.wake_at(min(filter(None, (outcome.wake_at, self.upkeep.due)), default=None))
        self.memory.follow(self.engine.site)
        self.reality.follow(self.engine.site)

    def _follow_probes(self) -> None:
        probes = {name: copy_node(probe) for name, probe in tried(self.engine.site).items()}
        self.probes.follow(probes, self.engine.site.resources)

    def ask(self, command: Command, caller: Caller) -> Reply:
        """Carry out one command now, with the pass that it needs; return its reply."""
        return self.ask_all([command], caller)[0]

    def ask_all(self, commands: Sequence[Command], caller: Caller) -> list[Reply]:
        """Carry out commands in one transaction, the others even if one is refused; return their replies."""
        handles = [object() for _ in commands]
        asked = [CommandAsked(each, caller, handle) for each, handle in zip(commands, handles, strict=True)]
        outcome = self.engine.feed(asked, self.clock.now())
        mine = {id(handle) for handle in handles}
        found = {id(handle): reply for handle, reply in outcome.replies if id(handle) in mine}
        outcome.replies = [pair for pair in outcome.replies if id(pair[0]) not in mine]
        self.pump(outcome)
        return [found[id(handle)] for handle in handles]

    def note(self, event: Event) -> None:
        """Journal an event that belongs to no command."""
        self.pump(self.engine.note(event, self.clock.now()))

    def commit(self) -> None:
        """Commit now the events that no reply waits for."""
        if self._pending is not None:
            self.pump(self.engine.flush(self.clock.now()))

    # ------------------------------------------------------------ services for answers (`Serving`)

    def reload_queues(self) -> str:
        """Apply the changed files of ``queues.d``; return a sentence. Raises NqspyError."""
        return self.queue_files.reload()

    def alarms(self) -> list[str]:
        """Return a line for each present problem of the installation (`Troubles`)."""
        return self.troubles.lines()

    def last_try(self, probe: str) -> Last | None:
        """Return the last try of a probe; None before its first."""
        return self.probes.last(probe)

    def sent(self, size: int) -> None:
        """Note that an answer of so many bytes was sent: after large ones, memory is given back."""
        self.clearance.sent(size)

    def report_trouble(self, text: str, who: str = "mail") -> None:
        """Journal an alarm about a part, in the engine's thread soon. May be called from any thread."""
        self.inbox.put(EngineCall(lambda: self.note(Alarm(who, text))))

    def exits_lost(self, loss: Loss) -> None:
        """Journal and report that the exits' process was lost, with the engine's next inputs."""
        tx = self.engine.transaction(self.clock.now())
        exits_desk.report_lost(tx, loss.exit, loss.seq, loss.text, loss.off, loss.owner)

    def caller_gone(self, seq: Seq) -> None:
        """Delete a request whose waiting command has ended (`CallerWatch`), unless the request has started: a
        running job notices that end itself."""
        request = self.engine.site.requests.get(seq)
        if request is not None and request.state not in STARTED and not self.callers.waits(seq):
            self.ask(Delete((self.engine.site.id_of(seq),), mails=0, lenient=True), self.owner)

    # ------------------------------------------------------------ going down

    def stop(self, mode: str) -> None:
        """Begin to stop. ``mode``: ``leave`` lets running requests go on, ``drain`` waits for their ends
        first, ``requeue`` ends and requeues those that may run again."""
        LOG.info("stopping (%s)", mode)
        self.stopping = mode
        self.engine.paused = True
        site = self.engine.site
        again = [r for r in site.started.values() if r.spec.rerunnable and r.state is not State.EXITING]
        if mode == "requeue" and again:
            self.ask(RerunRequests(tuple(site.id_of(request.seq) for request in again)), self.owner)

    def _done(self) -> bool:
        if self.stopping == "drain":
            # A request with released PEs cannot go on without passes: the next start adopts it.
            return all(request.pes_released for request in self.engine.site.started.values())
        if self.stopping == "requeue":
            orders = (request.ending for request in self.engine.site.started.values())
            return not any(order is not None and order.rerun for order in orders)
        return self.stopping is not None

    def close(self) -> None:
        """Stop serving clients, then close the other parts; shepherds and their jobs go on."""
        with contextlib.ExitStack() as last:
            for step in (self.journal.close, self.upkeep.close, self.dispatcher.close, self.decider.close,
                         self.notice_runner.close, self.notices.close, self.executor.close, self.memory.close,
                         self.reality.close, self.timer.close, self.probes.close, self.callers.close,
                         self.server.close):  # fmt: skip
                last.callback(step)
            outcome = self.engine.flush(self.clock.now())
            self.hooks.notify(outcome.happened, self.engine.site)
            for notice in outcome.notices:
                self.notices.mail(notice, self.engine.site)


def _is_of(part: str | tuple[str, ...], event: object) -> bool:
    """True if an event changes settings below one of these paths."""
    return isinstance(event, SettingsChanged) and any(each.path.startswith(part) for each in event.changes)


def _zone() -> str:
    if name := os.environ.get("TZ", "").strip(":"):
        return name if (Path("/usr/share/zoneinfo") / name).is_file() else "UTC"
    link = os.path.realpath("/etc/localtime")
    return link.partition("/zoneinfo/")[2] or "UTC"
