"""Policies to lay side by side, each as settings only: what would be written into ``queues.d``."""

from collections.abc import Mapping

from msgspec import Struct

MACHINE = """
set machine pes=10 memory=128mw
set exit large_memory hmax={hmax}mw nproc=8
"""
"""The Y-MP 8/128: eight processors and two requests more."""


class Policy(Struct, frozen=True):
    """``title`` for tables, ``commands`` of qmgr that come after the shipped site's, ``hmax`` in Mw."""

    name: str
    title: str
    commands: str = ""
    hmax: int = 115

    @property
    def text(self) -> str:
        """What is written behind the shipped files."""
        return MACHINE.format(hmax=self.hmax) + self.commands


_HOURS = """
define shift night when=("0 21 * * mon-fri")
  set sched_factor {factors}
  set priority=40 night
  start queue express, normal, pe128m10, batch, night
  disable exit machine_gun
  {large} exit large_memory
end
define shift report when=("0 6 * * mon-fri")
  set sched_factor {factors}
  set priority=10 night
  start queue express, normal, pe128m10, batch, night
  disable exit machine_gun
  {large} exit large_memory
end
"""

_FIFO = "disable exit dependency\ndisable exit shrpri\n" + _HOURS.format(
    factors="share 0 cpu 0 memory 0 time 1", large="disable"
)

NO_EXITS = Policy(
    "bare",
    "the shipped site without exits",
    "disable exit dependency\ndisable exit shrpri\n"
    + _HOURS.format(factors="share 20 cpu 0 memory 0 time 1", large="disable"),
)
"""To see what the exits cost."""

_ALL = (
    Policy("site", "the shipped site"),
    Policy("tuned", "... with Hmax 100 Mw", hmax=100),
    Policy("users", "users' own fair share", "disable exit shrpri\n"),
    Policy("fifo", "plain FIFO", _FIFO),
    Policy("fifo1", "FIFO, 1 Hmax in all", _FIFO + "set global memory_limit=115mw\n"),
    Policy("fifo3", "FIFO, 3 Hmax in all", _FIFO + "set global memory_limit=345mw\n"),
)

POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in _ALL}
"""The shipped site (``tuned``: with a smaller hmax) and what might stand in its place: the stock share rule
(each user's own), and first come first served without exits, with the memory limits that the seed's section
5.3.1 weighs."""
