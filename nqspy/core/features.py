"""The list of features: a new one is a file of `core` and a line here.

They act in this order in each pass; each sees what earlier ones proposed in the draft, and none calls
another.
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
    "accounting.health",  # have what needs a broken resource give way
    "preemption.shift_end",  # clear queues that a shift stopped
    "preemption.swap",  # give way where memory is short
    "preemption.bumper",  # load jobs by class, clear PEs for who waits too long
    "preemption.resume",  # let go on what was suspended
    "route",  # route pipe queues
    "choose",  # choose what starts, and where
)
"""Files of `core` that declare a ``FEATURE``."""

FEATURES: tuple[Feature, ...] = tuple(import_module(f"nqspy.core.{name}").FEATURE for name in FILES)
BY_NAME: Mapping[str, Feature] = {feature.name: feature for feature in FEATURES}
_KEEPERS = tuple((each.name, each.explain) for each in FEATURES if each.explain is not says_nothing)


def verify(settings: Settings, site: Site) -> list[str]:
    """What the features find unwise in a configuration, one line each."""
    return [line for feature in FEATURES for line in feature.verify(settings, site)]


def stands(site: Site, action: Action) -> bool:
    """Whether the feature that proposed an action still wants it; what no feature proposed does not stand."""
    feature = BY_NAME.get(action.by)
    return feature is not None and feature.stands(site, action)


def keeping(site: Site, request: Request, but: str = "") -> Reason | None:
    """Why features keep a waiting or suspended request where it is, as far as the site alone tells: the first
    one's reason, ``but`` that of the feature so named; None: no feature does."""
    for name, explain in _KEEPERS:
        if name != but and (reason := explain(site, request)) is not None:
            return reason
    return None


def outlook(site: Site, request: Request, began: Instant) -> Reason | None:
    """What the first feature that knows will do to a request that runs since ``began``, or would begin then;
    None: nothing that is known."""
    said = (feature.outlook(site, request, began) for feature in FEATURES)
    return next((reason for reason in said if reason is not None), None)
