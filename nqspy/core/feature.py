"""PSched's protocol of a scheduling feature (semantics.md 4): one file of `core` that declares a `Feature`,
and a line in the list of `core.features`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import Struct

from nqspy.core.draft import Draft
from nqspy.model.actions import Action
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason
from nqspy.model.registry import SettingsObject
from nqspy.model.requests import Request
from nqspy.model.site import Settings, Site


def _all_is_well(settings: Settings, site: Site) -> list[str]:
    return []


def _never(site: Site, action: Action) -> bool:
    return False


def says_nothing(site: Site, request: Request) -> Reason | None:
    """What features explain that keep nothing where it is."""
    return None


def _leaves_it_alone(site: Site, request: Request, began: Instant) -> Reason | None:
    return None


class Feature(Struct, frozen=True):
    """What a feature can do.

    ``act(draft, now)``: proposes in the draft of one pass; answers when it wants to act again at the
    latest. ``settings``: the kinds of objects that it declares (`registry.declare`). ``verify(settings,
    site)``: what it finds unwise in a configuration, one line each. ``stands(site, action)``: whether what it
    proposed some time ago is still right; the re-check itself looks at states, PEs and limits only.
    ``explain(site, request)``: why it keeps a waiting or suspended request where it is, as far as the site
    alone tells; None: it does not. ``outlook(site, request, began)``: what it will do to one that runs since
    ``began``, or would begin then; None: nothing that is known.
    """

    name: str
    act: Callable[[Draft, Instant], Instant | None]
    settings: tuple[SettingsObject[Any], ...] = ()
    verify: Callable[[Settings, Site], list[str]] = _all_is_well
    stands: Callable[[Site, Action], bool] = _never
    explain: Callable[[Site, Request], Reason | None] = says_nothing
    outlook: Callable[[Site, Request, Instant], Reason | None] = _leaves_it_alone

    def propose(self, draft: Draft, now: Instant) -> Instant | None:
        """Acts, and puts its name on what it proposed."""
        due = self.act(draft, now)
        if draft.before or draft.after:
            draft.before[:] = map(self._signed, draft.before)
            draft.after[:] = map(self._signed, draft.after)
        return due

    def _signed(self, action: Action) -> Action:
        return action if action.by else replace(action, by=self.name)
