"""The limits of queues, complexes and the whole site: a new one is a file of this folder and a line in the
list. It is a class derived from `rule.ScopeLimit`, mostly from `rule.CountLimit`; its file declares the
setting (`rule.limit_setting`) and names its classes in ``LIMITS``."""

from collections.abc import Iterator
from importlib import import_module

from nqspy.core.gate.rule import ScopeLimit
from nqspy.model.queues import RunningLimits
from nqspy.model.site import Settings, Site

FILES = (
    "running",  # requests, of a user, of a group; memory; PEs
    "units",  # units of consumables
)
"""Files of this folder, in the order in which reasons are looked for."""

LIMITS: tuple[tuple[type[ScopeLimit], ...], ...] = tuple(
    import_module(f"nqspy.core.gate.{name}").LIMITS for name in FILES
)


Made = dict[tuple[str, type[ScopeLimit]], ScopeLimit | None]
"""Limits made so far, by scope (``complex x``) and class (None: it limits nothing); queues share them."""


def limits_of(site: Site, queue: str, made: Made) -> Iterator[ScopeLimit]:
    """Yield a queue's limits in the order in which reasons are looked for; new ones go into ``made``."""
    scopes = list(scopes_of(site.settings, queue))
    for classes in LIMITS:
        for who, scope in scopes:
            for each in classes:
                value = getattr(scope, each.setting)
                if value is None or value == ():  # not `is_set`: a call for each limit would add up
                    continue
                if (who, each) not in made:
                    made[who, each] = each.of(site, who, value)
                if (limit := made[who, each]) is not None:
                    yield limit


def scopes_of(settings: Settings, queue: str) -> Iterator[tuple[str, RunningLimits]]:
    """Yield the scopes with limits for a queue's requests, by name: the queue, its complexes, the site."""
    if queue in settings.queues:
        yield f"queue {queue}", settings.queues[queue]
    yield from ((f"complex {each.name}", each) for each in settings.complexes_of(queue))
    yield "global", settings.global_
