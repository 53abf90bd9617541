"""The daemon's side of the decider: asks a child for plans, keeps it by the same events, sees when it hangs,
and forks another from the engine's own state when it is lost."""

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from nqspy.core.plain import NoExits
from nqspy.daemon.deciding import rights, words
from nqspy.daemon.deciding.child import Work, digests, names
from nqspy.daemon.deciding.memory import AT_END, Memory
from nqspy.daemon.deciding.page import Call
from nqspy.daemon.deciding.process import Asked, Beside, Ends, Gone, Heard, Open, Process
from nqspy.daemon.deciding.roster import Roster
from nqspy.daemon.deciding.strikes import Loss, Strikes, named, standstill
from nqspy.daemon.log import LOG
from nqspy.engine.decider import AtOnce
from nqspy.engine.inputs import Decision
from nqspy.engine.whatif import Estimate
from nqspy.model import events as ev
from nqspy.model.actions import Plan
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request, Used
from nqspy.model.site import Site
from nqspy.userexit.loader import Source

LOOK = 0.25
"""Real seconds between two looks at a child that has something to answer."""
GRACE = 1.0
"""Real seconds that a call may take beyond ten times its budget."""
PASS = 30.0
"""Real seconds that an answer may take at most."""
LOAD = 10.0
"""Real seconds that loading one file may take."""
SEEN = 0.2
"""Real seconds that the daemon itself must have seen a call at work before it judges: it may have slept."""
QUESTION = 0.3
"""Real seconds beyond ten times the budgets that somebody waits for a submit or route exit."""
FORESIGHT = 1.0
"""Real seconds that `qsub --dry-run` waits for an estimate."""
SILENT = "no estimate: the process of the user exits does not answer"

W = TypeVar("W", bound=words.Word)


class Parent:
    """``ports.Decider``: passes run in a child where there are exits, else at once. All of it belongs to the
    engine's thread. ``put``: the inbox; ``now``: the site's clock; ``tell``: what managers must know.

    ``problems``: one line for each file that was left out when the exits were loaded; ``user``: as whom exits
    run, None: as the daemon. ``home``: where what they remember is kept, None: nowhere.
    """

    def __init__(
        self,
        site: Site,
        folder: Path,
        put: Callable[[Any], None],
        now: Callable[[], Instant],
        tell: Callable[[Loss], None],
        name: str = "exits",
        home: Path | None = None,
    ) -> None:
        self.site, self.folder, self.problems = site, folder, list[str]()
        self.user = rights.user()
        self.roster, self.strikes, self.memory = Roster(), Strikes(), Memory(home)
        self._put, self._now, self._tell, self._name = put, now, tell, name
        self._plain = AtOnce(NoExits())
        self.child: Process | None = None
        self.sources: tuple[Source, ...] = ()
        self.loading: Beside | None = None
        self.later_events: list[ev.Recorded] = []
        self._events: list[ev.Recorded] = []
        self._ids = count(1)
        self._asked: Asked | None = None
        self._open: dict[int, Open] = {}
        self._sync = 0
        self._seen: tuple[int, float] = (0, 0.0)
        self.memory.restore(self.strikes)
        self._was_off = {name for name in self.strikes.out if not self._enabled(name)}
        for name in set(self.strikes.out) - self._was_off:
            self.strikes.forgive(name)
        self.strikes.pardon(self._enabled)
        self._memory = site.settings.decider.memory
        self._paused = False

    # ------------------------------------------------------------ the door

    @property
    def needed(self) -> bool:
        """Whether there is an exit to run."""
        return any(name not in self.strikes.out for name in names(self.sources))

    def ask(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        """Has the child run a pass; its plan comes as `Heard`. At once where there are no exits; where no
        child can be had for a moment, a plan that starts nothing."""
        if not self.needed:
            return self._plain.ask(site, now, samples)
        if (child := self._ready()) is None:
            self._paused = True
            return standstill(site)
        asked = Asked(next(self._ids), site.n, tuple(samples.items()))
        self._asked = asked
        self._open[asked.id] = Open(time.monotonic())
        self._send(child, words.Ask(asked.id, asked.n, now, asked.samples, dict(site.closings)))
        return None

    def follow(self, events: Sequence[ev.Recorded]) -> None:
        """Keeps them until the child is told, which is soon."""
        if self.child is not None:
            self._events += events
        if self.loading is not None:
            self.later_events += events

    def reset(self, site: Site) -> None:
        """The child is thrown away; the next is forked from the new site."""
        self.site = site
        self.drop("the site was read again")
        if self.loading is not None:
            self.loading.again()
        self._was_off = {name for name in self.strikes.out if not self._enabled(name)}

    def foresee(self, site: Site, request: Request, now: Instant) -> Estimate:
        """When a request that may be submitted would start; somebody waits, so not for long."""
        if not self.needed:
            return self._plain.foresee(site, request, now)
        found = self.question(words.AskStart(0, 0, now, request.seq, request), words.Begins, FORESIGHT)
        return (None, SILENT) if found is None else (_instant(found.at), found.basis)

    # ------------------------------------------------------------ files

    def take_on(self, process: Process, sources: tuple[Source, ...], said: words.Loaded) -> None:
        """A child that has loaded these files is the one from now on."""
        known = {row["name"] for row in said.listing}
        self.sources = tuple(source for source in sources if source.path.stem in known)
        self.strikes.files = digests(self.sources)
        self.roster.take(said.listing, said.units, fresh=True)
        self.child = process if self.sources else None
        if not self.sources:
            process.kill("there is nothing to do for it")
        self._events, self.later_events = self.later_events, []
        self.begin(self.site)

    # ------------------------------------------------------------ children

    def forget(self) -> None:
        """There are no exits any more."""
        self.drop("there are no exits any more")
        self.sources, self.problems, self.roster = (), [], Roster()

    def fork(
        self, sources: tuple[Source, ...], listing: words.Listing | None = None, forgiving: bool = False
    ) -> Process:
        """A child with the site as it is, which loads these files. ``listing``: it takes the place of one
        that was lost, and goes on counting from there; ``forgiving``: failures before count no more. Raises
        OSError."""
        site = self.site
        self._memory = site.settings.decider.memory
        jail = rights.Jail(self._memory, True, 64, self.user)
        self.strikes.meet({} if forgiving else digests(sources))
        spares, rests = ((), ()) if forgiving else (tuple(self.strikes.spares), tuple(self.strikes.rests))
        work: Callable[[Ends], None] = Work(
            self.folder, sources, site, spares, rests, listing or [], self.memory.read(), forgiving
        )
        self.memory.born()
        return Process(self._name, work, jail, self._hear)

    def _ready(self) -> Process | None:
        """The child, forked anew where there is none; None while it may not be."""
        if self.child is None and self.strikes.pause() <= 0:
            sources = tuple(s for s in self.sources if s.path.stem not in self.strikes.out)
            try:
                self.child = self.fork(sources, self.roster.counted())
            except OSError as error:
                how = f"it cannot be begun: {error}"
                self._tell(self.strikes.lost(None, how, names(sources), self._now()))
                return None
            self._open[0] = Open(time.monotonic())  # until it says that the exits are loaded
            self._events.clear()
        return self.child

    def drop(self, why: str) -> None:
        """Ends the child; what it was asked is asked again of the next."""
        child, self.child = self.child, None
        if child is not None:
            child.kill(why)
        self._close_open()
        if self._asked is not None:
            self._put(Heard(None, None, self._asked.id))

    def _close_open(self) -> None:
        for each in self._open.values():
            if each.future is not None:
                each.future.set_result(None)
        self._open.clear()
        self._events.clear()

    def close(self) -> None:
        """Ends the child for good."""
        if self.loading is not None:
            self.loading.drop()
        if self._asked is not None:  # what fails in a plan that never counts is to be told by the next
            self.memory.close(None)
        elif self.child is not None:
            self.memory.close(self.question(words.AskMemory(0, 0), words.Remembered, AT_END))
        self.drop("the daemon ends")
        self.sources = ()

    # ------------------------------------------------------------ talk

    def _send(self, child: Process, order: words.Order) -> None:
        self.flush()
        child.send(order)

    def flush(self) -> None:
        """Tells the child what has happened."""
        if self._events and self.child is not None:
            self.child.send(words.events_of(self._events))
            self._events.clear()

    def _hear(self, process: Process, what: Any) -> None:
        """In the child's own thread."""
        waits = isinstance(what, words.Word) and what.id == self._sync and what.id
        if waits or process is not self.child or isinstance(what, Gone):
            process.mailbox.put(what)
        if not waits:
            self._put(Heard(process, what))

    def question(self, order: words.Order, kind: type[W], seconds: float) -> W | None:
        """The child's answer, None when there is none in time. While an answer is overdue nobody waits."""
        if any(each.future is None and id != self._asked_id for id, each in self._open.items() if id):
            return None
        if (child := self._ready()) is None:
            return None
        order.id, order.n = next(self._ids), self.site.n
        self._sync = order.id
        since = time.monotonic()
        self._send(child, order)
        word = self._await(child, order.id, since + seconds)
        self._sync = 0
        if isinstance(word, kind):
            self._stamped(word)
            return word
        if word is None:
            self._open[order.id] = Open(since)
        elif isinstance(word, words.Behind):
            child.kill(word.text)
        else:
            LOG.warning("the process of the exits has no answer: %s", words.why(word))
        return None

    @property
    def busy(self) -> bool:
        """Whether the child has something to answer, or there is none."""
        return self.child is None or bool(self._open)

    @property
    def _asked_id(self) -> int:
        return self._asked.id if self._asked is not None else 0

    def _await(self, child: Process, id: int, end: float) -> Any:
        while (left := end - time.monotonic()) > 0 and not child.dead:
            try:
                word = child.mailbox.get(timeout=min(left, LOOK))
            except queue.Empty:
                continue
            if isinstance(word, words.Word) and word.id == id:
                return word
        return None

    def later(self, order: words.Order) -> "Future[Any] | None":
        """Asks without waiting: the answer, or None, comes in the future. None where no child can be had."""
        if (child := self._ready()) is None:
            return None
        order.id, order.n = next(self._ids), self.site.n
        future: Future[Any] = Future()
        self._open[order.id] = Open(time.monotonic(), future)
        self._send(child, order)
        return future

    # ------------------------------------------------------------ what comes back

    def take(self, heard: Heard) -> Decision | None:
        """What a child said, or that it has gone; a plan (or that there will be none) is for the engine."""
        if heard.process is None:
            return self._nothing() if heard.id == self._asked_id and heard.id else None
        if heard.process is not self.child:
            if self.loading is not None:
                self.loading.hear(heard.process, heard.what)
            return None
        what = heard.what
        if isinstance(what, Gone):
            return self._lost(heard.process, what.how)
        waits = self._open.pop(what.id, None)
        if isinstance(what, words.Loaded):
            self.roster.take(what.listing, what.units)
            self.roster.follow(self.site, self.strikes.out)
        elif isinstance(what, words.Planned) and self._asked is not None and what.id == self._asked.id:
            return self._planned(heard.process, what)
        elif waits is not None and waits.future is not None:
            waits.future.set_result(what)
        elif isinstance(what, words.Failed | words.Behind):
            LOG.warning("the process of the exits failed: %s", what.text)
            heard.process.kill(words.why(what))
        return None

    def _planned(self, process: Process, word: words.Planned) -> Decision | None:
        asked = self._asked
        try:
            assert asked is not None
            plan = words.plan_of(word, asked.n, asked.samples, self.roster.names)
        except words.Nonsense as error:
            process.kill(str(error))
            return None
        self._asked = None
        self._stamped(word)
        self.strikes.well()
        return Decision(plan)

    def _stamped(self, word: words.Word) -> None:
        if isinstance(word, words.Planned | words.Submitted | words.Routed):
            self.memory.note(word.stamp)
            self.roster.figures([row for row in word.listing if row.get("name") in self.roster.names])

    def _nothing(self) -> Decision:
        self._asked = None
        return Decision(None)

    def _lost(self, process: Process, how: str) -> Decision | None:
        self.child = None
        self._close_open()
        running = [name for name in names(self.sources) if name not in self.strikes.out]
        loss = self.strikes.lost(named(process.page.read(), self.site), how, running, self._now())
        self.memory.save(self.strikes)
        if loss.exit:
            self.roster.failed(loss.exit)
        self._tell(loss)
        self._was_off |= {name for name in loss.off if not self._enabled(name)}
        self.roster.follow(self.site, self.strikes.out)
        return self._nothing() if self._asked is not None else None

    # ------------------------------------------------------------ looking after it

    def look(self) -> bool:
        """To be called each turn: tells the child what has happened, ends it when it hangs. True: a pass may
        be run again."""
        self.flush()
        child = self.child
        if child is not None and self._open:
            self._judge(child)
        if self.loading is not None:
            self.loading.look()
        if child is not None:
            self.memory.look(self.later)
        if self._paused and self.strikes.pause() <= 0:
            self._paused = False
            return True
        return False

    def patience(self) -> float | None:
        """Real seconds until the next look; None: there is nothing to look for."""
        if self._paused:
            return self.strikes.pause()
        if self.loading is not None or (self._open and self.child is not None):
            return LOOK
        return self.memory.patience() if self.child is not None else None

    def _judge(self, child: Process) -> None:
        for word in child.drained():
            self._open.pop(word.id, None)
        now, call = time.monotonic(), child.page.read()
        if call is not None and call.since != self._seen[0]:
            self._seen = (call.since, now)
        if call is not None and now - self._seen[1] >= SEEN and call.age() > self._limit(call):
            child.kill(f"it did not come back within {call.age():.1f} s")
        elif self._open and now - min(each.since for each in self._open.values()) > PASS:
            child.kill(f"it did not answer within {PASS:.0f} s")

    def _limit(self, call: Call) -> float:
        return LOAD if call.hook == "load" else self.roster.settings_of(call.exit).budget / 100 + GRACE

    # ------------------------------------------------------------ settings

    def begin(self, site: Site) -> None:
        """Takes over the settings: an exit that was switched on again is loaded again."""
        self.site = site
        if self.strikes.pardon(self._enabled):
            self.memory.save(self.strikes)
        back = [name for name in self._was_off if self._enabled(name)]
        for name in back:
            self.strikes.forgive(name)
            self._was_off.discard(name)
            self.memory.save(self.strikes)
        if back:
            self.drop(f"exit {back[0]} comes back")
        elif site.settings.decider.memory != self._memory:
            self.drop("it may take another amount of memory")
        self.roster.follow(site, self.strikes.out)

    def _enabled(self, name: str) -> bool:
        known = self.site.settings.exits.get(name)
        return known is None or known.enabled

    def state(self) -> str:
        """How it stands, in a line."""
        if not self.needed:
            return "passes run in the daemon: there is no user exit to run"
        who = f" as {self.user[0]}" if self.user is not None else ""
        lost = f"; lost {self.strikes.losses} times" if self.strikes.losses else ""
        where = f"process {self.child.pid}" if self.child else "a process that is begun when needed"
        return f"passes and exits run in {where}{who}{lost}"


def _instant(at: int | None) -> Instant | None:
    return None if at is None else Instant(at)
