"""Domains: named, disjoint sets of PEs with own rules (semantics.md 1, interfaces.md 11). ``application``
always exists and has every PE that no other domain has. PEs are numbered over the whole machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from nqspy.model.errors import BadValue
from nqspy.model.tree import setting

APPLICATION = "application"
"""Name of the domain that has all PEs that no other domain has."""

GREATEST = 1 << 20
"""Bound of PE numbers: every PE of a machine has a lower one."""


@dataclass(slots=True)
class Domain:
    """A set of PEs with its rules. The words of ``placement`` and ``features`` are declared by `core`."""

    name: str
    pes: tuple[str, ...] = setting("names", (), "its PEs, like 16-255 or (0-3, 8)")
    kind: str = setting(
        "name", "application", "holders of its PEs: requests, or programs started with mpprun",
        words=("application", "command"),
    )  # fmt: skip
    placement: str = setting("name", "lowest", "which free PEs a request gets", words=("lowest",))
    depth: int = setting("number", 1, "holders that a PE may have at a time", low=1, high=64)
    heartbeat: int | None = setting(
        "time", None, "length of a slot: the holders of a PE run in turns; none: all at once", low=100,
        nothing="none",
    )  # fmt: skip
    partial: bool = setting("flag", False, "on: outside of its slots a request runs where PEs would be idle")
    variation: float = setting(
        "percent", 100.0, "a slot is up to so much longer or shorter, by the share values of its requests",
        low=100, high=10_000,
    )  # fmt: skip
    requests: int | None = setting(
        "count", None, "requests at a time in a command domain, where they hold no PEs"
    )
    smallest: int = setting("number", 1, "fewest PEs a request may ask for", low=1)
    largest: int | None = setting("count", None, "most PEs a request may ask for", low=1)
    users: tuple[str, ...] = setting(
        "names", (), "users whose requests it accepts; empty with groups empty: all"
    )
    groups: tuple[str, ...] = setting("names", (), "Unix groups whose requests it accepts")
    accounts: tuple[str, ...] = setting(
        "names", (), "departments and accounts whose requests it accepts; empty: all"
    )
    takes: str = setting(
        "name", "all", "which requests: all, batch ones, or interactive ones (mpprun outside of a request,"
        " qsub -I)", words=("all", "batch", "interactive"),
    )  # fmt: skip
    features: tuple[str, ...] | None = setting(
        "names", None, "features that may have its requests give way, stay away, or move", nothing="all"
    )
    balance_heartbeat: int | None = setting(
        "time", None, "time between two moves of running requests that close holes between them",
        low=1_000, nothing="none",
    )  # fmt: skip
    balance_rest: int = setting("time", 0, "least time between two such moves of one request", low=0)

    @property
    def is_command(self) -> bool:
        """True if its requests hold no PEs: they start at once, and their applications wait elsewhere."""
        return self.kind == "command"

    @property
    def rotates(self) -> bool:
        """True if requests that share a PE run in turns (`slots`)."""
        return self.heartbeat is not None and self.depth > 1 and not self.is_command

    def lists(self, feature: str) -> bool:
        """True if a feature may act on the requests of this domain (``set domain features=``)."""
        return self.features is None or feature in self.features

    def held_by(self, asked: int) -> int:
        """Return how many PEs a request that asks for ``asked`` holds as it runs: 0 in a command domain."""
        return 0 if self.kind == "command" else asked


@cache
def numbers(ranges: tuple[str, ...]) -> tuple[int, ...]:
    """Return the PEs named by ranges like ``("0-3", "8")``, in ascending order. Raises BadValue."""
    found: set[int] = set()
    for text in ranges:
        first, dash, last = text.partition("-")
        words = (first, last) if dash else (first, first)
        if not all(word.isascii() and word.isdigit() and len(word) <= 7 for word in words):
            raise BadValue(f"{text!r} names no PEs; write PEs like 16-255 or (0-3, 8)")
        low, high = map(int, words)
        if high < low or high >= GREATEST:
            raise BadValue(f"{text!r} names no PEs; write a lower and a higher number below {GREATEST}")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def spans(pes: Iterable[int]) -> list[str]:
    """Return PEs, given in ascending order, as texts of ranges: ``["0-3", "8"]``."""
    found: list[list[int]] = []
    for pe in pes:
        if found and found[-1][1] == pe - 1:
            found[-1][1] = pe
        else:
            found.append([pe, pe])
    return [str(low) if low == high else f"{low}-{high}" for low, high in found]


def account_key(domain: str, key: str) -> str:
    """Return the key in `Site.accounts` of an account (``g:GROUP``, ``u:GROUP:USER``) of a domain."""
    return key if domain == APPLICATION else f"{domain}/{key}"


@lru_cache(1024)  # those of whoever runs are asked for again and again
def account_keys(domain: str, group: str, owner: str) -> tuple[str, str]:
    """Return the keys of two accounts in a domain: that of a group, and that of one of its users."""
    return account_key(domain, f"g:{group}"), account_key(domain, f"u:{group}:{owner}")


def split_key(key: str) -> tuple[str, str]:
    """Return (domain, key without the domain) of a key of `Site.accounts`."""
    if key[1] == ":":
        return APPLICATION, key
    domain, _, bare = key.partition("/")
    return domain, bare


def names(domains: Mapping[str, Domain]) -> list[str]:
    """Return the names of all domains, ``application`` first, the others as they were created."""
    return [APPLICATION, *(name for name in domains if name != APPLICATION)]


def home_of(domains: Mapping[str, Domain], pe: int) -> str:
    """Return the name of the domain to which a PE belongs."""
    for each in domains.values():
        if each.name != APPLICATION and pe in numbers(each.pes):
            return each.name
    return APPLICATION
