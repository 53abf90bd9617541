"""The simulator: the virtual driver, with an operator's commands and events that happen by themselves."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from nqspy.core.no_exits import NoExits
from nqspy.engine.handlers.context import LateValue
from nqspy.engine.inputs import CommandAsked
from nqspy.engine.look_ahead import AtOnce
from nqspy.engine.virtual.attempts import Run
from nqspy.engine.virtual.driver import VirtualDriver
from nqspy.model import commands as cm
from nqspy.model.commands import Command
from nqspy.model.ids import Instant
from nqspy.model.machine import Found
from nqspy.model.observations import SiteObservation
from nqspy.model.people import Caller
from nqspy.model.requests import Request
from nqspy.model.shifts import Shift
from nqspy.ports import Decider, Exits, Journal
from nqspy.qmgr.parser import parse_text

OPERATOR = Caller("operator", 0, 0, (), True)

ONE_QUEUE = """
create batch_queue batch priority=10
enable queue batch
start queue batch
set default batch_request queue batch
"""
"""Commands for a site of one queue."""


class Simulation(VirtualDriver):
    """A site under a virtual clock from ``start`` on. ``lengths``: returns the run of a request; ``pes``: its
    CPUs; ``exits``, ``decider``: None: no exits, passes without delay; ``more``: as in `VirtualDriver`."""

    def __init__(
        self,
        journal: Journal,
        lengths: Callable[[Request], Run],
        start: Instant,
        *,
        pes: int = 2,
        exits: Exits | None = None,
        decider: Decider | None = None,
        host: str = "sim",
        **more: Any,
    ) -> None:
        exits, found = exits or NoExits(), Found(tuple(range(pes)), 0)
        decider = decider or AtOnce(exits)
        super().__init__(journal, lengths, start, exits, decider, found=found, host=host, **more)

    def ask(self, command: Command, caller: Caller = OPERATOR) -> Any:
        """Carry out a command now, by default as the operator; return its value. Raises its Refusal."""
        handle = object()
        self.feed([CommandAsked(command, caller, handle)])
        reply = next(reply for got, reply in reversed(self.replies) if got is handle)
        if reply.refusal is not None:
            raise reply.refusal
        late = reply.value
        return late.make(0) if isinstance(late, LateValue) else late

    def configure(self, texts: Iterable[tuple[str, str]]) -> None:
        """Apply files of qmgr commands in order, (name, text) each. Raises NqspyError."""
        self.ask(cm.ApplyFiles(tuple((name, name, encoded(name, text)) for name, text in texts)))

    def pin(self, texts: Iterable[tuple[str, str]]) -> None:
        """Apply commands now, and add them to each shift, so that no switch of shifts undoes them."""
        texts = list(texts)
        self.configure(texts)
        added = [each.text for name, text in texts for each in parse_text(text, name)]
        if added:
            shifts = self.site.settings.shifts.values()
            self.configure([(f"shift {shift.name}", shift_text(shift, added)) for shift in shifts])

    def see(self, at: Instant, news: SiteObservation) -> None:
        """Schedule an observation about the machine or the site for a future instant."""
        self.heap.push(at, news)


def shift_text(shift: Shift, added: Sequence[str]) -> str:
    """Return a shift in qmgr's language, with the lines ``added`` behind its own commands."""
    crons = ", ".join(f'"{cron}"' for cron in shift.when)
    when = f" when=({crons})" if crons else ""
    head = f"define shift {shift.name}{when} spill={shift.spill}"
    return "\n".join([head, *shift.lines, *added, "end", ""])


@lru_cache(64)
def encoded(name: str, text: str) -> tuple[dict[str, Any], ...]:
    """Return a file's commands encoded; the runs of a comparison share them. Raises ParseError."""
    parsed = (each.command for each in parse_text(text, name))
    return tuple(cm.encode(command) for command in parsed if isinstance(command, Command))
