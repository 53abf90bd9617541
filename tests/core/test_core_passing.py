"""Starts past a reservation by chance, though the wall limit reaches into it; what is learnt of past runs."""

import pytest
from core.harness import promised

from nqspy.model import events as ev
from nqspy.model.lifetimes import Key, Lifetime, Lifetimes, Lived
from nqspy.model.requests import Used


@pytest.fixture
def probable(house):
    """Eight PEs, six of which are held for ten minutes; queue night tells one its start, and takes chances of
    ninety in a hundred."""
    house.machine(pes=8).queue("night", order="fcfs", reserve=1, backfill="probable")
    house.run("anne pes=6 wall=10:00")
    return house


def learn(house, *parts, owner="cleo", name="job", pes=2):
    """So long ran requests that were like these, in thousandths of their limits."""
    house.site.lifetimes.known[owner, name, pes] = lived(*parts, n=house.site.n)
    return house


def lived(*parts, n=1):
    """Ends of requests of ten minutes."""
    return Lifetime(tuple(Lived(part * 600, part) for part in parts), n)


# ---------------------------------------------------------------- by chance


@pytest.mark.parametrize(
    ("parts", "passes"),
    [
        ((), False),
        ((100,) * 8, False),
        ((100,) * 9, True),
        ((100,) * 9 + (500,) * 2, False),
        ((200,) * 9, False),
    ],
)
def test_how_sure_it_must_be_is_the_queues_own(probable, parts, passes):
    learn(probable, *parts)
    lines = ("ben pes=8 wall=5:00", "cleo pes=2 wall=60:00 name=job", "dora pes=2 wall=60:00 name=job")
    wide, long, _ = probable.submit(*lines)
    assert probable.go().starts == ([long] if passes else [])
    assert promised(probable, wide) == 10


def test_one_without_a_wall_limit_takes_no_chances(probable):
    learn(probable, *[1] * 50)
    probable.submit("ben pes=8 wall=5:00", "cleo pes=2 name=job")
    assert probable.go().starts == []


def test_it_waits_for_its_luck_and_starts_in_time_where_it_has_some(probable):
    learn(probable, *[100] * 9)
    wide, long = probable.run("ben pes=8 wall=5:00", "cleo pes=2 wall=60:00 name=job")
    probable.at(5 * 60).end(long).go()
    assert (promised(probable, wide), probable.request(wide).reservation.late) == (10, "")
    probable.at(10 * 60).end(1)
    assert probable.go().starts == [wide]


def test_where_it_has_none_it_is_told_why_and_nobody_takes_chances_any_more(probable):
    learn(probable, *[100] * 9)
    wide, long = probable.run("ben pes=8 wall=5:00", "cleo pes=2 wall=60:00 name=job")
    probable.at(10 * 60).end(1)
    again, short = probable.submit("cleo pes=2 wall=60:00 name=job", "dora pes=2 wall=50:00")
    assert probable.go().starts == [short], "by its wall limit it ends before cleo's first does"
    assert probable.request(wide).reservation.late == f"what it needs is held by {long}.ymp"
    probable.at(60 * 60).end(short).end(long)
    assert probable.go().starts == [wide]
    assert probable.request(again).started is None


def test_beside_one_that_was_promised_a_time_nobody_takes_chances(probable):
    probable.queue("sure", order="fcfs", reserve=1)
    learn(probable, *[100] * 9)
    (wide,) = probable.run("ben pes=8 wall=5:00", queue="sure")
    probable.submit("cleo pes=2 wall=60:00 name=job", queue="night")
    assert probable.go().starts == []
    probable.at(10 * 60).end(1)
    assert wide in probable.go().starts


# ---------------------------------------------------------------- what is learnt


@pytest.mark.parametrize("percent", [1, 30.0, 50, 66.6, 90, 98, 99])
@pytest.mark.parametrize("count", [0, 1, 2, 9, 10, 49, 50])
def test_the_sure_part_is_the_least_with_that_chance(percent, count):
    """One more that had not ended by then counts with those known; at its limit each has ended."""
    parts = tuple((each * 37) % 997 + 1 for each in range(count))

    def chance(part: int) -> float:
        return 1 if part == 1000 else sum(each <= part for each in parts) / (count + 1)

    by_trying = next(part for part in range(1001) if chance(part) >= percent / 100)
    assert lived(*parts).sure_part(percent) == by_trying


def test_what_ends_by_itself_or_by_a_limit_is_learnt_and_nothing_else(probable):
    kinds = ("exit", "wall_limit", "signal", "cpu_limit", "deleted", "lost", "killed", "contract")
    seqs = probable.submit(*["eve wall=10:00 name=one"] * len(kinds))
    probable.at(3600).end(1)
    for seq, kind in zip(seqs, kinds, strict=True):
        while probable.request(seq).started is None:
            probable.go()
        signal = {"signal": 11, "killed": 9}.get(kind)
        probable._event(
            ev.Ended(seq, 1, "signal" if signal else kind, exit_signal=signal, used=Used(0, 60_001))
        )
    assert probable.site.lifetimes.known["eve", "one", 1].runs == (Lived(60_001, 101),) * 4


def test_so_much_is_kept_and_what_is_oldest_is_forgotten_first():
    known, touched = Lifetimes(), set()
    for n in range(5000):
        touched.update(known.add(("anne", f"job{n % 2500}", 1), Lived(n, n % 1000), n))
    assert len(known.known) == 2000
    assert next(iter(known.known)) == ("anne", "job500", 1)
    assert ("anne", "job0", 1) in touched
    for n in range(60):
        list(known.add(("anne", "job600", 1), Lived(n, n + 1), 5000 + n))
    assert known.known["anne", "job600", 1].runs == tuple(Lived(n, n + 1) for n in range(10, 60))
    assert Lifetimes.of(dict(sorted(known.known.items()))) == known
    assert list(Lifetimes.of(dict(sorted(known.known.items()))).known) == list(known.known)


def walls(known: Lifetimes, key: Key) -> list[list[int]]:
    """Of each kind."""
    return [[run.wall for run in kind] for kind in known.kinds(key)]


def test_those_alike_are_looked_for_in_ever_wider_kinds():
    known = Lifetimes()
    ends = [("anne", "sweep", 1, 10), ("anne", "sweep", 1, 20), ("anne", "sweep", 4, 30), ("ben", "x", 1, 40)]
    for n, (owner, name, pes, wall) in enumerate(ends):
        list(known.add((owner, name, pes), Lived(wall, 0), n))
    assert walls(known, ("anne", "sweep", 1)) == [[10, 20, 30], [10, 20, 30], [10, 20, 30, 40]]
    assert walls(known, ("ben", "y", 1)) == [[10, 20, 30, 40]], "those of everybody"
    list(known.add(("anne", "sweep", 1), Lived(50, 0), 9))
    assert walls(known, ("anne", "sweep", 1))[0] == [10, 20, 50], "enough of the same width"
    assert [len(kind) for kind in known.of_owner(("anne", "sweep", 1))] == [3, 4, 4]
    again = Lifetimes.of(known.known)
    assert sorted(walls(again, ("carl", "z", 1))[0]) == sorted(walls(known, ("carl", "z", 1))[0])
    closed = known.copy(closed=True)
    assert list(closed.add(("anne", "sweep", 1), Lived(60, 0), 10)) == []
    assert closed.latest() == known.latest()
