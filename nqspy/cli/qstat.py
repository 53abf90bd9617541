"""``qstat``: asks the daemon for a table, a summary or JSON, and prints the answer."""

import os
from _json import scanstring

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, Program
from nqspy.cli.questions import dialect_of, format_of

_LETTERS = frozenset("airHnsTGM1wxEtJ")
"""Options without a value that the daemon knows in PBS's forms."""
_FORMS = ("why", "eta", "json", "server", "complexes", "limits")
"""Options for the form of the answer; the first one counts."""
_APART = (("-a", "-i", "-r", "-q", "-H"), ("-G", "-M"), ("-Q", "-B"), ("-q", "-f"), ("-q", "-F"))
"""Options that exclude each other."""
_NOT_WITH_FORMAT = frozenset(("-w", "-1", "-a", "-i", "-r", "-H", "-n", "-s", "-T", "-G", "-M"))

_USUAL_WIDTH = 80
MOST_ENDED = 1_000
"""Most ended requests in a list, without ``--limit``."""


def message(words: list[str]) -> "tuple[dict[str, object], str | None]":
    """Return the message that a command line means, and the home it goes to. Raises Failure, HelpWanted."""
    given, found, operands = fast.read_options("qstat", words)
    if "why" in given:
        id = [one.value for one in found if one.target == "why"][-1]
        if not "0" <= id[:1] <= "9":
            raise Failure("--why needs the identifier of a request" + f", not {id!r}" * bool(id), 2)
        operands = [id, *operands]
    flags, dialect, form = {one.flag for one in found}, dialect_of(given), format_of(given)
    if form and (other := sorted(flags & _NOT_WITH_FORMAT)):
        raise Failure(f"conflicting options: -F and {other[0]}", 2)
    try:
        width = os.get_terminal_size(1).columns or _USUAL_WIDTH
    except OSError:
        width = 0  # no terminal, no limit
    question: dict[str, object] = {
        "cmd": "qstat", "text": _form(given, flags, dialect), "operands": operands,
        "queue": given.get("queue"),
        "user": given.get("user"), "state": given.get("state"), "tty": os.isatty(1), "width": width,
        "posix": "queues" in given, "letters": _letters(flags, dialect), "format": form,
        "delimiter": given.get("delimiter"), "shared": True, "limit": MOST_ENDED,
    }  # fmt: skip
    for flag in ("ended", "history", "json", "mpp", "expand"):
        question[flag] = flag in given
    if "limit" in given or "since" in given:
        from nqspy.cli.qsub import ask_now
        from nqspy.model.amounts import UNLIMITED, Wrong, parse_count
        from nqspy.model.errors import BadValue
        from nqspy.report.time_text import Zone, parse_since

        name = "limit"
        try:
            if "limit" in given:
                limit = parse_count(given["limit"])
                question["limit"] = None if limit == UNLIMITED else limit
            if "since" in given:
                name = "since"
                now, zone = ask_now(DaemonConnection(given.get("home")))
                question["since"] = parse_since(given["since"], Zone(zone), now)
        except (Wrong, BadValue) as error:
            raise Failure(f"--{name}: {error}", 2) from None
    return question, given.get("home")


def _form(given: dict[str, str], flags: set[str], dialect: str) -> str:
    """Return the form of the answer. Raises Failure for options that do not go together."""
    for form in _FORMS:
        if form in given:
            return form
    if "queues" in given or "batch" in given or "mpp" in given:
        return "queues"
    if "-q" in flags:
        return "queue_limits"
    if "pipes" in given and dialect != "pbs":
        return "pipes"
    if "-f" in flags or "-F" in flags:
        return "full"
    # NQS's -a and -u show its only table
    alternate = "alternate" in given or "-u" in flags
    if dialect == "nqs":
        alternate = bool(flags & {"-i", "-r", "-H", "-n", "-s", "-T", "-G", "-M"})
    return "alternate" if alternate else "table"


def _letters(flags: set[str], dialect: str) -> str:
    """Return PBS's options as letters. Raises Failure (status 2, as in PBS) where they do not go together."""
    for apart in _APART:
        both = [flag for flag in apart if flag in flags]
        if len(both) > 1:
            raise Failure(f"conflicting options: {both[0]} and {both[1]}", 2)
    if "-1" in flags and not flags & {"-n", "-s", "-f"}:
        raise Failure("-1 needs -n, -s or -f", 2)
    letters = [flag[1:] for flag in flags if flag[1:] in _LETTERS]
    if "-p" in flags and dialect == "pbs":
        letters.append("p")
    if "-f" in flags:
        letters.append("f")
    return "".join(sorted(letters))


def body(words: list[str]) -> int:
    """Run ``qstat``; return its exit status."""
    if "--graph" in words:  # which requests wait for which
        given, found, ids = fast.read_options("qstat", words)
        others = [one.flag for one in found if one.target not in ("graph", "home")]
        if others:
            raise Failure(f"conflicting options: --graph and {others[0]}", 2)
        return fast.show("qstat", DaemonConnection(given.get("home")).ask("graph", "graph", ids=ids))
    question, home = message(words)
    answer = DaemonConnection(home).call(question, repeat=True)
    if answer.rest.startswith(',"shared":['):  # parts sent once: marked numbers name them
        shared, at = [], len(',"shared":[')
        while answer.rest[at] == '"':
            text, at = scanstring(answer.rest, at + 1, True)
            shared.append(text)
            at += answer.rest[at] == ","
        pieces = answer.out.split("\x01")
        pieces[1::2] = [shared[int(number)] for number in pieces[1::2]]
        answer.out = "".join(pieces)
    return fast.show("qstat", answer)


main = Program(body, "qstat")
