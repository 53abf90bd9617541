"""Rights to act and to see requests: roles, owners, access lists, charged group (interfaces.md 1, 6)."""

from collections.abc import Collection

from nqspy.core.route import closed_domain, may_enter
from nqspy.model.errors import Refusal
from nqspy.model.people import DEFAULT_GROUP, Caller, Role
from nqspy.model.queues import Queue
from nqspy.model.requests import Request, Spec
from nqspy.model.site import Settings, Site

_RANK: dict[Role, int] = {"user": 0, "operator": 1, "manager": 2}
_WORD: dict[str, Role] = {"m": "manager", "o": "operator"}


def role_of(settings: Settings, caller: Caller) -> Role:
    """Return the role of a caller: root and the home's owner are managers; else by ``settings.managers``."""
    if caller.trusted:
        return "manager"
    return _WORD.get(settings.managers.get(caller.user, ""), "user")


def need(settings: Settings, caller: Caller, role: Role, what: str) -> None:
    """Raise Refusal unless the caller has at least that role; ``what``: the action, for its text."""
    own = role_of(settings, caller)
    if _RANK[own] < _RANK[role]:
        wanted, had = (f"{'an' if each == 'operator' else 'a'} {each}" for each in (role, own))
        raise Refusal("needs_role", what=what, role=wanted, user=caller.user, own=had)


def need_owner(site: Site, caller: Caller, request: Request, what: str) -> None:
    """Raise Refusal unless the caller owns the request or is an operator; ``what``: action, for its text."""
    if request.owner != caller.user and role_of(site.settings, caller) == "user":
        raise Refusal("not_owner", id=site.id_of(request.seq), what=what)


def need_to_be(settings: Settings, caller: Caller, request: Request, what: str) -> None:
    """Raise Refusal unless the caller could have submitted the request. What it runs and writes happens as
    its owner, so an operator's rights are not enough, nor a manager's for a request of root."""
    if request.owner == caller.user and request.spec.uid == caller.uid:
        return
    need(settings, caller, "manager", what)
    if request.spec.uid == 0 and caller.uid != 0:
        raise Refusal("act_as_root", what=what)


def need_entry(site: Site, queue: Queue, user: str, groups: Collection[str]) -> None:
    """Raise Refusal unless queue (enabled) and domain take requests of that user in these Unix groups."""
    if not queue.enabled:
        raise Refusal("queue_disabled", queue=queue.name)
    if not may_enter(queue, user, groups):
        raise Refusal("no_access", queue=queue.name)
    if (closed := closed_domain(site, queue, user, groups)) is not None:
        raise Refusal("domain_closed", queue=queue.name, reason=closed)


def sees_all(settings: Settings, caller: Caller) -> bool:
    """True if no request is hidden from the caller (``set privacy``): operators and managers see all."""
    return settings.server.privacy == "all" or role_of(settings, caller) != "user"


def may_see(settings: Settings, caller: Caller, spec: Spec) -> bool:
    """True if the caller may know of a request: as its owner, or by role and ``set privacy``."""
    if spec.owner == caller.user or sees_all(settings, caller):
        return True
    group = settings.groups.get(spec.group) if settings.server.privacy == "group" else None
    return group is not None and caller.user in group.members


def group_of(settings: Settings, caller: Caller, owner: str, account: str | None) -> tuple[str, str | None]:
    """Return the group that is charged, and the account text. ``-A`` may name a group of which the owner is a
    member (operators and managers: any group); other text is stored as an account. Raises Refusal."""
    if account is not None and account in settings.groups:
        if owner not in settings.groups[account].members and role_of(settings, caller) == "user":
            raise Refusal("no_member", user=owner, group=account)
        return account, account
    for group in settings.groups.values():
        if owner in group.members:
            return group.name, account
    return DEFAULT_GROUP, account
