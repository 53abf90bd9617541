"""The list of features: a new one is a file of `core` and a line here. They act in this order in each pass.
Each sees the proposals of earlier ones in the draft; none calls another. A domain may list the features that
act on its requests (``set domain features=``)."""

from collections.abc import Mapping
from importlib import import_module

from nqspy.core.draft import Draft
from nqspy.core.feature import Feature, never_holds
from nqspy.model.actions import Action, Migrate, Requeue, Suspend
from nqspy.model.domains import Domain
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request, State
from nqspy.model.site import Settings, Site
from nqspy.model.tree import set_words

FILES: Mapping[str, str] = {
    "preemption.health": "a resource that they need is broken",
    "preemption.shift_end": "a shift has stopped their queue",
    "preemption.swap": "memory is short",
    "route": "",  # route pipe queues
    "fallback.resume": "",  # the suspended requests that the chooser resumes
    "fallback.preempt": "",  # the requests that the chooser makes give way for jobs that waited too long
    "choose": "",  # choose the requests that start, and their PEs
    "fallback.rotate": "",  # give requests that share PEs turns
    "fallback.compact": "only holes between running requests keep another out",
}
"""Files of `core` that declare a ``FEATURE``. A text says when the feature makes running requests give way or
move; a domain may leave out such a feature."""

FEATURES: tuple[Feature, ...] = tuple(import_module(f"nqspy.core.{name}").FEATURE for name in FILES)
BY_NAME: Mapping[str, Feature] = {feature.name: feature for feature in FEATURES}
LISTED = {feature.name: when for feature, when in zip(FEATURES, FILES.values(), strict=True) if when}
"""The features that a domain may list, with when they make its running requests give way or move."""
set_words(Domain, "features", LISTED, fixed=tuple(name for name in BY_NAME if name not in LISTED))
_HOLDERS = tuple((each.name, each.why_held) for each in FEATURES if each.why_held is not never_holds)


def verify(settings: Settings, site: Site) -> list[str]:
    """Return a line for each setting that a feature finds unwise."""
    return [line for feature in FEATURES for line in feature.verify(settings, site)]


def propose(draft: Draft, now: Instant) -> list[Instant | None]:
    """Let each feature propose in the draft of one pass; return the latest times at which they act again."""
    dues = []
    for feature in FEATURES:
        draft.acting = feature.name if feature.name in LISTED else ""
        dues.append(feature.propose(draft, now))
    return dues


def stands(site: Site, action: Action) -> bool:
    """True if the feature that proposed an action still wants it and, to suspend, requeue or move, may act on
    requests of that domain. An action of no feature does not stand."""
    feature = BY_NAME.get(action.by)
    if feature is None or not feature.stands(site, action):
        return False
    return not isinstance(action, Suspend | Requeue | Migrate) or _acts_on(
        feature.name, site, site.started[action.seq]
    )


def _acts_on(feature: str, site: Site, request: Request) -> bool:
    """True if a feature acts on a started request: its domain lists the feature, or cannot leave it out."""
    return feature not in LISTED or site.domain_of(request.queue).lists(feature)


def why_held(site: Site, request: Request, but: str = "") -> Reason | None:
    """Return why a feature holds a waiting or suspended request, as far as the site alone shows: the reason
    of the first that does; None: no feature does. ``but``: name of a feature that is not asked."""
    suspended = request.state is State.SUSPENDED
    for name, reason_of in _HOLDERS:
        if name == but or (suspended and not _acts_on(name, site, request)):
            continue
        if (reason := reason_of(site, request)) is not None:
            return reason
    return None


def next_action(site: Site, request: Request, began: Instant) -> Reason | None:
    """Return, as a reason, what a feature is known to do later to a request that runs since, or begins at,
    ``began``: that of the first feature in their order. None: no feature has a later action."""
    acting = (feature for feature in FEATURES if _acts_on(feature.name, site, request))
    reasons = (feature.next_action(site, request, began) for feature in acting)
    return next((reason for reason in reasons if reason is not None), None)
