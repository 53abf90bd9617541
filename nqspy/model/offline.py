"""PEs on which nothing is started for now: their CPU is gone, or an operator has set them offline."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from nqspy.model.domains import GREATEST, numbers
from nqspy.model.errors import BadValue
from nqspy.model.machine import Found, Machine

if TYPE_CHECKING:
    from nqspy.model.settings import Settings


def by_hand(machine: Machine, pes: int) -> tuple[int, ...]:
    """Those of so many PEs that are set offline."""
    return tuple(pe for pe in numbers(machine.offline) if pe < pes) if machine.offline else ()


def offline(machine: Machine, found: Found, pes: int) -> tuple[int, ...]:
    """All of them, in ascending order. Where there are more PEs than CPUs none is bound to one, and none goes
    with it."""
    gone = tuple(pe for pe in found.offline if pe < pes) if pes <= len(found.cpus) else ()
    shut = by_hand(machine, pes)
    return tuple(sorted({*gone, *shut})) if shut else gone


def check(settings: "Settings", touched: Collection[str] | None) -> Iterable[str]:
    """What is wrong with the PEs that are set offline, in lines."""
    machine = settings.machine
    if not machine.offline or (touched is not None and "machine" not in touched):
        return
    try:
        last = max(numbers(machine.offline))
    except BadValue as error:
        yield f"machine offline: {error}"
        return
    if last >= (machine.pes or GREATEST):
        yield no_pe(last, machine.pes or GREATEST)


def no_pe(pe: int, pes: int) -> str:
    """That there is no such PE to be set offline."""
    return f"machine offline: there is no PE {pe}; the machine has {pes}, numbered from 0"
