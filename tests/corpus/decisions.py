"""What the core decides for a world: each pass in a few lines of text, and a digest of all of them.

A pass shows its actions, why each request waits (the code alone), when it wants to look again, what could
start, and whether a request waits for PEs alone. Words and figures of reasons are left out: they may be
written anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from typing import Any

from corpus.worlds import Step, World, world

from nqspy.core.no_exits import NoExits
from nqspy.core.passes import explain
from nqspy.engine.look_ahead import AtOnce
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import indices
from nqspy.model.actions import Action, Plan, Reserving
from nqspy.model.arrays import ArraySpec
from nqspy.model.errors import NqspyError
from nqspy.model.health import Health, Level
from nqspy.model.ids import Instant, Seq
from nqspy.model.observations import ObservedPressure, ObservedResource
from nqspy.model.people import Caller
from nqspy.model.requests import Ask, Request, Spec, Used
from nqspy.model.shapes import Sizes
from nqspy.model.site import Site
from nqspy.ports import Answer
from nqspy.qmgr.parser import parse_text
from nqspy.sim.main import Simulation
from nqspy.store.memory import MemoryJournal

START = Instant(1_772_478_000_000)
"""2026-03-02 19:00 UTC, a Monday."""
SPAN = 5 * 3600
"""Seconds that a world is watched."""
MW = 8 << 20


def digest(lines: Sequence[str]) -> str:
    """Return the first twelve digits of a checksum."""
    return sha256("\n".join(lines).encode()).hexdigest()[:12]


def decisions(seed: int) -> list[str]:
    """Return what is decided for the world of a seed, pass by pass."""
    return Trial(world(seed)).lines


class Trial:
    """A world that is played once; ``lines``: its passes."""

    def __init__(self, told: World) -> None:
        self.world, self.lines = told, list[str]()
        self._exits = WorldExits(told.exits)
        self._decider = AtOnce(self._exits)
        self.sim = Simulation(
            MemoryJournal(), self._length, START, pes=told.pes, exits=self._exits, decider=self
        )
        for line in told.settings:
            self._qmgr(line)
        for step in told.steps:
            self.sim.run(Instant(START + step.at * 1000))
            self._take(step)
        self.sim.run(Instant(START + SPAN * 1000))

    def _length(self, request: Request) -> Run:
        parts = self.world.lengths
        limit = request.spec.ask.wall or 900_000
        return Run(wall=int(limit * parts[request.seq % len(parts)]))

    def _qmgr(self, text: str) -> None:
        for parsed in parse_text(text):
            try:
                self.sim.ask(parsed.command)
            except NqspyError as error:
                self.lines.append(f"refused {parsed.text.split()[0]} {type(error).__name__}")

    def _take(self, step: Step) -> None:
        if step.kind == "submit":
            try:
                caller = Caller(step.text.split()[0], 1000, 100, ("users",))
                self.sim.ask(cm.Submit((submission(step.text, self.sim.now),)), caller)
            except NqspyError as error:
                self.lines.append(f"refused submission {type(error).__name__}")
        elif step.kind == "qmgr":
            self._qmgr(step.text)
        elif step.kind == "pressure":
            level: Level = "high" if step.text == "high" else "tight" if step.text == "tight" else "calm"
            self.sim.see(self.sim.now, ObservedPressure(level, 90.0, "", (), 1 << 30))
        else:
            state: Health = "broken" if step.kind == "broken" else "ok"
            self.sim.see(self.sim.now, ObservedResource(step.text, state))

    # ------------------------------------------------------------ the decider's door
    def ask(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        """Decide as the core does, and write down what it decided."""
        plan = self._decider.ask(site, now, samples)
        assert plan is not None
        self.lines += pass_lines(site, now, plan)
        return plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decider, name)


def pass_lines(site: Site, now: Instant, plan: Plan) -> Iterator[str]:
    """Yield one pass as text."""
    wake = None if plan.wake_at is None else (plan.wake_at - START) / 1000
    yield f"pass {(now - START) / 1000} wake {wake} short {plan.short_of_pes} ready {sorted(plan.ready)}"
    yield from (f"  {_shown(action)}" for action in plan.actions)
    waiting = sorted(seq for seq, request in site.requests.items() if seq not in plan.starts)
    for seq, reason in sorted(explain(site, waiting, plan.reasons).items()):
        yield f"  {seq} {reason.code.value}"


def _shown(action: Action) -> str:
    """Return an action as text, without its texts for people."""
    if isinstance(action, Reserving):
        starts = {
            seq: (r.at, r.by, bool(r.late), r.turn, r.pes) if r else None for seq, r in action.starts.items()
        }
        return f"reserve {starts} as of {action.as_of} taken back {list(action.causes)}"
    names = [each.name for each in fields(action) if each.name not in ("by", "cleared", "text")]
    return f"{type(action).__name__.lower()} { ({name: getattr(action, name) for name in names}) }"


def submission(line: str, now: Instant) -> cm.Submission:
    """Return a submission from its words: an owner, and ``name=value`` each."""
    words = line.split()
    given = dict(word.split("=", 1) for word in words[1:])
    times = {name: int(given[name]) * 1000 for name in ("cpu", "wall", "guess") if name in given}
    units = (each.split(":") for each in given.get("units", "").split("+") if each)
    ask = Ask(
        cpu=times.get("cpu"), wall=times.get("wall"), best_guess=times.get("guess"),
        memory=int(given["memory"]) * MW if "memory" in given else None, pes=int(given["pes"]),
        needs=(given["needs"],) if "needs" in given else (),
        consumables=tuple((name, int(count)) for name, count in units),
    )  # fmt: skip
    sizes = tuple(map(int, given.get("sizes", "").split(","))) if "sizes" in given else ()
    last, _, most = given.get("array", "").partition(":")
    array = ArraySpec(indices.read(f"1-{last}"), int(most) if most else None) if last else None
    spec = Spec(
        owner=words[0], uid=1000, name="job", queue=given["queue"], script="", environment="",
        workdir="/home", account=given.get("account"), ask=ask, priority=int(given.get("priority", 0)),
        eligible=Instant(now + int(given["after"]) * 1000) if "after" in given else None,
        contract="contract" in given, job_class=given.get("class", ""),
        mold=Sizes(sizes) if len(sizes) > 1 else None, array=array,
    )  # fmt: skip
    return cm.Submission(spec, "#!/bin/sh\ntrue\n", "HOME=/home", None, None)


class WorldExits(NoExits):
    """Exits whose answers follow from a number, a request and the minute."""

    def __init__(self, rules: Mapping[str, int]) -> None:
        self._rules = rules

    def has(self, hook: str) -> bool:
        return hook in self._rules

    def forces(self) -> bool:
        return bool(self._rules.get("forces"))

    def jobselect(self, request: Any, view: Any) -> Answer | None:
        """Refuse, force, hold the line or leave it to the standard rules."""
        drawn = (request.seq * 7919 + view.now // 600_000 * 31 + self._rules["jobselect"]) % 10
        if drawn < 2:
            return Answer("refuse", "not now", "exits/world")
        if drawn == 2 and self._rules["lines"]:
            return Answer("hold_line", "room is kept", "exits/world")
        if drawn == 3 and self.forces():
            return Answer("force", "", "exits/world")
        return None

    def shrpri(self, owner: str, group: str, view: Any) -> float | None:
        return float(sum(map(ord, owner + group)) * self._rules["shrpri"] % 11)
