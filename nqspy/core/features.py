"""The list of features: a new one is a file of `core` and a line here.

They act in this order in each pass. Each sees the proposals of earlier ones in the draft; none calls another.
"""

from collections.abc import Mapping
from importlib import import_module

from nqspy.core.feature import Feature, says_nothing
from nqspy.model.actions import Action
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request
from nqspy.model.site import Settings, Site

FILES = (
    "accounting.health",  # make requests give way that need a broken resource
    "preemption.shift_end",  # clear queues that a shift stopped
    "preemption.swap",  # give way where memory is short
    "route",  # route pipe queues
    "fallback.resume",  # the suspended requests that the chooser resumes
    "fallback.preempt",  # the requests that the chooser makes give way for jobs that waited too long
    "choose",  # choose the requests that start, and their PEs
)
"""Files of `core` that declare a ``FEATURE``."""

FEATURES: tuple[Feature, ...] = tuple(import_module(f"nqspy.core.{name}").FEATURE for name in FILES)
BY_NAME: Mapping[str, Feature] = {feature.name: feature for feature in FEATURES}
_HOLDERS = tuple((each.name, each.explain) for each in FEATURES if each.explain is not says_nothing)


def verify(settings: Settings, site: Site) -> list[str]:
    """Return a line for each setting that a feature finds unwise."""
    return [line for feature in FEATURES for line in feature.verify(settings, site)]


def stands(site: Site, action: Action) -> bool:
    """True if the feature that proposed an action still wants it; False for an action of no feature."""
    feature = BY_NAME.get(action.by)
    return feature is not None and feature.stands(site, action)


def keeping(site: Site, request: Request, but: str = "") -> Reason | None:
    """Return why features hold a waiting or suspended request, as far as the site alone shows: the reason of
    the first feature that does; None: no feature does. ``but``: a feature that is not asked."""
    for name, explain in _HOLDERS:
        if name != but and (reason := explain(site, request)) is not None:
            return reason
    return None


def outlook(site: Site, request: Request, began: Instant) -> Reason | None:
    """Return the coming action of a feature on a request that runs since ``began``, or would begin then: of
    the first feature that knows one; None: none is known."""
    reasons = (feature.outlook(site, request, began) for feature in FEATURES)
    return next((reason for reason in reasons if reason is not None), None)
