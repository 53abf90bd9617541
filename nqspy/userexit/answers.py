"""Answers of exits: the functions that site code builds answers with, and the check of each answer."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from inspect import Parameter, Signature
from math import ceil
from typing import Any, Unpack

from msgspec import Struct, structs

from nqspy.model.actions import Redate
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import ALIKE, BOUNDED, Bounds
from nqspy.model.units import parse_size, parse_time
from nqspy.ports import CHANGEABLE, CHANGED, Answer, ChangedFields, RequestView, Selection, is_change
from nqspy.userexit.errors import sayable


class Changes(Struct, frozen=True):
    """Changed fields of a submission, made by `changes`."""

    fields: dict[str, Any]


class Nonsense(Exception):
    """An exit gave an answer that its hook does not know; the text says which answers it knows."""


def force() -> Answer:
    """Answer of jobselect: start this request past run, user and memory limits, but not past a stopped queue,
    a hold or a date."""
    return Answer("force")


def refuse(
    text: str,
    alike: Iterable[str] | None = None,
    within: Mapping[str, tuple[float | None, float | None]] | None = None,
    until: Instant | datetime | None = None,
) -> Answer:
    """Answer of jobselect: not now; of submit: not at all. The text tells the owner why.

    ``until`` (jobselect): the instant (ms, as of ``view.at("06:00")``) or datetime with its zone at which the
    exit is asked again, whatever else happens; ``qstat --why`` shows it.

    ``alike`` (jobselect): the answer also applies, for the rest of the pass, to all waiting requests of the
    same queue with equal values in these fields (`reasons.ALIKE`; ``()``: to all of the queue). ``within``
    narrows that (without ``alike`` all of the queue) to requests with numbers within bounds, both included:
    ``{"memory": (least, most)}``; whole numbers: cpu and wall in ms, memory in bytes. ``most`` None, or
    infinity as of an ``unlimited`` setting: any number, but not unlimited. ``least`` None, as of a request
    without a limit: only requests without one.
    """
    if until is not None:
        return structs.replace(refuse(text, alike, within), until=_instant("refuse", until))
    if alike is None and not within:
        return Answer("refuse", _sentence(text))
    names = (alike,) if isinstance(alike, str) else tuple(alike or ())
    for name in names:
        if name not in ALIKE:
            raise ValueError(f"refuse(): alike= must be one of {', '.join(ALIKE)}, not {name!r}")
    return Answer("refuse", _sentence(text), alike=names, within=_bounds(within) if within else ())


def _bounds(within: Mapping[str, tuple[float | None, float | None]]) -> tuple[Bounds, ...]:
    if type(within) is not dict and not isinstance(within, Mapping):
        raise TypeError(f'refuse(): within= must be like {{"memory": (least, most)}}, not {within!r}')
    for name in within:
        if name not in BOUNDED:
            raise ValueError(f"refuse(): within= must name some of {', '.join(BOUNDED)}, not {name!r}")
    found = []
    for name, pair in within.items():
        fits = type(pair) is tuple and len(pair) == 2
        if not fits or not all(type(n) is int or n is None or n == math.inf for n in pair):
            raise TypeError(f"refuse(): within= of {name} must be two whole numbers, not {pair!r}")
        found.append((name, _in_reach(pair[0]), _in_reach(pair[1])))
    return tuple(found)


def _in_reach(number: Any) -> int | None:
    """Return a number limited to what columns and messages can hold; None for None and infinity."""
    return max(-_GREATEST, min(number, _GREATEST)) if type(number) is int else None  # none, or infinite


_GREATEST = (1 << 63) - 1


def never(text: str) -> Answer:
    """Answer of jobselect: can never start under present settings; of submit: refused. The text says why."""
    return Answer("never", _sentence(text))


def hold_line(text: str, until: Instant | datetime | None = None) -> Answer:
    """Answer of jobselect: it waits, and none behind it in its queue may pass; ``until`` as in `refuse`."""
    at = None if until is None else _instant("hold_line", until)
    return Answer("hold_line", _sentence(text), until=at)


def _instant(function: str, until: Any) -> Instant:
    """Return the instant in an argument ``until``. Raises TypeError."""
    if type(until) is int and 0 <= until <= LATEST:
        return Instant(until)
    if isinstance(until, datetime) and until.tzinfo is not None:
        return Instant(ceil(until.timestamp() * 1000))
    raise TypeError(
        f'{function}(): until must be an instant in ms, such as view.at("06:00"), or a datetime with its'
        f" zone, not {until!r}"
    )


LATEST = 253_370_764_800_000
"""Latest instant (ms) that is accepted: the first of January 9999."""


def redate(what: RequestView | Selection, date: Instant) -> Redate:
    """Answer of elected: set the date in queue of a waiting request, or of all of a selection (in one event)
    and of requests like these that wait for other requests."""
    reach = getattr(what, "reach", None)
    if type(date) is not int:
        raise TypeError(f"redate(): the date must be an instant, such as now, not {date!r}")
    if callable(reach):
        return Redate(tuple(reach()), date, Seq(0), "")
    seq = getattr(what, "seq", None)
    if not isinstance(seq, int):
        raise TypeError(f"redate() needs a request or a selection, not {what!r}")
    return Redate((seq,), date, Seq(0), "")


def changes(**fields: Unpack[ChangedFields]) -> Changes:
    """Answer of submit: change these fields of the submission; others stay.

    ``date``: not before this instant; ``hold``: held as by its owner, or not; ``cpu`` and ``wall``: ms,
    ``memory``: bytes, or each as a person writes it (``"10:00"``, ``"8mw"``, ``"unlimited"``), of the whole
    request; ``output`` and ``error``: paths, relative ones to the folder of submission. Raises TypeError,
    BadValue.
    """
    made = dict[str, Any]()
    for word, value in fields.items():
        if value is None:
            continue
        if word not in CHANGEABLE:
            raise TypeError(f"changes() got an unexpected keyword argument {word!r}")
        unit = CHANGEABLE[word].unit
        is_amount = unit in ("time", "size")
        if type(value) is str and is_amount:
            value = parse_time(value) if unit == "time" else parse_size(value)
        elif type(value) is int and not -_GREATEST * (not is_amount) <= value <= _GREATEST:
            wrong = "too large" if value > 0 else "negative" if is_amount else "too small"
            raise ValueError(f"changes(): the number for {word} is {wrong}: {_short(repr(value))}")
        elif unit == "names" and isinstance(value, (list, set, frozenset)):
            value = tuple(value)
        if not is_change(word, value):
            raise TypeError(f"changes(): {word} must be {CHANGED[unit][1]}, not {_short(repr(value))}")
        texts = value if type(value) is tuple else (value,) if type(value) is str else ()
        if sum(map(len, texts)) > MOST_TEXT or any("\ud800" <= sign <= "\udfff" for sign in "".join(texts)):
            raise ValueError(f"changes(): {word} must have at most {MOST_TEXT} characters, all of Unicode")
        made[word] = value
    return Changes(made)


MOST_TEXT = 1 << 20
"""Most characters of a changed text, or of all texts of a changed list."""


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


changes.__signature__ = Signature(  # type: ignore[attr-defined]
    [
        Parameter(word, Parameter.KEYWORD_ONLY, default=None)
        for word in dict.fromkeys((*ChangedFields.__annotations__, *CHANGEABLE))
    ]
)


def _sentence(text: str) -> str:
    return _known(text) if type(text) is str and len(text) <= SHORT else _said(text)


def _said(text: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise TypeError(f"a refusal needs a text with the reason, not {text!r}")
    return sayable(" ".join(text.split()))


_known = lru_cache(1_000)(_said)
SHORT = 500
"""Longest text (characters) of an answer with a cached check: a pass refuses many for one reason."""


# Checks of the answers of each hook; they run under the guard, as part of the exit's call.


def check_jobselect(answer: Any, _: tuple[Any, ...]) -> Answer | None:
    """Return a right answer of jobselect: None, force(), refuse(...), never(...) or hold_line(...). Raises
    Nonsense for any other."""
    if answer is None or type(answer) is Answer:
        return answer
    raise _nonsense("jobselect", "None, force(), refuse(...), never(...) or hold_line(...)", answer)


def check_submit(answer: Any, _: tuple[Any, ...]) -> Answer | Changes | None:
    """Return a right answer of submit: None, refuse(), never(), changes(). Raises Nonsense for others."""
    if answer is None or type(answer) is Changes:
        return answer
    if type(answer) is Answer and answer.verdict in ("refuse", "never"):
        return answer
    raise _nonsense("submit", "None, refuse(...), never(...) or changes(...)", answer)


def check_elected(answer: Any, args: tuple[Any, ...]) -> tuple[Redate, ...]:
    """Return the redatings in a right answer of elected, without the chosen request; else raise Nonsense."""
    request, _view, now = args
    if answer is None:
        return ()
    if not isinstance(answer, (list, tuple)) or not all(type(action) is Redate for action in answer):
        raise _nonsense("elected", "a list of redate(...)", answer)
    if any(action.date > now for action in answer):
        raise Nonsense("elected answers redate(...) with a date in the future; use a date up to now")
    others = ((a, tuple(seq for seq in a.seqs if seq != request.seq)) for a in answer)
    return tuple(Redate(seqs, a.date, request.seq, "") for a, seqs in others if seqs)


def check_shrpri(answer: Any, _: tuple[Any, ...]) -> float | None:
    """Return a right answer of shrpri: a finite number from 0, or None. Raises Nonsense for any other."""
    if answer is None or (type(answer) is float and 0 <= answer < math.inf):
        return answer
    if isinstance(answer, bool) or not isinstance(answer, (int, float)) or not 0 <= answer < math.inf:
        raise _nonsense("shrpri", "a number from 0 or None", answer)
    return float(answer)


def check_route(answer: Any, args: tuple[Any, ...]) -> tuple[str, ...] | None:
    """Return a right answer of route: some of the destinations in any order, or None; else raise Nonsense."""
    destinations: Sequence[str] = args[1]
    if answer is None:
        return None
    if not isinstance(answer, (list, tuple)) or not all(d in destinations for d in answer):
        known = ", ".join(destinations) or "the queue's destinations"
        raise _nonsense("route", f"some of {known} in a list", answer)
    return tuple(answer)


def check_notice(_: Any, __: tuple[Any, ...]) -> None:
    """Accept any answer of a notice and drop it."""


CHECKS: dict[str, Callable[[Any, tuple[Any, ...]], Any]] = {
    "jobselect": check_jobselect,
    "submit": check_submit,
    "elected": check_elected,
    "shrpri": check_shrpri,
    "route": check_route,
}
"""The check of each hook that decides; all others are notices."""


def _words(answer: Any) -> str:
    """Return an answer as site code writes it."""
    if type(answer) is Answer:
        text = '"' + answer.text.replace('"', "'") + '"' if answer.text else ""
        return f"{answer.verdict}({text})"
    if type(answer) is Changes:
        return f"changes({', '.join(f'{name}={value!r}' for name, value in answer.fields.items()) or '...'})"
    if type(answer) is Redate:
        return "redate(...)"
    if type(answer) in (list, tuple):
        return f"[{', '.join(map(_words, answer))}]"
    return repr(answer)


def _nonsense(hook: str, known: str, answer: Any) -> Nonsense:
    return Nonsense(f"{hook} must answer {known}, not {_short(_words(answer))}")
