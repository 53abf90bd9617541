"""Memory of lost workers: which exit ran then and on which request, which exits are left out, when the next
worker may be forked. Requests of one owner alone never switch an exit off: for a while it is not called for
that owner's requests."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from nqspy.decider.heartbeat import Call
from nqspy.model.actions import Plan
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import ReasonCode, Reasons, reason_kinds
from nqspy.model.site import Site
from nqspy.userexit.call_stats import Mark, OwnerBackoff, Skipped

HOUR = 3600.0
DEADLY = 2
"""Lost workers within an hour of real time after which the exit that ran is left out, if the requests had as
many owners (or the calls no owner). If all had one owner, the exit is not called for that owner for
`call_stats.RETRY`."""
GIVE_UP = 5
"""Lost workers in a row, without a plan between, after which all exits are left out; of one owner's requests
at most DEADLY count. After as many on one owner's requests no exit is called for that owner for a while."""
LONGEST_PAUSE = 60.0
"""Longest back-off (real seconds) until a lost worker is replaced."""

(_BEGUN_AGAIN,) = reason_kinds(
    ReasonCode.EXIT,
    "nothing: it starts when the exits run again",
    exits_begin_again="the process that runs user exits restarts in a moment; no request starts before",
)


class _Strikes(Struct):
    """State that is stored over restarts of the daemon (`Backoff.dump`)."""

    out: dict[str, str]
    off: dict[str, str]
    died: dict[str, list[tuple[float, str]]]
    files: dict[str, str]
    spares: list[Skipped]
    rests: list[OwnerBackoff]


class Loss(Struct, frozen=True):
    """A lost worker and its effects. ``exit``, ``hook``, ``seq``: what ran, about which request, or empty;
    ``off``: exits left out from now on; ``text``: for managers; ``owner``: in back-off for a while, or
    empty."""

    exit: str
    hook: str
    seq: Seq | None
    text: str
    off: tuple[str, ...]
    owner: str = ""


@dataclass(slots=True)
class Backoff:
    """Record of lost workers and what follows from them. ``out``: why each exit is left out; ``off``: why
    each exit was switched off, until a person switches it on; ``skips``: subjects that ended a worker, for
    which their exit is not called; ``backoffs``: owners that exits are not called for; ``losses``: number of
    lost workers; ``files``: content hash of each exit when they were lost."""

    out: dict[str, str] = field(default_factory=dict)
    off: dict[str, str] = field(default_factory=dict)
    skips: list[Skipped] = field(default_factory=list)
    backoffs: list[OwnerBackoff] = field(default_factory=list)
    losses: int = 0
    files: dict[str, str] = field(default_factory=dict)
    _died: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    _row: list[str] = field(default_factory=list)
    _until: float = 0.0

    def lost(self, call: Call | None, how: str, exits: list[str], now: Instant) -> Loss:
        """Record that a worker with these exits ended (``how``) while ``call``, if any, ran; return the
        effects."""
        call = call if call is not None and call.exit in exits else None
        self.losses += 1
        self._row.append(call.owner if call is not None else "")
        beyond = len(self._row) - DEADLY
        pause = 0.0 if beyond <= 0 else min(2.0 ** (beyond - 1), LONGEST_PAUSE)
        self._until = time.monotonic() + pause
        counts = Counter(self._row)  # at most DEADLY of each owner count, and all without an owner
        if counts.pop("", 0) + sum(min(count, DEADLY) for count in counts.values()) >= GIVE_UP:
            text = f"the process of the user exits ended {len(self._row)} times in a row; last time: {how}"
            return self._leave_out(tuple(exits), call, f"{text}; all exits are left out")
        if call is None:
            return Loss("", "", None, f"the process of the user exits ended: {how}", ())
        about = f" about {call.owner}" if call.owner and call.seq is None else ""
        text = f"{call.hook}{about} ended the process of the exits: {how}"
        self.skips = [skip for skip in self.skips if Mark(skip.at).holds(now)]
        if call.subject is not None:
            self.skips.append(Skipped(call.exit, call.hook, call.subject, now, text))
        real = time.monotonic()
        recent = [each for each in self._died.get(call.exit, ()) if real - each[0] < HOUR]
        self._died[call.exit] = [*recent, (real, call.owner)]
        owners = [owner for _, owner in self._died[call.exit]]
        if max(len(set(owners) - {""}), owners.count("")) >= DEADLY:
            return self._leave_out((call.exit,), call, f"{text}, for the second time within an hour")
        in_a_row = self._row.count(call.owner) >= GIVE_UP
        owner = call.owner if in_a_row or owners.count(call.owner) >= DEADLY else ""
        if owner:
            exits = exits if in_a_row else [call.exit]
            held = [backoff for backoff in self.backoffs if Mark(backoff.at).holds(now)]
            self.backoffs = [each for each in held if each.owner != owner or each.exit not in exits]
            self.backoffs += [OwnerBackoff(name, owner, now) for name in exits]
            who = " and ".join(exits)
            text += f"; it happened again for {owner}: {who} is not called for {owner} for 5 minutes"
        return Loss(call.exit, call.hook, call.seq, text, (), owner)

    def _leave_out(self, exits: tuple[str, ...], call: Call | None, text: str) -> Loss:
        for name in exits:
            self.out[name] = text
        self._row.clear()
        self._until = 0.0
        who = call.exit if call is not None else ""
        return Loss(who, call.hook if call else "", call.seq if call else None, text, exits)

    def dump(self) -> dict[str, Any]:
        """Return the state to store, for JSON; the times of losses are real seconds since the epoch."""
        shift = time.time() - time.monotonic()
        died = {name: [(at + shift, owner) for at, owner in each] for name, each in self._died.items()}
        stored = {"out": self.out, "off": self.off, "died": died, "files": self.files}
        stored["spares"] = [asdict(skip) for skip in self.skips]
        return stored | {"rests": [asdict(backoff) for backoff in self.backoffs]}

    def load(self, data: dict[str, Any]) -> None:
        """Restore the state that `dump` returned. Raises msgspec.ValidationError for anything else."""
        stored, shift = msgspec.convert(data, _Strikes), time.time() - time.monotonic()
        self.out, self.off, self.files = stored.out, stored.off, stored.files
        self.skips, self.backoffs = stored.spares, stored.rests
        died = stored.died.items()
        self._died |= {name: [(at - shift, owner) for at, owner in each] for name, each in died}

    def meet(self, files: Mapping[str, str]) -> None:
        """Forget losses of exits with changed files, except those left out. ``files``: hashes by name."""
        for name, digest in files.items():
            if self.files.get(name, digest) != digest and name not in self.out:
                self.forgive(name)

    def pause(self) -> float:
        """Return the real seconds until the next worker may be forked; 0: now."""
        return max(0.0, self._until - time.monotonic())

    def well(self) -> None:
        """Record that a plan has come: losses in a row are counted from 0 again."""
        self._row.clear()

    def pardon(self, enabled: Callable[[str], bool]) -> bool:
        """Forget why exits were switched off that are on again by now; return True if there were any."""
        on = [name for name in self.off if enabled(name)]
        for name in on:
            del self.off[name]
        return bool(on)

    def forgive(self, exit: str | None = None) -> None:
        """Forget all losses and back-offs of an exit (None: of all exits), so that it is called again."""
        for name in [exit] if exit is not None else [*self.out, *self._died]:
            self.out.pop(name, None)
            self._died.pop(name, None)
        self.skips = [skip for skip in self.skips if exit is not None and skip.exit != exit]
        self.backoffs = [backoff for backoff in self.backoffs if exit is not None and backoff.exit != exit]
        self._row, self._until = [], 0.0


def named(call: Call | None, site: Site) -> Call | None:
    """Return the call that ran when a worker was lost, without its request if the site has no such request:
    then this was only simulated, and another request may have the number by now."""
    if call is None or call.seq is None:
        return call
    known = site.requests.get(call.seq)
    return call if known is not None and known.owner == call.owner else replace(call, subject=None)


def standstill(site: Site) -> Plan:
    """Return the plan for times without a worker: it starts nothing, because an exit might refuse."""
    return Plan(reasons=Reasons({}, dict.fromkeys(site.settings.queues, _BEGUN_AGAIN("exits"))), as_of=site.n)
