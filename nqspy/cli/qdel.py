"""``qdel``: deletes requests, or sends them a signal."""

import os

from nqspy.cli import fast, request_commands
from nqspy.cli.fast import DaemonConnection, Given, Program
from nqspy.cli.request_commands import signal_number


def _signal(word: str) -> "Given | None":
    """Return ``-9`` or ``-TERM`` as a signal option; None for other words."""
    number = signal_number(word[1:])
    return None if number is None else Given(((), "signal", "text", "", ""), word, str(number))


def body(words: list[str]) -> int:
    """Run ``qdel``; return its exit status."""
    given, found, ids = request_commands.read("qdel", words, _signal, least=0)
    force, mails = False, None  # -W: kill at once, and how many mails may go out
    for value in (each for one in found if one.target == "how" for each in one.value.split(",")):
        name, equals, number = value.partition("=")
        if value == "force":
            force = True
        elif name == "suppress_email" and number.removeprefix("-").isdigit() == bool(equals):
            mails = max(0, int(number)) if equals else 0
        else:
            raise fast.unknown("-W", value, "force or suppress_email[=N]")
    home, chosen = given.get("home"), request_commands.names_more(given, ids)
    if chosen:
        user = {"user": given["owner"]} if "owner" in given else {}
        ids, count = request_commands.choose("qdel", DaemonConnection(home), given, ids, **user)
        if "yes" not in given:  # on a terminal: the number of requests is not visible
            request_commands.confirm("qdel", count, "deleted")
    elif not ids:
        raise fast.missing("request", "qdel")
    if len(ids) > request_commands.BATCH:
        ids = ids[::-1]  # waiting requests first: they must not begin when running ones are deleted
    dialect = given.get("dialect") or os.environ.get("NQSPY_DIALECT") or "pbs"
    return request_commands.send(
        "qdel", "delete", home, ids=ids, owner=given.get("owner"), kill="kill" in given or force, mails=mails,
        signal=int(given["signal"]) if "signal" in given else None, force=dialect != "nqs",
        cascade="cascade" in given, lenient=chosen, history="history" in given,
    )  # fmt: skip


main = Program(body, "qdel")
