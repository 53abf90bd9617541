"""Tests of a simulated site in few words: people give commands, time passes, and each step is checked.

    site pes=1; submit anne, ben; starts 1; hold 2 by ben -> 2; hold 1 by ben -> 1:not_permitted
    later 10m; end 1 exit; refuse anne pes=3 -> above_limit

A request is its number, an array ``1[]``, an index ``1[3]``; several are joined by ``+``. What stands behind
``->`` is the answer: what is done, each failure with its code (``!``: all is refused, ``?``: any answer);
without it nothing fails. Lines of a command of qmgr are joined by ``|``. Each verb is a method of `Story`.
"""

import json
import re
from operator import attrgetter
from typing import Any

import msgspec
from core.story import foreign_jobs
from engine.harness import PLAIN, ROOT, Centre, caller_of, item, moment

from nqspy.core import domains
from nqspy.engine.explain import reason_of
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.domains import numbers
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant, Seq, index_of, request_named
from nqspy.model.observations import ObservedForeign, ObservedResource
from nqspy.model.people import Caller

UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
ACTS: dict[str, Any] = {
    "hold": lambda ids, letter=None: cm.HoldRequests(ids, letter),
    "release": lambda ids, letter=None, lenient=False: cm.ReleaseRequests(ids, letter, lenient),
    "delete": lambda ids, **more: cm.Delete(ids, **more),
    "rerun": lambda ids, force=False: cm.RerunRequests(ids, force),
    "suspend": lambda ids: cm.SuspendRequests(ids),
    "resume": lambda ids: cm.SuspendRequests(ids, resume=True),
    "move": lambda ids, to: cm.MoveRequests(ids, to),
    "schedule": lambda ids, place: cm.ScheduleRequest(ids, place),
    "exchange": lambda ids: cm.ExchangeRequests(ids),
    "signal": lambda ids, number: cm.SignalRequests(ids, number),
    "message": lambda ids, text, streams=("stderr",): cm.WriteMessage(ids, text, tuple(streams)),
    "modify": lambda ids, **values: cm.ModifyRequest(
        ids, {k.replace(".", "/"): v for k, v in values.items()}
    ),
}
"""Commands about requests: identifiers, then ``name=value``."""


def value(text: str) -> Any:
    """Return a number, a truth value, a list or None as in JSON, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def play(text: str, *, settings: str = PLAIN, **more: Any) -> "Story":
    """Run a test on its own site, and check the site at the end."""
    story = Story(Centre(settings, **more))
    story.play(text)
    story.centre.is_sound()
    return story


class Story:
    """A test on a site; ``answer``: to the last command."""

    def __init__(self, centre: Centre) -> None:
        self.centre, self._started, self.answer = centre, 0, dict[str, Any]()

    def play(self, text: str) -> None:
        """Run the steps of a test."""
        for step in filter(None, map(str.strip, re.split(r"[;\n]", text))):
            action, _, expected = step.partition(" -> ")
            verb, _, rest = action.partition(" ")
            try:
                if verb in ACTS:
                    self._act(verb, rest.split(), expected or None)
                else:
                    getattr(self, verb)(*([rest, expected] if expected else [rest]))
            except (AssertionError, Refusal) as error:
                raise AssertionError(f"{step!r}: {error}") from error

    def seq(self, name: str) -> Seq:
        """Return the request of a name."""
        found = request_named(name, (self.centre.site.name,))
        assert found is not None, name
        return self.centre.site.named(found)

    def _names(self, seqs: list[Seq]) -> list[str]:
        return [self.centre.id(seq).rpartition(".")[0] for seq in seqs]

    def _pairs(self, words: str) -> list[tuple[Any, str]]:
        found = words.split()
        requests = [self.centre.request(self.seq(name)) for name in found[::2]]
        return list(zip(requests, found[1::2], strict=True))

    @staticmethod
    def _by(words: list[str]) -> tuple[Caller, list[str]]:
        return (caller_of(words[-1]), words[:-2]) if words[-2:-1] == ["by"] else (ROOT, words)

    def _act(self, verb: str, words: list[str], expected: str | None) -> None:
        caller, words = self._by(words)
        named = (each.partition("=") for each in words[1:])
        values = {name: value(text) if equals else True for name, equals, text in named}
        command = ACTS[verb](tuple(words[0].split("+")), **values)
        if expected and expected.startswith("!"):
            refusal = self.centre.refused(command, caller)
            assert expected[1:] in (refusal.kind, refusal.code), refusal.kind
            return
        self.answer = self.centre.ask(command, caller)
        report = {name.rpartition(".")[0]: "" for name in self.answer["done"]}
        report |= {each["id"]: each["code"] for each in self.answer["failed"]}
        if expected == "?":
            return
        if expected is None:
            assert not any(report.values()), report
        else:
            assert report == dict(re.findall(r"(\S+?)(?::([a-z]\w*))?(?= |$)", expected.strip("-"))), report

    # ------------------------------------------------------------ the site, submissions, time
    def site(self, words: str) -> None:
        """Begin with another site: ``pes``, ``length``, ``at``."""
        named = (each.partition("=") for each in words.split())
        self.__init__(Centre(PLAIN, **{name: value(text) for name, _, text in named}))  # type: ignore[misc]

    def qmgr(self, words: str) -> None:
        """Run qmgr commands as root, or as ``by`` somebody."""
        caller, rest = self._by(words.split(" "))
        self.centre.qmgr(" ".join(rest).replace("|", "\n"), caller)

    def deny(self, words: str, expected: str) -> None:
        """Check that a qmgr command is refused with this code."""
        caller, rest = self._by(words.split(" "))
        refusal = self.centre.refused(self.centre.command(" ".join(rest).replace("|", "\n")), caller)
        assert expected in (refusal.kind, refusal.code), refusal.kind

    def submit(self, lines: str) -> None:
        """Submit requests, each line by its owner."""
        self.centre.submit(*re.split(r",\s+", lines))

    def refuse(self, line: str, expected: str) -> None:
        """Check that a submission is refused with this code."""
        centre = self.centre
        wish = cm.Submit((item(line, centre.sim.now),))
        refusal = centre.refused(wish, caller_of(line.split()[0]))
        assert expected in (refusal.kind, refusal.code), refusal.kind

    def later(self, time: str) -> None:
        """Let time pass: ``90s``, ``10m``, ``2h``, ``1d``."""
        self.centre.sim.run(Instant(round(self.centre.sim.now + float(time[:-1]) * UNITS[time[-1]])))

    def until(self, time: str) -> None:
        """Let time pass to an instant, or to a time of day of the first day."""
        clock = f"2026-03-02T{time if time.count(':') == 2 else f'{time}:00'}+01:00"
        self.centre.sim.run(moment(time if "T" in time else clock))

    def clock(self, time: str) -> None:
        """Set the clock without events in between."""
        self.centre.sim.now = moment(time)
        self.centre.sim.feed([])

    def probe(self, words: str) -> None:
        """Let a probe report its resource ``broken`` or ``ok``."""
        name, state = words.split()
        self.centre.sim.feed([ObservedResource(name, state)])
        self.centre.sim.run(self.centre.sim.now)

    def foreign(self, words: str) -> None:
        """Let a scan find a foreign job on each of these CPUs or ranges; ``-``: none."""
        jobs = () if words == "-" else foreign_jobs(*words.split())
        self.centre.sim.feed([ObservedForeign(jobs)])
        self.centre.sim.run(self.centre.sim.now)

    def down(self, time: str) -> None:
        """Stop the engine until an instant, then begin a new one from the journal."""
        self.centre.sim.now = moment(time)
        self.centre.sim.restart()

    def restart(self, _: str) -> None:
        """Begin a new engine from the journal."""
        self.centre.sim.restart()

    # ------------------------------------------------------------ what is so then
    def starts(self, names: str) -> None:
        """Check which requests started since the last such check, in order; ``-``: none."""
        begun = self.centre.starts()
        found, self._started = self._names(begun[self._started :]), len(begun)
        assert found == [name for name in names.split() if name != "-"], found

    def state(self, words: str) -> None:
        """Check states of requests."""
        found = words.split()
        states = [self.centre.state(self.seq(name)) for name in found[::2]]
        assert states == found[1::2], states

    def end(self, words: str) -> None:
        """Check how a request ended: ``dropped`` and by whom, or reason and exit status; then the text."""
        name, *wanted = words.split(" ", 3)
        event = self.centre.end_of(self.seq(name))
        deleted = isinstance(event, ev.Deleted)
        found = ["dropped", event.who] if deleted else [event.end_reason, str(event.exit_status)]
        assert [*found, event.text][: len(wanted)] == wanted, (*found, event.text)

    def ran(self, words: str) -> None:
        """Check the wall time (s) that a request has used at its end."""
        name, seconds = words.split()
        assert self.centre.end_of(self.seq(name)).used.wall == round(float(seconds) * 1000)

    def used(self, words: str) -> None:
        """Check the CPU time (s) that a request has used at its end."""
        name, seconds = words.split()
        assert self.centre.end_of(self.seq(name)).used.cpu == round(float(seconds) * 1000)

    def empty(self, _: str) -> None:
        """Check that every request has ended."""
        assert not self.centre.site.requests
        assert self.centre.site.tally.total == 0

    def known(self, number: str) -> None:
        """Check how many requests there are."""
        assert len(self.centre.site.requests) == int(number)

    def pes(self, words: str) -> None:
        """Check the PEs of requests; ``-``: none."""
        for request, text in self._pairs(words):
            assert request.pes == (() if text == "-" else numbers((text,))), request.pes

    def queue(self, words: str) -> None:
        """Check the queues of requests."""
        found = [(request.queue, name) for request, name in self._pairs(words)]
        assert all(is_in == name for is_in, name in found), found

    def holds(self, words: str) -> None:
        """Check the letters of holds; ``-``: none."""
        for request, letters in self._pairs(words):
            assert request.letters == letters.strip("-"), request.letters

    def has(self, words: str) -> None:
        """Check what a request has: ``path=value``, tuples as lists."""
        name, *wanted = words.split()
        for path, _, text in (each.partition("=") for each in wanted):
            found = json.loads(msgspec.json.encode(attrgetter(path)(self.centre.request(self.seq(name)))))
            assert found == value(text), (path, found)

    def never(self, names: str) -> None:
        """Check that the prerequisites of these requests can never be met."""
        assert all(self.centre.request(self.seq(name)).never for name in names.split())

    def units(self, words: str) -> None:
        """Check the units of consumables that a request holds."""
        name, *wanted = words.split()
        held = [f"{kind}={','.join(each)}" for kind, each in self.centre.request(self.seq(name)).units]
        assert held == wanted, held

    def left(self, words: str) -> None:
        """Check the indices of an array that have not begun."""
        for request, some in self._pairs(words):
            assert indices.show(request.array.left) == some.strip("-"), indices.show(request.array.left)

    def runs(self, words: str) -> None:
        """Check the indices of an array that run."""
        name, some = words.split()
        site = self.centre.site
        members = site.members.get(self.seq(name), ())
        running = sorted(index_of(seq) or 0 for seq in members if seq in site.started)
        assert indices.show(indices.of(running)) == some.strip("-"), running

    def why(self, words: str) -> None:
        """Check code and source of the reason for which a request waits."""
        name, code, *who = words.split()
        reason = reason_of(self.centre.engine, self.centre.request(self.seq(name)))
        assert reason is not None
        assert (reason.code.value, reason.who if who else "") == (code, " ".join(who)), reason

    def says(self, words: str) -> None:
        """Check that the text of a request's reason contains these words."""
        name, _, expected = words.partition(" ")
        reason = reason_of(self.centre.engine, self.centre.request(self.seq(name)))
        assert reason is not None
        assert expected in reason.text, reason.text

    def shift(self, words: str) -> None:
        """Check the shift in force, the run limit of queue batch, and ``manual``."""
        name, limit, *manual = words.split()
        shift, queue = self.centre.site.shift, self.centre.site.settings.queues["batch"]
        assert (shift.current, str(queue.run_limit)) == (name, limit), (shift, queue.run_limit)
        assert shift.manual is bool(manual)

    def domains(self, words: str) -> None:
        """Check the PEs of all domains."""
        found = {row["name"]: domains.ranges(row["pes"]) for row in domains.rows(self.centre.site)}
        assert found == dict(each.replace(",", ", ").split("=") for each in words.split()), found

    def mails(self, number: str) -> None:
        """Check how many mails were sent."""
        assert len(self.centre.sim.notices) == int(number), self.centre.sim.notices

    def events(self, words: str) -> None:
        """Check how many events of a kind the journal has."""
        kind, number = words.split()
        assert sum(event.kind == kind for event in self.centre.events()) == int(number)

    def moved(self, words: str) -> None:
        """Check for how many seconds requests have been in their queues."""
        for request, seconds in self._pairs(words):
            assert self.centre.sim.now - request.date_in_queue == round(float(seconds) * 1000)
