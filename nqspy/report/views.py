"""Requests as the objects of ``qstat --json``: exactly these keys, in this order (interfaces.md 5)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from nqspy.model.events import Deleted, Ended, Recorded
from nqspy.model.ids import Instant, JobRef, Seq
from nqspy.model.outputs import fill, streams
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request, Spec, State
from nqspy.report import history
from nqspy.report.history import requested, used_object
from nqspy.report.moments import Zone, zone_of

_encoder = msgspec.json.Encoder()

_NOTHING_USED = {"cpu_s": None, "wall_s": None, "memory_bytes": None}


class Standing(NamedTuple):
    """Where a queued request stands in its queue: the priority's factors in [0,1] before weighting, their
    weighted sum, and its place (from 1) in the order of offers."""

    total: float
    share: float
    cpu: float
    memory: float
    time: float
    position: int


class Standings(Protocol):
    """Whatever has a `Standing`'s values (`engine.explain.Place`)."""

    @property
    def total(self) -> float: ...
    @property
    def share(self) -> float: ...
    @property
    def cpu(self) -> float: ...
    @property
    def memory(self) -> float: ...
    @property
    def time(self) -> float: ...
    @property
    def position(self) -> int: ...


class Place(NamedTuple):
    """What every object of one answer needs: host part of identifiers, the site's zone, the instant of the
    answer (the priorities' ``at``)."""

    host: str
    zone: Zone
    at: Instant


def request_object(
    request: Request,
    place: Place,
    standing: Standings | None = None,
    reason: Reason | None = None,
) -> dict[str, Any]:
    """The object of a request that has not ended. ``standing`` counts in state queued alone,
    ``reason`` says why it waits or is suspended, or what will become of one that runs."""
    spec, stamp, held = request.spec, place.zone.stamp, request.state is State.HELD
    begun = request.started is not None
    queued = request.state is State.QUEUED
    if reason is None and held and request.hold_text:
        reason = _held(request)
    return {
        **_what(request.seq, spec, request.queue, request.state.value, place),
        "attempt": request.attempts,
        "submitted": stamp(request.submitted),
        "date_in_queue": stamp(request.date_in_queue),
        "eligible": stamp(spec.eligible),
        "started": stamp(request.started),
        "ended": None,
        "requested": requested(spec),
        "used": used_object(request.used) if begun else _NOTHING_USED,
        "priority": _priority(standing, place) if queued and standing is not None else None,
        "position": standing.position if queued and standing is not None else None,
        "pes": request.pes,
        "exit_status": None,
        "exit_signal": None,
        "end_reason": None,
        "reason": None if reason is None else reason_object(reason, place.zone),
        "depends_on": [
            JobRef(seq).full(place.host) for seq in dict.fromkeys(each.seq for each in request.unmet)
        ],
        "held": list(request.letters),
        **_paths(request.seq, spec, request.queue, place.host),
    }


def ended_object(row: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """The object of a request that has ended, from a row of `ports.Journal.ended`: ``seq spec queue
    submitted ended at`` and, where the store keeps it, ``request``."""
    spec: Spec = row["spec"]
    event: Ended | Deleted = row["ended"]
    request: Request | None = row.get("request")
    stamp = place.zone.stamp
    return {
        **_what(row["seq"], spec, row["queue"], State.ENDED.value, place),
        "attempt": request.attempts if request is not None else 0,
        "submitted": stamp(row["submitted"]),
        "date_in_queue": stamp(request.date_in_queue if request is not None else row["submitted"]),
        "eligible": stamp(spec.eligible),
        "started": stamp(request.started) if request is not None else None,
        "ended": stamp(row["at"]),
        "requested": requested(spec),
        "used": used_object(event.used) if isinstance(event, Ended) else _NOTHING_USED,
        "priority": None,
        "position": None,
        "pes": request.pes if request is not None else (),
        "exit_status": event.exit_status if isinstance(event, Ended) else None,
        "exit_signal": event.exit_signal if isinstance(event, Ended) else None,
        "end_reason": event.end_reason if isinstance(event, Ended) else "deleted",
        "reason": _ending(event),
        "depends_on": [],
        "held": [],
        **_ended_paths(row, place.host),
    }


def options(spec: Spec) -> dict[str, Any]:
    """What ``qstat -f`` shows besides: options of a request, those with a default filled in."""
    mail = spec.mail
    points = {"a": mail.abort, "b": mail.begin, "e": mail.end, "r": mail.rerun, "t": mail.transfer}
    return {
        "mail_points": "".join(letter for letter, wanted in points.items() if wanted) or "n",
        "mail_users": mail.to,
        "priority": spec.priority or 0,
        "rerunnable": spec.rerunnable,
        "nice": spec.ask.nice,
        "shell": spec.shell,
    }


def redating_object(request: Request, place: Place) -> dict[str, Any] | None:
    """``redated{at who cause}`` of ``qstat --why``: who gave it its date in queue, and whose start was the
    cause; None where it has the one of its submission."""
    redated = request.redated
    if redated is None:
        return None
    cause = JobRef(redated.cause).full(place.host) if redated.cause is not None else None
    return {"at": place.zone.stamp(redated.at), "who": redated.who, "cause": cause}


def encode(objects: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> bytes:
    """JSON of objects made here."""
    return _encoder.encode(objects)


def reason_object(reason: Reason, zone: Zone) -> dict[str, Any]:
    """``reason{}``."""
    until = zone.stamp(reason.until)
    return {"code": reason.code.value, "who": reason.who, "text": reason.text, "until": until}


def event_object(recorded: Recorded, host: str, zone: Zone | str) -> dict[str, Any]:
    """A line of ``nqspy events --json``, see `history.event_object`."""
    return history.event_object(recorded, host, zone if isinstance(zone, Zone) else zone_of(zone))


def default_path(seq: Seq, spec: Spec, letter: str, keep: bool) -> str:
    """Where output goes by default: ``NAME.oSEQ`` where it was submitted, or in the owner's home (kept)."""
    return f"{f'~{spec.owner}' if keep else spec.workdir}/{spec.name}.{letter}{seq}"


def _what(seq: Seq, spec: Spec, queue: str, state: str, place: Place) -> dict[str, Any]:
    return {
        "id": JobRef(seq).full(place.host),
        "seq": seq,
        "name": spec.name,
        "owner": spec.owner,
        "group": spec.group,
        "account": spec.account,
        "queue": queue,
        "state": state,
    }


def _priority(standing: Standings, place: Place) -> dict[str, Any]:
    return {
        "total": standing.total,
        "share": standing.share,
        "cpu": standing.cpu,
        "memory": standing.memory,
        "time": standing.time,
        "at": place.zone.text(place.at),
    }


def _held(request: Request) -> Reason:
    return Reason(ReasonCode.HELD, "", request.hold_text)


def _ending(event: Ended | Deleted) -> dict[str, Any] | None:
    who = event.who if isinstance(event, Deleted) else ""
    return {"code": "ENDED", "who": who, "text": event.text, "until": None} if event.text or who else None


def _paths(
    seq: Seq, spec: Spec, queue: str, host: str, stdout: str | None = None, stderr: str | None = None
) -> dict[str, str]:
    """Where output goes, or has gone (``stdout``, ``stderr``); names filled in."""
    wish = spec.output
    named = {option: fill(path, seq, spec, queue, host) for option, path in streams(spec)}
    output = stdout or named.get("-o") or default_path(seq, spec, "o", wish.keep_stdout)
    joined = output if wish.join else None
    error = stderr or joined or named.get("-e") or default_path(seq, spec, "e", wish.keep_stderr)
    return {"output": output, "error": error}


def _ended_paths(row: Mapping[str, Any], host: str) -> Mapping[str, str | None]:
    event: Ended | Deleted = row["ended"]
    if isinstance(event, Deleted):
        return {"output": None, "error": None}
    return _paths(row["seq"], row["spec"], row["queue"], host, event.stdout, event.stderr)
