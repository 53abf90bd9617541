"""What a whole set of settings must satisfy: names that exist, no circles, marks in their order."""

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from nqspy.model import registry
from nqspy.model.domains import APPLICATION, names
from nqspy.model.people import Group, is_address
from nqspy.model.queues import Complex, Queue
from nqspy.model.shifts import APART
from nqspy.model.site import Settings

T = TypeVar("T")


def problems(settings: Settings, touched: Collection[str] | None = None) -> list[str]:
    """What is wrong with a whole set of settings: names that do not exist, circles. Empty when all is
    well.

    ``touched``: paths of the objects that have changed since all was well (``queue/night``): then only what
    these may have made wrong is looked at.
    """
    look = _Look(settings, touched)
    queues = look.queues()
    return [
        *_problems_of_queues(settings, look, queues),
        *_problems_of_groups(settings, look),
        *_problems_of_shifts(settings),
        *_problems_of_mail(settings, look),
        *(line for kind in registry.objects() for line in kind.check(settings, touched)),
    ]


class _Look:
    """Which objects are looked at: all, or those touched and those that name what is no more."""

    def __init__(self, settings: Settings, touched: Collection[str] | None) -> None:
        self._settings = settings
        self.whole = touched is None
        self._touched: dict[str, set[str]] = {head: set() for head in ("queue", "complex", "group")}
        for path in touched or ():
            head, _, name = path.partition("/")
            self._touched.setdefault(head, set()).add(name)

    def queues(self) -> list[Queue]:
        """The queues to look at."""
        return self._of("queue", self._settings.queues, lambda queue: queue.destinations)

    def complexes(self) -> Iterable[Complex]:
        """The complexes to look at: of a queue that was touched too."""
        queues = self._touched["queue"]
        for group in self._settings.complexes.values():
            if self.whole or group.name in self._touched["complex"] or not queues.isdisjoint(group.queues):
                yield group

    def groups(self) -> list[Group]:
        """The groups to look at."""
        return self._of("group", self._settings.groups, lambda group: (group.parent,))

    def _of(self, head: str, objects: dict[str, T], names: Callable[[T], Collection[str | None]]) -> list[T]:
        """All, or those touched and those that name one that is no more."""
        if self.whole:
            return list(objects.values())
        gone = {name for name in self._touched[head] if name not in objects}
        naming = (each for each in objects.values() if not gone.isdisjoint(names(each)))
        chosen = (objects[name] for name in sorted(self._touched[head]) if name in objects)
        return [*chosen, *(naming if gone else ())]


def _problems_of_queues(settings: Settings, look: _Look, queues: Iterable[Queue]) -> Iterable[str]:
    for queue in queues:
        for name in queue.destinations:
            if name not in settings.queues:
                yield f"queue {queue.name}: destination {name} does not exist"
        if queue.domain not in (known := names(settings.domains)):
            yield f"queue {queue.name}: there is no domain {queue.domain}; domains: {', '.join(known)}"
        if queue.kind == "pipe" and queue.domain != APPLICATION:
            yield f"queue {queue.name}: a pipe queue has no PEs and so no domain; say it of batch queues"
        if queue.kind == "pipe" and _in_circle(settings, queue.name):
            yield f"queue {queue.name}: its destinations lead back to it"
    for group in look.complexes():
        for name in group.queues:
            if name not in settings.queues or settings.queues[name].kind != "batch":
                yield f"complex {group.name}: {name} is no batch queue"
    default = settings.default.queue
    if default is not None and default not in settings.queues:
        yield (
            f"default queue {default} does not exist (any more); first set default batch_request queue OTHER,"
            " or set no_default batch_request queue"
        )
    default = settings.default.mpprun_queue
    if default is not None and default not in settings.queues:
        yield (
            f"mpprun's queue {default} does not exist (any more); first set default mpprun queue OTHER,"
            " or set no_default mpprun queue"
        )
    elif default is not None:
        domain = settings.domains.get(settings.queues[default].domain)
        if domain is not None and domain.is_command:
            yield (
                f"mpprun's queue {default}: domain {domain.name} has kind=command, and its requests hold no"
                " PEs; name a queue of another domain"
            )


def _in_circle(settings: Settings, start: str) -> bool:
    seen: set[str] = set()
    todo = list(settings.queues[start].destinations)
    while todo:
        name = todo.pop()
        if name == start:
            return True
        if name in settings.queues and name not in seen:
            seen.add(name)
            todo += settings.queues[name].destinations if settings.queues[name].kind == "pipe" else ()
    return False


def _problems_of_groups(settings: Settings, look: _Look) -> Iterable[str]:
    for group in look.groups():
        seen = {group.name}
        parent = group.parent
        while parent is not None:
            if parent not in settings.groups:
                yield f"group {group.name}: parent {parent} does not exist"
                break
            if parent in seen:
                yield f"group {group.name}: its parents go in a circle"
                break
            seen.add(parent)
            parent = settings.groups[parent].parent


def _problems_of_shifts(settings: Settings) -> Iterable[str]:
    seen: dict[str, str] = {}
    for shift in settings.shifts.values():
        if not shift.when:
            yield f'shift {shift.name} has no time: when=("30 8 * * mon-fri")'
        for cron in dict.fromkeys(shift.when):
            if cron in seen:
                yield f"shift {shift.name} fires at the same minutes as shift {seen[cron]}: {cron}; {APART}"
            seen[cron] = shift.name


def _problems_of_mail(settings: Settings, look: _Look) -> Iterable[str]:
    for group in look.groups():
        for address in group.mail:
            if not is_address(address):
                yield f"group {group.name}: {address!r} is no mail address; write anne or chief@example.org"
    mail = settings.mail
    if mail.sender is not None and not is_address(mail.sender):
        yield f"mail: {mail.sender!r} is no mail address; write nqs@example.org"
    if mail.smtp is not None and not _is_server(mail.smtp):
        yield f"mail: {mail.smtp!r} is no mail server; write HOST or HOST:PORT"
    if (mail.user is None) != (mail.password_file is None):
        yield "mail: user and password_file are given together or not at all"
    elif mail.user is not None and not (mail.user.isprintable() and mail.user):
        yield f"mail: {mail.user!r} is no user of a mail server"
    elif mail.user is not None and mail.tls == "none":
        yield "mail: a password is sent encrypted only; add tls=starttls or tls=implicit"
    if mail.password_file is not None and not mail.password_file.startswith("/"):
        yield f"mail: {mail.password_file!r} is no whole path of a password file"


def _is_server(text: str) -> bool:
    host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    number = port.isdigit() and port.isascii() and 0 < int(port) < 65536 if colon else True
    host = (host if colon else text).removeprefix("[").removesuffix("]")
    return number and bool(host) and all(c.isascii() and (c.isalnum() or c in ".-_:") for c in host)
