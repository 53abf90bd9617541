"""Starts past a reservation by chance, though the wall limit reaches into it; what is learnt of past runs."""

import pytest
from core.story import Story

from nqspy.model import events as ev
from nqspy.model.lifetimes import Key, Lifetime, Lifetimes, Lived
from nqspy.model.requests import Used

PROBABLE = "machine 8; queue night order=fcfs reserve=1 backfill=probable; run anne pes=6 wall=10:00"
LUCKY = f"{PROBABLE}; learn cleo 100*9; run ben pes=8 wall=5:00, cleo pes=2 wall=60:00 name=job"
STORIES = {
    f"how sure it must be is the queue's own: {runs}": f"""{PROBABLE}; {runs}; submit ben pes=8 wall=5:00
        submit cleo pes=2 wall=60:00 name=job, dora pes=2 wall=60:00 name=job; starts {passes}
        reserved ben 10"""
    for runs, passes in (
        ("", "-"), ("learn cleo 100*8", "-"), ("learn cleo 100*9", "cleo"),
        ("learn cleo 100*9 500*2", "-"), ("learn cleo 200*9", "-"),
    )
} | {
    "one without a wall limit takes no chances": f"""{PROBABLE}; learn cleo 1*50
        submit ben pes=8 wall=5:00, cleo pes=2 name=job; starts -""",
    "with luck it starts in time": f"""{LUCKY}; at 5; end cleo; go; reserved ben 10; late ben no; at 10
        end anne; starts ben""",
    "without luck it is told why, and none takes chances any more": f"""{LUCKY}; at 10; end anne
        submit cleo pes=2 wall=60:00 name=job, dora pes=2 wall=50:00; starts dora
        late ben = what it needs is held by 3.ymp; at 60; end dora cleo; starts ben""",
    "none takes chances beside one that was promised a time": f"""{PROBABLE}; queue sure order=fcfs reserve=1
        learn cleo 100*9; run ben pes=8 wall=5:00 queue=sure
        submit cleo pes=2 wall=60:00 name=job queue=night; starts -; at 10; end anne; starts ben""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_starts_by_chance(house, title):
    Story(house).play(STORIES[title])


def lived(*parts, n=1):
    """Ends of requests of ten minutes."""
    return Lifetime(tuple(Lived(part * 600, part) for part in parts), n)


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


def test_what_ends_by_itself_or_by_a_limit_is_learnt_and_nothing_else(house):
    Story(house).play(PROBABLE)
    kinds = ("exit", "wall_limit", "signal", "cpu_limit", "deleted", "lost", "killed", "contract")
    seqs = house.submit(*["eve wall=10:00 name=one"] * len(kinds))
    house.at(3600).end(1)
    for seq, kind in zip(seqs, kinds, strict=True):
        while house.request(seq).started is None:
            house.go()
        signal = {"signal": 11, "killed": 9}.get(kind)
        house._event(ev.Ended(seq, 1, "signal" if signal else kind, exit_signal=signal, used=Used(0, 60_001)))
    assert house.site.lifetimes.known["eve", "one", 1].runs == (Lived(60_001, 101),) * 4


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
