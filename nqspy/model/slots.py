"""Slot tables (seed 002, section 4): which requests of a domain run in which slot, where PEs have several
holders that take turns. The feature `core.fallback.rotate` makes the table of a domain and stores it as a
fact. Executors follow it by a clock that all of them share: a turn needs no message and no event."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, ValidationError, convert

from nqspy.model.facts import stored_by
from nqspy.model.ids import Seq
from nqspy.model.requests import Request
from nqspy.model.site import Site

NAME = "rotate"
"""Name of the feature that stores slot tables, one for each domain."""


class SlotTable(Struct, frozen=True):
    """Slot table of a domain: the requests of each slot, and the lengths of the slots (ms). The slots follow
    one another in this order, for ever. In its slots a request runs; in others it is stopped or, with
    ``partial``, runs where a PE would be idle. ``stopped``: requests without a slot."""

    slots: tuple[tuple[Seq, ...], ...]
    lengths: tuple[int, ...]
    partial: bool = False
    stopped: tuple[Seq, ...] = ()

    def turns(self) -> dict[Seq, tuple[int, ...]]:
        """Return the numbers of the slots in which each request runs; those ``stopped`` have none."""
        found: dict[Seq, tuple[int, ...]] = dict.fromkeys(self.stopped, ())
        for number, slot in enumerate(self.slots):
            for seq in slot:
                found[seq] = (*found.get(seq, ()), number)
        return found

    def parts(self, seq: Seq) -> tuple[int, int]:
        """Return the time (ms) of a round in which a request runs, and the length of the round (ms)."""
        return sum(self.lengths[number] for number in self.turns()[seq]), sum(self.lengths)


def table_of(site: Site, domain: str) -> SlotTable | None:
    """Return the slot table in force in a domain; None: all its requests run all the time."""
    fact = stored_by(site, NAME).get(domain)
    return None if fact is None else table_from(fact)


def table_from(fact: Any) -> SlotTable | None:
    """Return the slot table that JSON data stand for; None: they are no slot table."""
    with suppress(ValidationError):
        return convert(fact, SlotTable)
    return None


def table_for(site: Site, request: Request) -> SlotTable | None:
    """Return the slot table that a request follows; None: it runs all the time."""
    if NAME not in site.promises:
        return None
    table = table_of(site, site.domain_of(request.queue).name)
    return table if table is not None and request.seq in table.turns() else None


def slots_of(holders: Sequence[tuple[Seq, tuple[int, ...]]]) -> list[list[Seq]]:
    """Return slots for requests that hold these PEs, such that no two in a slot share a PE.

    The holder with the lowest first PE comes first; each goes into the first slot in which its PEs are idle.
    Where the PEs of each are adjacent, this makes as few slots as some PE has holders, which is the least
    possible (intervals coloured in the order of their left ends). Then the idle PEs of each slot are given,
    in the order of ``holders``, to requests that fit there in addition: they run more often (figure 4).
    """
    slots: list[list[Seq]] = []
    taken: list[set[int]] = []
    for seq, pes in sorted(holders, key=lambda each: min(each[1], default=0)):
        number = next((n for n, held in enumerate(taken) if held.isdisjoint(pes)), len(slots))
        if number == len(slots):
            slots.append([])
            taken.append(set())
        slots[number].append(seq)
        taken[number].update(pes)
    for slot, held in zip(slots, taken, strict=True):
        for seq, pes in holders:
            if seq not in slot and held.isdisjoint(pes):
                slot.append(seq)
                held.update(pes)
    return slots
