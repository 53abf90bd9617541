"""Protocol of a scheduling feature (semantics.md 4): a file of `core` that is listed in `features`."""

from collections.abc import Callable
from dataclasses import replace

from msgspec import Struct

from nqspy.core.draft import Draft
from nqspy.model.actions import Action
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request
from nqspy.model.site import Settings, Site


def never_holds(site: Site, request: Request) -> Reason | None:
    """Return None: the `why_held` of features that never hold a request."""
    return None


class Feature(Struct, frozen=True):
    """Feature of the scheduler: the functions by which passes, re-checks and commands use it.

    - ``act(draft, now)`` proposes in the draft of one pass, and returns the latest time to act again.
    - ``verify(settings, site)`` returns a line for each setting that it finds unwise.
    - ``stands(site, action)``: True if an action that it proposed is still right just before it is carried
      out. The re-check itself examines only states, PEs and limits.
    - ``why_held(site, request)`` returns why it holds a waiting or suspended request, as far as the site
      alone shows; None: it does not.
    - ``next_action(site, request, began)`` returns its action on a request that runs since ``began`` or would
      begin then; None: no action is known.
    """

    name: str
    act: Callable[[Draft, Instant], Instant | None] = lambda draft, now: None
    verify: Callable[[Settings, Site], list[str]] = lambda settings, site: []
    stands: Callable[[Site, Action], bool] = lambda site, action: False
    why_held: Callable[[Site, Request], Reason | None] = never_holds
    next_action: Callable[[Site, Request, Instant], Reason | None] = lambda site, request, began: None

    def propose(self, draft: Draft, now: Instant) -> Instant | None:
        """Let the feature propose in a draft, and write its name into proposals without one (``by``). Return
        the latest time for it to act again; None: no time is known."""
        due = self.act(draft, now)
        if draft.before or draft.after:
            draft.before[:] = map(self._signed, draft.before)
            draft.after[:] = map(self._signed, draft.after)
        return due

    def _signed(self, action: Action) -> Action:
        return action if action.by else replace(action, by=self.name)
