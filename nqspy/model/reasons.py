"""Reasons why a request does not start now, with codes and the name of what refuses; *later*, *never* and
*broken* have different codes. A reason is data: kind, source, a few values. A file that gives reasons
declares their kinds with their sentences (`reason_kinds`), and all together are the catalogue `KINDS`. No
code reads a text to learn what a reason means."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from math import nan
from string import Formatter
from typing import Annotated, Any

import msgspec
from msgspec import Struct, field

from nqspy.model.ids import Instant, Seq
from nqspy.model.units import format_size, format_span


class ReasonCode(StrEnum):
    """Code of what blocks a request: a stable word for programs."""

    LIMIT = "LIMIT"
    NO_PES = "NO_PES"
    NO_UNITS = "NO_UNITS"
    DEPENDENCY = "DEPENDENCY"
    EXIT = "EXIT"
    LINE_CLOSED = "LINE_CLOSED"
    SHIFT = "SHIFT"
    HELD = "HELD"
    DATE = "DATE"
    RESERVED = "RESERVED"
    STOPPED = "STOPPED"
    LATER = "LATER"
    NEVER = "NEVER"
    RESOURCE = "RESOURCE"
    MEMORY = "MEMORY"
    SUSPENDED = "SUSPENDED"


class Sentence:
    """A sentence with gaps in braces: for its source, and for values in the order in which they are first
    named (``values``: how many). Text behind a colon says how a value is written: in a unit (``{most:size}``,
    ``time``), by `format` (``{percent:g}``), with words around ``*`` (``{since: since *}``), or with one text
    for 1 and another for more (``{pes:a PE is|* PEs are}``). The last two leave out None and empty text."""

    __slots__ = ("_parts", "values")

    def __init__(self, text: str) -> None:
        parts = [(words, name or "who", spec) for words, name, spec, _ in Formatter().parse(text)]
        places = {name: place for place, name in enumerate(dict.fromkeys(["who", *(p[1] for p in parts)]))}
        self.values = len(places) - 1
        self._parts = [(words, places[name], _writer(spec)) for words, name, spec in parts]

    def say(self, who: str, values: Sequence[Any]) -> str:
        """Return the sentence with its gaps filled by the source and the values."""
        given = (who, *values)
        return "".join([words + write(given[place]) for words, place, write in self._parts])


_UNITS: dict[str, Callable[[Any], str]] = {"size": format_size, "time": format_span}


def _writer(spec: str | None) -> Callable[[Any], str]:
    """Return a function that writes a value as a gap asks (None: the text behind the last gap)."""
    if spec is None:
        return lambda value: ""
    if "*" not in spec and "|" not in spec:
        return _UNITS.get(spec) or (lambda value: format(value, spec))
    one, _, many = spec.partition("|")

    def written(value: Any) -> str:
        text = many if many and value != 1 else one
        return "" if value is None or value == "" else text.replace("*", str(value))

    return written


NEEDED = {
    "LIMIT": "a request that counts toward this limit must end, or the limit must be raised",
    "NO_PES": "enough PEs must become free",
    "NO_UNITS": "requests that hold units must end",
    "DEPENDENCY": "that must happen, or an operator must release it: qrls -h s {id}",
    "EXIT": "the user exit must let it start; later passes ask it again",
    "LINE_CLOSED": "the request in front must start",
    "SHIFT": "a shift that lets it run must begin",
    "HELD": "it must be released: qrls {id}",
    "DATE": "its start date must be reached",
    "RESERVED": "the request with the reservation must start",
    "MEMORY": "memory must become free",
    "STOPPED": "an operator or a shift must start its queue",
    "SUSPENDED": "who suspended it, or an operator, must resume it: qresume {id}",
    "RESOURCE": "the probe must succeed again; the request needs no action",
    "NEVER": "the request or the settings must change",
    "LATER": "nothing: the next scheduling pass examines it",
}
"""What must happen, by the code of the reason, where its kind says nothing else; ``{id}``: of the request."""

Value = str | int | float | None
Values = Annotated[tuple[Value, ...], msgspec.Meta(max_length=8)]


class Reason(Struct, frozen=True):
    """Reason for which a request does not start. ``kind``: name in `KINDS`; ``who``: source (``complex x``);
    ``values``: for its sentence; ``until``: when it ends, if known; ``ahead``: number of requests ahead."""

    kind: str
    who: str
    values: Values = ()
    until: Instant | None = None
    ahead: int = 0

    @property
    def code(self) -> ReasonCode:
        """Code of what blocks the request."""
        return KINDS[self.kind].code

    @property
    def text(self) -> str:
        """Sentence of the reason, made anew each time."""
        text = KINDS[self.kind].sentence.say(self.who, self.values)
        ahead = f"{self.ahead} requests are" if self.ahead > 1 else "1 request is"
        return f"{text}; {ahead} ahead" if self.ahead else text

    @property
    def needed(self) -> str:
        """Text of what must happen so that this reason no longer blocks (`NEEDED`)."""
        return KINDS[self.kind].needed or NEEDED[self.code]

    def matches(self, **fields: object) -> bool:
        """True if the given fields have the given values (for tests)."""
        return all(getattr(self, name) == value for name, value in fields.items())


class ReasonKind(Struct, frozen=True):
    """A kind of reason: its ``sentence``, and what is ``needed`` to end it (empty: what its code says)."""

    name: str
    code: ReasonCode
    sentence: Sentence
    needed: str

    def __call__(self, who: str, *values: Value, until: Instant | None = None) -> Reason:
        """Return a reason of this kind, with the values in the order of its sentence."""
        assert len(values) == self.sentence.values, self.name
        return Reason(self.name, who, values, until)


KINDS: dict[str, ReasonKind] = {}
"""All kinds of reasons by name."""


def reason_kinds(code: ReasonCode, needed: str = "", /, **sentences: str) -> tuple[ReasonKind, ...]:
    """Declare kinds of reasons of one code by name, with sentences, and return them. ``needed``: what must
    happen; empty: as the code says."""
    assert KINDS.keys().isdisjoint(sentences), sentences
    made = {name: ReasonKind(name, code, Sentence(text), needed) for name, text in sentences.items()}
    KINDS.update(made)
    return tuple(made.values())


for _code in ReasonCode:
    reason_kinds(_code, **{_code.value: "{text}"})


def quoted(code: str, who: str, text: str, until: Instant | None = None) -> Reason:
    """Return a reason of this code with the words of an exit, a person or the journal."""
    return Reason(code, who, (text,), until)


def are_sound(reasons: Iterable[Reason]) -> bool:
    """True if the kinds exist and their sentences accept these values, which a worker process has sent."""
    return all(_is_sound(*shape) for shape in {(each.kind, *map(type, each.values)) for each in reasons})


@lru_cache(1_000)
def _is_sound(name: str, *types: type) -> bool:
    kind = KINDS.get(name)
    if kind is None or len(types) != kind.sentence.values:
        return False
    try:
        return isinstance(kind.sentence.say("", [_SAMPLES[each] for each in types]), str)
    except (TypeError, ValueError):
        return False


_SAMPLES: dict[type, Value] = {str: "x", int: 0, float: nan, type(None): None}


ALIKE = ("owner", "group", "name", "queue", "cpu", "memory", "wall", "pes")
"""Fields of a request that a refusal may name to say how far it reaches: to all of the same queue that are
alike in them. ``name``: the same name, given by the owner in both cases or in neither."""


BOUNDED = ("cpu", "memory", "wall", "pes")
"""Fields of `ALIKE` that are numbers, so that a refusal may name bounds for them (`Bounds`)."""

Bounds = tuple[str, int | None, int | None]
"""A field of `BOUNDED`, its least number (None: only requests without a limit are meant), and its greatest
number (None: no upper bound)."""


class Reach(Struct, frozen=True):
    """A reason for all waiting requests of a queue with these ``fields`` and values ``within`` bounds."""

    queue: str
    fields: tuple[tuple[str, str | int | None], ...]
    reason: Reason
    within: tuple[Bounds, ...] = ()


class Reasons(Struct, frozen=True):
    """Reasons of a whole pass, without a loop over all requests. ``own``: of the examined requests;
    ``closing``: why queues started no more; ``reach``: those for many similar requests (`core.alike`)."""

    own: Mapping[Seq, Reason] = field(default_factory=dict)
    closing: Mapping[str, Reason] = field(default_factory=dict)
    reach: tuple[Reach, ...] = ()

    def of(self, seq: Seq, queue: str) -> Reason | None:
        """Return the reason of a queued request: its own, else that of its queue; None: both are unknown."""
        return self.own.get(seq) or self.closing.get(queue)
