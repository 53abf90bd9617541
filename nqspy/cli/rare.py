"""Readers of rare options, PBS's ``-W`` among them. Loaded only when used."""

import os

from nqspy.cli.fast import Given
from nqspy.cli.sheet import RequestSheet
from nqspy.cli.words import AFTER_WORDS, split_list
from nqspy.model import keys
from nqspy.model.amounts import Wrong, parse_count, parse_number

_STREAMS = (("o", "stdout"), ("e", "stderr"))

DEPEND = {"after": "start", "afterok": "ok", "afternotok": "fail", "afterany": "any"}
"""PBS's types of dependency that are offered, with ours; Slurm has the same and one more."""

_WISHES = ("depend", "block", "umask", "max_run_subjobs")
NOT_OFFERED = {
    "group_list": "a request runs with the group of its submitter; run newgrp first",
    "sandbox": "a request starts in the home folder, or in the folder of -d",
    "stagein": "files are not copied; fetch them in the script",
    "stageout": "files are not copied; move them in the script",
    "run_count": "the number of runs cannot be set",
    "interactive": "write -I on the command line",
}
"""Attributes of ``-W`` that PBS has and nqspy has not, and what to do instead."""


def add(draft: RequestSheet, given: Given) -> None:
    """Apply one rare option to the request. Raises Wrong."""
    kind, value = given.kind, given.value
    if kind in ("refused", "refused_value"):
        raise Wrong(f"{given.target} is not offered here; leave {given.flag} out")
    if kind == "folder" or (kind == "deletion" and value):
        if not value:
            raise Wrong("the path is empty")
        folder = os.path.join(draft.workdir, value)
        if not os.path.isdir(folder):
            raise Wrong(f"there is no folder {folder}")
        draft.spec["start_in"] = folder
    elif kind == "deletion":  # in PBS a folder; in NQS, without one, the script is deleted
        if draft.dialect == "pbs":
            raise Wrong("give the folder to start in")
        draft.delete_script = True
    elif kind == "nice":
        draft.ask["nice"] = parse_number(value, 0, 39)
    elif kind == "keep":
        if not value or value.strip("oedn") or ("n" in value and len(value) > 1):
            raise Wrong(f"{value!r} must be n or letters of o, e, d")
        way = "direct" if "d" in value else "keep"
        draft.output |= {f"{way}_{stream}": True for letter, stream in _STREAMS if letter in value}
    elif kind == "removal":  # files removed at the end are not delivered; until then `qcat` shows them
        if not value or value.strip("oe"):
            raise Wrong(f"{value!r} must be letters of o, e")
        draft.output |= {stream: "/dev/null" for letter, stream in _STREAMS if letter in value}
        draft.notes.append(f"remove:{value}")
    elif kind == "mail_letters":
        if "j" in value and not value.strip("abej"):
            raise Wrong(f"{value!r}: mail for each index of an array (j) is not offered; leave the j out")
        if not value or value.strip("aben") or ("n" in value and value.strip("n")):
            raise Wrong(f"{value!r} must be n or letters of a, b, e")
        draft.mail |= {"abort": "a" in value, "begin": "b" in value, "end": "e" in value}
    elif kind == "checkpoint":
        _checkpoint(draft, value)
    elif kind == "prefix_or_note":  # the prefix of PBS directives was already used to find them
        if draft.dialect != "pbs" and value[:1] not in ("#", ""):
            draft.notes.append(f"compartment:{value}")
    elif kind == "after":
        id, colon, word = value.partition(":")
        if not id or (colon and word not in AFTER_WORDS):
            way = "write it like 17, 17:ok, 17:any, 17:fail, 17:start, 17[]:each"
            raise Wrong(f"{value!r} is not a dependency; {way}")
        draft.notes.append(f"after:{id}:{word or 'ok'}")
    elif kind == "wishes":
        _add_wishes(draft, given)
    else:
        assert kind == "nothing"  # this is always so: -f asks qsub not to go on in the background


def _checkpoint(draft: RequestSheet, value: str) -> None:
    if value == "wd":
        raise Wrong(
            "'wd' is not a checkpoint interval; for Grid Engine's -cwd begin the script with:"
            " cd $QSUB_WORKDIR"
        )
    if draft.dialect == "pbs":
        letter, equals, minutes = value.partition("=")
        if letter not in ("n", "s", "c", "w", "u") or (equals and letter not in ("c", "w")):
            raise Wrong(f"{value!r} must be n, s, c, c=MINUTES, w, w=MINUTES or u")
        if equals and parse_count(minutes) < 1:
            raise Wrong(f"{minutes!r} is not a whole number of minutes from 1 upward")
    draft.notes.append(f"checkpoint:{value}")


def _add_wishes(draft: RequestSheet, given: Given) -> None:
    """Apply one ``-W``; among directives the first value of an attribute counts, else the last."""
    for name, value in _attributes(given.value):
        if given.place and name in draft.wished:
            continue
        if name == "depend":
            draft.depends.clear()
            for each in value.split(","):
                kind, *ids = each.strip().split(":")
                if kind.startswith(("before", "on")) and kind not in DEPEND:
                    way = "submit the first request, then the other with depend=afterok:ID"
                    raise Wrong(f"depend={each}: {kind} is not offered here; {way}")
                if kind not in DEPEND or not ids or not all(ids):
                    raise Wrong(f"depend={each} is not a dependency; write it like afterok:17:18")
                draft.depends += [f"after:{id.partition('@')[0]}:{DEPEND[kind]}" for id in ids]
        elif name == "block":
            if value.lower() not in ("true", "false", "t", "f", "y", "n", "1", "0"):
                raise Wrong(f"block={value} must be true or false")
            draft.block = value.lower() in ("true", "t", "y", "1")
        elif name == "umask":
            if value.strip("01234567") or int(value, 8) > 0o777:
                raise Wrong(f"umask={value} is not a umask; write it in octal, like 022")
            draft.spec["umask"] = int(value, 8)
        elif name == "max_run_subjobs":
            draft.array_limit = parse_number(value, 0, keys.MOST_INDICES)
        elif name in NOT_OFFERED:
            raise Wrong(f"{name} is not offered here: {NOT_OFFERED[name]}")
        else:
            raise Wrong(f"there is no attribute {name}; attributes: {', '.join(_WISHES)}")
        draft.wished.add(name)


def _attributes(text: str) -> list[tuple[str, str]]:
    """Return the names and values of a ``-W``; a piece without ``=`` continues the value before it."""
    found: list[tuple[str, str]] = []
    for piece in split_list(text):
        name, equals, value = piece.strip().partition("=")
        if equals and name:
            found.append((name.strip(), value.strip("'\" ")))
        elif found and piece.strip():
            found[-1] = (found[-1][0], f"{found[-1][1]},{piece.strip()}")
        else:
            raise Wrong(f"{piece!r} is not NAME=VALUE, such as block=true")
    if not all(value for _, value in found):
        raise Wrong("an attribute has no value; write it like depend=afterok:17")
    return found


_UNITS = {
    "second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600, "h": 3600, "day": 86_400,
    "d": 86_400, "week": 604_800,
}  # fmt: skip


def parse_date(text: str, now_ms: int, zone: str) -> int:
    """Return the instant (ms) of ``now``, ``now+90`` (s), ``now+2hours`` or a date of qmgr. Raises Wrong."""
    from nqspy.model.errors import BadValue
    from nqspy.qmgr import dates

    word, plus, more = text.replace(" ", "").lower().partition("+")
    if word != "now":
        try:
            return dates.parse_date(text, now_ms, zone)
        except BadValue as error:
            raise Wrong(str(error)) from None
    digits = more.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = more[len(digits) :].removesuffix("s") or "second"
    if not plus:
        return now_ms
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10) or unit not in _UNITS:
        raise Wrong(f"{text!r} is not a date; write it like now+30sec, now+90minutes, now+2hours, now+1day")
    return now_ms + int(digits) * _UNITS[unit] * 1000
