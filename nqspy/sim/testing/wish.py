"""Requests as a test asks for them."""

from collections.abc import Callable, Mapping
from typing import Any

from nqspy.model import indices
from nqspy.model.arrays import ArraySpec
from nqspy.model.errors import NqspyError
from nqspy.model.options import OPTIONS
from nqspy.model.requests import AFTER_WORDS, AfterWord, Ask, Spec
from nqspy.model.units import parse_size, parse_time
from nqspy.sim.testing.record import BadStory

Amount = str | int | float | None
"""A time (``"10:00"``, seconds) or a size (``"8mw"``, bytes) as people write it; None: not asked for."""
_READ: Mapping[str, Callable[[Any], Any]] = {
    "time": lambda value: parse_time(str(value)),
    "size": lambda value: parse_size(str(value)),
    **dict.fromkeys(("count", "number", "flag", "name"), lambda value: value),
}
_OPTIONS = {
    option.python: option
    for option in OPTIONS
    if option.python and option.unit in _READ and option.path not in ("name", "queue", "output/join")
}


def spec_of(own: dict[str, Any], ask: dict[str, Any], options: Mapping[str, Any], array: str | None) -> Spec:
    """Return a request's specification as qsub sends it: fields ``own`` and, of `Ask`, ``ask``; ``options``
    by their names in Python; ``array`` like ``1-10%2``. Raises BadStory for a wrong option or amount."""
    try:
        for name, value in options.items():
            if name not in _OPTIONS:
                raise BadStory(f"a request has no option {name}; it has {', '.join(_OPTIONS)}")
            if value is not None:
                head, _, rest = _OPTIONS[name].path.partition("/")
                (ask if head == "ask" else own)[rest or head] = _READ[_OPTIONS[name].unit](value)
        if array is not None:
            runs, percent, limit = array.partition("%")
            own["array"] = ArraySpec(indices.read(runs), int(limit) if percent else None)
    except NqspyError as error:
        raise BadStory(str(error)) from None
    return Spec(ask=Ask(**ask), **own)


def read_after(text: str) -> tuple[str, AfterWord]:
    """Return the name in ``a`` or ``a:any``, and the condition (``ok`` if none is given). Raises BadStory."""
    name, _, when = text.partition(":")
    word = next((each for each in AFTER_WORDS if each == (when or "ok")), None)
    if word is None:
        raise BadStory(f"{text!r}: behind the colon stands one of {', '.join(AFTER_WORDS)}")
    return name, word
