"""Random sites for property tests: queues, limits, complexes, people and requests; and a driver that submits,
starts and ends requests pass by pass."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from core.harness import House, PassResult
from hypothesis import strategies as st

from nqspy.core.gate.running import LIMITS
from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request

OWNERS = ("anne", "ben", "cleo")
GROUPS = ("d1", "d2", "default")
QUEUES = ("a", "b")
LIMIT_NAMES = [limit.setting for limit in LIMITS]

MINUTE = 60_000

maybe = st.none() | st.integers(0, 4)


@st.composite
def limits(draw):
    """Draw limits of a queue, a complex or the whole site; memory in bytes."""
    return {name: draw(maybe) for name in LIMIT_NAMES if draw(st.booleans())}


@st.composite
def requests(draw):
    """Draw a line of `House.submit`."""
    words = [draw(st.sampled_from(OWNERS)), f"group={draw(st.sampled_from(GROUPS))}"]
    words.append(f"queue={draw(st.sampled_from(QUEUES))}")
    for name, values in (("cpu", (1, 20, 600)), ("mem", (0, 1, 2, 4))):
        if draw(st.booleans()):
            words.append(f"{name}={draw(st.sampled_from((*values, 'unlimited')))}")
    return " ".join([*words, f"pes={draw(st.sampled_from((1, 1, 1, 2, 3, 9)))}"])


weights = st.fixed_dictionaries({name: st.integers(0, 20) for name in ("share", "cpu", "memory", "time")})


@dataclass
class World:
    """A site with the lines of its requests, each with the seconds that pass before it."""

    house: House
    lines: list[tuple[str, int]] = field(default_factory=list)

    def submit_all(self) -> list[int]:
        """Submit all requests; return their numbers."""
        seqs = []
        for line, seconds in self.lines:
            seqs += self.house.later(seconds=seconds).submit(line)
        self.house.later(seconds=1)
        return seqs


@st.composite
def worlds(draw, share=None):
    """Draw two queues in a complex, with limits everywhere, and up to 14 requests."""
    house = House().machine(pes=draw(st.integers(1, 5)))
    for name in QUEUES:
        factors = draw(weights)
        if share is not None:
            factors["share"] = share
        house.queue(name, priority=draw(st.integers(0, 2)), max_memory=draw(st.none() | st.just("3b")),
                    started=draw(st.sampled_from((True, True, True, False))),
                    **factors, **draw(limits()))  # fmt: skip
    house.complex("both", *QUEUES, **draw(limits())).limit(**draw(limits()))
    house.group("d1", draw(st.integers(0, 5))).group("d2", draw(st.integers(0, 5)))
    lines = draw(st.lists(st.tuples(requests(), st.integers(0, 3)), max_size=14))
    return World(house, lines)


def live(world: World, passes: int, check: Callable[[PassResult], None]) -> None:
    """Make passes; after each the oldest running request ends."""
    world.submit_all()
    for _ in range(passes):
        check(world.house.go())
        if not world.house.site.started:
            return
        world.house.later(seconds=7)
        world.house.end(min(world.house.site.started), cpu="5")


# ---------------------------------------------------------------- courses with reservations
ASKED = {
    "queue": st.sampled_from(("front", "back", "apart")), "owner": st.sampled_from(["anne", "ben", "cleo"]),
    "pes": st.integers(1, 6), "wall": st.integers(1, 12), "early": st.integers(0, 11),
    "after": st.integers(0, 5), "gpu": st.integers(0, 2), "mem": st.integers(1, 60),
}  # fmt: skip
SETTINGS = {
    "order": st.sampled_from(["fcfs", "sjf", "priority"]),
    "backfill": st.sampled_from(["limit", "limit", "none"]),
    "reserve": st.sampled_from([0, 1, 2, None]),
    "backfill_order": st.sampled_from(["order", "shortest"]),
    "user_limit": st.sampled_from([None, 1, 2]),
    "pe_limit": st.sampled_from([None, 6, 7]),
}
REQUEST, QUEUE = st.fixed_dictionaries(ASKED), st.fixed_dictionaries(SETTINGS)


def built(queues: list[dict], **more: object) -> House:
    """Return a site with three queues, of which one has its own domain."""
    house = House().machine(pes=9).limit(memory_limit="120mb")
    house.change(ev.Change("create", "consumable/gpu", {"units": ("0", "1", "2")}))
    house.change(ev.Change("create", "domain/wide", {"pes": ("6-8",)}))
    for priority, (name, wanted) in enumerate(zip(("front", "back", "apart"), queues, strict=True)):
        house.queue(name, priority=priority, share=1, time=1, **wanted, **more)
    return house.set("queue/apart/domain", "wide")


def two_queues(queues: list[dict]) -> House:
    """Return a site with two queues on 8 PEs and two GPUs."""
    house = House().machine(pes=8)
    house.change(ev.Change("create", "consumable/gpu", {"units": ("0", "1")}))
    for priority, (name, wanted) in enumerate(zip(("front", "back"), queues, strict=True)):
        house.queue(name, priority=priority, **wanted)
    return house


def asked_for(each: dict) -> str:
    """Return the words of a drawn request for everything besides PEs and time."""
    words = [f" {name}={each[name]}{unit}" for name, unit in (("mem", "mb"), ("gpu", "")) if each[name]]
    words += [f" {word}" for name, word in OTHERS.items() if each.get(name)]
    return "".join(words)


OTHERS = {"contract": "contract=yes", "endless": "wall=unlimited"}


def check_reservations(
    house: House, reserved: dict[Seq, Instant], slack: Callable[[Request], int] = lambda request: 0
) -> None:
    """Check that each reserved start moved to no later time, and was met within ``slack`` ms. ``reserved``:
    times so far."""
    for seq, request in house.site.requests.items():
        reservation = request.reservation
        if reservation is not None and reservation.at is not None:
            assert reservation.at <= reserved.get(seq, reservation.at), f"{seq} has a later reservation"
            assert not reservation.late or slack(request), f"{seq}: {reservation.late}"
            reserved[seq] = reservation.at
        elif request.started is not None and seq in reserved:
            assert request.started <= reserved.pop(seq) + slack(request), f"{seq} starts later than reserved"


def course(
    house: House,
    requests: list[dict[str, Any]],
    line: Callable[[dict[str, Any]], str],
    end: Callable[[House, Seq], object],
    ends_at: Callable[[House, Seq, Instant], Instant] = lambda house, seq, at: at,
) -> Iterator[None]:
    """Submit and end these requests in time, and yield after each pass. A request has minutes ``after`` the
    previous one, ``queue``, ``pes``, ``wall`` (minutes) and the minutes by which it ends ``early``. ``line``:
    returns further words; ``end``: ends a request; ``ends_at``: returns its end if that is not after its
    length."""
    coming, at = [], house.now
    for each in requests:
        at = Instant(at + each["after"] * MINUTE)
        coming.append((at, each))
    ends: dict[Seq, Instant] = {}
    lengths: dict[Seq, int] = {}
    while coming or ends or house.plan.wake_at is not None:
        wake = house.plan.wake_at
        house.now = min([*ends.values(), *(at for at, _ in coming[:1]), *(() if wake is None else (wake,))])
        for seq in [seq for seq, end_at in ends.items() if end_at == house.now]:
            end(house, seq)
            del ends[seq]
        while coming and coming[0][0] == house.now:
            each = coming.pop(0)[1]
            most = 3 if each["queue"] == "apart" else 6
            asked = f"{each['owner']} pes={min(each['pes'], most)} wall={each['wall']}:00{line(each)}"
            (seq,) = house.submit(asked, queue=each["queue"])
            lengths[seq] = max(1, each["wall"] - each["early"]) * MINUTE
        for seq in house.go().starts:
            ends[seq] = ends_at(house, seq, Instant(house.now + lengths[seq]))
        yield
