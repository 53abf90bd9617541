"""Commands that only ask, and options that they share with `qstat`."""

import os

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, Program, missing, read_options, unknown, usage

_FORMATS = {"json": "json", "dsv": "dsv", "default": ""}
_CHANGING = ("-o", "-r", "-C", "-c", "-d", "-R")


def dialect_of(given: "dict[str, str]") -> str:
    """Return ``nqs``, ``pbs`` or "" for none; ``NQSPY_DIALECT=slurm`` counts as none. Raises Failure."""
    usual = os.environ.get("NQSPY_DIALECT", "")
    named = given.get("dialect") or ("" if usual == "slurm" else usual)
    if named not in ("", "nqs", "pbs"):
        raise unknown("--dialect", named, "nqs or pbs")
    return named


def format_of(given: "dict[str, str]") -> "str | None":
    """Return ``json``, ``dsv``, empty for the usual form; None without the option. Raises Failure."""
    form = _FORMATS.get(given["format"].lower()) if "format" in given else None
    if form is None and "format" in given:
        raise unknown("-F", given["format"], "json, dsv or default")
    if "delimiter" in given and form != "dsv":
        raise Failure("-D needs -F dsv", 2)
    between = given.get("delimiter", "|")
    if between[:1].isalnum() or not {"\\", "=", "\n"}.isdisjoint(between):
        raise Failure(f"-D: {between!r} cannot separate values; choose a sign such as | or ;", 2)
    return form


def _ask(command: str, given: "dict[str, str]", cmd: str, text: str, **fields: object) -> int:
    return fast.show(command, DaemonConnection(given.get("home")).ask(cmd, text, **fields))


@Program
def qselect(words: list[str]) -> int:
    """List the requests that meet all criteria."""
    given, found, operands = read_options("qselect", words)
    if operands:
        raise Failure(f"unexpected {operands[0]!r}; {usage('qselect')}", 2)
    criteria = [[one.flag[1:], one.value] for one in found if one.kind == "text" and not one.target]
    letters = "".join([one.flag[1:] for one in found if one.target == "letters"])
    return _ask("qselect", given, "qselect", "ids", criteria=criteria, letters=letters)


@Program
def pbsnodes(words: list[str]) -> int:
    """Show the host that runs requests."""
    change = next((word for word in words if word in _CHANGING), None)
    if change is not None:
        raise Failure(f"{change} is not offered here; change the installation with qmgr", 2)
    given, _, operands = read_options("pbsnodes", words)
    if not operands and not {"all", "letters", "virtual"} & given.keys():
        raise missing("host", "pbsnodes")
    return _ask(
        "pbsnodes", given, "pbsnodes", "nodes", operands=operands, format=format_of(given),
        letters="l" if "letters" in given else "", delimiter=given.get("delimiter"),
    )  # fmt: skip


@Program
def qlimit(words: list[str]) -> int:
    """Show the limits that a request may ask for, their options, and how they are kept."""
    given, _, hosts = read_options("qlimit", words)
    return _ask("qlimit", given, "limits", "qlimit", hosts=hosts, verbose="verbose" in given)


@Program
def qping(words: list[str]) -> int:
    """Exit with a status that shows whether the daemon answers."""
    given, _, hosts = read_options("qping", words)
    if len(hosts) > 1:
        raise Failure(f"name at most one host; {usage('qping')}", 2)
    message: dict[str, object] = {"cmd": "limits", "text": "qping", "hosts": hosts}
    return fast.show("qping", DaemonConnection(given.get("home")).call(message))
