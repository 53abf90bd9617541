"""The loaded exits at work: one `Exit` for each file, one `Hook` for each of its functions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nqspy.userexit import specs
from nqspy.userexit.answers import CHECKS, Nonsense, check_notice
from nqspy.userexit.call_stats import Record
from nqspy.userexit.loader import Module
from nqspy.userexit.view import View


@dataclass(frozen=True, slots=True)
class Failed:
    """Stands for the answer of an exit that has none. ``resting``: it is not asked about this owner."""

    text: str
    resting: bool = False


@dataclass(slots=True)
class Exit:
    """A loaded exit at work. ``down``: it failed in this pass; ``view``: what it sees of this pass."""

    module: Module
    enabled: bool = True
    budget: int = 50
    values: dict[str, str] = field(default_factory=dict)
    down: bool = False
    view: View | None = None
    hooks: dict[str, "Hook"] = field(default_factory=dict)


class Hook:
    """One function of an exit: which of the hook's arguments it takes, how its answer is checked.
    ``lasting``: its answers hold as long as what they rest on; ``kept``: those that do, by request
    (`memory`)."""

    __slots__ = ("check", "exit", "function", "kept", "lasting", "name", "picks", "record")

    def __init__(self, exit: Exit, name: str) -> None:
        self.exit = exit
        self.name = name
        function, taken = exit.module.hooks[name]
        self.function: Callable[..., Any] = function
        self.picks = tuple(specs.ARGUMENTS[name].index(argument) for argument in taken)
        self.check: Callable[[Any, tuple[Any, ...]], Any] = CHECKS.get(name, check_notice)
        self.record = Record()
        self.lasting = exit.module.pure and "now" not in taken
        self.kept: dict[int, Any] = {}

    def run(self, args: tuple[Any, ...]) -> Any:
        """Its checked answer; runs under the guard as a whole."""
        answer = self.check(self.function(*[args[i] for i in self.picks]), args)
        forces = self.name == "jobselect" and answer is not None and answer.verdict == "force"
        if forces and not self.exit.module.forces:
            raise Nonsense("jobselect answers force() and does not say so: @userexit(forces=True)")
        return answer


def entry(one: Exit) -> dict[str, Any]:
    """What a listing shows of it: ``name doc enabled budget_ms hooks settings calls failures total_ms
    longest_ms by_hook``."""
    hooks = {name: _figures(hook.record) for name, hook in one.hooks.items()}
    return {
        "name": one.module.name,
        "doc": one.module.doc,
        "enabled": one.enabled,
        "budget_ms": one.budget,
        "hooks": [name for name in specs.ARGUMENTS if name in hooks],
        "settings": {
            s.name: {"value": s.text, "default": s.default, "unit": s.unit, "doc": s.doc}
            for s in one.module.settings.values()
        },
        "calls": sum(h["calls"] for h in hooks.values()),
        "failures": sum(h["failures"] for h in hooks.values()),
        "total_ms": sum(h["total_ms"] for h in hooks.values()),
        "longest_ms": max((h["longest_ms"] for h in hooks.values()), default=0.0),
        "by_hook": hooks,
    }


def _figures(record: Record) -> dict[str, Any]:
    return {
        "calls": record.calls,
        "failures": record.failures,
        "total_ms": record.total / 1e6,
        "longest_ms": record.longest / 1e6,
    }
