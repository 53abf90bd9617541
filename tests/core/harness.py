"""A site for tests (`House`): settings and requests are applied as events, passes return plans.

>>> house = House().machine(pes=2)
>>> house.queue("night", share=20, time=1)
>>> anne, ben = house.submit("anne mem=90mw", "ben cpu=10:00 group=d1")
>>> plan = house.run_pass()          # nothing changes yet
>>> house.apply(plan)                # applies its decisions
>>> house.end(anne, cpu="5:00")
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from nqspy.core.classes import JobClass
from nqspy.core.draft import Draft
from nqspy.core.no_exits import NoExits
from nqspy.core.order.places import QueueOrder, standing
from nqspy.core.passes import explain, run_pass
from nqspy.core.resource_health import PROBES
from nqspy.core.startable import changes as startable
from nqspy.engine.enact import decided, enact
from nqspy.engine.lifecycle import apply
from nqspy.model import actions as ac
from nqspy.model import events as ev
from nqspy.model.arrays import ArraySpec
from nqspy.model.ids import Instant, Seq, array_key
from nqspy.model.queues import Complex, Queue
from nqspy.model.reasons import Reason
from nqspy.model.requests import Ask, Request, Spec, Used
from nqspy.model.shapes import Sizes, Speedup
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.model.specs import settled
from nqspy.model.tree import declared
from nqspy.model.units import parse_count, parse_size, parse_time
from nqspy.ports import Answer

START = Instant(1_000_000_000_000)
TIMES = {"cpu": "cpu", "wall": "wall", "guess": "best_guess"}
CONSUMABLES = ("barrier", "gpu", "gpus", "ngpus", "matlab", "fpga", "card")
"""Names of consumables that a line of `House.submit` may ask for."""
_FACTORS = ("share", "cpu", "memory", "time")


def _asking(hook: str) -> Callable[..., Any]:
    def ask(self: "Exits", request: Any, *args: Any) -> Any:
        self.calls.append((hook, request.seq))
        return self.hooks[hook](request, *args)

    return ask


class Exits(NoExits):
    """User exits made of plain functions, by hook name; ``calls`` records every call. ``may_force``:
    jobselect may force, so every candidate is offered to it."""

    def __init__(self, may_force: bool = True, **hooks: Callable[..., Any]) -> None:
        self.hooks, self.may_force = hooks, may_force
        self.calls: list[tuple[str, Any]] = []

    def has(self, hook: str) -> bool:
        return hook in self.hooks

    def forces(self) -> bool:
        return self.may_force

    jobselect, elected, route, submit = map(_asking, ("jobselect", "elected", "route", "submit"))

    def shrpri(self, owner, group, view):
        self.calls.append(("shrpri", (owner, group)))
        return self.hooks["shrpri"](owner, group, view)

    def called(self, hook: str) -> list[Any]:
        return [what for name, what in self.calls if name == hook]


def reserved_minute(house: "House", seq: Seq) -> float | None:
    """Return the reserved start of a request in minutes from the beginning; None: it has none."""
    reservation = house.request(seq).reservation
    return None if reservation is None or reservation.at is None else (reservation.at - START) / 60_000


def force() -> Answer:
    return Answer("force", "", "exits/test")


def refuse(text: str = "not now") -> Answer:
    return Answer("refuse", text, "exits/test")


def hold_line(text: str = "room is kept") -> Answer:
    return Answer("hold_line", text, "exits/test")


def by_group(owner, group, view):
    """Share term of the site's own exit: equal for all users of a group, by how far the group is behind."""
    use = view.usage(group=group)
    return min(2.0, view.share(group=group) / use) if use else 2.0


@dataclass(frozen=True)
class PassResult:
    """A plan, with questions about it in terms of its site."""

    plan: ac.Plan
    house: "House"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plan, name)

    def reason(self, seq: Seq) -> Reason:
        found = self.plan.reason(seq, self.house.request(seq).queue)
        assert found is not None, f"{seq} has no reason"
        return found

    def moves(self) -> dict[Seq, str]:
        return {a.seq: a.queue for a in self.plan.actions if isinstance(a, ac.Move)}

    def pes(self, seq: Seq) -> tuple[int, ...]:
        return next(a.pes for a in self.plan.actions if isinstance(a, ac.Start) and a.seq == seq)


class House:
    """A site that only events change, with a clock that the test sets; ``events`` is its journal."""

    def __init__(self) -> None:
        self.site = Site(host="ymp")
        self.now = START
        self.door: NoExits = NoExits()
        self.samples: dict[Seq, Used] = {}
        self.takes = 0
        self._last_queue = ""
        self.plan = ac.Plan()
        self.events: list[ev.Recorded] = []
        self._event(ev.MachineFound((0, 1), 0, "ymp"))

    def _event(self, event: ev.Event) -> None:
        self.events.append(ev.Recorded(self.site.n + 1, self.now, event))
        apply(self.site, self.events[-1])

    # ------------------------------------------------------------ settings
    def machine(self, pes: int, memory: str | None = None) -> "House":
        self.set("machine/pes", pes)
        if memory is not None:
            self.set("machine/memory", parse_size(memory))
        return self

    def set(self, path: str, value: Any) -> "House":
        """Set one setting by its path; text is read as a size or time if the setting is one."""
        return self.change(ev.Change("set", path, value))

    def change(self, *changes: ev.Change) -> "House":
        self._event(ev.SettingsChanged(changes))
        return self

    def queue(self, name: str, **settings: Any) -> "House":
        """Create a batch queue (``kind="pipe"`` with ``destinations``), enabled and started by default.

        ``share cpu memory time`` are its weights; ``max_cpu="10:00"`` is ``per_request/cpu_limit``, likewise
        memory, wall, pe.
        """
        values: dict[str, Any] = {"enabled": True, "started": True}
        for key, value in settings.items():
            values[_path_of(key)] = _value(Queue, _path_of(key), value)
        if any(key in _FACTORS for key in settings):
            values = {f"sched_factor/{key}": 0 for key in _FACTORS} | values
        self._last_queue = name
        return self.change(ev.Change("create", f"queue/{name}", values))

    def complex(self, name: str, *queues: str, **limits: Any) -> "House":
        values = {key: _value(Complex, key, value) for key, value in limits.items()}
        return self.change(ev.Change("create", f"complex/{name}", {"queues": queues, **values}))

    def limit(self, **limits: Any) -> "House":
        for key, value in limits.items():
            self.set(f"global/{key}", _value(type(self.site.settings.global_), key, value))
        return self

    def group(self, name: str, share: int, parent: str | None = None) -> "House":
        return self.change(ev.Change("create", f"group/{name}", {"share": share, "parent": parent}))

    def exits(self, may_force: bool = True, **hooks: Callable[..., Any]) -> Exits:
        """Use these functions as user exits from now on; return the exits, which record their calls."""
        self.door = Exits(may_force, **hooks)
        return self.door

    def probe(self, name: str, state: str = "", text: str = "", **settings: Any) -> "House":
        """Create a probe if there is none, and report this ``state`` of it, if given."""
        if name not in PROBES.all(self.site.settings):
            self.change(ev.Change("create", f"probe/{name}", {"file": "/there"} | settings))
        if state:
            self._event(ev.ResourceChanged(name, state, text))  # type: ignore[arg-type]
        return self

    # ------------------------------------------------------------ time and requests
    def at(self, seconds: float) -> "House":
        """Set the clock to this many seconds after the beginning."""
        return self.later(START + seconds * 1000 - self.now)

    def later(self, ms: float = 0, **units: float) -> "House":
        """Move the clock on by ``ms``, ``seconds=``, ``minutes=``, ``hours=``."""
        each = {"seconds": 1_000, "minutes": 60_000, "hours": 3_600_000}
        self.now = Instant(int(self.now + ms + sum(each[unit] * n for unit, n in units.items())))
        return self

    def submit(self, *lines: str, queue: str | None = None, state: str = "queued") -> list[Seq]:
        """Submit requests like ``"anne mem=90mw cpu=10:00 pes=2 group=d1 name=x queue=night"`` now; return
        their numbers."""
        seqs = []
        for line in lines:
            owner, *words = shlex.split(line)
            given = dict(word.split("=", 1) for word in words)
            spec = spec_of(owner, **given)
            seq = self.site.next_seq
            where = given.get("queue") or queue or self._last_queue
            self._event(ev.Submitted(seq, replace(spec, queue=where), where, state))  # type: ignore[arg-type]
            seqs.append(seq)
        return seqs

    def array(self, line: str, last: int, queue: str | None = None) -> Seq:
        """Submit an array of the indices 1 to ``last`` with the words of this line; return its number."""
        owner, *words = shlex.split(line)
        where = queue or self._last_queue
        spec = spec_of(owner, **dict(word.split("=", 1) for word in words))
        array = Seq(array_key(self.site.next_seq))
        made = replace(spec, queue=where, array=ArraySpec(((1, last, 1),)))
        self._event(ev.Submitted(array, made, where, "queued"))
        return array

    def run(self, *lines: str, **more: Any) -> list[Seq]:
        seqs = self.submit(*lines, **more)
        self.go()
        return seqs

    def request(self, seq: Seq) -> Request:
        return self.site.requests[seq]

    def hold(self, *seqs: Seq) -> "House":
        self._event(ev.Held(seqs, "u", "anne"))
        return self

    def release(self, *seqs: Seq) -> "House":
        self._event(ev.Released(seqs, "u", "anne"))
        return self

    def schedule(self, seq: Seq, word: str) -> "House":
        """Do ``schedule request`` or ``set request``: ``word`` is system, next, first, now or prime."""
        self._event(ev.Ranked(seq, ("system", "first", "next", "now", "prime").index(word), "op"))
        return self

    # ------------------------------------------------------------ passes
    def run_pass(self) -> PassResult:
        """Return the plan of a pass, and check that the pass changed nothing of the site."""
        before = _picture(self.site)
        plan = run_pass(self.site, self.now, self.door, self.samples)
        assert _picture(self.site) == before, "a pass changed the site"
        self._decide_anew(plan)
        self.plan = plan
        check_site(self.site)
        return PassResult(plan, self)

    def _decide_anew(self, plan: ac.Plan) -> None:
        """Check that a pass without remembered results makes the same plan."""
        if self.site.memos and not any(map(self.door.has, ("jobselect", "elected", "shrpri"))):
            self.site.memos.clear()
            anew = run_pass(self.site, self.now, self.door, self.samples)
            assert self._what_counts(anew) == self._what_counts(plan), "what was remembered holds no more"

    def _what_counts(self, plan: ac.Plan) -> tuple[Any, ...]:
        why = explain(self.site, self.site.requests, plan.reasons)
        return plan.actions, plan.wake_at, plan.short_of_pes, plan.samples, plan.ready, why

    def apply(self, result: PassResult) -> PassResult:
        """Apply the decisions of a plan as the engine does."""
        self._event(decided(result.plan, (), self.door))
        for order in list(enact(self.site, result.plan, self.now, self._event)):
            if isinstance(order, ac.Start):
                self.later(self.takes)
                self._event(ev.Started(order.seq, order.attempt, order.pes))
            elif isinstance(order, ac.Kill):
                why = str(self.request(order.seq).ending)
                self._event(ev.Requeued(order.seq, order.attempt, why))
        check_site(self.site)
        return result

    def moved_out(self, seq: Seq) -> "House":
        self._event(ev.MovedOut(seq, self.request(seq).attempts))
        check_site(self.site)
        return self

    def job_class(self, name: str, **settings: Any) -> "House":
        values = {key: _value(JobClass, key, value) for key, value in settings.items()}
        return self.change(ev.Change("create", f"class/{name}", values))

    def tell_startable(self) -> None:
        """Record which requests could start, as a pass that starts nothing does."""
        self._event(ev.Decided(self.site.n, ready=startable(Draft(self.site, self.now, self.door, {}))))

    def go(self) -> PassResult:
        return self.apply(self.run_pass())

    def end(self, seq: Seq, cpu: str = "0", wall: str = "0") -> "House":
        """End a running request that has used this much."""
        used = Used(parse_time(cpu), parse_time(wall))
        self.samples.pop(seq, None)
        self._event(ev.Ended(seq, self.request(seq).attempts, "exit", 0, used=used))
        check_site(self.site)
        return self

    def uses(self, seq: Seq, cpu: str) -> None:
        self.samples[seq] = Used(parse_time(cpu))

    def why(self, seq: Seq) -> Reason:
        """Return why a request waits, by the last pass."""
        return explain(self.site, (seq,), self.plan.reasons)[seq]

    def standing(self, queue: str | None = None, **more: Any) -> QueueOrder:
        return standing(self.site, queue or self._last_queue, self.now, self.door, self.samples, **more)


def ask_of(given: Mapping[str, str]) -> Ask:
    """Return what the words of a submission ask for."""
    times = {name: parse_time(given[word]) for word, name in TIMES.items() if word in given}
    return Ask(
        memory=parse_size(given["mem"]) if "mem" in given else None,
        pes=int(given.get("pes", 1)),
        needs=tuple(given["needs"].split("+")) if given.get("needs") else (),
        consumables=tuple((name, int(n)) for name, n in given.items() if name in CONSUMABLES),
        **times,
    )


def spec_of(owner: str, **given: str) -> Spec:
    """Return the specification of an owner's request with these words."""
    named = "name" in given
    made = Spec(owner, 1000, given.get("name", "STDIN"), "", "s", "e", "/home", name_given=named,
                ask=ask_of(given), group=given.get("group", "default"), contract="contract" in given,
                job_class=given.get("class", ""), rerunnable=given.get("rerun") != "no",
                priority=int(given["p"]) if "p" in given else None)  # fmt: skip
    return settled(replace(made, mold=mold_of(given))) if "sizes" in given else made


def mold_of(given: Mapping[str, str]) -> Sizes:
    """Return the sizes in ``sizes=2,4 walls=2:00,1:00`` or ``sizes=2,4 speedup=8:0.5 wall=4:00``."""
    sizes = tuple(map(int, given["sizes"].split(",")))
    walls = tuple(map(parse_time, given["walls"].split(","))) if "walls" in given else ()
    curve = Speedup(*map(float, given["speedup"].split(":"))) if "speedup" in given else None
    return Sizes(sizes, walls, curve, parse_time(given["wall"]) if "wall" in given else None)


def _path_of(key: str) -> str:
    if key in _FACTORS:
        return f"sched_factor/{key}"
    if key.startswith("max_"):
        return f"per_request/{key.removeprefix('max_')}_limit"
    return key


def _value(kind: type, path: str, value: Any) -> Any:
    if not isinstance(value, str) or path not in declared(kind):
        return value
    read = {"size": parse_size, "time": parse_time, "count": parse_count}.get(declared(kind)[path].unit)
    return read(value) if read else value


def _picture(site: Site) -> Mapping[str, Any]:
    return {
        "n": site.n,
        "started": list(site.started),
        "versions": {name: columns.version for name, columns in site.waiting.items()},
        "numbers": [len(site.numbers.owners), len(site.numbers.groups), len(site.numbers.pairs)],
        "accounts": {key: (a.value, a.at) for key, a in site.accounts.items()},
        "touched": (set(site.touched.requests), set(site.touched.accounts)),
    }
