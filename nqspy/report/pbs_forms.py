"""Attributes of jobs, queues, servers and nodes as PBS's commands print them: text, JSON and DSV
(pbs-clients.md 8.3, 8.4)."""

import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import count
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from nqspy.model.errors import Refusal, listed
from nqspy.model.ids import Instant, Seq, full_id
from nqspy.model.requests import Spec, State
from nqspy.report.pbs_attributes import (
    PbsContext,
    Subject,
    Value,
    asked_for,
    attributes,
    is_alike,
    moving,
    standing,
)
from nqspy.report.pbs_values import VariableList, is_number, on_a_line

FORMS = ("text", "json", "dsv")

WIDTH = 78
"""Columns that a line of the full form does not reach."""
_TAB = 8
"""Columns of the tab that begins what a line goes on with."""
_LINES_OF_OURS = re.compile("(?<=Job I)(?=d:)|(?<=job_state )(?==)")
"""Where what a user wrote would be taken for a line of ours by programs that look for these words."""
_TEXTS = ("Job_Name", "project", "Account_Name", "comment")
"""Texts even where they read as a number."""

_encode = msgspec.json.Encoder().encode
_quoted = json.encoder.encode_basestring_ascii

_BEGIN_NUMBERS = "-0123456789"
_MOST_TEMPLATES, _WORTH_SHARING = 1_000, 64
_BETWEEN = "<|>"
"""What stands between parts that are escaped together: it is the same escaped, and cannot overlap with
itself."""
_CUT = _BETWEEN.encode()


class PbsLayout(Protocol):
    """Layout of an object in a form: its beginning, each attribute, its end. ``between``: how many characters
    of an attribute stand there only if another is before it."""

    between: ClassVar[int]

    def begin(self, name: str) -> str:
        """Text before the attributes."""

    def attribute(self, name: str, value: Value) -> str:
        """An attribute; resources each for itself."""

    def slot(self, name: str) -> tuple[str, str]:
        """Text before and behind a `value` in an attribute."""

    def value(self, name: str, value: str) -> str:
        """A text as it stands in an attribute of that name."""

    def end(self) -> str:
        """Text behind the attributes."""


def layout(wish: Mapping[str, Any], kind: str, indent: str = "    ", dsv: str = "") -> PbsLayout:
    """The layout that a question wishes: ``format``, ``delimiter``, and among its ``letters`` w or 1 where no
    line is to be folded. Raises Refusal for a format that there is not."""
    form = str(wish.get("format") or "text")
    if form not in FORMS:
        raise Refusal("bad_format", form=form, known=listed(FORMS))
    if form == "json":
        return JsonLayout()
    if form == "dsv":
        return DsvLayout(dsv or kind, str(wish.get("delimiter") or "|"))
    return TextLayout(kind, not {"w", "1"}.isdisjoint(str(wish.get("letters") or "")), indent)


def written(layout: PbsLayout, name: str, attributes: Mapping[str, Value]) -> str:
    """An object as a form writes it."""
    middle = [layout.attribute(key, value) for key, value in attributes.items()]
    return "".join([layout.begin(name), "".join(middle)[layout.between :], layout.end()])


# ---------------------------------------------------------------- text


class TextLayout(Struct, frozen=True):
    """The full form: ``Job Id: 17.ymp`` (``kind``: what stands before the name), a line for each attribute,
    and an empty one. ``one_line``: none is folded."""

    between: ClassVar[int] = 0
    kind: str
    one_line: bool = False
    indent: str = "    "

    def begin(self, name: str) -> str:
        """The first line."""
        return f"{self.kind}{name}\n"

    def attribute(self, name: str, value: Value) -> str:
        """A line, or one for each resource."""
        if isinstance(value, dict):
            return "".join([self.attribute(f"{name}.{key}", each) for key, each in value.items()])
        return f"{self._line(name, text_of(value))}\n"

    def slot(self, name: str) -> tuple[str, str]:
        """Nothing but the line's end: where a line may be folded depends on the whole of it."""
        return "", "\n"

    def value(self, name: str, value: str) -> str:
        """The line."""
        return self._line(name, on_a_line(value))

    def _line(self, name: str, text: str) -> str:
        line = f"{self.indent}{name} = {text}"
        return line if self.one_line else folded(line, len(self.indent) + len(name) + 3)

    def end(self) -> str:
        """An empty line."""
        return "\n"


def text_of(value: Value) -> str:
    """A value that is no list of resources as text on one line."""
    return value.text if isinstance(value, VariableList) else on_a_line(str(value))


def folded(line: str, begin: int = 0) -> str:
    """A line cut at its commas where it would reach 78 columns, and anywhere in a piece that is longer; what
    it goes on with begins with a tab. Without newlines followed by tabs it is the line again. ``begin``:
    where the value does."""
    if len(line) < WIDTH and "Job Id:" not in line and "job_state =" not in line[5:]:
        return line
    lines, current, column = [], line[:begin], begin
    for piece in _pieces(line[begin:]):
        if column + len(piece) >= WIDTH and column > max(begin, _TAB):
            lines.append(current)
            current, column = "\t", _TAB
        while column + len(piece) >= WIDTH:
            room = WIDTH - 1 - column
            lines.append(current + piece[:room])
            current, column, piece = "\t", _TAB, piece[room:]
        current += piece
        column += len(piece)
    return "\n\t".join(_LINES_OF_OURS.split("\n".join([*lines, current])))


def _pieces(value: str) -> Iterator[str]:
    """Yield what stands between commas, with the comma behind it."""
    *some, last = value.split(",")
    for piece in some:
        yield f"{piece},"
    yield last


# ---------------------------------------------------------------- DSV


class DsvLayout(Struct, frozen=True):
    """``Job Id: 17.ymp|NAME=VALUE|…``: delimiters in values are escaped."""

    between: ClassVar[int] = 0
    kind: str
    delimiter: str = "|"

    def begin(self, name: str) -> str:
        """The beginning of the line."""
        return f"{self.kind}{name}"

    def attribute(self, name: str, value: Value) -> str:
        """``|NAME=VALUE``."""
        if isinstance(value, dict):
            return "".join([self.attribute(f"{name}.{key}", each) for key, each in value.items()])
        text = text_of(value)
        if isinstance(value, VariableList) and "," in self.delimiter:  # its own commas are escaped already
            text = text.replace("\\", "\\\\")
        return f"{self.delimiter}{name}={self._escaped(text)}"

    def slot(self, name: str) -> tuple[str, str]:
        """The name."""
        return f"{self.delimiter}{name}=", ""

    def value(self, name: str, value: str) -> str:
        """On a line, delimiters escaped."""
        return self._escaped(on_a_line(value))

    def _escaped(self, text: str) -> str:
        """A backslash before each first character of a delimiter: the text may end with a part of one."""
        return text.replace(self.delimiter[0], f"\\{self.delimiter[0]}")

    def end(self) -> str:
        """The line's end."""
        return "\n"


# ---------------------------------------------------------------- JSON


class JsonLayout(Struct, frozen=True):
    """``"17.ymp":{…}``: what reads as a number is one."""

    between: ClassVar[int] = 1

    def begin(self, name: str) -> str:
        """The key."""
        return f"{_quoted(name)}:{{"

    def attribute(self, name: str, value: Value) -> str:
        """``,"name":value``."""
        if isinstance(value, str):
            return f',"{name}":{self.value(name, value)}'
        if isinstance(value, VariableList):
            return f',"{name}":{value.json}'
        return f',"{name}":{_encode(value).decode()}'

    def slot(self, name: str) -> tuple[str, str]:
        """The name."""
        return f',"{name}":', ""

    def value(self, name: str, value: str) -> str:
        """A text, or the number it reads as."""
        if value[:1] in _BEGIN_NUMBERS and name not in _TEXTS and is_number(value):
            return value
        return _quoted(value)

    def end(self) -> str:
        """The brace."""
        return "}"


def json_head(at: int, version: str, server: str) -> str:
    """Beginning of every document, its brace still open: ``at`` ms."""
    head = {"timestamp": at // 1000, "pbs_version": version, "pbs_server": server}
    return _encode(head).decode()[:-1]


# ---------------------------------------------------------------- many that are alike


MOST_WRITTEN = 20_000
"""Requests that are remembered of one form; some 700 bytes each."""
_FORMS = 2


class _Known(NamedTuple):
    spec: Spec
    standing: tuple[str, State, Instant, str]
    asked: int
    fields: bytes


class WrittenForm:
    """Fields of requests that wait, as one form writes them, while nothing that they are made of changes:
    programs ask for the same list over and over. ``kept``: by request."""

    def __init__(self) -> None:
        self.kept: dict[Seq, _Known] = {}
        self._asked: dict[Hashable, int] = {}
        self._numbers = count()

    def of(self, subject: Subject) -> tuple[int, bytes] | None:
        """Return what `keep` answered, and was told of it, if that holds still."""
        known = self.kept.get(subject.request.seq)
        if known is None or known.spec is not subject.request.spec or known.standing != _standing(subject):
            return None
        return known.asked, known.fields

    def keep(self, subject: Subject, fields: bytes | None) -> int:
        """Remembers its fields (None: they cannot be kept); answers a number that requests share which ask
        for the same, and no others ever."""
        if len(self.kept) >= MOST_WRITTEN or len(self._asked) >= MOST_WRITTEN:
            self.kept.clear()
            self._asked.clear()
        request, asked_for_it = subject.request, asked_for(subject.request.spec)
        asked = self._asked.get(asked_for_it)
        if asked is None:
            asked = self._asked[asked_for_it] = next(self._numbers)
        if fields is not None:
            self.kept[request.seq] = _Known(request.spec, _standing(subject), asked, fields)
        return asked


class Written:
    """Memory of the forms that were asked for last."""

    def __init__(self) -> None:
        self._forms: dict[Hashable, WrittenForm] = {}

    def form(self, name: Hashable) -> WrittenForm:
        """Return the memory of a form; ``name``: all that the writing depends on besides the requests."""
        if name not in self._forms and len(self._forms) >= _FORMS:
            self._forms.clear()
        return self._forms.setdefault(name, WrittenForm())


def _standing(subject: Subject) -> tuple[str, State, Instant, str]:
    """Return what fields of a request that waits are made of, besides its spec."""
    request = subject.request
    return request.queue, request.state, request.date_in_queue, subject.comment


class JobWriter:
    """Writes many jobs, each `escaped` for the wire. Of jobs that are alike what they have in common is
    written once: a template takes a fifth of the time. ``reference``: what names a part by its number; then
    long parts are kept in ``shared`` and named only. ``written``: what was written before. ``size``: bytes of
    all that was written, shared parts as often as they are named."""

    def __init__(
        self,
        layout: PbsLayout,
        context: PbsContext,
        escaped: Callable[[str], bytes],
        reference: Callable[[int], bytes] | None = None,
        written: Written | None = None,
    ) -> None:
        self._layout, self._context, self._escaped, self._reference = layout, context, escaped, reference
        self._templates: dict[Any, tuple[bytes, int]] = {}
        self._written = (written or Written()).form((layout, context.server, context.zone.info))
        self.shared: list[bytes] = []
        self.size = 0

    def write(self, subject: Subject) -> bytes:
        """Write one job."""
        if is_alike(subject):
            made = self._by_template(subject)
        else:
            found = attributes(subject, self._context)
            made = self._escaped(written(self._layout, self._id(subject), found))
        self.size += len(made)
        return made

    def _id(self, subject: Subject) -> str:
        return full_id(subject.request.seq, self._context.server)

    def _by_template(self, subject: Subject) -> bytes:
        known = self._written.of(subject)
        asked, fields = self._fields(subject) if known is None else (known[0], known[1].split(_CUT))
        key = (asked, standing(subject))
        template, more = self._templates.get(key) or self._learnt(key, subject)
        self.size += more
        return template % tuple(fields)

    def _fields(self, subject: Subject) -> tuple[int, list[bytes]]:
        """Return what differs in jobs that are alike, and the number of what this one asks for."""
        value = self._layout.value
        own = moving(subject, self._context).items()
        parts = [self._layout.begin(self._id(subject)), *[value(name, text) for name, text in own]]
        together = self._escaped(_BETWEEN.join(parts))
        fields = together.split(_CUT)
        if len(fields) != len(parts):  # somebody has written what stands between them
            return self._written.keep(subject, None), [self._escaped(part) for part in parts]
        return self._written.keep(subject, together), fields

    def _learnt(self, key: Any, subject: Subject) -> tuple[bytes, int]:
        """A template, and how much longer the job is than what is made of it."""
        if len(self._templates) >= _MOST_TEMPLATES:
            self._templates.clear()
        texts, own = ["", ""], moving(subject, self._context)
        for name, value in attributes(subject, self._context).items():
            if name in own:
                before, behind = self._layout.slot(name)
                texts[-1] += before
                texts.append(behind)
            else:
                texts[-1] += self._layout.attribute(name, value)
        texts[-1] += self._layout.end()
        texts[1] = texts[1][self._layout.between :]  # before the first attribute
        literals = [self._escaped(text) for text in texts]
        kept = [self._kept(literal) for literal in literals]
        template = b"%b".join([literal.replace(b"%", b"%%") for literal in kept])
        more = sum(map(len, literals)) - sum(map(len, kept))
        self._templates[key] = template, more
        return template, more

    def _kept(self, literal: bytes) -> bytes:
        if self._reference is None or len(literal) < _WORTH_SHARING:
            return literal
        self.shared.append(literal)
        return self._reference(len(self.shared) - 1)
