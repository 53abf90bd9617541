"""What the commands share that programs read: options, whose misuse ends with status 2 as PBS's does; the
dialect; the format."""

import os

from nqspy.cli import fast
from nqspy.cli.fast import Failure, Given, HelpWanted

_FORMATS = {"json": "json", "dsv": "dsv", "default": ""}


def read_options(command: str, words: "list[str]") -> "tuple[dict[str, str], list[Given], list[str]]":
    """As `fast.read_options`. Raises Failure, HelpWanted."""
    try:
        given, found, operands = fast.read_options(command, words)
    except Failure as failure:
        failure.status = 2
        raise
    if "help" in given:
        raise HelpWanted
    return given, found, operands


def dialect_of(given: "dict[str, str]") -> str:
    """``nqs``, ``pbs`` or, where nothing says which, empty. Raises Failure for any other, but that
    ``NQSPY_DIALECT=slurm`` concerns submissions alone."""
    usual = os.environ.get("NQSPY_DIALECT", "")
    named = given.get("dialect") or ("" if usual == "slurm" else usual)
    if named not in ("", "nqs", "pbs"):
        raise Failure(f"there is no dialect {named!r} of this command; dialects: nqs, pbs", 2)
    return named


def format_of(given: "dict[str, str]") -> "str | None":
    """``json``, ``dsv``, empty for the usual form; None where none was asked for. Raises Failure."""
    form = _FORMATS.get(given["format"].lower()) if "format" in given else None
    if form is None and "format" in given:
        raise Failure(f"-F: there is no format {given['format']!r}; formats: json, dsv, default", 2)
    if "delimiter" in given and form != "dsv":
        raise Failure("-D goes with -F dsv", 2)
    between = given.get("delimiter", "|")
    if between[:1].isalnum() or not {"\\", "=", "\n"}.isdisjoint(between):
        raise Failure(f"-D: {between!r} can part no values; choose one such as | or ;", 2)
    return form
