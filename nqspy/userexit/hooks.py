"""The loaded exits: an `Exit` for each file, a `Hook` for each of its functions."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from msgspec import Struct

from nqspy.userexit import specs
from nqspy.userexit.answers import CHECKS, Nonsense, check_notice
from nqspy.userexit.call_stats import Record
from nqspy.userexit.loader import Module


class Failed(Struct, frozen=True):
    """Stands for a missing answer; ``text``: why. ``backed_off``: the cause is a back-off for the owner."""

    text: str
    backed_off: bool = False


@dataclass(slots=True)
class Exit:
    """A loaded exit and its settings. ``budget``: CPU ms of a call; ``down``: it failed in this pass."""

    module: Module
    enabled: bool = True
    budget: int = 50
    values: dict[str, str] = field(default_factory=dict)
    down: bool = False
    hooks: dict[str, "Hook"] = field(default_factory=dict)


class Hook:
    """A function of an exit, with the arguments that it takes, the check of its answers, and its ``record``.
    ``of_group``: its answers do not depend on the owner."""

    __slots__ = ("_picks", "_quiet", "check", "exit", "function", "name", "of_group", "record", "who")

    def __init__(self, exit: Exit, name: str) -> None:
        self.exit, self.name, self.who = exit, name, exit.module.name
        function, taken = exit.module.hooks[name]
        self.function: Callable[..., Any] = function
        places = tuple(specs.ARGUMENTS[name].index(argument) for argument in taken)
        self._picks: Callable[[tuple[Any, ...]], tuple[Any, ...]] = (
            itemgetter(*places) if len(places) > 1 else lambda args: tuple(args[place] for place in places)
        )
        self.check: Callable[[Any, tuple[Any, ...]], Any] = CHECKS.get(name, check_notice)
        self.record = Record()
        self.of_group = "owner" not in taken
        self._quiet = name == "jobselect" and not exit.module.forces

    def run(self, args: tuple[Any, ...]) -> Any:
        """Call the function with those of the hook's arguments ``args`` that it takes, and return its checked
        answer. The caller runs all of this under the guard."""
        # Local names: calls as methods would be looked up each time.
        function, picks, check = self.function, self._picks, self.check
        answer = check(function(*picks(args)), args)
        if self._quiet and answer is not None and answer.verdict == "force":
            raise Nonsense("jobselect answers force(); declare it with @userexit(forces=True)")
        return answer


def entry(one: Exit) -> dict[str, Any]:
    """Return the row of an exit in `SiteExits.listing`; ``by_hook`` has the figures of each hook."""
    hooks = {
        name: {"calls": of.calls, "failures": of.failures, "total_ms": of.total / 1e6,
               "longest_ms": of.longest / 1e6}
        for name, of in ((name, hook.record) for name, hook in one.hooks.items())
    }  # fmt: skip
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
        **{key: sum(h[key] for h in hooks.values()) for key in ("calls", "failures", "total_ms")},
        "longest_ms": max((h["longest_ms"] for h in hooks.values()), default=0.0),
        "by_hook": hooks,
    }


def shadows(listing: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a warning for each enabled exit with a ``shrpri`` that is called after another file's."""
    names = sorted(row["name"] for row in listing if row["enabled"] and "shrpri" in row["hooks"])
    return [
        f"{name}: its shrpri is called only if {names[0]}.py, which sorts before it, answers None; to scale "
        f"the stock value, use view.stock_shrpri(owner, group) in one file and switch {names[0]} off"
        for name in names[1:]
    ]
