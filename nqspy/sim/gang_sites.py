"""The two sites of `gang`, as texts of qmgr commands: LLNL's T3D before the Gang Scheduler and after.

Before, a request holds its PEs in a row from start to end, and NQS keeps PEs free for interactive work by the
hour. After, NQS starts requests early, and their applications are scheduled by class.

The text of seed 000 leaves open: before, pe32 and pe64 run 4 at a time, 2 of a user, on 192 PEs. After, NQS
has two queues, each first come, first served: one for requests of more than 128 PEs, one for all others.
`CHOSEN` says the rest.
"""

from collections.abc import Iterator

from msgspec import Struct

from nqspy.sim.workloads.t3d import INTERACTIVE, QUEUES

PES = 256
BATCH = "nqs"
"""The queue of batch requests, after."""
WIDE = "wide"
"""That of those of more PEs than `GangChoices` has them."""
APPLICATIONS = "applications"
"""The queue of the applications that requests begin, and of interactive ones."""


BEFORE: dict[str, tuple[int, int, int]] = {
    "pe32": (2, 4, 192),
    "pe64": (2, 4, 192),
    "pe64_long": (2, 2, 96),
    "pe128_short": (1, 4, 128),
    "pe128": (1, 1, 128),
    "pe256_short": (1, 1, 256),
    "pe256": (1, 1, 256),
}
"""Requests of one user and of all at a time, PEs of all."""
HOURS = ((0, 256, 38), (4, 96, 8), (18, 192, 8))
"""From which hour on NQS may use how many PEs, and run how many requests, before; 2 of each user."""
LIMIT, RUNS, OF_A_USER = 384, 20, 8
"""After: at all hours."""

CLASSES = """
create class foreign priority=5 wait=0 do_not_disturb=unlimited pe_limit=256 preempted=off
create class interactive priority=4 wait=0 do_not_disturb={interactive} pe_limit=256
create class benchmark priority=3 do_not_disturb=unlimited pe_limit=64 preempted=off
create class production priority=2 wait=30:00 do_not_disturb={production} pe_limit=256
create class standby priority=1 do_not_disturb=3 pe_limit=256
set gang large_size={large} large_limit=256 job_limit=256
"""
"""The seed's table for the daytime on weekdays."""
PER_PE = 10
"""Its do-not-disturb time of interactive and production jobs for each PE, s."""


class GangChoices(Struct, frozen=True):
    """What the seed's text does not show, or leaves to the site, and is chosen here. Jobs of ``large`` PEs
    and more have ``by_day`` PEs together from 8 to 18 h on weekdays, all of them at other hours; then
    production jobs are not disturbed for ``at_night`` s for each PE. Requests of more than ``wide`` PEs are
    not started from 4 to 18 h on weekdays; from then until ``until`` h the others have ``beside`` PEs, so
    that one gets in. Found by trial, on seeds 1 to 5 of the recipe."""

    large: int = 32
    by_day: int = 128
    at_night: int = 30
    wide: int = 128
    beside: int = 128
    until: int = 20

    def told(self) -> str:
        """The same for people."""
        return (
            f"By class, chosen: jobs of {self.large} PEs and more have {self.by_day} PEs together from 8 to "
            f"18 h on weekdays ({PES} else), and what lower classes have of them does not count for an "
            f"interactive one; production jobs are not disturbed for {self.at_night} s for each PE at other "
            f"hours; requests of more than {self.wide} PEs start from 18 to 4 h and at weekends, and until "
            f"{self.until} h the others have {self.beside} PEs beside them."
        )


CHOSEN = GangChoices()
UNLIMITED = GangChoices(by_day=PES, at_night=PER_PE)
"""The same without PEs kept free by day, and with the same class table at all hours."""


def by_space() -> list[tuple[str, str]]:
    """Contiguous space sharing, without preemption."""
    lines = ["set domain application placement=contiguous", *_queue(INTERACTIVE, "")]
    for name in QUEUES:
        user, run, pes = BEFORE[name]
        lines += _queue(name, f" user_limit={user} run_limit={run} pe_limit={pes}")
    lines.append(f"create complex=({', '.join(QUEUES)}) nqs")
    for hour, pes, runs in HOURS:
        lines += [
            f'define shift from{hour:02} when=("0 {hour} * * *")',
            f"  set complex nqs pe_limit={pes} run_limit={runs} user_limit=2",
            "end",
        ]
    return _texts(lines)


def by_class(per_pe: int = PER_PE, chosen: GangChoices = CHOSEN) -> list[tuple[str, str]]:
    """The same work by classes; ``per_pe``: do-not-disturb time by day, s for each PE."""
    queue = " domain=nqs backfill=none"
    lines = [
        "set domain application placement=contiguous",
        "create domain nqs kind=command",
        CLASSES.format(interactive=per_pe, production=chosen.at_night, large=chosen.large),
        *_queue(APPLICATIONS, "", "class"),
        *_queue(BATCH, queue),
        *_queue(WIDE, queue),
        f"set queue {WIDE} priority=20",
        f"create complex=({BATCH}, {WIDE}) after",
        f"set complex after pe_limit={LIMIT} run_limit={RUNS} user_limit={OF_A_USER}",
        *_hours("early", "0 4 * * mon-fri", production=chosen.at_night, wide=False),
        *_hours("day", "0 8 * * mon-fri", production=per_pe, wide=False, large=chosen.by_day),
        *_hours("evening", "0 18 * * mon-fri", production=chosen.at_night, others=chosen.beside),
        *_hours("night", f"0 {chosen.until} * * mon-fri", production=chosen.at_night),
    ]
    return _texts(lines)


def _hours(
    name: str,
    when: str,
    *,
    production: int,
    wide: bool = True,
    large: int = PES,
    others: int = LIMIT,
) -> list[str]:
    """A set of parameters and from when on it is in force."""
    return [
        f'define shift {name} when=("{when}")',
        f"  {'start' if wide else 'stop'} queue {WIDE}",
        f"  set queue {BATCH} pe_limit={others}",
        f"  set gang large_limit={large}",
        f"  set class production do_not_disturb={production}",
        "end",
    ]


def _queue(name: str, more: str, order: str = "fcfs") -> Iterator[str]:
    yield f"create batch_queue {name} priority=10"
    yield f"set queue {name} order={order}{more}"
    yield f"enable queue {name}"
    yield f"start queue {name}"


def _texts(lines: list[str]) -> list[tuple[str, str]]:
    return [("gang", f"set machine pes={PES}\n" + "\n".join(lines) + "\n")]
