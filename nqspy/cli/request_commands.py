"""Commands that change requests: identifiers in, messages out, a line for each failure."""

import _signal  # type: ignore[import-not-found]  # the C half of signal: loaded at start
import os

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, Given, Program, missing, unknown, usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Special = Callable[[str], "Given | None"]

BATCH = 2_000
"""Identifiers in one message: between two messages the daemon serves other clients."""


def read(
    command: str, words: list[str], special: "Special | None" = None, least: int = 1
) -> tuple[dict[str, str], list[Given], list[str]]:
    """Return options by target, all in order, ``least`` or more operands. Raises Failure, HelpWanted."""
    given, found, operands = fast.read_options(command, words, special)
    if len(operands) < least:
        raise missing("request", command)
    return given, found, operands


def send(command: str, cmd: str, home: "str | None", ids: "list[str]", **fields: object) -> int:
    """Send message ``cmd`` for each `BATCH` of ``ids``; print failures; return the last status but 0, else
    0."""
    daemon, status = DaemonConnection(home), 0
    for some in batches(ids):
        message: dict[str, object] = {"cmd": cmd, "text": command, "ids": some, **fields}
        status = fast.show(command, daemon.call(message)) or status
        if isinstance(mails := fields.get("mails"), int):
            fields["mails"] = max(0, mails - len(some))
    return status


def batches(ids: "list[str]") -> "list[list[str]]":
    """Return the identifiers in lists, one for each message."""
    return [ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]


def signal_number(text: str) -> "int | None":
    """Return the number of ``9``, ``KILL`` or ``SIGKILL`` in any case; None if there is no such signal."""
    if text.isdigit():
        number = int(text) if len(text) < 4 else 0
        return number if 0 < number < _signal.NSIG else None
    name = "SIG" + text.upper().removeprefix("SIG")
    found = getattr(_signal, name, None) if name[3:4] not in ("", "_") else None
    return found if isinstance(found, int) else None


_BY = ("all", "name", "state")
"""Targets of options that select requests."""


def chooses(word: str) -> bool:
    """True for a range (``3-9``) or a pattern (``sim*``), not for an identifier (``17.my-host``)."""
    if "0" <= word[:1] <= "9":
        return "-" in word.partition(".")[0].partition("[")[0]
    return any(char in word for char in "*?[")


def names_more(given: dict[str, str], operands: list[str]) -> bool:
    """True if the daemon must find the requests that these options and operands mean."""
    return any(name in given for name in _BY) or any(map(chooses, operands))


def choose(
    command: str, daemon: DaemonConnection, given: dict[str, str], operands: list[str], **fields: object
) -> tuple[list[str], int]:
    """Return the identifiers that are meant, and how many of them a pattern or option has found, for
    `confirm` (0: they were named, or by ranges). Raises Failure."""
    named = [word for word in operands if not chooses(word)]
    others = [word for word in operands if chooses(word)]
    options = [name for name in _BY if name in given]
    if named and options:
        raise Failure(f"conflicting: identifier {named[0]} and --{options[0]}; give one of them", 2)
    question = {"operands": others, "name": given.get("name"), "state": given.get("state"), **fields}
    answer = daemon.ask("choose", "ids", **question)
    if answer.status:
        raise Failure(answer.err.removesuffix("\n"), answer.status)
    found = answer.out.split()
    counted = bool(options) or any(not "0" <= word[:1] <= "9" for word in others)
    return named + [id for id in found if id not in named], len(found) if counted else 0


def confirm(command: str, count: int, done: str) -> None:
    """Ask on a terminal if ``count`` requests are to be ``done`` (a word). Raises Failure without a yes."""
    if not count or not (os.isatty(0) and os.isatty(2)):
        return
    fast.write(2, f"{command}: {count} request{'s' * (count > 1)} will be {done}; go on? [y/N] ".encode())
    reply = os.read(0, 100).strip().lower()
    if reply not in (b"y", b"yes"):
        raise Failure(f"no request was {done}")


@Program
def qhold(words: list[str]) -> int:
    """Hold waiting requests."""
    return _hold("qhold", "hold", words)


@Program
def qrls(words: list[str]) -> int:
    """Release held requests."""
    return _hold("qrls", "release", words, lenient=True)


def _hold(command: str, cmd: str, words: list[str], **fields: object) -> int:
    given, _, ids = read(command, words)
    letters = given.get("letters")
    if letters is not None and letters != "n" and letters.strip("uos"):
        raise unknown("-h", letters, "letters of u, o, s, or n alone")
    return send(command, cmd, given.get("home"), ids, letter=letters, **fields)


@Program
def qmove(words: list[str]) -> int:
    """Move waiting requests into another queue."""
    given, _, operands = fast.read_options("qmove", words)
    if len(operands) < 2:
        raise Failure(f"name a queue and at least one request; {usage('qmove')}", 2)
    queue, *ids = operands
    message: dict[str, object] = {"cmd": "move", "text": "qmove", "ids": ids}
    message["queue"] = queue.partition("@")[0]
    return fast.show("qmove", DaemonConnection(given.get("home")).call(message))


@Program
def qrerun(words: list[str]) -> int:
    """End running requests and queue them again."""
    given, _, ids = read("qrerun", words)
    if given.get("how", "force") != "force":
        raise unknown("-W", given["how"], "force")
    return send("qrerun", "rerun", given.get("home"), ids, force="how" in given)


@Program
def qsig(words: list[str]) -> int:
    """Send a signal to running requests, or suspend or resume them."""
    given, _, ids = read("qsig", words)
    home, name = given.get("home"), given.get("signal", "SIGTERM")
    if name.lower() in ("suspend", "resume"):
        return send("qsig", "suspend", home, ids, resume=name.lower() == "resume")
    number = 0 if name.upper() in ("0", "NULL", "SIGNULL") else signal_number(name)
    if number is None:
        raise Failure(f"Unknown/illegal signal name {name}", 165)
    return send("qsig", "signal", home, ids, signal=number)


@Program
def qsuspend(words: list[str]) -> int:
    """Suspend running requests; jobs of a queue that goes by class give up their PEs."""
    given, _, ids = read("qsuspend", words)
    return send("qsuspend", "suspend", given.get("home"), ids, resume=False)


@Program
def qresume(words: list[str]) -> int:
    """Let suspended requests go on."""
    given, _, ids = read("qresume", words)
    return send("qresume", "suspend", given.get("home"), ids, resume=True)


@Program
def qmsg(words: list[str]) -> int:
    """Write a line into the output of running requests."""
    given, _, operands = read("qmsg", words)
    if "joblog" in given:
        raise Failure("-j: requests have no job log here; use -e (errors) or -o (output)", 2)
    text, *ids = operands
    if not ids:
        raise Failure(f"give a message and at least one request; {usage('qmsg')}", 2)
    if text[:1].isdigit() and not any(id[:1].isdigit() for id in ids):
        raise Failure(f"the message comes first: {ids[-1]!r} is no identifier; {usage('qmsg')}", 2)
    streams = [name for name in ("stdout", "stderr") if name in given] or ["stderr"]
    return send("qmsg", "message", given.get("home"), ids, message=text, streams=streams)


@Program
def qorder(words: list[str]) -> int:
    """Let two waiting requests of one queue exchange their places."""
    given, _, ids = read("qorder", words)
    if len(ids) != 2:
        raise Failure(f"name exactly two requests to exchange, not {len(ids)}; {usage('qorder')}", 2)
    return send("qorder", "exchange", given.get("home"), ids)


@Program
def qchkpnt(words: list[str]) -> int:
    """Say that requests are not checkpointed here."""
    fast.read_options("qchkpnt", words)
    raise Failure(
        "requests are not checkpointed here; a request with a restart file of its own may be run again"
        " (qrerun), or suspended for a while (qsig -s suspend)"
    )
