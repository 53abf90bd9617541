"""Answers that are seldom or never asked for: of several files that answer ``shrpri`` the first counts."""

from collections.abc import Iterable, Mapping
from typing import Any


def shadows(listing: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each exit that is switched on and stands behind another one's ``shrpri`` (rows of
    `seats.entry`)."""
    names = sorted(row["name"] for row in listing if row["enabled"] and "shrpri" in row["hooks"])
    return [
        f"{name}: its shrpri is asked only where {names[0]}.py answers None, which sorts before it; to scale "
        f"the stock value, put view.stock_shrpri(owner, group) into one file and switch {names[0]} off"
        for name in names[1:]
    ]
