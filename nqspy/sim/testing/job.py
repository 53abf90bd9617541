"""A request in a test: what was said of it, and what has become of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from msgspec import Struct

from nqspy.model import indices
from nqspy.model.arrays import ArraySpec
from nqspy.model.commands import Submission
from nqspy.model.endings import End
from nqspy.model.errors import NqspyError
from nqspy.model.ids import Instant, Seq, array_key
from nqspy.model.options import OPTIONS, Option
from nqspy.model.requests import AFTER_WORDS, AfterWord, Ask, Dependency, Request, Spec
from nqspy.model.units import parse_size, parse_time
from nqspy.report.time_text import Zone
from nqspy.sim.testing.record import BadStory, StoryRecord, shown

USERS = 100
"""The Unix group of everybody in a test."""

Amount = str | int | float | None
"""A time (``"10:00"``, seconds) or a size (``"8mw"``, bytes) as a person writes it; None: not asked for."""


class SiteOfStory(Protocol):
    """Questions of a job to its site."""

    record: StoryRecord

    @property
    def zone(self) -> Zone: ...
    def found(self, seq: Seq) -> tuple[Request, str]: ...
    def named(self, seq: Seq) -> str: ...
    def why(self, name: "str | StoryJob") -> str: ...
    def place(self, name: "str | StoryJob") -> int | None: ...


class StoryJob:
    """A request of a test, by the test's name for it. Everything is as of now; times read as a test writes
    them, ``2026-03-02 20:00:00``."""

    def __init__(self, site: SiteOfStory, label: str, number: int, array: bool) -> None:
        self._site, self.label, self.number = site, label, number
        self.seq: Seq = array_key(number) if array else number

    def __repr__(self) -> str:
        return f"<{self.label} ({self.id}) {self.state}>"

    @property
    def id(self) -> str:
        """Full identifier."""
        return self._site.named(self.seq)

    @property
    def request(self) -> Request:
        """All that the engine knows of it."""
        return self._site.found(self.seq)[0]

    @property
    def spec(self) -> Spec:
        """Request as it was accepted, changes of a submit exit included."""
        return self.request.spec

    @property
    def state(self) -> str:
        """``queued``, ``held``, ``waiting`` (for a date), ``running``, ``suspended``, ``ended`` ..."""
        return self._site.found(self.seq)[1]

    @property
    def queue(self) -> str:
        """The queue it stands in, or stood in last."""
        return self.request.queue

    @property
    def why(self) -> str:
        """Reason why it waits, in words; empty where it does not."""
        return self._site.why(self)

    @property
    def place(self) -> int | None:
        """Place in its queue, from 1; None where it is not queued."""
        return self._site.place(self)

    @property
    def date_in_queue(self) -> str:
        """Time as of which it counts as submitted."""
        return shown(self._site.zone, self.request.date_in_queue)

    @property
    def started(self) -> str | None:
        """Time of its last start."""
        runs = self._site.record.stretches(self.number)
        return self._shown(runs[-1].begin if runs else None)

    @property
    def ended(self) -> str | None:
        """Time at which it last stopped running."""
        runs = self._site.record.stretches(self.number)
        return self._shown(runs[-1].end if runs else None)

    @property
    def exit_status(self) -> int | None:
        """Exit status it ended with, never 0 after a bad end; None before, or without one."""
        end = self._site.record.ends.get(self.seq)
        return None if end is None else End.of(end).shown_status

    def _shown(self, at: Instant | None) -> str | None:
        return None if at is None else shown(self._site.zone, at)


class StoryWish(Struct, frozen=True):
    """Words of a test about a request that it submits (`StorySite.submit`). ``options``: those of the list by
    their names in Python."""

    owner: str
    name: str
    queue: str
    options: Mapping[str, Any]
    group: str | None = None
    project: str | None = None
    after: tuple[Dependency, ...] = ()
    not_before: Instant | None = None
    array: str | None = None
    units: Mapping[str, int] | None = None
    needs: Iterable[str] = ()
    attributes: Iterable[str] = ()
    arguments: Iterable[str] = ()
    script: str = ""

    def submission(self, uid: int) -> Submission:
        """Make the submission as qsub sends it. Raises BadStory for an amount that cannot be read."""
        own: dict[str, Any] = {"account": self.group}
        ask: dict[str, Any] = {"needs": tuple(self.needs), "consumables": tuple((self.units or {}).items())}
        try:
            for option, value in _given(self.options):
                head, _, rest = option.path.partition("/")
                (ask if head == "ask" else own)[rest or head] = _READ[option.unit](value)
            array = None if self.array is None else _array(self.array)
        except NqspyError as error:
            raise BadStory(str(error)) from None
        projects = () if self.project is None else (f"project:{self.project}",)
        spec = Spec(
            owner=self.owner, uid=uid, gid=USERS, name=self.name or "STDIN", name_given=bool(self.name),
            queue=self.queue, script="", environment="", workdir=f"/home/{self.owner}",
            ask=Ask(**ask), eligible=self.not_before, after=self.after,
            attributes=(*projects, *self.attributes), args=tuple(self.arguments), array=array, **own,
        )  # fmt: skip
        return Submission(spec, self.script, f"HOME=/home/{self.owner}")


def _given(options: Mapping[str, Any]) -> Iterator[tuple[Option, Any]]:
    """Yield the options that have a value. Raises BadStory for an option that does not exist."""
    for name, value in options.items():
        if name not in _OPTIONS:
            raise BadStory(f"a request has no option {name}; it has {', '.join(_OPTIONS)}")
        if value is not None:
            yield _OPTIONS[name], value


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


def _array(text: str) -> ArraySpec:
    runs, percent, limit = text.partition("%")
    return ArraySpec(indices.read(runs), int(limit) if percent else None)


def read_after(text: str) -> tuple[str, AfterWord]:
    """The request that ``a`` or ``a:any`` names, and what must become of it. Raises BadStory."""
    name, _, said = text.partition(":")
    word = next((each for each in AFTER_WORDS if each == (said or "ok")), None)
    if word is None:
        raise BadStory(f"{text!r}: behind the colon stands one of {', '.join(AFTER_WORDS)}")
    return name, word
