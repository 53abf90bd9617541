"""``qselect``: identifiers of the jobs that meet all criteria (pbs-clients.md 9), and these criteria."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from nqspy.answers.choice import owners, queue_of
from nqspy.answers.pbs_jobs import listing_of
from nqspy.answers.serving import Serving
from nqspy.model.errors import BadValue, Refusal
from nqspy.model.ids import full_id
from nqspy.model.options import OPTIONS
from nqspy.model.units import parse_size, parse_time
from nqspy.qmgr.dates import parse_date
from nqspy.report import pbs_attributes
from nqspy.report.pbs_attributes import Subject, notes_of
from nqspy.report.time_text import Zone
from nqspy.rpc import server as rpc

Criterion = Callable[[Subject], bool]
"""Function that returns True for a job to list."""
ReadDate = Callable[[str], int]
"""Function that returns the instant of a PBS date. Raises BadValue."""
Compare = Callable[[Any, Any], bool]

_COMPARE: Mapping[str, Compare] = {
    ".eq.": operator.eq, ".ne.": operator.ne, ".ge.": operator.ge, ".gt.": operator.gt, ".le.": operator.le,
    ".lt.": operator.lt,
}  # fmt: skip
_SIGNS = " ".join(_COMPARE)
_STATES = "BEFHMQRSTUWX"
_HOLDS = "nuops"
_RESOURCE = re.compile(r"([a-z_]+)(?:(\.[a-z]{2}\.)|=)(.+)", re.DOTALL)
_INTERVAL = re.compile(r"([nsuc])|([cw])=([0-9]{1,9})|w")
_DATE = re.compile(r"(?:([0-9]{2})?([0-9]{2}))?([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})(?:\.([0-9]{2}))?")


def qselect(serving: Serving, asked: rpc.Asked) -> Iterator[bytes | Any]:
    """Yield None after slices, then a line with the full identifier of each job that meets all criteria."""
    criteria = asked.message.get("criteria") or ()
    wanted = [_criterion(serving, str(letter), str(value)) for letter, value in criteria]
    server = serving.engine.site.name

    def write(subjects: list[Subject]) -> list[str]:
        return [
            f"{full_id(each.request.seq, server)}\n" if all(test(each) for test in wanted) else ""
            for each in subjects
        ]

    (listing, _), ids = listing_of(serving, asked), list[str]()
    yield from listing.collected(ids, write)
    yield listing.answer("".join(ids))


def _criterion(serving: Serving, letter: str, value: str) -> Criterion:
    site, now = serving.engine.site, serving.clock.now()
    if letter == "q":
        queue = queue_of(site, value)
        return lambda subject: queue in ("", subject.request.queue)
    if letter == "u":
        users = owners(serving, value)
        return lambda subject: subject.request.owner in users
    if letter not in _MAKERS:
        raise Refusal("bad_criterion", option=letter, value=value, wanted="qselect has no such option")
    try:
        return _MAKERS[letter](value, lambda text: _date(text, now, site.timezone))
    except BadValue as error:
        raise Refusal("bad_criterion", option=letter, value=value, wanted=error) from None


def _date(text: str, now: int, zone: str) -> int:
    """Return the instant of ``[[CC]YY]MMDDhhmm[.SS]`` (default: this year), or of a date of ``qsub -a``.
    Raises BadValue."""
    found, here = _DATE.fullmatch(text.strip()), Zone(zone)
    if found is None:
        return parse_date(text, now, zone)
    this = here.local(now).year
    century, short, *rest = found.groups()
    year = this if short is None else int(f"{century or (19 if int(short) > 68 else 20)}{short}")
    month, day, hour, minute, second = (int(each or 0) for each in rest)
    try:
        return here.instant(datetime(year, month, day, hour, minute, second))
    except (ValueError, OverflowError):
        raise BadValue(f"{text!r} is not a date; write it like 202603022100") from None


def _compared(value: str) -> tuple[Compare, str]:
    """Return the comparison at the beginning of a value (default: equality), and the rest."""
    sign = value[:4]
    if sign in _COMPARE:
        return _COMPARE[sign], value[4:]
    if value[:1] == "." and value[3:4] == ".":
        raise BadValue(f"{sign} must be one of {_SIGNS}")
    return operator.eq, value


def _holds(compare: Compare, have: Any, wanted: Any) -> bool:
    """True if the comparison holds. A missing value is unequal to anything, and nothing else."""
    return compare is operator.ne if have is None else bool(compare(have, wanted))


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,15}", text.strip()):
        raise BadValue(f"{text!r} is not a whole number")
    return int(text)


def _by(read: Callable[[str], Any], have: Callable[[Subject], Any]) -> Callable[[str, ReadDate], Criterion]:
    """Return a function that makes a criterion: it compares a job's ``have`` with a value as ``read`` reads
    it. ``read`` raises BadValue."""

    def made(value: str, date: ReadDate) -> Criterion:
        compare, text = _compared(value)
        wanted = read(text)
        return lambda subject: _holds(compare, have(subject), wanted)

    return made


def _interval(text: str) -> tuple[int, int, str]:
    """Return a checkpoint interval as a tuple that sorts ``n > s > c=MINUTES > c > u``. Raises BadValue."""
    if (rank := _rank(text)) is None:
        raise BadValue("write n, s, c, c=MINUTES, w, w=MINUTES or u")
    return rank


def _rank(text: str) -> tuple[int, int, str] | None:
    found = _INTERVAL.fullmatch(text.strip())
    if found is None:
        return None
    minutes = int(found[3] or 0)
    return {"n": 4, "s": 3, "u": 0}.get(text.strip(), 2 if minutes else 1), minutes, text.strip()[:1]


def _hold_list(text: str) -> frozenset[str]:
    if not text or text.strip(_HOLDS) or ("n" in text and set(text) != {"n"}):
        raise BadValue("write n alone, or letters of u, o, p, s")
    return frozenset(text) - {"n"}


_READERS: Mapping[str, Callable[[str], Any]] = {"time": parse_time, "size": parse_size, "names": str}
_RESOURCES = {
    option.pbs.removeprefix("Resource_List/"): _READERS.get(option.unit, _number)
    for option in OPTIONS
    if option.pbs.startswith("Resource_List/")
} | {"nodect": _number, "nodes": str, "place": str, "select": str, "software": str}
"""Functions that read values of resources, by PBS's name."""


def _resources(value: str, date: ReadDate) -> Criterion:
    tests = [_resource(piece.strip()) for piece in value.split(",")]
    return lambda subject: all(test(pbs_attributes.resource_list(subject.request.spec)) for test in tests)


def _resource(piece: str) -> Callable[[Mapping[str, str | int]], bool]:
    found = _RESOURCE.fullmatch(piece)
    if found is None:
        raise BadValue("write a name, a comparison and a value: mem.ge.1gb,ncpus.eq.2")
    name, sign, text = found[1], found[2] or ".eq.", found[3]
    if sign not in _COMPARE:
        raise BadValue(f"{sign} must be one of {_SIGNS}")
    read = _RESOURCES.get(name)
    if read is None:
        raise BadValue(f"there is no resource {name}; resources: {' '.join(sorted(_RESOURCES))}")
    compare, wanted = _COMPARE[sign], read(text)
    if read is str and sign not in (".eq.", ".ne."):
        raise BadValue(f"{name} is a text; compare it with .eq. or .ne. only")
    return lambda asked: _holds(compare, None if name not in asked else read(str(asked[name])), wanted)


def _rerunable(value: str, date: ReadDate) -> Criterion:
    if value.strip() not in ("y", "n"):
        raise BadValue("write y or n")
    return lambda subject: subject.request.spec.rerunnable == (value.strip() == "y")


def _states(value: str, date: ReadDate) -> Criterion:
    compare, text = _compared(value)
    if not text.strip() or text.strip().strip(_STATES):
        raise BadValue(f"write letters of {' '.join(_STATES)}")
    if compare not in (operator.eq, operator.ne):
        raise BadValue("states have no order; compare them with .eq. or .ne. only")
    among = compare is operator.eq
    return lambda subject: (pbs_attributes.letter_of(subject) in text) == among


_MOMENTS: Mapping[str, Callable[[Subject], int | None]] = {
    "a": lambda subject: subject.request.spec.eligible,
    "c": lambda subject: subject.request.submitted,
    "e": pbs_attributes.eligible_since,
    "m": pbs_attributes.changed,
    "q": lambda subject: subject.request.date_in_queue,
    "s": lambda subject: subject.request.started,
}


def _times(value: str, date: ReadDate) -> Criterion:
    """Return the criterion on a time of a job, named by a letter, compared in whole seconds."""
    moment = _MOMENTS.get(value[:1])
    if moment is None:
        gaps = {"g": "eligible_time is not recorded", "t": "estimated starts are not recorded; see qstat -T"}
        raise BadValue(gaps.get(value[:1], f"begin it with one of {' '.join(_MOMENTS)}"))
    compare, text = _compared(value[1:])
    at = date(text) // 1000
    return lambda subject: _holds(compare, None if (had := moment(subject)) is None else had // 1000, at)


_MAKERS: Mapping[str, Callable[[str, ReadDate], Criterion]] = {
    "a": lambda value, date: _times(f"a{value}", date),
    "A": lambda value, date: lambda subject: subject.request.spec.account == value,
    "c": _by(_interval, lambda subject: _rank(pbs_attributes.checkpoint(notes_of(subject.request.spec)))),
    "h": _by(_hold_list, lambda subject: frozenset(subject.request.letters)),
    "l": _resources,
    "N": lambda value, date: lambda subject: subject.request.name == value,
    "p": _by(_number, lambda subject: subject.request.spec.priority or 0),
    "P": lambda value, date: lambda subject: pbs_attributes.project(subject.request.spec) == value,
    "r": _rerunable,
    "s": _states,
    "t": _times,
}
