"""The requests that a domain takes: by size, user, Unix group, account, and batch or interactive.

These rules apply wherever a request enters a queue, so a pipe queue passes it on to the first destination
with a domain that takes it. A request that is in a queue already stays there when these settings change.
"""

from collections.abc import Collection, Iterator

from nqspy.model.domains import Domain
from nqspy.model.people import lets_in
from nqspy.model.requests import Spec

_AT_TERMINAL = "interactive:true"
"""An attribute of each session of `qsub -I`."""


def is_interactive(spec: Spec) -> bool:
    """True if a person waits for it at a terminal: a session, or an application begun outside of requests."""
    return _AT_TERMINAL in spec.attributes or (spec.caller is not None and not spec.within)


def turned_away(domain: Domain, owner: str, groups: Collection[str]) -> str | None:
    """Return why a domain takes no requests of a user, member of these Unix groups; None: it may."""
    if lets_in(domain.users, domain.groups, owner, groups):
        return None
    return f"domain {domain.name} takes no requests of {owner}: {'; '.join(_people(domain))}"


def misfit(domain: Domain, spec: Spec) -> str | None:
    """Return why a domain does not take a request, whatever its owner; None: it does."""
    if not domain.smallest <= spec.ask.pes <= (domain.largest or spec.ask.pes):
        return f"domain {domain.name} takes {_sizes(domain)}, not of {spec.ask.pes}"
    if domain.accounts and not {spec.group, spec.account} & {*domain.accounts}:
        asked = spec.account or spec.group
        return f"domain {domain.name} takes requests of accounts {', '.join(domain.accounts)}, not of {asked}"
    kind = "interactive" if is_interactive(spec) else "batch"
    if domain.takes not in ("all", kind):
        return f"domain {domain.name} takes {domain.takes} requests, this is {_A[kind]} one"
    return None


_A = {"interactive": "an interactive", "batch": "a batch"}


def rules(domain: Domain) -> str:
    """Return the rules of a domain in words: ``batch requests of 16 to 256 PEs; users anne, ben``."""
    kind = "" if domain.takes == "all" else f"{domain.takes} "
    bounded = domain.smallest > 1 or domain.largest is not None
    parts = [f"{kind}{_sizes(domain) if bounded else 'requests'}", *_people(domain)]
    if domain.accounts:
        parts.append(f"accounts {', '.join(domain.accounts)}")
    return "; ".join(parts) if kind or bounded or len(parts) > 1 else "all requests"


def _sizes(domain: Domain) -> str:
    least, most = domain.smallest, domain.largest
    if most is None:
        return f"requests of {least} PEs and more"
    return f"requests of {f'{least} to ' if least < most else ''}{most} PE{'s' if most > 1 else ''}"


def _people(domain: Domain) -> Iterator[str]:
    for word, named in (("users", domain.users), ("Unix groups", domain.groups)):
        if named:
            yield f"{word} {', '.join(named)}"
