"""Attributes as PBS's commands print them: text, JSON and DSV (pbs-clients.md 8.3, 8.4)."""

import json
import re
from collections.abc import Callable, Hashable, Mapping
from itertools import count
from typing import Any, NamedTuple

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
"""Columns that a line of the full form must stay below."""
_TAB = 8
"""Columns of the tab at the beginning of a continued line."""
_LINES_OF_OURS = re.compile("(?<=Job I)(?=d:)|(?<=job_state )(?==)")
"""Begins at which programs would take a user's text for a line of ours: they look for these words."""
_TEXTS = ("Job_Name", "project", "Account_Name", "comment")
"""Attributes that stay texts even if they read as a number."""

_encode = msgspec.json.Encoder().encode
_quoted = json.encoder.encode_basestring_ascii

_BEGIN_NUMBERS = "-0123456789"
_MOST_TEMPLATES, _WORTH_SHARING = 1_000, 64
_BETWEEN = "<|>"
"""Separator of parts that are escaped together: escaping does not change it, and cannot overlap with it."""
_CUT = _BETWEEN.encode()


class PbsLayout(Struct, frozen=True):
    """Layout of an object in one of the `FORMS`; ``kind``: word before its name; ``one_line``: not folded."""

    form: str
    kind: str = ""
    one_line: bool = False
    indent: str = "    "
    delimiter: str = "|"

    @property
    def between(self) -> int:
        """Return the number of characters to cut before the first attribute: 1 in JSON (a comma), else 0."""
        return int(self.form == "json")

    def begin(self, name: str) -> str:
        """Return the begin of an object: ``Job Id: 17.ymp`` and a line's end, in JSON ``"17.ymp":{``."""
        if self.form == "json":
            return f"{_quoted(name)}:{{"
        return f"{self.kind}{name}\n" if self.form == "text" else f"{self.kind}{name}"

    def attribute(self, name: str, value: Value) -> str:
        """Return a line; in JSON ``,"NAME":VALUE`` (a number if a text reads as one); in DSV ``|NAME=VALUE``.
        Except in JSON each resource is by itself."""
        form = self.form
        if isinstance(value, str):
            if form == "json":
                number = value[:1] in _BEGIN_NUMBERS and name not in _TEXTS and is_number(value)
                return f',"{name}":{value if number else _quoted(value)}'
            text = on_a_line(value)
        elif form == "json":
            shown = value.json if isinstance(value, VariableList) else _encode(value).decode()
            return f',"{name}":{shown}'
        elif isinstance(value, dict):
            return "".join([self.attribute(f"{name}.{key}", each) for key, each in value.items()])
        else:
            text = value.text if isinstance(value, VariableList) else str(value)
        if form == "text":
            line = f"{self.indent}{name} = {text}"
            shown = line if self.one_line else folded(line, len(self.indent) + len(name) + 3)
            return f"{shown}\n"
        if "," in self.delimiter and isinstance(value, VariableList):  # its own commas are escaped already
            text = text.replace("\\", "\\\\")
        # A backslash before each first character of a delimiter: the text may end with a part of one.
        first = self.delimiter[0]
        return f"{self.delimiter}{name}=" + (text.replace(first, "\\" + first) if first in text else text)

    def end(self) -> str:
        """Return the end of an object: the closing brace in JSON, else the line's end."""
        return "}" if self.form == "json" else "\n"


def layout(wish: Mapping[str, Any], kind: str, indent: str = "    ", dsv: str = "") -> PbsLayout:
    """Return the layout that a message (``wish``) asks for by ``format``, ``delimiter``, ``letters`` (w or 1:
    not folded); ``kind``: word before names, ``dsv``: that in DSV. Raises Refusal for an unknown format."""
    form = str(wish.get("format") or "text")
    if form not in FORMS:
        raise Refusal("bad_format", form=form, known=listed(FORMS))
    letters = str(wish.get("letters") or "")
    begin = (dsv or kind) if form == "dsv" else kind
    one_line = "w" in letters or "1" in letters
    return PbsLayout(form, begin, one_line, indent, str(wish.get("delimiter") or "|"))


def written(layout: PbsLayout, name: str, attributes: Mapping[str, Value]) -> str:
    """Return an object (name and attributes) in a layout's form."""
    middle = [layout.attribute(key, value) for key, value in attributes.items()]
    return "".join([layout.begin(name), "".join(middle)[layout.between :], layout.end()])


def folded(line: str, begin: int = 0) -> str:
    """Return a line cut at its commas where it would reach 78 columns, and anywhere in a longer piece; each
    continuation begins with a tab. Without newlines followed by tabs it is the line again. ``begin``: where
    the value begins."""
    if len(line) < WIDTH and "Job Id:" not in line and "job_state =" not in line[5:]:
        return line
    lines, current, column = [], line[:begin], begin
    *some, last = line[begin:].split(",")
    for piece in (*(f"{each}," for each in some), last):
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


def json_head(at: int, version: str, server: str) -> str:
    """Return the beginning of a document of PBS's JSON, its brace still open; ``at``: instant in ms."""
    head = {"timestamp": at // 1000, "pbs_version": version, "pbs_server": server}
    return _encode(head).decode()[:-1]


MOST_WRITTEN = 20_000
"""Most requests cached for one form; some 700 bytes each."""
_FORMS = 2


class _Stored(NamedTuple):
    spec: Spec
    standing: tuple[str, State, Instant, str]
    asked: int
    fields: bytes


class WrittenForm:
    """Cached fields of waiting requests in one form, until they change: lists are shown often."""

    def __init__(self) -> None:
        self.stored: dict[Seq, _Stored] = {}
        self._asked: dict[Hashable, int] = {}
        self._numbers = count()

    def of(self, subject: Subject) -> tuple[int, bytes] | None:
        """Return number and fields that `store` cached for this request; None if none, or if outdated."""
        known = self.stored.get(subject.request.seq)
        if known is None or known.spec is not subject.request.spec or known.standing != _standing(subject):
            return None
        return known.asked, known.fields

    def store(self, subject: Subject, fields: bytes | None) -> int:
        """Cache a request's fields (None: no caching); return a number, the same for equal `asked_for`."""
        if len(self.stored) >= MOST_WRITTEN or len(self._asked) >= MOST_WRITTEN:
            self.stored.clear()
            self._asked.clear()
        request, asked_for_it = subject.request, asked_for(subject.request.spec)
        asked = self._asked.get(asked_for_it)
        if asked is None:
            asked = self._asked[asked_for_it] = next(self._numbers)
        if fields is not None:
            self.stored[request.seq] = _Stored(request.spec, _standing(subject), asked, fields)
        return asked


class Written:
    """Caches of the two forms (`WrittenForm`) that were asked for last, shared by all calls of qstat."""

    def __init__(self) -> None:
        self._forms: dict[Hashable, WrittenForm] = {}

    def form(self, name: Hashable) -> WrittenForm:
        """Return the cache of a form; ``name``: all that its text depends on besides the requests."""
        if name not in self._forms and len(self._forms) >= _FORMS:
            self._forms.clear()
        return self._forms.setdefault(name, WrittenForm())


def _standing(subject: Subject) -> tuple[str, State, Instant, str]:
    """Return the fields of a waiting request that change its text, besides its spec."""
    request = subject.request
    return request.queue, request.state, request.date_in_queue, subject.comment


class JobWriter:
    """Writes many jobs, each `escaped` for the wire. What equal jobs have in common is written once: a
    template takes a fifth of the time. ``reference``: function that names a part by its number; then long
    parts are put in ``shared`` and only named. ``written``: the caches. ``size``: bytes written, shared parts
    as often as they are named."""

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
        """Return the text of one job, escaped for the wire."""
        if is_alike(subject):
            known = self._written.of(subject)
            asked, fields = self._fields(subject) if known is None else (known[0], known[1].split(_CUT))
            key = (asked, standing(subject))
            template, more = self._templates.get(key) or self._learnt(key, subject)
            self.size += more
            made = template % tuple(fields)
        else:
            found = attributes(subject, self._context)
            made = self._escaped(written(self._layout, self._id(subject), found))
        self.size += len(made)
        return made

    def _id(self, subject: Subject) -> str:
        return full_id(subject.request.seq, self._context.server)

    def _fields(self, subject: Subject) -> tuple[int, list[bytes]]:
        """Return the number of what a job asks for, and the fields in which equal jobs differ."""
        layout = self._layout
        first, *others = (layout.attribute(*each) for each in moving(subject, self._context).items())
        parts = [layout.begin(self._id(subject)) + first[layout.between :], *others]
        together = self._escaped(_BETWEEN.join(parts))
        fields = together.split(_CUT)
        if len(fields) != len(parts):  # a user's text contains the separator
            return self._written.store(subject, None), [self._escaped(part) for part in parts]
        return self._written.store(subject, together), fields

    def _learnt(self, key: Any, subject: Subject) -> tuple[bytes, int]:
        """Make and keep the template of ``key`` from this job; return it, and by how many bytes a job is
        longer than the text made from it (shared parts)."""
        if len(self._templates) >= _MOST_TEMPLATES:
            self._templates.clear()
        literals, own = [b""], moving(subject, self._context)
        for name, value in attributes(subject, self._context).items():
            if name in own:
                literals.append(b"")
            else:
                literals[-1] += self._escaped(self._layout.attribute(name, value))
        literals[-1] += self._escaped(self._layout.end())
        parts, reference = list(literals), self._reference
        for place, literal in enumerate(literals):
            if reference is not None and len(literal) >= _WORTH_SHARING:
                self.shared.append(literal)
                parts[place] = reference(len(self.shared) - 1)
        template = b"%b".join([literal.replace(b"%", b"%%") for literal in parts])
        more = sum(map(len, literals)) - sum(map(len, parts))
        self._templates[key] = template, more
        return template, more
