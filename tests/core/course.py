"""How a random list of requests takes its course on a `House`: they come, run and end, pass by pass."""

from collections.abc import Callable, Iterator
from typing import Any

from core.harness import House

from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request

MINUTE = 60_000


def check_promises(
    house: House, told: dict[Seq, Instant], slack: Callable[[Request], int] = lambda request: 0
) -> None:
    """A reserved start moves to no later time, and is kept. ``told``: the times so far; ``slack``: ms that a
    start may be late."""
    for seq, request in house.site.requests.items():
        kept = request.reservation
        if kept is not None and kept.at is not None:
            assert kept.at <= told.get(seq, kept.at), f"{seq} is promised a later start"
            assert not kept.late or slack(request), f"{seq}: {kept.late}"
            told[seq] = kept.at
        elif request.started is not None and seq in told:
            assert request.started <= told.pop(seq) + slack(request), f"{seq} starts later than promised"


def course(
    house: House,
    requests: list[dict[str, Any]],
    line: Callable[[dict[str, Any]], str],
    end: Callable[[House, Seq], object],
    ends_at: Callable[[House, Seq, Instant], Instant] = lambda house, seq, at: at,
) -> Iterator[None]:
    """After each pass somebody may look. Of a request: minutes ``after`` the one before, ``queue``, ``pes``,
    ``wall`` (minutes), and how much ``early`` it ends. ``line``: what else it asks for; ``end`` ends it;
    ``ends_at``: when, where that is not after its length."""
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
