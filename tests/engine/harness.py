"""A simulated site under a virtual clock for tests (`Centre`), with methods for what people do.

>>> centre = Centre().qmgr("create batch_queue night priority=10", "enable queue night", "start queue night")
>>> anne, ben = centre.submit("anne cpu=10:00", "ben mem=8mw", queue="night")
>>> centre.later(minutes=10)
>>> centre.state(anne)
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from core.harness import ask_of, mold_of

from nqspy.core.features import FEATURES
from nqspy.engine.inputs import CommandAsked
from nqspy.engine.look_ahead import Forecast, LookAhead, StartEstimate, never
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import configure, indices
from nqspy.model import events as ev
from nqspy.model.actions import Action
from nqspy.model.arrays import ArraySpec
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant, Seq, request_named
from nqspy.model.people import Caller
from nqspy.model.requests import MailWishes, Request, Spec
from nqspy.model.settings import Settings
from nqspy.model.shifts import Calendar, Shift
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.qmgr.parser import parse_text
from nqspy.sim.main import Simulation
from nqspy.store.memory import MemoryJournal
from nqspy.userexit.site_exits import SiteExits

ROOT = Caller("root", 0, 0, ("root",), True)
MAX = Caller("max", 1100, 100, ("staff",))
OLGA = Caller("olga", 1101, 100, ("staff",))
ANNE = Caller("anne", 1001, 100, ("users",))
BEN = Caller("ben", 1002, 100, ("users",))
PEOPLE = {"root": ROOT, "max": MAX, "olga": OLGA, "anne": ANNE, "ben": BEN}

SHIPPED = Path(__file__).parents[2] / "exits"

PLAIN = """
create batch_queue batch priority=10
enable queue batch
start queue batch
set default batch_request queue batch
set managers = (max:m, olga:o)
"""
"""Commands for one open queue, a manager and an operator."""


def goes_on(error: Exception) -> None:
    """Error handler of a simulation that continues after an error inside the engine, as the daemon does."""


def settings_of(shifts: Iterable[Shift], days: Calendar = Calendar()) -> Settings:  # noqa: B008
    """Return settings with these shifts, and the days that count as Sundays."""
    return Settings(shifts={shift.name: shift for shift in shifts}, calendar=days)


def moment(text: str) -> Instant:
    """Return the instant of an ISO text with an offset."""
    return Instant(round(datetime.fromisoformat(text).timestamp() * 1000))


class Centre:
    """A simulated site for tests. ``length``: run time of every request in seconds, unless ``lengths`` gives
    another."""

    def __init__(
        self,
        settings: str = PLAIN,
        *,
        at: str = "2026-03-02T20:00:00+01:00",
        pes: int = 2,
        length: float = 600,
        lengths: Callable[[Request], Run] | None = None,
        journal: Any = None,
        **more: Any,
    ) -> None:
        self.journal = journal if journal is not None else MemoryJournal()
        run = lengths or (lambda request: Run(wall=round(length * 1000)))
        self.sim = Simulation(self.journal, run, moment(at), pes=pes, zone="Europe/Paris", **more)
        self.qmgr(settings)

    # ------------------------------------------------------------ asking
    @property
    def site(self) -> Site:
        """Site of the engine."""
        return self.sim.site

    @property
    def engine(self) -> Any:
        """The present engine."""
        return self.sim.engine

    def ask(self, command: cm.Command, by: Caller = ROOT) -> Any:
        """Run a command and everything that follows at once; return its answer. Raises its refusal."""
        answer = self.sim.ask(command, by)
        self.sim.run(self.sim.now)
        return answer

    def refused(self, command: cm.Command, by: Caller = ROOT) -> Refusal:
        """Return the refusal of a command, after a check that nothing has changed."""
        before = observable(self.site)
        try:
            answer = self.ask(command, by)
        except Refusal as refusal:
            assert observable(self.site) == before, "a refused command changed the site"
            return refusal
        raise AssertionError(f"{command} was not refused: {answer}")

    def qmgr(self, text: str, by: Caller = ROOT) -> "Centre":
        """Run commands in qmgr's language in turn."""
        for parsed in parse_text(text):
            assert isinstance(parsed.command, cm.Command)
            self.ask(parsed.command, by)
        return self

    def command(self, text: str) -> cm.Command:
        """Return the one command of a qmgr line."""
        [parsed] = parse_text(text)
        assert isinstance(parsed.command, cm.Command)
        return parsed.command

    def submit(self, *lines: str, **more: Any) -> list[Seq]:
        """Submit requests ``"anne name=x cpu=10:00 guess=5:00 mem=8mw pes=2 at=+60 queue=night held
        account=d1 after=1:any,2 needs=nfs+licence sizes=2,4 walls=20:00,10:00"``, each line on its own by its
        owner; return their numbers."""
        found = []
        for line in lines:
            owner = line.split()[0]
            answer = self.ask(cm.Submit((item(line, self.sim.now, **more),)), by=caller_of(owner))
            found.append(seq_of(answer["ids"][0]))
        return found

    def hand_in(self, *lines: str, by: Caller = ANNE, key: str = "", **more: Any) -> Any:
        """Submit a list of lines as one submission; return its answer."""
        items = tuple(item(line, self.sim.now, number=n, **more) for n, line in enumerate(lines, 1))
        return self.ask(cm.Submit(items, key), by)

    # ------------------------------------------------------------ time
    def later(self, **units: float) -> Instant:
        """Let this time pass: ``seconds=``, ``minutes=``, ``hours=``; return the new instant."""
        each = {"seconds": 1_000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
        return self.sim.run(Instant(round(self.sim.now + sum(each[unit] * n for unit, n in units.items()))))

    def until(self, text: str) -> Instant:
        """Let time pass to an instant."""
        return self.sim.run(moment(text))

    # ------------------------------------------------------------ looking
    def request(self, seq: Seq) -> Request:
        """Return a request that has not ended."""
        return self.site.requests[seq]

    def state(self, seq: Seq) -> str:
        """Return the state of a request as a word; also of one that has ended."""
        request = self.site.requests.get(seq)
        return "ended" if request is None else request.state.value

    def forecasts(self, *seqs: Seq) -> dict[Seq, Forecast]:
        """Return the latest and probable starts of these requests (none given: of all that wait)."""
        ahead = LookAhead(self.site, self.sim.now, self.engine.between)
        return ahead.forecasts(seqs or None, self.engine.exits, never)

    def estimate(self, seq: Seq) -> tuple[Instant | None, str]:
        """Return the probable start of a request (None: unknown) and its basis."""
        found: StartEstimate = self.forecasts(seq)[seq].probably
        return found.start, found.basis

    def id(self, seq: Seq) -> str:
        """Return the full identifier of a request."""
        return self.site.id_of(seq)

    def events(self, *kinds: type[ev.Event]) -> list[Any]:
        """Return the events of these kinds in the journal, in order."""
        return [r.event for r in self.journal.events() if not kinds or isinstance(r.event, kinds)]

    def count(self) -> int:
        """Return the number of events in the journal."""
        return len(self.events())

    def times(self, kind: type[ev.Event], since: int = 0) -> dict[Seq, Instant]:
        """Return when the journal, from an event on, first has an event of this kind, by request."""
        found: dict[Seq, Instant] = {}
        for each in list(self.journal.events())[since:]:
            if isinstance(each.event, kind):
                found.setdefault(each.event.seq, each.at)
        return found

    def waits(self) -> dict[Seq, float]:
        """Return the minutes from submission to start, by started request."""
        submitted, starts = self.times(ev.Submitted), self.times(ev.Starting)
        return {seq: (at - submitted[seq]) / 60_000 for seq, at in starts.items()}

    def starts(self) -> list[Seq]:
        """Return the started requests, in the order of the decisions."""
        return [event.seq for event in self.events(ev.Starting)]

    def end_of(self, seq: Seq) -> Any:
        """Return the event that ended a request."""
        ends = (event for event in self.events(ev.Ended, ev.Deleted) if event.seq == seq)
        return next(event for event in ends if not getattr(event, "indices", ()))

    def is_sound(self) -> None:
        """Check the cross-references of the site, and that the journal gives the same site again."""
        check_site(self.site)
        assert observable(self.journal.load()) == observable(self.site)
        assert len(set(self.sim.executor.begun)) == len(self.sim.executor.begun), "an attempt began twice"


def seq_of(identifier: str) -> Seq:
    """Return the number in an identifier."""
    found = request_named(identifier, (identifier.rpartition(".")[2],))
    assert found is not None
    return found


def caller_of(owner: str) -> Caller:
    """Return the caller of that name."""
    return PEOPLE.get(owner) or Caller(owner, 2000, 100, ("users",))


def item(
    line: str,
    now: Instant,
    *,
    script: str = "#!/bin/sh\ntrue\n",
    queue: str = "",
    user: str | None = None,
    number: int | None = None,
) -> cm.Submission:
    """Return a submission with the words of a line."""
    words = shlex.split(line)[1:]
    given = dict(word.split("=", 1) for word in words if "=" in word)
    spec = Spec(
        owner="whoever",
        uid=99,
        name=given.get("name", "STDIN"),
        queue=given.get("queue", queue),
        script="",
        environment="",
        workdir=given.get("workdir", "/home"),
        name_given="name" in given,
        account=given.get("account"),
        ask=ask_of(given),
        held="held" in words,
        rerunnable="once" not in words,
        eligible=Instant(now + round(float(given["at"]) * 1000)) if "at" in given else None,
        mail=MailWishes(**{word: True for word in given.get("mail", "").split("+") if word}),
        contract="contract" in words,
        job_class=given.get("class", ""),
        mold=mold_of(given) if "sizes" in given else None,
        array=array_of(given["array"]) if "array" in given else None,
        attributes=tuple(f"after:{each}" for each in given.get("after", "").split(",") if each),
    )
    return cm.Submission(spec, script, "HOME=/home", user, number)


def array_of(text: str) -> ArraySpec:
    """Return the array in a text like ``1-10:2%3``."""
    runs, percent, limit = text.partition("%")
    return ArraySpec(indices.read(runs), int(limit) if percent else None)


def submit(owner: str, centre: Centre, key: str = "") -> cm.Submit:
    """Return the command that submits one plain request."""
    return cm.Submit((item(owner, centre.sim.now),), key)


def by_name(request: Request) -> Run:
    """Run lengths by name: bad7 ends with status 7, long runs an hour, others ten minutes."""
    status = int(request.name[3:]) if request.name.startswith("bad") else 0
    return Run(wall=3_600_000 if request.name == "long" else 600_000, status=status)


def exits_of(folder: Path, *shipped: str, **own: str) -> SiteExits:
    """Return the shipped exits with these names, and others from their text, in a new folder."""
    folder.mkdir(mode=0o755)
    texts = {name: (SHIPPED / f"{name}.py").read_text() for name in shipped}
    for name, text in (texts | own).items():
        (folder / f"{name}.py").write_text(text)
        (folder / f"{name}.py").chmod(0o644)
    return SiteExits(folder)


class Crash(BaseException):
    """The process dies here; no code under test may catch it."""


class Failpoint:
    """Makes commits fail, given by their numbers from now on."""

    def __init__(self, journal: Any, *numbers: int, error: BaseException | None = None) -> None:
        self.numbers, self.count = set(numbers), 0
        self.error = error or OSError(28, "No space left on device")
        journal.failpoint = self

    def __call__(self) -> None:
        self.count += 1
        if self.count in self.numbers:
            raise self.error


def asked(command: cm.Command, by: Caller = ROOT, handle: Any = None) -> CommandAsked:
    """Return a command as an input of the engine."""
    return CommandAsked(command, by, handle)


def signed(*actions: Action) -> tuple[Action, ...]:
    """Return forged actions, each once with the name of every feature."""
    return tuple(replace(action, by=feature.name) for action in actions for feature in FEATURES)


def replies_to(handles: Sequence[Any], replies: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Return the reply of each handle, in order."""
    found = {id(handle): reply for handle, reply in replies}
    return [found[id(handle)] for handle in handles]


CELLS = (
    "seq", "date", "cpu", "memory", "wall", "pes", "rank", "count", "turn", "given", "priority", "contract",
)  # fmt: skip
"""Columns of waiting requests, without those of names."""


def observable(site: Site) -> dict[str, Any]:
    """Return everything visible of a site in a form that compares, without row numbers and stale entries."""
    numbers = site.numbers
    named = {"owner": numbers.owners, "group": numbers.groups, "name": numbers.names, "pair": numbers.pairs}
    named["needs"] = numbers.needs
    waiting = {}
    for queue, columns in site.waiting.items():
        for row, request in enumerate(columns.requests()):
            assert request.slot == row
            cells = {name: getattr(columns, name)[row].item() for name in CELLS}
            names = {name: of.names[int(getattr(columns, name)[row])] for name, of in named.items()}
            waiting[request.seq] = (queue, cells | names)
    return {
        "settings": [
            (path, configure.dump_object(site.settings, path))
            for path in configure.object_paths(site.settings)
        ],
        "requests": {
            seq: {name: getattr(r, name) for name in Request.__struct_fields__ if name != "slot"}
            for seq, r in sorted(site.requests.items())
        },
        "waiting": waiting,
        "started": sorted(site.started),
        "dependants": dict(sorted(site.dependants.items())),
        "members": {seq: sorted(theirs) for seq, theirs in sorted(site.members.items())},
        "limited": sorted(site.limited),
        "probes": dict(site.resources),
        "due": site.due(Instant(2**60)),
        "accounts": {
            key: (a.value, a.at, list(a.recent), a.entry.copy()) for key, a in site.accounts.items()
        },
        "state": (site.n, site.at, site.next_seq, site.shift, site.found, site.host, site.zone, site.files),
        "reported": site.reported,
        "foreign": site.foreign,
        "past": {domain: past.copy() for domain, past in site.past.items()},
    }
