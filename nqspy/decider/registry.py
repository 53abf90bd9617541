"""Exits as a worker last reported them, with the present settings: questions about them need no worker."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from nqspy.decider.messages import Listing
from nqspy.model.machine import ExitSettings
from nqspy.model.site import Site
from nqspy.userexit import settings


class ExitRegistry:
    """Names, hooks, settings and figures of the loaded exits, for questions of the daemon."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}
        self._units: dict[str, dict[str, str]] = {}
        self._known: Mapping[str, ExitSettings] = {}
        self._active: frozenset[str] = frozenset()
        self._uncounted: Counter[str] = Counter()

    def add(self, listing: Listing, units: dict[str, dict[str, str]], fresh: bool = False) -> None:
        """Add the exits that a worker has loaded (``listing``), and the units of their settings by exit and
        setting. ``fresh``: forget all former ones."""
        if fresh:
            self._rows, self._units = {}, {}
            self._uncounted.clear()
        self._units |= units
        self.figures(listing)

    def figures(self, listing: Listing) -> None:
        """Replace the rows of these exits, with the figures of their calls."""
        self._rows |= {row["name"]: row for row in listing}

    def failed(self, exit: str) -> None:
        """Count a failure that no worker can count, because it was lost or did not answer."""
        self._uncounted[exit] += 1

    @property
    def names(self) -> list[str]:
        """Return the names of the exits in the order of their files."""
        return sorted(self._rows)

    def follow(self, site: Site, out: Mapping[str, str]) -> None:
        """Use the site's settings of exits from now on; `has` then knows the hooks of exits that are switched
        on and not in ``out`` (not loaded, with the reason)."""
        self._known = site.settings.exits
        self._active = frozenset(
            hook
            for name, row in self._rows.items()
            if name not in out and self.settings_of(name).enabled
            for hook in row["hooks"]
        )

    def settings_of(self, exit: str) -> ExitSettings:
        """Return the settings of an exit; defaults if it has none."""
        return self._known.get(exit) or ExitSettings(exit)

    def has(self, hook: str) -> bool:
        """True if any loaded exit that is switched on has that hook."""
        return hook in self._active

    def of(self, hook: str) -> list[str]:
        """Return the names of the exits, loaded or not, that are switched on and have that hook."""
        rows = self._rows
        return [n for n in self.names if hook in rows[n]["hooks"] and self.settings_of(n).enabled]

    def wall(self, hook: str) -> float:
        """Return the real seconds that all exits with that hook may take together: ten times their budget."""
        return sum(self.settings_of(name).budget / 100 for name in self.of(hook))

    def declared(self) -> Mapping[str, Mapping[str, str]]:
        """Return the units of the settings that loaded exits declare: exit -> setting -> unit."""
        return {name: self._units.get(name, {}) for name in self.names}

    def check_setting(self, exit: str, setting: str, text: str) -> None:
        """Raise BadValue if the loaded exit has no such setting, or if ``text`` is no value for it."""
        settings.check(self.declared(), exit, setting, text)

    def counted(self) -> Listing:
        """Return the rows of all exits with the worker's last figures, to be counted on by the next."""
        return [self._rows[name] for name in self.names]

    def listing(self, out: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return a row for each exit, with its settings; ``left_out``: why it is not loaded, from ``out``."""
        rows = []
        for name in self.names:
            row, wanted, why = self._rows[name], self.settings_of(name), out.get(name)
            values = {
                setting: info | {"value": wanted.values.get(setting, info["default"])}
                for setting, info in row["settings"].items()
            }
            now = {"enabled": wanted.enabled and why is None, "budget_ms": wanted.budget, "settings": values}
            now["failures"] = row["failures"] + self._uncounted[name]
            rows.append(row | now | ({"left_out": why} if why is not None else {}))
        return rows
