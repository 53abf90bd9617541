"""What is remembered of children that were lost: who was at work then, who is left out, when the next may be
forked."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from nqspy.daemon.deciding.child import Spare
from nqspy.daemon.deciding.page import Call
from nqspy.model.actions import Plan
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason, ReasonCode, Reasons
from nqspy.model.site import Site
from nqspy.userexit.ledger import RETRY

HOUR = 3600.0
DEADLY = 2
"""So many children within an hour of real time, and an exit is left out."""
GIVE_UP = 5
"""So many children in a row without a plan between them, and all exits are left out."""
LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class Loss:
    """A child was lost. ``exit``: at whose work, empty: nobody's; ``off``: the exits that are left out from
    now on; ``text``: what managers are told."""

    exit: str
    hook: str
    seq: Seq | None
    text: str
    off: tuple[str, ...]


@dataclass(slots=True)
class Strikes:
    """``out``: exits that are left out, with why; ``off``: who was switched off for what it did, with
    why, until somebody switches it on; ``spares``: what exits died on and are not asked about;
    ``losses``: children lost in all."""

    out: dict[str, str] = field(default_factory=dict)
    off: dict[str, str] = field(default_factory=dict)
    spares: list[Spare] = field(default_factory=list)
    losses: int = 0
    _died: dict[str, list[float]] = field(default_factory=dict)
    _row: int = 0
    _until: float = 0.0

    def lost(self, call: Call | None, how: str, exits: list[str], now: Instant) -> Loss:
        """A child was lost while ``call`` was at work: what follows from that."""
        self.losses += 1
        self._row += 1
        self._until = time.monotonic() + self._length()
        if self._row >= GIVE_UP:
            text = f"the process of the user exits was lost {self._row} times in a row, last: {how}"
            return self._leave_out(tuple(exits), call, f"{text}; all exits are left out")
        if call is None or call.exit not in exits:
            return Loss("", "", None, f"the process of the user exits was lost: {how}", ())
        text = f"{call.hook} ended the process of the exits: {how}"
        self.spares = [each for each in self.spares if 0 <= now - each.at < RETRY]
        self.spares.append(Spare(call.exit, call.hook, call.subject, now, text))
        if self._strikes(call.exit) >= DEADLY:
            return self._leave_out((call.exit,), call, f"{text}; for the second time within an hour")
        return Loss(call.exit, call.hook, call.seq, text, ())

    def _leave_out(self, exits: tuple[str, ...], call: Call | None, text: str) -> Loss:
        for name in exits:
            self.out[name] = text
        self._row = 0
        self._until = 0.0
        who = call.exit if call is not None and call.exit in exits else ""
        return Loss(who, call.hook if call else "", call.seq if call else None, text, exits)

    def _strikes(self, exit: str) -> int:
        now = time.monotonic()
        times = [each for each in self._died.get(exit, ()) if now - each < HOUR]
        self._died[exit] = [*times, now]
        return len(times) + 1

    def _length(self) -> float:
        return 0.0 if self._row <= DEADLY else float(min(2.0 ** (self._row - DEADLY - 1), LONGEST_PAUSE))

    def dump(self) -> dict[str, Any]:
        """What outlives the daemon, as JSON has it; children lost at real times since the epoch."""
        shift = time.time() - time.monotonic()
        died = {name: [at + shift for at in times] for name, times in self._died.items()}
        return {
            "out": self.out,
            "off": self.off,
            "spares": [asdict(each) for each in self.spares],
            "died": died,
        }

    def load(self, data: dict[str, Any]) -> None:
        """Takes that over. Raises TypeError, KeyError, ValueError, AttributeError for anything else."""
        shift = time.time() - time.monotonic()
        out = {str(name): str(text) for name, text in data["out"].items()}
        died = {str(name): [float(at) - shift for at in times] for name, times in data["died"].items()}
        off = {str(name): str(text) for name, text in data.get("off", data["out"]).items()}
        spares = [Spare(**each) for each in data["spares"]]
        subjects = [tuple(s.subject) if isinstance(s.subject, list) else s.subject for s in spares]
        self.out, self.off, self._died = out, off, died
        self.spares = [replace(each, subject=s) for each, s in zip(spares, subjects, strict=True)]

    def pause(self) -> float:
        """Real seconds until the next child may be forked."""
        return max(0.0, self._until - time.monotonic())

    def well(self) -> None:
        """A plan has come."""
        self._row = 0

    def pardon(self, enabled: Callable[[str], bool]) -> bool:
        """Whoever has been switched on is not switched off for anything any more; whether there was one."""
        on = [name for name in self.off if enabled(name)]
        for name in on:
            del self.off[name]
        return bool(on)

    def forgive(self, exit: str | None = None) -> None:
        """This exit counts as new, None: all do."""
        for name in [exit] if exit is not None else [*self.out, *self._died]:
            self.out.pop(name, None)
            self._died.pop(name, None)
        self.spares = [each for each in self.spares if exit is not None and each.exit != exit]
        self._row, self._until = 0, 0.0


def standstill(site: Site) -> Plan:
    """The plan while no child can be had: nothing is started that an exit might refuse."""
    text = "the process of the user exits is begun again in a moment; nothing starts before"
    why = Reason(ReasonCode.EXIT, "exits", text)
    return Plan(reasons=Reasons({}, dict.fromkeys(site.settings.queues, why)), as_of=site.n)
