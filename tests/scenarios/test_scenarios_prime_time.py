"""Prime time at the computing centre (seed 003, section 6), simulated: bursts against single submissions, and
the real ratio of waits on a day of all queues."""

import random
from dataclasses import dataclass
from statistics import fmean

import pytest
from engine.harness import caller_of, seq_of
from scenarios.computing_centre import Site

from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq

MORNING = "2026-03-02T09:00:00+01:00"
EVENING = "2026-03-02T16:59:00+01:00"


# ---------------------------------------------------------------- machine gun (6.2)
PROCESSORS = 4
BURST = 200
GUN = f"set complex user_limit={PROCESSORS} prime-time"
NO_GUN = GUN + "\ndisable exit machine_gun"
TWO = "set complex user_limit=2 prime-time\ndisable exit machine_gun"


@dataclass
class Day:
    """A burst of 200 by one user at nine, and one request of another user every ten minutes: waits in
    minutes; ``widest``: most of the gunner's that ran at a time."""

    site: Site
    gunner: list[float]
    others: list[float]
    widest: int


def day_with_a_burst(commands: str) -> Day:
    site = Site(lambda r: 280, at=MORNING, pes=PROCESSORS, more=commands)
    lines = (f"gunner name=g{n} cpu=300 mem=4mw queue=normal" for n in range(BURST))
    gun = [seq_of(id) for id in site.hand_in(*lines, by=caller_of("gunner"))["ids"]]
    widest, others = 0, []
    for n in range(47):
        site.later(minutes=10)
        others += site.submit(f"user{n % 12} cpu=300 mem=4mw queue=normal")
        widest = max(widest, sum(r.owner == "gunner" for r in site.site.started.values()))
    site.until(EVENING)
    found = site.waits()
    return Day(site, [found[seq] for seq in gun], [found[seq] for seq in others], widest)


@pytest.fixture(scope="module")
def days():
    """The same day three times: with the exit, without it, without it and with the seed's limit of two."""
    commands = {"exit": GUN, "no exit": NO_GUN, "limit 2": TWO}
    found = {name: day_with_a_burst(text) for name, text in commands.items()}
    print("\nwaits (min): others' mean  longest   gunner's mean  longest")
    for name, day in found.items():
        figures = (f(waits) for waits in (day.others, day.gunner) for f in (fmean, max))
        print(f"{name:<12}", *(f"{figure:12.1f}" for figure in figures))
    return found


def test_with_the_exit_single_submissions_hardly_wait_for_a_burst(days):
    """A processor becomes free every 70 s; whoever asked before the last start of the gunner is next."""
    assert len(days["exit"].others) == 47
    assert max(days["exit"].others) <= 280 / 60
    assert fmean(days["exit"].others) < 2


def test_without_it_they_wait_behind_the_whole_burst(days):
    assert max(days["no exit"].others) > 200
    assert fmean(days["no exit"].others) > 40 * fmean(days["exit"].others)


def test_the_user_limit_can_be_the_number_of_processors_and_none_is_idle(days):
    """With the standard limit of two one user cannot use the machine; with the exit he can."""
    assert days["exit"].widest == PROCESSORS
    assert days["limit 2"].widest == 2
    assert max(days["limit 2"].gunner) > 1.6 * max(days["exit"].gunner)
    assert fmean(days["exit"].gunner) == pytest.approx(fmean(days["no exit"].gunner), rel=0.25)


def test_each_start_redates_the_whole_rest_of_the_burst_by_one_event(days):
    site = days["exit"].site
    redated = [e for e in site.events(ev.Redated) if len(e.seqs) > 1]
    assert BURST - PROCESSORS <= len(redated) <= BURST
    assert all(e.who == "machine_gun" and e.cause not in e.seqs for e in redated)
    assert max(len(e.seqs) for e in redated) == BURST - 1
    assert not days["no exit"].site.events(ev.Redated)


# ---------------------------------------------------------------- the real ratio of waits (6.1)
def busy_day(seed: int, commands: str = "") -> Site:
    """Eight hours of users' work through the pipe queue: short ones, ten-minute ones of all sizes, parallel
    ones; somewhat more than four processors can do as it comes."""
    chance = random.Random(seed)
    lengths: dict[str, float] = {}
    site = Site(lambda r: lengths[r.name], at=MORNING, pes=4, more=commands)
    for n in range(420):
        kind = chance.choices(("short", "normal", "wide"), (30, 60, 10))[0]
        cpu = {"short": 30, "normal": chance.choice((60, 120, 300, 600)), "wide": 2400}[kind]
        mem = chance.choice((1, 4, 8)) if kind == "short" else chance.choice((4, 8, 16, 32))
        pes = chance.choice((2, 3, 4)) if kind == "wide" else 1
        lengths[f"r{n}"] = chance.uniform(0.3, 0.95) * (cpu if kind != "wide" else 500)
        site.submit(f"user{chance.randrange(40)} name=r{n} cpu={cpu} mem={mem}mw pes={pes} queue=batch")
        site.later(seconds=chance.expovariate(1 / 40))
    site.until(EVENING)
    return site


def ratios(site: Site, queue: str) -> list[float]:
    """At each start of a queue: the longest wait of those that stay, divided by the wait of the one that
    goes (dates in queue as they were then)."""
    dates: dict[Seq, Instant] = {}
    found = []
    for recorded in site.journal.events():
        event = recorded.event
        if isinstance(event, ev.Submitted | ev.Routed):
            dates.pop(event.seq, None)
            if event.queue == queue:
                dates[event.seq] = recorded.at
        elif isinstance(event, ev.Redated):
            dates |= {seq: event.date for seq in event.seqs if seq in dates}
        elif isinstance(event, ev.Starting) and event.seq in dates:
            waited = recorded.at - dates.pop(event.seq)
            if waited and dates:
                found.append((recorded.at - min(dates.values())) / waited)
    return found


@pytest.mark.slow
def test_on_a_day_of_all_queues_nobody_is_passed_beyond_the_bound():
    """tau_max = 10 / (10 - 0 - 6 - 1) = 3.33; only the user limit may keep somebody longer, so it is off."""
    worst, real = [], []
    for seed in (1, 2, 3):
        site = busy_day(seed, "set complex user_limit=unlimited prime-time")
        queues = {e.seq: e.queue for e in site.events(ev.Submitted, ev.Routed)}
        assert set(queues.values()) >= {"express", "normal", "pe128m10"}
        found = ratios(site, "normal")
        assert len(found) > 60, "people had to wait"
        worst.append(max(found))
        asked = {e.seq: e.spec.ask.cpu for e in site.events(ev.Submitted)}
        minutes = site.waits()
        mean = {
            cpu: fmean(m for s, m in minutes.items() if queues[s] == "normal" and asked[s] == cpu * 1000)
            for cpu in (60, 600)
        }
        real.append(mean[600] / mean[60])
        express = fmean(m for s, m in minutes.items() if queues[s] == "express")
        print(f"\nseed {seed}: largest ratio {worst[-1]:.2f} of 3.33, mean wait of 10 min / of 1 min "
              f"{real[-1]:.2f}, express {express:.1f} min")  # fmt: skip
        assert express < mean[60], "very short ones wait least"
    assert 2 < max(worst) <= 10 / 3 + 1e-6
    assert all(1 < each < 10 / 3 for each in real)
