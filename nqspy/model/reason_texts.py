"""What the sentences of reasons are written in, and what must happen to those that wait, by the code of their
reason.

A reason is data (`reasons`); its text is made when somebody asks for it: an answer, a report, an event that
keeps it. That stands in `model`, below all of them, since the simulator and the tests of core print reasons
too, and no driver is there then.
"""

from collections.abc import Callable, Sequence
from string import Formatter
from typing import Any

from nqspy.model.units import format_size, format_time


class Sentence:
    """A sentence with gaps in braces: for ``who`` says so, and for values, which are given in the order in
    which they are named first (so many are they: ``values``).

    Behind a colon stands how a value is written: in a unit (``{most:size}``, ``time``), as `format` has it
    (``{percent:g}``), with words around it, for which ``*`` stands (``{since: since *}``), or in one way for
    1 and another for more (``{pes:a PE is|* PEs are}``); of None and of an empty text the last two write
    nothing.
    """

    __slots__ = ("_parts", "values")

    def __init__(self, text: str) -> None:
        parts = [(words, name or "who", spec) for words, name, spec, _ in Formatter().parse(text)]
        places = {name: place for place, name in enumerate(dict.fromkeys(["who", *(p[1] for p in parts)]))}
        self.values = len(places) - 1
        self._parts = [(words, places[name], _writer(spec)) for words, name, spec in parts]

    def say(self, who: str, values: Sequence[Any]) -> str:
        """The sentence, its gaps filled."""
        given = (who, *values)
        return "".join([words + write(given[place]) for words, place, write in self._parts])


_UNITS: dict[str, Callable[[Any], str]] = {"size": format_size, "time": format_time}


def _writer(spec: str | None) -> Callable[[Any], str]:
    """What writes a value as a gap wants it (None: the end of a sentence is no gap)."""
    if spec is None:
        return lambda value: ""
    if "*" not in spec and "|" not in spec:
        return _UNITS.get(spec) or (lambda value: format(value, spec))
    one, _, many = spec.partition("|")

    def written(value: Any) -> str:
        said = many if many and value != 1 else one
        return "" if value is None or value == "" else said.replace("*", str(value))

    return written


NEEDED = {
    "LIMIT": "a request that counts against this limit must end, or the limit be raised",
    "NO_PES": "enough PEs must become free",
    "NO_UNITS": "enough units must become free: requests that hold them must end",
    "DEPENDENCY": "what it waits for must come about, or an operator release it (qrls -h s)",
    "EXIT": "the site's exit must let it pass",
    "LINE_CLOSED": "the request that closes the line must start",
    "SHIFT": "a shift that lets it run must come",
    "HELD": "its hold must be taken off (qrls)",
    "DATE": "its date must come",
    "RESERVED": "the reservation must be over",
    "MEMORY": "less memory must be in use",
    "STOPPED": "an operator or a shift must start its queue",
    "SUSPENDED": "an operator must let it go on (resume request {id})",
    "RESOURCE": "its probe must find the resource well again; it goes on by itself then",
    "NEVER": "nothing will help as things are: change what it asks for, or the settings",
    "LATER": "the next pass looks at it again",
}
"""What must happen, by the code of the reason, where its kind says nothing else; ``{id}``: of the request."""
