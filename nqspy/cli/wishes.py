"""PBS's ``qsub -W name=value,...``: dependencies, waiting, umask, limit of an array; the rest is refused by
name (pbs-clients.md 3 and 7). Only loaded when it is given."""

from nqspy.cli.fast import Given
from nqspy.cli.sheet import RequestSheet
from nqspy.cli.words import split_list
from nqspy.model import keys
from nqspy.model.amounts import Wrong, parse_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

DEPEND = {"after": "start", "afterok": "ok", "afternotok": "fail", "afterany": "any"}
"""PBS's types of dependency that are offered, and ours; Slurm has the same and one more."""

NOT_OFFERED = {
    "group_list": "a request runs with the group of its submitter; say newgrp first",
    "sandbox": "a request starts in the home folder, or where -d says",
    "stagein": "files are not copied; let the script fetch them",
    "stageout": "files are not copied; let the script bring them away",
    "run_count": "the count of runs cannot be set",
    "interactive": "say -I on the command line",
}
"""Attributes that PBS knows and nobody does here, and what to do instead."""


def take(draft: RequestSheet, given: Given) -> None:
    """Reads one ``-W``; among directives the first value of an attribute stands, else the last. Raises
    Wrong."""
    for name, value in _attributes(given.value):
        if given.place and name in draft.wished:
            continue
        read = _READ.get(name)
        if read is None:
            way = NOT_OFFERED.get(name)
            known = ", ".join(_READ)
            raise Wrong(
                f"{name} is not offered here: {way}"
                if way
                else f"there is no attribute {name}; known are {known}"
            )
        read(draft, value)
        draft.wished.add(name)


def _attributes(text: str) -> list[tuple[str, str]]:
    """Name and value of each; a piece without ``=`` goes on with the value before it."""
    found: list[tuple[str, str]] = []
    for piece in split_list(text):
        name, equals, value = piece.strip().partition("=")
        if equals and name:
            found.append((name.strip(), value.strip("'\" ")))
        elif found and piece.strip():
            found[-1] = (found[-1][0], f"{found[-1][1]},{piece.strip()}")
        else:
            raise Wrong(f"{piece!r} is no NAME=VALUE, such as block=true")
    if not all(value for _, value in found):
        raise Wrong("an attribute has no value; write it like depend=afterok:17")
    return found


def _depend(draft: RequestSheet, value: str) -> None:
    draft.depends.clear()
    for each in value.split(","):
        kind, *ids = each.strip().split(":")
        if kind.startswith(("before", "on")) and kind not in DEPEND:
            raise Wrong(
                f"depend={each}: {kind} is not offered here; hand in the request that goes first, and the"
                " other with depend=afterok:ID"
            )
        if kind not in DEPEND or not ids or not all(ids):
            raise Wrong(f"depend={each} is no dependency; write it like afterok:17, afterany:17:18")
        draft.depends += [f"after:{id.partition('@')[0]}:{DEPEND[kind]}" for id in ids]


def _block(draft: RequestSheet, value: str) -> None:
    if value.lower() not in ("true", "false", "t", "f", "y", "n", "1", "0"):
        raise Wrong(f"block={value} is neither true nor false")
    draft.block = value.lower() in ("true", "t", "y", "1")


def _umask(draft: RequestSheet, value: str) -> None:
    if not value or value.strip("01234567") or int(value, 8) > 0o777:
        raise Wrong(f"umask={value} is no umask; write it in octal, like 022")
    draft.spec["umask"] = int(value, 8)


def _limit(draft: RequestSheet, value: str) -> None:
    draft.array_limit = parse_number(value, 0, keys.MOST_INDICES)


_READ: "dict[str, Callable[[RequestSheet, str], None]]" = {
    "depend": _depend, "block": _block, "umask": _umask, "max_run_subjobs": _limit,
}  # fmt: skip
