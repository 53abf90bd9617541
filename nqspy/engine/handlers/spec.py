"""What a request may say of itself, whoever hands it in: words, paths and amounts, before any queue is
asked."""

from collections.abc import Iterator
from dataclasses import fields

from nqspy.core.queueing.limits import too_wide
from nqspy.core.resource_health import check_needs
from nqspy.model.errors import Refusal
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Spec
from nqspy.model.site import Site
from nqspy.model.tree import declared
from nqspy.model.units import GREATEST, UNLIMITED

NAME_MAX = 230
WORD_MAX = 1024
"""Characters of an account, an address, an attribute."""
PATH_MAX = 4096
LIMITS = {
    path: info.low or 0
    for path, info in declared(Queue).items()
    if path.startswith(("per_request/", "per_process/"))
}
"""Limits that a request may name for itself."""
LAST_DATE = 253_402_300_799_999
"""The end of the year 9999, ms since the epoch."""


def check_spec(site: Site, spec: Spec) -> None:
    """Raises Refusal unless the request's own words, paths and amounts make sense on this machine."""
    _check_name(spec.name)
    for path in (spec.workdir, spec.output.stdout, spec.output.stderr):
        if path is not None and ("\0" in path or "\n" in path or not path.startswith("/")):
            raise _bad(f"{path[:80]!r} is no absolute path")
    if any("\0" in word for word in (*spec.args, spec.shell or "")):
        raise _bad("arguments and shell cannot hold a NUL character")
    if spec.shell is not None and not spec.shell.startswith("/"):
        raise _bad(f"{spec.shell[:40]!r} is no shell; give its whole path, such as /bin/sh")
    _check_words(spec)
    _check_ask(site, spec.ask)
    if spec.eligible is not None and not 0 <= spec.eligible <= LAST_DATE:
        raise _bad("its date is not between the years 1970 and 9999")
    if spec.priority is not None and not -1024 <= spec.priority <= 1023:
        raise _bad(f"priority {spec.priority} is not from -1024 to 1023")
    if not 0 <= spec.umask <= 0o777:
        raise _bad(f"umask {spec.umask:o} is not from 0 to 777")


def _check_words(spec: Spec) -> None:
    """What else is printed or handed on: short, printable words."""
    for what, word in _words(spec):
        if len(word) > WORD_MAX or not word.isprintable():
            raise _bad(f"{what} {word[:40]!r} is no word of up to {WORD_MAX} printable characters")
    if spec.mail.to is not None and spec.mail.to.startswith("-"):
        raise _bad(f"{spec.mail.to!r} is no mail address")
    for path in (spec.workdir, spec.shell, spec.output.stdout, spec.output.stderr):
        if path is not None and len(path) > PATH_MAX:
            raise _bad(f"{path[:40]!r}... is longer than a path may be ({PATH_MAX} characters)")


def _words(spec: Spec) -> Iterator[tuple[str, str]]:
    named = {"account": spec.account, "queue": spec.queue, "host": spec.host, "mail address": spec.mail.to}
    yield from ((what, word) for what, word in named.items() if word)
    yield from (("attribute", word) for word in spec.attributes)
    yield from (("resource", word) for word in (*spec.ask.needs, *(name for name, _ in spec.ask.others)))


def _bad(text: str) -> Refusal:
    return Refusal(text, "bad_value", 166)


def _check_name(name: str) -> None:
    if not name or len(name) > NAME_MAX or not name.isprintable() or "/" in name or " " in name:
        raise Refusal(
            f"{name[:40]!r} is no request name: up to {NAME_MAX} printable characters without blank or /",
            "bad_name",
        )


def _check_ask(site: Site, ask: Ask) -> None:
    if ask.pes < 1:
        raise _bad("a request needs at least 1 PE")
    wrong = too_wide(site, None, ask.pes)
    if wrong is not None:
        raise Refusal(wrong.text, "above_limit", 188)
    check_needs(site, ask.needs)
    for name, value in ask.others:
        if name not in LIMITS:
            raise _bad(f"{name[:80]!r} is no limit of a request")
        if 0 <= value < LIMITS[name]:
            raise _bad(f"{name.rpartition('/')[2]} is at least {LIMITS[name]}, not {value}")
    for what, limit in (("CPU time", ask.cpu), ("wall time", ask.wall), ("memory", ask.memory)):
        if limit == 0:
            raise _bad(
                f"a request with no {what} at all cannot run; name more, or leave its limit to the queue"
            )
    for name, value in _amounts(ask):
        if value != UNLIMITED and not 0 <= value <= GREATEST:
            raise _bad(f"{name} {value} is no amount: from 0 upward, or unlimited")


def _amounts(ask: Ask) -> Iterator[tuple[str, int]]:
    for each in fields(ask):
        value = getattr(ask, each.name)
        if each.name == "others":
            yield from value
        elif value is not None and each.name != "needs":
            yield each.name, value
