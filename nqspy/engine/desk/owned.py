"""Settings that the home's owner alone may change, for they lend his rights to whoever names something there:
where a mail server is told his password."""

from collections.abc import Iterable

from nqspy.engine.desk.people import role_of
from nqspy.model.commands import Configure, decode
from nqspy.model.errors import Refusal
from nqspy.model.people import Caller
from nqspy.model.site import Settings

_TOLD = ("smtp", "tls", "user", "password_file")


def need_home_owner(before: Settings, after: Settings, caller: Caller) -> None:
    """Raises Refusal where somebody else changes which server is told the password of ``password_file``, or
    what that is; a shift's commands, which run without him, included."""
    if caller.trusted or role_of(before, caller) != "manager":
        return
    mails, changed = (before.mail, after.mail), False
    if any(mail.password_file for mail in mails):
        changed = any(len({getattr(mail, name) for mail in mails}) > 1 for name in _TOLD)
    if changed or any(_sets_mail(after, name) for name in _new_shifts(before, after)):
        raise Refusal(
            "Unauthorized Request: the home's owner alone says which mail server is told the password of "
            "password_file",
            "not_permitted",
            159,
        )


def _new_shifts(before: Settings, after: Settings) -> Iterable[str]:
    known = before.shifts
    return (n for n, shift in after.shifts.items() if n not in known or known[n].commands != shift.commands)


def _sets_mail(settings: Settings, shift: str) -> bool:
    commands = [decode(dict(data)) for data in settings.shifts[shift].commands]
    paths = [change.path for each in commands if isinstance(each, Configure) for change in each.changes]
    return any(path == f"mail/{name}" for path in paths for name in _TOLD)
