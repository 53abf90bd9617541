"""Incidents of a night as a story: each with its beginning, its end, and the requests that it affected.

Events are distinguished by their ``kind`` and attributes, so that journals without probes can be read too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nqspy.model import events as ev
from nqspy.model.actions import ExitFailure
from nqspy.model.cause import EXECUTOR
from nqspy.model.ids import MINUTE, Instant, Seq, full_id
from nqspy.model.texts import counted, some_of
from nqspy.report.replay import HistoryReplay
from nqspy.report.time_text import Zone

SAME = 15 * MINUTE
"""Events that affect requests one by one for the same cause are one incident if no two neighbours are further
apart than this (ms)."""

_OF_SITE = frozenset({
    "probe", "pressure", "settings_changed", "daemon_started", "machine_found", "shift_failed",
    "shift_changed", "exit_off", "alarm", "decided",
})  # fmt: skip
_OF_REQUESTS = frozenset({"requeued", "ended", "resumed", "suspended", "deleting", "held"})
"""Kinds of events about incidents."""

_SYSTEM = ("feature", "probe", "shift")
"""Kinds of causes that affect requests without a person's order."""


@dataclass(slots=True)
class Incident:
    """An incident of a ``kind`` (`_SENTENCES`), about a probe, shift, exit or cause named in the field after
    it. ``end`` None: it lasts beyond the events; ``seqs``: affected requests, by group."""

    kind: str
    who: str
    text: str
    begin: Instant
    end: Instant | None
    seqs: dict[str, dict[Seq, None]] = field(default_factory=dict)


@dataclass(slots=True)
class Failing:
    """Failures of one user exit, each as (instant, group, request or None, text); ``off``: the instant at
    which the exit was switched off, None: it was not."""

    failed: list[tuple[Instant, str, Seq | None, str]] = field(default_factory=list)
    off: Instant | None = None


class IncidentLog:
    """Collects the incidents of a night from all events in order. ``replay``: tells requests' groups, and
    gets each event after this log."""

    def __init__(self, replay: HistoryReplay) -> None:
        self._replay = replay
        self.incidents: list[Incident] = []
        self.exits: dict[str, Failing] = {}
        self._open: dict[tuple[str, str], Incident] = {}
        self._suspended: dict[Seq, Incident] = {}

    def add(self, recorded: ev.Recorded) -> None:
        """Add an event, before `HistoryReplay` does: it may begin or end an incident."""
        event, at = recorded.event, recorded.at
        if event.kind in _OF_REQUESTS:
            self._add_of_request(event, at)
        elif event.kind in _OF_SITE and not is_new_home(recorded):
            self._add_of_site(event, at)

    def objects(self, since: Instant, host: str, zone: Zone) -> list[dict[str, Any]]:
        """Return the incidents that were not over before ``since``, by beginning, for JSON. Alarms about
        exits, shifts and probes are left out where these have incidents or failures of their own."""
        elsewhere = {f"exit {name}" for name in self.exits}
        elsewhere |= {f"{each.kind} {each.who}" for each in self.incidents if each.kind in ("shift", "probe")}
        return [
            {
                "kind": incident.kind, "who": incident.who, "begin": zone.text(incident.begin),
                "end": zone.stamp(incident.end), "text": incident.text, "requests": _ids(incident.seqs, host),
            }
            for incident in sorted(self.incidents, key=lambda incident: incident.begin)
            if (incident.end is None or incident.end >= since)
            and not (incident.kind == "alarm" and incident.who in elsewhere)
        ]  # fmt: skip

    def exit_objects(self, since: Instant, host: str, zone: Zone) -> list[dict[str, Any]]:
        """Return an object for JSON for each exit that failed at ``since`` or later: how often, first and
        last instant, last text, requests by group, when it was switched off."""
        found = []
        for name, exit in self.exits.items():
            if not (failed := [each for each in exit.failed if each[0] >= since]):
                continue
            seqs: dict[str, dict[Seq, None]] = {}
            for _, group, seq, _ in failed:
                if seq is not None:
                    seqs.setdefault(group, {})[seq] = None
            off = exit.off if exit.off is not None and exit.off >= since else None
            (first, *_), (last, *_, text) = failed[0], failed[-1]
            times = {"first": zone.text(first), "last": zone.text(last), "off": zone.stamp(off)}
            requests = _ids(seqs, host)
            found.append({"exit": name, "count": len(failed), **times, "text": text, "requests": requests})
        return found

    def _add_of_site(self, event: Any, at: Instant) -> None:
        kind = event.kind
        if kind == "probe" or kind == "pressure":
            who, bad = (event.name, "broken") if kind == "probe" else ("memory", "high")
            if (event.state if kind == "probe" else event.level) == bad:
                self.open(kind, who, getattr(event, "text", ""), at)
            else:
                self.close(kind, who, at)
        elif kind == "settings_changed":
            for change in event.changes:
                head, _, name = change.path.partition("/")
                if change.op == "delete" and head == "probe":  # no event will report it well again
                    self.close("probe", name, at)
        elif kind == "daemon_started":
            how = "was stopped" if event.clean else "ended unexpectedly"
            self.point("daemon", "nqsd", f"nqsd {how} and was started again", at, event.last)
        elif kind == "machine_found":
            cpus = len(event.cpus) - len(event.offline)
            text = f"the machine has changed: it has {counted(cpus, 'CPU')} now"
            self.point("machine", event.host, text, at)
        elif kind == "shift_failed":
            self.open("shift", event.shift, event.text, at)
        elif kind == "shift_changed":
            self.close("shift", None, at)
            if event.manual:
                self.point("switched", str(event.shift), "", at)
        elif kind == "exit_off":
            self.point("exit_off", event.exit, event.text, at)
            if event.exit in self.exits:
                self.exits[event.exit].off = at
        else:
            self.failed(event.failures, at)
            if kind == "alarm" and event.who != "hands":  # lost ends are reported with the requests
                self.point("store" if event.who == "store" else kind, event.who, event.text, at, event.since)

    def _add_of_request(self, event: Any, at: Instant) -> None:
        kind = event.kind
        if kind in ("requeued", "ended", "resumed"):
            incident = self._suspended.pop(event.seq, None)
            if incident is not None and not any(incident is each for each in self._suspended.values()):
                incident.end = at
        if kind == "requeued":
            self.met("requeued", "", event.text, event.seq, at)
        elif kind == "ended" and event.end_reason == "lost":
            self.met("lost", "", event.text or "its end was not seen", event.seq, at)
        elif kind in ("suspended", "deleting", "held"):
            cause = event.because()
            by_system = cause.kind in _SYSTEM
            if kind == "suspended" and by_system:  # the incident lasts until the last one goes on
                incident = self._suspended[event.seq] = self.met("suspended", event.by, "", event.seq, at)
                incident.end = None
            elif kind == "deleting" and by_system:
                self.met("ended", event.who, "to be run again" if event.rerun else "", event.seq, at)
            elif kind == "held":
                for seq in event.seqs if by_system or cause == EXECUTOR else ():
                    if not by_system:  # it could not be started, or its end was lost
                        self._not_again(seq, at)
                    self.met("held", event.who if by_system else "nqsd", event.text, seq, at)

    def failed(self, failures: Iterable[ExitFailure], at: Instant) -> None:
        """Add failures of user exits to ``exits``, with the instant ``at``."""
        for failure in failures:
            failed = self.exits.setdefault(failure.exit, Failing()).failed
            failed.append((at, self._group(failure.seq), failure.seq, failure.text))

    def _group(self, seq: Seq | None) -> str:
        history = None if seq is None else self._replay.histories.get(seq)
        return "" if history is None else history.request.group

    def point(self, kind: str, who: str, text: str, at: Instant, begin: Instant | None = None) -> Incident:
        """Add an incident that lasted from ``begin`` (None: ``at``) to ``at``; return it."""
        incident = Incident(kind, who, text, at if begin is None else begin, at)
        self.incidents.append(incident)
        return incident

    def open(self, kind: str, who: str, text: str, at: Instant) -> None:
        """Begin an incident at ``at``, unless one of this kind and subject is still open."""
        if (kind, who) not in self._open:
            incident = self._open[kind, who] = Incident(kind, who, text, at, None)
            self.incidents.append(incident)

    def close(self, kind: str, who: str | None, at: Instant) -> None:
        """End the open incident of this kind and subject at ``at``; subject None: all open ones of that
        kind."""
        for key in [key for key in self._open if key[0] == kind and who in (None, key[1])]:
            self._open.pop(key).end = at

    def met(self, kind: str, who: str, text: str, seq: Seq, at: Instant) -> Incident:
        """Add an affected request to the incident of this kind, subject and text; return the incident. A new
        one begins if there is none yet, or its last request was affected more than `SAME` ago."""
        incident = self._open.get((kind, f"{who}\n{text}"))
        if incident is None or (incident.end is not None and at - incident.end > SAME):
            incident = self._open[kind, f"{who}\n{text}"] = self.point(kind, who, text, at)
        incident.end = at
        incident.seqs.setdefault(self._group(seq), {})[seq] = None
        return incident

    def _not_again(self, seq: Seq, at: Instant) -> None:
        """Remove a request that was held as soon as it was requeued, at ``at``, from such incidents."""
        for incident in [e for e in self.incidents if e.kind == "requeued" and e.end == at]:
            for seqs in incident.seqs.values():
                seqs.pop(seq, None)
            if not any(incident.seqs.values()):
                self.incidents.remove(incident)
                self._open.pop(("requeued", f"\n{incident.text}"), None)


def is_new_home(recorded: ev.Recorded) -> bool:
    """True if an event is the journal's first and records the machine: no change of it."""
    return recorded.n == 1 and recorded.event.kind == "machine_found"


def _ids(seqs: Mapping[str, Iterable[Seq]], host: str) -> dict[str, list[str]]:
    return {group: [full_id(seq, host) for seq in each] for group, each in seqs.items()}


_EVERYBODY = ("daemon", "machine", "probe", "pressure", "store")
"""Kinds of incidents shown to all departments in full; of others each sees its own requests only."""


def for_department(story: Iterable[Mapping[str, Any]], group: str) -> list[dict[str, Any]]:
    """Return the incidents (objects of `IncidentLog.objects`) that a department may see: those of the whole
    site, and those that affected its requests, with only these. Incidents of shifts lose their texts."""
    found = []
    for each in story:
        mine = each["requests"].get(group)
        requests = {group: mine} if mine else {}
        if each["kind"] in _EVERYBODY or mine:
            found.append({**each, "requests": requests})
        elif each["kind"] in ("shift", "switched"):
            found.append({**each, "text": "", "requests": {}})
    return found


_MOST = 10
"""Most identifiers in a sentence."""


def sentence(incident: Mapping[str, Any]) -> str:
    """Return an incident in words, without its times."""
    ids = [id for each in incident["requests"].values() for id in each]
    many = f"{len(ids)} requests were" if len(ids) != 1 else "1 request was"
    head, text = _SENTENCES[incident["kind"]].format(who=incident["who"], many=many), incident["text"]
    if head and not text.startswith(head):
        text = f"{head}: {text}" if text else head
    return f"{text} ({some_of(ids, _MOST)})" if ids else text


_SENTENCES = {
    "probe": "resource {who} was broken",
    "pressure": "memory was scarce",
    "daemon": "",
    "machine": "",
    "store": "",
    "shift": "shift {who} could not be entered",
    "switched": "shift {who} was put in force by hand",
    "exit_off": "exit {who} was switched off",
    "alarm": "{who}",
    "requeued": "{many} queued again",
    "lost": "{many} lost",
    "suspended": "{many} suspended by {who}",
    "ended": "{many} ended by {who}",
    "held": "{many} held by {who}",
}
