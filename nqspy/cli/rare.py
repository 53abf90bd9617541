"""Options that few submissions have: how each reads its value. Only loaded when one is given."""

from nqspy.cli.fast import Given
from nqspy.cli.sheet import RequestSheet
from nqspy.cli.words import AFTER_WORDS
from nqspy.model.amounts import Wrong, parse_count, parse_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_STREAMS = (("o", "stdout"), ("e", "stderr"))


def _nothing(draft: RequestSheet, given: Given) -> None:
    """What is always so: ``-f`` asks qsub not to go on in the background."""


def _refused(draft: RequestSheet, given: Given) -> None:
    raise Wrong(f"{given.target} is not offered here; leave {given.flag} out")


def _deletion(draft: RequestSheet, given: Given) -> None:
    """``-d``: in PBS a folder; in NQS, without one, the script is deleted."""
    if given.value:
        _folder(draft, given)
    elif draft.dialect == "pbs":
        raise Wrong("it needs the folder to start in")
    else:
        draft.delete_script = True


def _folder(draft: RequestSheet, given: Given) -> None:
    """The folder the job starts in."""
    from nqspy.cli.paths import start_folder

    draft.spec["start_in"] = start_folder(draft.workdir, given.value)


def _nice(draft: RequestSheet, given: Given) -> None:
    draft.ask["nice"] = parse_number(given.value, 0, 39)


def _keep(draft: RequestSheet, given: Given) -> None:
    value = given.value
    if not value or value.strip("oedn") or ("n" in value and len(value) > 1):
        raise Wrong(f"{value!r} is none of n or letters of o, e, d")
    way = "direct" if "d" in value else "keep"
    for letter, stream in _STREAMS:
        if letter in value:
            draft.output[f"{way}_{stream}"] = True


def _removal(draft: RequestSheet, given: Given) -> None:
    """``-R``: what is removed at the end is delivered nowhere; until then `qcat` shows it."""
    value = given.value
    if not value or value.strip("oe"):
        raise Wrong(f"{value!r} is no letters of o, e")
    for letter, stream in _STREAMS:
        if letter in value:
            draft.output[stream] = "/dev/null"
    draft.notes.append(f"remove:{value}")


def _mail_letters(draft: RequestSheet, given: Given) -> None:
    value = given.value
    if "j" in value and not value.strip("abej"):
        raise Wrong(f"{value!r}: mail for each index of an array (j) is not offered; leave the j out")
    if not value or value.strip("aben") or ("n" in value and value.strip("n")):
        raise Wrong(f"{value!r} is none of n or letters of a, b, e")
    for letter, name in (("a", "abort"), ("b", "begin"), ("e", "end")):
        draft.mail[name] = letter in value


def _checkpoint(draft: RequestSheet, given: Given) -> None:
    value = given.value
    if value == "wd":
        raise Wrong(
            "'wd' is no checkpoint interval; if Grid Engine's -cwd is meant: a request starts in its "
            "owner's home, let the script begin with: cd $QSUB_WORKDIR"
        )
    if draft.dialect == "pbs":
        letter, equals, minutes = value.partition("=")
        if letter not in ("n", "s", "c", "w", "u") or (equals and letter not in ("c", "w")):
            raise Wrong(f"{value!r} is none of n, s, c, c=MINUTES, w, w=MINUTES, u")
        if equals and parse_count(minutes) < 1:
            raise Wrong(f"{minutes!r} is no number of minutes")
    draft.notes.append(f"checkpoint:{value}")


def _prefix_or_note(draft: RequestSheet, given: Given) -> None:
    """``-C``: what PBS directives begin with has been used for finding them."""
    if draft.dialect != "pbs" and given.value[:1] not in ("#", ""):
        draft.notes.append(f"compartment:{given.value}")


def _after(draft: RequestSheet, given: Given) -> None:
    id, colon, word = given.value.partition(":")
    if not id or (colon and word not in AFTER_WORDS):
        raise Wrong(
            f"{given.value!r} is no dependency; write it like 17, 17:ok, 17:any, 17:fail, 17:start, 17[]:each"
        )
    draft.notes.append(f"after:{id}:{word or 'ok'}")


def _wishes(draft: RequestSheet, given: Given) -> None:
    from nqspy.cli.wishes import take

    take(draft, given)


TAKE: "dict[str, Callable[[RequestSheet, Given], None]]" = {
    "nothing": _nothing, "refused": _refused, "refused_value": _refused, "deletion": _deletion,
    "folder": _folder, "nice": _nice, "keep": _keep, "removal": _removal, "mail_letters": _mail_letters,
    "checkpoint": _checkpoint, "prefix_or_note": _prefix_or_note, "after": _after, "wishes": _wishes,
}  # fmt: skip
"""Kind of option -> its reader."""
