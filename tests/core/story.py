"""Tests of passes in few words: requests are submitted and end, and each pass is checked.

    machine 8; queue night order=fcfs reserve=1; run anne pes=6 wall=10:00
    submit ben pes=8 wall=5:00, cleo pes=2 wall=11:00; starts -; reserved ben 10; why cleo RESERVED

A request has the name of its owner; the second one of anne is ``anne2``, an index of an array ``anne[1]``.
Each verb is one of `EVENTS`, or a method of `Story` or of `House`. Times are minutes from the beginning, or
``10s``, ``5ms``.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from core.harness import START, House, force, hold_line, refuse

from nqspy.core.passes import explain
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import facts
from nqspy.model.actions import Reserving, Resume, Suspend
from nqspy.model.domains import numbers
from nqspy.model.ids import Instant, Seq, array_of, index_of, member
from nqspy.model.lifetimes import Lifetime, Lived
from nqspy.model.machine import ForeignJob
from nqspy.model.shifts import UpcomingStop
from nqspy.ports import Answer, PassView, RequestView
from nqspy.shares import FairShare, balance_of

WORDS = {"all": None, "on": True, "off": False, "-": None, "''": ""}


def value(text: str) -> Any:
    """Return the value of a word: number, list ``(a,b)``, one of `WORDS`, else text (``~``: a blank)."""
    if text.startswith("("):
        return tuple(filter(None, text[1:-1].split(",")))
    number = re.fullmatch(r"\d+(\.\d+)?", text)
    return (
        WORDS.get(text, text.replace("~", " ")) if number is None else float(text) if number[1] else int(text)
    )


def pairs(words: Iterable[str]) -> dict[str, Any]:
    """Return settings by name."""
    return {name: value(text) for name, text in (word.split("=", 1) for word in words)}


def ms(text: str) -> int:
    """Return a time in ms."""
    number, unit = re.fullmatch(r"([\d.]+)(ms|s|)", text).groups()
    return round(float(number) * {"ms": 1, "s": 1000, "": 60_000}[unit])


EVENTS: dict[str, Callable[[Seq, int], ev.Event]] = {
    "hold": lambda seq, attempt: ev.Held((seq,), "u", "anne"),
    "release": lambda seq, attempt: ev.Released((seq,), "u", "anne"),
    "delete": lambda seq, attempt: ev.Deleting(seq, 1, "anne"),
    "exiting": ev.Exiting,
    "moved": ev.MovedOut,
    "requeue": lambda seq, attempt: ev.Requeued(seq, attempt, "op"),
    "resume": lambda seq, attempt: ev.Resumed(seq, attempt, "olga"),
}
"""Events about a request, by verbs: people hold, release and delete it; an operator resumes it; its
processes have ended (``exiting``); it has left its PEs (``moved``)."""


def foreign_jobs(*ranges: str) -> tuple[ForeignJob, ...]:
    """Return a foreign job for each of these PEs or ranges of PEs."""
    return tuple(ForeignJob(100 + n, 1, "zoe", "spin", numbers((pes,))) for n, pes in enumerate(ranges))


class Story:
    """A test on a site; ``seqs``: request numbers by name."""

    def __init__(self, house: House) -> None:
        self.house, self.seqs = house, dict[str, Seq]()

    def play(self, text: str) -> None:
        """Run the steps of a test."""
        for step in filter(None, map(str.strip, re.split(r"[;\n]", text))):
            verb, _, rest = step.partition(" ")
            words = re.split(r",\s+", rest) if verb in ("submit", "run") else rest.split()
            try:
                if verb in EVENTS:
                    request = self.house.request(self[words[0]])
                    self.house._event(EVENTS[verb](request.seq, request.attempts))
                elif hasattr(self, verb):
                    getattr(self, verb)(*words)
                else:
                    named = [word for word in words if re.match(r"\w+=", word)]
                    given = (value(word) for word in words if word not in named)
                    getattr(self.house, verb)(*given, **pairs(named))
            except AssertionError as error:
                raise AssertionError(f"{step!r}: {error}") from error

    def __getitem__(self, name: str) -> Seq:
        array, _, index = name.partition("[")
        return member(self.seqs[array], int(index[:-1])) if index else self.seqs[name]

    def _names(self, seqs: Iterable[Seq]) -> list[str]:
        known = {seq: name for name, seq in self.seqs.items()}
        arrays = ((seq, array_of(seq)) for seq in seqs)
        return [known[seq] if array is None else f"{known[array]}[{index_of(seq)}]" for seq, array in arrays]

    # ------------------------------------------------------------ the site
    def set(self, path: str, text: str) -> None:
        self.house.set(path, value(text))

    def create(self, path: str, *settings: str) -> None:
        self.house.change(ev.Change("create", path, pairs(settings)))

    def takes(self, time: str) -> None:
        self.house.takes = int(time)

    def asks(self, *words: str) -> None:
        """Use a jobselect exit: ``ben=refuse`` answers about ben's, ``ben2=`` about one request, ``all=``
        about the others; ``forcing``: it may force starts."""
        kinds = {"refuse": refuse(), "force": force(), "hold": hold_line()}
        answers = {owner: kinds[word] for owner, word in (each.split("=") for each in words if "=" in each)}

        def jobselect(request: RequestView, view: PassView) -> Answer | None:
            named = (self._names([request.seq])[0], request.owner, "all")
            return next((answers[name] for name in named if name in answers), None)

        self.exits = self.house.exits("forcing" in words, jobselect=jobselect)

    def stops(self, queue: str, at: str, spill: str) -> None:
        """Announce that shift day stops a queue."""
        stop = UpcomingStop(Instant(START + ms(at)), "day", spill, "06:00")
        self.house.site.upcoming_stops[queue] = stop

    def closes(self, queue: str, at: str) -> None:
        self.house.site.closings[queue] = Instant(START + ms(at))

    def day(self, spill: str, *started: str) -> None:
        """Begin shift day, which starts or stops queues: ``stop:night``."""
        pairs = (each.split(":") for each in started)
        changes = tuple(ev.Change("set", f"queue/{name}/started", verb == "start") for verb, name in pairs)
        made = {"when": ["30 8 * * *"], "spill": spill, "commands": [cm.encode(cm.Configure(changes))]}
        self.house.change(ev.Change("create", "shift/day", made)).change(*changes)
        self.begin_shift("day")

    def begin_shift(self, name: str) -> None:
        self.house._event(ev.ShiftChanged(name, "night", self.house.now))

    def memory(self, level: str, used: str, *held: str) -> None:
        """Report the memory (1000 Mw): per cent in use, and what requests hold: ``anne=20``."""
        self.house.set("swap_control/enabled", True)
        parts = (each.split("=") for each in held)
        resident = tuple((self[name], int(size) * 8 * 2**20) for name, size in parts)
        self.house._event(
            ev.PressureChanged(level, float(used), f"{used} % in use", resident, 1000 * 8 * 2**20)
        )

    def foreign(self, *ranges: str) -> None:
        """Find a foreign job on each of these PEs or ranges of PEs, and no other."""
        self.house._event(ev.ForeignChanged(foreign_jobs(*ranges)))

    def offline(self, *ranges: str) -> None:
        self.house.set("machine/offline", ranges)

    def opens(self) -> None:
        self.house.site.upcoming_stops.clear()
        self.house.site.closings.clear()

    # ------------------------------------------------------------ requests and time
    def submit(self, *lines: str) -> None:
        for line in lines:
            owner = line.split()[0]
            count = sum(re.fullmatch(rf"{owner}\d*", name) is not None for name in self.seqs)
            (self.seqs[f"{owner}{count + 1}" if count else owner],) = self.house.submit(line)

    def run(self, *lines: str) -> None:
        self.submit(*lines)
        self.house.go()

    def array(self, owner: str, last: str, *words: str) -> None:
        self.seqs[owner] = self.house.array(" ".join((owner, *words)), int(last))

    def end(self, *words: str) -> None:
        """End requests that used ``cpu=`` and ran for ``wall=``."""
        used = dict(word.split("=") for word in words if "=" in word)
        for name in (word for word in words if "=" not in word):
            self.house.end(self[name], **used)

    def schedule(self, name: str, word: str) -> None:
        self.house.schedule(self[name], word)

    def suspend(self, name: str, *cause: str) -> None:
        """Suspend a request for a cause, by default shift day; ``op``, an operator, leaves it its PEs."""
        attempts, why = self.house.request(self[name]).attempts, " ".join(cause) or "shift day"
        self.house._event(ev.Suspended(self[name], attempts, why, why != "op", "it is over"))

    def begins(self, name: str, pes: str) -> None:
        """Start a request on these PEs without a pass."""
        self.house._event(ev.Starting(self[name], 1, tuple(numbers((pes,)))))

    def later(self, time: str) -> None:
        self.house.later(ms(time))

    def at(self, time: str) -> None:
        self.house.at(ms(time) / 1000)

    # ------------------------------------------------------------ passes, and what is so after them
    def starts(self, *names: str) -> None:
        """Run a pass and check which requests it starts; ``-``: none."""
        assert self._names(self.house.go().starts) == [name for name in names if name != "-"]

    def does(self, *acts: str) -> None:
        """Run a pass and check its actions: ``suspend:anne start:ben``."""
        actions = self.house.go().actions
        assert [f"{type(each).__name__.lower()}:{self._names([each.seq])[0]}" for each in actions] == [
            each for each in acts if each != "-"
        ]

    def routes(self, *moves: str) -> None:
        """Run a pass and check which requests it moves to other queues: ``anne:express``."""
        moved = self.house.go().moves()
        assert [f"{self._names([seq])[0]}:{queue}" for seq, queue in moved.items()] == list(moves)

    def picks(self, *names: str) -> None:
        """Check which requests a pass would start, without starting them."""
        assert self._names(self.house.run_pass().starts) == list(names)

    def next(self, *names: str) -> None:
        """Check that the next pass comes at once, run it, and check that no other comes at once after it."""
        self.wake("+1")
        self.later("1ms")
        self.starts(*names)
        assert self.house.plan.wake_at != self.house.now + 1
        assert self.house.site.swept == self.house.site.freed

    def wake(self, time: str) -> None:
        """Check when the next pass comes; ``+1``: ms from now."""
        due = self.house.now + int(time) if time[0] == "+" else None if time == "-" else START + ms(time)
        assert self.house.plan.wake_at == due

    def reserved(self, *words: str) -> None:
        """Check reserved starts; ``-``: there is none, ``?``: its time is unknown."""
        for name, time in zip(words[::2], words[1::2], strict=True):
            start = self.house.request(self[name]).reservation
            found = "-" if start is None else "?" if start.at is None else (start.at - START) / 60_000
            assert found == (time if time in "-?" else pytest.approx(ms(time) / 60_000, abs=0.001)), name

    def late(self, name: str, *words: str) -> None:
        """Check that a reservation is late (``no``: that it is not); ``= X``: its cause names X."""
        reservation = self.house.request(self[name]).reservation
        late = "" if reservation is None else reservation.late
        assert (" ".join(words[1:]) in late) if words[:1] == ("=",) else bool(late) is (not words), late

    def given_up(self, name: str, *words: str) -> None:
        """Check that the last pass removed a reservation, for a cause with these words."""
        [causes] = [each.causes for each in self.house.plan.actions if isinstance(each, Reserving)]
        assert causes.keys() == {self[name]}
        assert " ".join(words) in causes[self[name]]

    def by(self, name: str, *others: str) -> None:
        """Check which requests must end before a reserved start."""
        assert self._names(self.house.request(self[name]).reservation.by) == list(others)

    def ends(self, name: str, time: str) -> None:
        """Check when a request that fills a hole is ended."""
        assert self.house.request(self[name]).run.until == (None if time == "-" else START + ms(time))

    def why(self, name: str, word: str, *words: str) -> None:
        """Check the code of a reason, or its kind and values, ``until= ahead= who=``; ``-``: it has none."""
        if word == "-":
            assert not explain(self.house.site, (self[name],), self.house.plan.reasons)
            return
        reason = self.house.why(self[name])
        more = pairs([each for each in words if "=" in each])
        if "until" in more:
            more["until"] = START + ms(str(more["until"]))
        if values := tuple(value(each) for each in words if "=" not in each):
            more["values"] = values
        assert reason.matches(**{"code" if word.isupper() else "kind": word}, **more), reason

    def gives(self, *names: str) -> None:
        """Check which requests the last pass suspends."""
        given = [action.seq for action in self.house.plan.actions if isinstance(action, Suspend)]
        assert self._names(given) == [name for name in names if name != "-"]

    def returns(self, name: str, pes: str = "") -> None:
        """Check which request the last pass resumes; ``pes``: on other PEs than before."""
        resumed = {action.seq: action.pes for action in self.house.plan.actions if isinstance(action, Resume)}
        assert resumed == ({} if name == "-" else {self[name]: numbers((pes,)) if pes else ()})

    def block(self, name: str, pes: str = "") -> None:
        """Check the block that is cleared, and for which request; ``-``: none is."""
        block = facts.stored_by(self.house.site, "bumper").get("application")
        assert (block is None) is (name == "-"), block
        assert block is None or block["seq"] == self[name], block
        assert not pes or block["pes"] == [pes], block

    def pes(self, name: str, pes: str) -> None:
        """Check the PEs of a request."""
        assert self.house.request(self[name]).pes == tuple(numbers(tuple(pes.split(","))))

    def size(self, name: str, pes: str, minutes: str) -> None:
        """Check the size on which a moldable request runs."""
        request = self.house.request(self[name])
        assert (len(request.pes), request.spec.ask.pes) == (int(pes), int(pes))
        assert request.spec.ask.wall == ms(minutes)

    def sized(self, name: str, pes: str) -> None:
        """Check the size that is reserved for a moldable request."""
        assert self.house.request(self[name]).reservation.pes == int(pes)

    def lacked(self, name: str, *sizes: str) -> None:
        """Check which sizes were refused at the start, and why."""
        lacked = [f"{pes}:{code}" for pes, code in self.house.request(self[name]).run.lacked]
        assert lacked == list(sizes)

    def units(self, name: str, *units: str) -> None:
        """Check the units of a request."""
        held = [f"{kind}={','.join(each)}" for kind, each in self.house.request(self[name]).units]
        assert held == list(units)

    def asked(self, *names: str) -> None:
        """Check about which requests the exit was asked, in order."""
        assert self._names(self.exits.called("jobselect")) == list(names)

    def short(self, word: str) -> None:
        """Check if the last pass found that a request waits only for PEs."""
        assert self.house.plan.short_of_pes is (word == "yes")

    def entitled(self, *parts: str) -> None:
        """Check the parts of the whole to which groups are entitled: ``d1=0.25``."""
        share = FairShare(self.house.site, self.house.now, self.house.samples).share
        for group, part in pairs(parts).items():
            assert share(group=group) == pytest.approx(part, abs=1e-4), group

    def usage(self, *parts: str) -> None:
        """Check the parts that groups (``d1=0.5``) and owners (``:anne=1``) have of what was used."""
        usage = FairShare(self.house.site, self.house.now, self.house.samples).usage
        for name, part in pairs(parts).items():
            group, _, owner = name.partition(":")
            assert usage(group=group or None, owner=owner or None) == pytest.approx(part, abs=1e-4), name

    def works(self, *groups: str) -> None:
        """Check which groups have requests that could start, as a pass that starts nothing reports it."""
        self.house.tell_startable()
        startable = balance_of(self.house.site).startable()
        assert {pair.partition(":")[0] for pair, pes in startable.items() if pes} == {*groups} - {"-"}

    def worth(self, *values: str) -> None:
        """Use a shrpri exit that gives groups these values: ``d1=2``."""
        known = pairs(values)
        self.house.exits(shrpri=lambda owner, group, view: float(known[group]))

    def shares(self, *values: str) -> None:
        """Check the share factors of requests."""
        for name, share in pairs(values).items():
            self.factors(name, f"share={share}")

    def factors(self, name: str, *values: str) -> None:
        """Check factors, ``total`` and ``position`` of a request, as `qstat` shows them."""
        place = self.house.standing().of(self.house.request(self[name]))
        for factor, number in pairs(values).items():
            assert getattr(place, factor) == pytest.approx(number, abs=1e-9), factor

    def learn(self, owner: str, *runs: str) -> None:
        """Record past runs of an owner's requests named job (2 PEs, 10 minutes): ``100*9``: nine alike."""
        lived: list[Lived] = []
        for part, count in (map(int, run.split("*")) for run in runs):
            lived += [Lived(part * 600, part)] * count
        self.house.site.lifetimes.known[owner, "job", 2] = Lifetime(tuple(lived), self.house.site.n)

    def line(self, queue: str, *names: str) -> None:
        """Check the order of a queue as `qstat` shows it."""
        assert self._names(self.house.standing(queue).line()) == list(names)
