"""Random sites with random work, each made again by its seed: what the core decides for them is frozen.

A world is written in the words of qmgr and of a submission, so that it means the same to every version of the
core. Features are drawn one by one and meet in all combinations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

T = TypeVar("T")
OWNERS = ("anne", "ben", "cleo", "dora")
GROUPS = ("d1", "d2", "d3")
MINUTE = 60
HOUR = 60 * MINUTE


@dataclass(frozen=True)
class Step:
    """Something that happens ``at`` seconds after the beginning: ``submit`` (see `decisions.submission`),
    ``qmgr`` (a line), ``broken`` and ``well`` (a resource), ``pressure`` (how much memory is used)."""

    at: int
    kind: str
    text: str


@dataclass(frozen=True)
class World:
    """A site and what happens there. ``settings``: qmgr lines. ``exits``: what its exits do, by hook.
    ``lengths``: how long requests run, as parts of their limits, by sequence number modulo their count."""

    seed: int
    pes: int
    settings: tuple[str, ...]
    steps: tuple[Step, ...]
    exits: dict[str, int]
    lengths: tuple[float, ...]


class Draw:
    """Draws from one seed, by the same steps in every version of Python."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, most: int) -> int:
        """Return a whole number from 0 to ``most`` - 1."""
        return int(self._random.random() * most)

    def between(self, least: int, most: int) -> int:
        """Return a whole number from ``least`` to ``most``."""
        return least + self.below(most - least + 1)

    def one(self, some: Sequence[T]) -> T:
        """Return one of these."""
        return some[self.below(len(some))]

    def chance(self, part: float) -> bool:
        """Return True with this chance."""
        return self._random.random() < part


@dataclass
class Features:
    """What a world has beside queues and requests."""

    queues: tuple[str, ...]
    classes: bool
    units: bool
    resource: bool
    arrays: bool
    molded: bool
    groups: bool
    walls: bool
    contracts: bool
    swap: bool
    lines: list[str] = field(default_factory=list)


def world(seed: int) -> World:
    """Return the world of a seed."""
    draw = Draw(seed)
    pes = draw.one((1, 2, 3, 4, 4, 6, 8, 12))
    features = _features(draw)
    features.lines += _machine(draw, features, pes)
    for name in features.queues:
        features.lines += _queue(draw, features, name)
    features.lines += _scopes(draw, features)
    exits: dict[str, int] = {}
    if draw.chance(0.3):
        exits["jobselect"] = draw.between(1, 1 << 16)
        exits["forces"] = int(draw.chance(0.3))
        exits["lines"] = int(draw.chance(0.3))
    if draw.chance(0.15):
        exits["shrpri"] = draw.between(1, 1 << 16)
    steps = sorted(_steps(draw, features, pes), key=lambda step: step.at)
    lengths = tuple(draw.one((0.1, 0.3, 0.5, 0.8, 1.0, 1.0)) for _ in range(7))
    return World(seed, pes, tuple(features.lines), tuple(steps), exits, lengths)


def _features(draw: Draw) -> Features:
    names = ("a", "b", "c")[: draw.one((1, 2, 2, 3))]
    return Features(
        names,
        classes=draw.chance(0.15),
        units=draw.chance(0.35),
        resource=draw.chance(0.2),
        arrays=draw.chance(0.4),
        molded=draw.chance(0.3),
        groups=draw.chance(0.5),
        walls=draw.chance(0.85),
        contracts=draw.chance(0.2),
        swap=draw.chance(0.1),
    )


def _machine(draw: Draw, features: Features, pes: int) -> list[str]:
    lines = ["set default wall_limit=20:00"] if draw.chance(0.5) else []
    placement = draw.one(("lowest", "lowest", "contiguous", "most_packed"))
    lines.append(f"set domain application placement={placement}")
    if pes >= 4 and draw.chance(0.25):
        lines.append(f"create domain far pes={pes - 2}-{pes - 1} placement={placement}")
    if draw.chance(0.15):
        lines.append("create domain talk pes=() kind=command requests=2")
    if features.swap:
        lines.append("set swap_control on high=85 low=70 min_resident=120")
    if features.groups:
        lines += [f"create group {name} share={draw.between(1, 9)}" for name in GROUPS]
        lines += [f"add members=({', '.join(OWNERS)}) {name}" for name in GROUPS]
        if draw.chance(0.4):
            lines.append(f"set group {draw.one(GROUPS)} limit={draw.one((20, 40, 60))}%")
        lines.append(
            f"set usage half_life={draw.one(('10:00', '2h', '24h'))} charge={draw.one(('cpu', 'pe_wall'))}"
        )
        if draw.chance(0.3):
            lines.append("set global share_rule=deficit")
    if features.units:
        lines.append(f"create consumable gpu units=({', '.join(f'g{n}' for n in range(draw.between(1, 4)))})")
        lines.append("create consumable licence units=(l0, l1)")
    if features.resource:
        lines.append('create probe nfs command="true"')
    if features.classes:
        wait, apart = draw.one(("0", "2:00")), draw.one((0, 10, 60))
        lines += [
            f"create class production priority=2 wait=10:00 do_not_disturb={apart} pe_limit={pes}",
            f"create class fast priority=4 wait={wait} do_not_disturb=10 pe_limit={pes}",
            f"set gang job_limit={pes} large_size={max(2, pes // 2)} large_limit={pes}",
            "set gang default_class=production",
        ]
    return lines


def _queue(draw: Draw, features: Features, name: str) -> list[str]:
    lines = [f"create batch_queue {name} priority={draw.between(0, 3) * 10}"]
    order = draw.one(("fcfs", "fcfs", "sjf", "priority", "priority"))
    if features.classes and name != "c":
        order = "class"
    lines.append(f"set queue {name} order={order}")
    if order != "class":
        reserve = draw.one(("0", "0", "1", "1", "2", "all"))
        backfill = draw.one(("limit", "limit", "limit", "none", "probable", "contract"))
        lines.append(f"set queue {name} reserve={reserve} backfill={backfill}")
        if draw.chance(0.3):
            lines.append(f"set queue {name} backfill_order=shortest")
    for limit, most in (("run_limit", 4), ("user_limit", 2), ("group_limit", 2), ("pe_limit", 8)):
        if draw.chance(0.2):
            lines.append(f"set {limit}={draw.between(1, most)} {name}")
    if draw.chance(0.2):
        lines.append(f"set memory_limit={draw.between(2, 8)}mw {name}")
    if features.units and draw.chance(0.3):
        kind = draw.one(("consumable_limit", "consumable_user_limit", "consumable_group_limit"))
        lines.append(f"set queue {name} {kind}=(gpu={draw.between(0, 3)})")
    if draw.chance(0.3):
        factors = " ".join(f"{each} {draw.between(0, 20)}" for each in ("share", "cpu", "memory", "time"))
        lines.append(f"set sched_factor {factors}")
    if features.resource and draw.chance(0.2):
        lines.append(f"set needs=(nfs) {name}")
    if name == features.queues[-1] and (
        others := [line for line in features.lines if line[:14] == "create domain "]
    ):
        lines.append(f"set queue {name} domain={others[-1].split()[2]}")
    lines.append(f"enable queue {name}")
    if draw.chance(0.92):
        lines.append(f"start queue {name}")
    return lines


def _scopes(draw: Draw, features: Features) -> list[str]:
    lines = []
    if len(features.queues) > 1 and draw.chance(0.3):
        lines.append(f"create complex=({', '.join(features.queues[:2])}) both")
        lines.append(
            f"set complex both {draw.one(('run_limit=3', 'user_limit=1', 'pe_limit=4', 'memory_limit=6mw'))}"
        )
    if draw.chance(0.25):
        lines.append(f"set global {draw.one(('run_limit=5', 'user_limit=2', 'group_limit=3', 'pe_limit=6'))}")
    if draw.chance(0.2):
        lines.append(f"set global offers_per_pass={draw.between(1, 6)}")
    if draw.chance(0.2):
        lines.append(f"create pipe_queue pipe priority=5 destination=({', '.join(features.queues)})")
        lines += ["enable queue pipe", "start queue pipe"]
    if draw.chance(0.25):
        spill = draw.one(("leave", "drain", "suspend", "requeue"))
        queue = draw.one(features.queues)
        lines.append(f'define shift day when=("0 21 * * *") spill={spill}\n  stop queue {queue}\nend')
        lines.append(f'define shift late when=("30 22 * * *")\n  start queue {queue}\nend')
    return lines


def _steps(draw: Draw, features: Features, pes: int) -> list[Step]:
    count = draw.between(6, 22)
    span = draw.one((MINUTE, 30 * MINUTE, 2 * HOUR))
    steps = [Step(draw.below(span), "submit", _submission(draw, features, pes)) for _ in range(count)]
    steps += [
        Step(draw.below(span + HOUR), "qmgr", _order(draw, features, count, pes))
        for _ in range(draw.below(6))
    ]
    if features.resource and draw.chance(0.7):
        broken = draw.below(HOUR)
        steps += [Step(broken, "broken", "nfs"), Step(broken + draw.below(HOUR), "well", "nfs")]
    if features.swap:
        levels = [draw.one(("high", "tight", "calm")) for _ in range(draw.between(1, 4))]
        steps += [Step(draw.below(HOUR), "pressure", level) for level in levels]
    return steps


def _submission(draw: Draw, features: Features, pes: int) -> str:
    words = [draw.one(OWNERS), f"queue={draw.one(features.queues)}"]
    if features.groups:
        words.append(f"account={draw.one(GROUPS)}")
    wide = min(pes, draw.one((1, 1, 1, 2, 2, 3, max(1, pes // 2), pes)))
    if features.molded and draw.chance(0.4):
        words.append(f"sizes={','.join(map(str, sorted({1, max(1, wide // 2), wide})))}")
    words.append(f"pes={wide}")
    if features.walls and draw.chance(0.85):
        words.append(f"wall={draw.one((60, 300, 300, 600, 1200, 3600))}")
    if draw.chance(0.4):
        words.append(f"cpu={draw.one((30, 300, 3000))}")
    if draw.chance(0.4):
        words.append(f"memory={draw.between(1, 4)}")
    if features.units and draw.chance(0.4):
        words.append(f"units={draw.one(('gpu:1', 'gpu:1', 'gpu:2', 'licence:1', 'gpu:1+licence:1'))}")
    if features.resource and draw.chance(0.4):
        words.append("needs=nfs")
    if features.classes:
        words.append(f"class={draw.one(('fast', 'production', 'production'))}")
    if features.arrays and draw.chance(0.3):
        most = draw.one(("", "", ":1", ":2"))
        words.append(f"array={draw.between(2, 6)}{most}")
    if features.contracts and draw.chance(0.3):
        words.append("contract=1")
    if draw.chance(0.15):
        words.append(f"priority={draw.one((-5, 1, 10))}")
    if draw.chance(0.1):
        words.append(f"after={draw.between(1, 600)}")
    if draw.chance(0.1):
        words.append(f"guess={draw.one((30, 120))}")
    return " ".join(words)


def _order(draw: Draw, features: Features, count: int, pes: int) -> str:
    number = draw.between(1, count)
    return draw.one(
        (
            f"hold request {number}", f"release request {number}", f"schedule request {number} now",
            f"schedule request {number} first", f"schedule request {number} next",
            f"delete request {number}", f"abort request {number}", f"rerun request {number}",
            f"suspend request {number}", f"resume request {number}",
            f"move request=({number}) {draw.one(features.queues)}",
            f"modify request {number} pe_limit={draw.between(1, pes)}",
            f"set machine offline=({draw.below(pes)})", "set machine offline=()",
            f"stop queue {draw.one(features.queues)}", f"start queue {draw.one(features.queues)}",
            f"set run_limit={draw.between(0, 3)} {draw.one(features.queues)}",
            f"set queue {draw.one(features.queues)} reserve={draw.one(('0', '1', 'all'))}",
        )
    )  # fmt: skip
