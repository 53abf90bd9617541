"""What an event says of changed settings."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the settings. ``op`` create|set|add|remove|delete, ``path`` as in `tree`, ``value``
    JSON-able.

    create: value is a dict of settings by path below the object; add/remove: a list of names.
    """

    op: Literal["create", "set", "add", "remove", "delete"]
    path: str
    value: Any = None
