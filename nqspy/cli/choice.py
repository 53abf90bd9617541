"""Requests that a command line names by more than identifiers: ranges (``3-9``), patterns (``sim*``),
``--name``, ``--state``, ``--all``."""

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure

_BY = ("all", "name", "state")
"""Targets of options that choose."""


def chooses(word: str) -> bool:
    """Whether an operand is a range or a pattern, and no identifier (``17.my-host``, ``17[3-9]``)."""
    if "0" <= word[:1] <= "9":
        return "-" in word.partition(".")[0].partition("[")[0]
    return any(char in word for char in "*?[")


def is_needed(given: dict[str, str], operands: list[str]) -> bool:
    """Whether the daemon is to be asked who is meant."""
    return any(name in given for name in _BY) or any(map(chooses, operands))


def choose(
    command: str, daemon: DaemonConnection, given: dict[str, str], operands: list[str], **fields: object
) -> tuple[list[str], int]:
    """The identifiers that are meant, and how many of them were found by name, state or ``--all`` (of which
    nobody can see how many they are). Raises Failure."""
    named = [word for word in operands if not chooses(word)]
    others = [word for word in operands if chooses(word)]
    options = [name for name in _BY if name in given]
    if named and options:
        raise Failure(f"{named[0]} is meant by its identifier; leave out --{options[0]}", 2)
    question = {"operands": others, "name": given.get("name"), "state": given.get("state"), **fields}
    answer = daemon.ask("choose", "ids", **question)
    if answer.status:
        raise Failure(answer.err.removesuffix("\n"), answer.status)
    found = answer.out.split()
    counted = bool(options) or any(not "0" <= word[:1] <= "9" for word in others)
    return named + [id for id in found if id not in named], len(found) if counted else 0


def confirm(command: str, count: int, done: str) -> None:
    """On a terminal: asks whether so many requests shall be ``done``. Raises Failure unless they shall."""
    import os

    if not count or not (os.isatty(0) and os.isatty(2)):
        return
    fast.write(2, f"{command}: {count} request{'s' * (count > 1)} will be {done}; go on? [y/N] ".encode())
    said = os.read(0, 100).strip().lower()
    if said not in (b"y", b"yes"):
        raise Failure(f"nothing was {done}")
