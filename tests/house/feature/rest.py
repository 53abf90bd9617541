"""Rest: a request that has run for a while rests, and goes on by itself when its rest is over.

The worked example of CONTRIBUTING.md: a whole feature in one file. `test_house_additions` puts it into
a copy of nqspy, adds its line to the list of features, and uses it as a site would.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.model.actions import Action, Resume, Suspend
from nqspy.model.cause import declare_feature
from nqspy.model.facts import Promise, stored_by
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.registry import SettingsObject, Stamp, Status, Words, declare
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.model.tree import setting

NAME = "rest"
REST = declare_feature(NAME)
(RESTS,) = reason_kinds(
    ReasonCode.SUSPENDED,
    "its rest must be over; nobody has to do anything then",
    rests="it has worked long enough for now, and goes on when it has rested",
)


# ---------------------------------------------------------------- its settings
@dataclass(slots=True)
class Rest:
    """How long requests work, and how long they rest then."""

    enabled: bool = setting("flag", False, "whether requests that run rest now and then")
    work: int = setting("time", 3_600_000, "how long a request works before it rests", low=1_000)
    pause: int = setting("time", 60_000, "how long it rests", low=1_000)


def _status(site: Site, stamp: Stamp) -> Status:
    until = {site.id_of(request.seq): stamp(_until(site, request)) for request in resting(site)}
    return Status({"rests_until": until}, [(name, f"rests until {at}") for name, at in until.items()])


CONTROL = declare(
    SettingsObject(
        NAME,
        Rest,
        words=Words("Rest", "whether requests rest, and how long", "how long requests rest, and which do"),
        status=_status,
    )
)


# ---------------------------------------------------------------- in a pass
def act(draft: Draft, now: Instant) -> Instant | None:
    """Has those rest that have worked long enough, and lets those go on that have rested."""
    site, control = draft.site, CONTROL.one(draft.site.settings)
    dues = [now + control.work] if draft.started and control.enabled else []
    for request in draft.running() if control.enabled else ():
        tired = max(request.run.started, request.run.resumed or 0) + control.work
        dues.append(tired if tired > now else now + control.pause)
        if tired <= now:
            draft.suspend(request, REST, "it has worked long enough for now", pes_released=False)
            draft.store_fact(str(request.seq), now + control.pause)
    for request in resting(site):
        if control.enabled and now < _until(site, request):
            draft.keep_suspended(request, _why(site, request))
            dues.append(_until(site, request))
        else:
            draft.resume(request, REST)
    for key in stored_by(site, NAME).keys() - {str(request.seq) for request in resting(site)}:  # has gone on
        draft.store_fact(key, None)
    return Instant(min(dues)) if dues else None


def resting(site: Site) -> Iterator[Request]:
    """Requests that rest."""
    return (r for r in site.started.values() if r.pause is not None and r.pause.cause == REST)


def _until(site: Site, request: Request) -> Instant:
    return Instant(stored_by(site, NAME).get(str(request.seq), 0))


def _why(site: Site, request: Request) -> Reason:
    return RESTS(NAME, until=_until(site, request))


def stands(site: Site, action: Action) -> bool:
    """Whether what was proposed some time ago is still right."""
    rests = getattr(action, "seq", None) in {request.seq for request in resting(site)}
    if isinstance(action, Promise):
        return action.value is None or action.key in {str(request.seq) for request in resting(site)}
    return rests if isinstance(action, Resume) else isinstance(action, Suspend)


def why_held(site: Site, request: Request) -> Reason | None:
    """Why a request does not go on."""
    return _why(site, request) if request.pause is not None and request.pause.cause == REST else None


FEATURE = Feature(NAME, act, stands=stands, why_held=why_held)
