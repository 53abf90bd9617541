"""What an event says of changed settings."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct


class Change(Struct, frozen=True):
    """One change of the settings. ``op`` create|set|add|remove|delete, ``path`` as in `tree`, ``value``
    JSON-able.

    create: value is a dict of settings by path below the object; add/remove: a list of names.
    """

    op: Literal["create", "set", "add", "remove", "delete"]
    path: str
    value: Any = None


def listed(value: Any) -> Sequence[Any]:
    """A text, or the members of a list; of anything else none: that is refused when it is put in place."""
    return (value,) if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
