"""Requests as the objects of ``qstat --json``: exactly these keys, in this order (interfaces.md 5)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nqspy.core.queueing.order import Place
from nqspy.model.domains import APPLICATION
from nqspy.model.events import Deleted, Ended
from nqspy.model.ids import Instant, JobRef, Seq
from nqspy.model.outputs import fill, streams
from nqspy.model.reasons import Reason, ReasonCode, told
from nqspy.model.requests import Request, Spec, State
from nqspy.report.event_objects import requested, used_object
from nqspy.report.time_text import Zone

_encoder = msgspec.json.Encoder()

_NOTHING_USED = {"cpu_s": None, "wall_s": None, "memory_bytes": None}


class AnswerContext(NamedTuple):
    """What every object of one answer needs: host part of identifiers, the site's zone, the instant of the
    answer (the priorities' ``at``), and queues' domains, by queue, that are not ``application``."""

    host: str
    zone: Zone
    at: Instant
    domains: Mapping[str, str] = {}


def request_object(
    request: Request,
    context: AnswerContext,
    place: Place | None = None,
    reason: Reason | None = None,
) -> dict[str, Any]:
    """The object of a request that has not ended. ``place`` counts in state queued alone,
    ``reason`` says why it waits or is suspended, or what will become of one that runs."""
    spec, stamp, held = request.spec, context.zone.stamp, request.state is State.HELD
    begun = request.started is not None
    queued = request.state is State.QUEUED
    if reason is None and held and request.hold_text:
        reason = told(ReasonCode.HELD, "", request.hold_text)
    return {
        **_what(request.seq, spec, request.queue, request.state.value, context),
        "attempt": request.attempts,
        "submitted": stamp(request.submitted),
        "date_in_queue": stamp(request.date_in_queue),
        "eligible": stamp(spec.eligible),
        "started": stamp(request.started),
        "ended": None,
        "requested": requested(spec),
        "used": used_object(request.used) if begun else _NOTHING_USED,
        "priority": _priority(place, context) if queued and place is not None else None,
        "position": place.position if queued and place is not None else None,
        "pes": request.pes,
        "exit_status": None,
        "exit_signal": None,
        "end_reason": None,
        "reason": None if reason is None else reason_object(reason, context.zone),
        "depends_on": [
            JobRef(seq).full(context.host) for seq in dict.fromkeys(each.seq for each in request.unmet)
        ],
        "held": list(request.letters),
        **_paths(request.seq, spec, request.queue, context.host),
    }


def ended_object(row: Mapping[str, Any], context: AnswerContext) -> dict[str, Any]:
    """The object of a request that has ended, from a row of `ports.Journal.ended`: ``seq spec queue
    submitted ended at`` and, where the store keeps it, ``request``."""
    spec: Spec = row["spec"]
    event: Ended | Deleted = row["ended"]
    request: Request | None = row.get("request")
    stamp = context.zone.stamp
    return {
        **_what(row["seq"], spec, row["queue"], State.ENDED.value, context),
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
        **_ended_paths(row, context.host),
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


def redating_object(request: Request, context: AnswerContext) -> dict[str, Any] | None:
    """``redated{at who cause}`` of ``qstat --why``: who gave it its date in queue, and whose start was the
    cause; None where it has the one of its submission."""
    redated = request.redated
    if redated is None:
        return None
    cause = JobRef(redated.cause).full(context.host) if redated.cause is not None else None
    return {"at": context.zone.stamp(redated.at), "who": redated.who, "cause": cause}


def encode(objects: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> bytes:
    """JSON of objects made here."""
    return _encoder.encode(objects)


def reason_object(reason: Reason, zone: Zone) -> dict[str, Any]:
    """``reason{}``."""
    until = zone.stamp(reason.until)
    return {"code": reason.code.value, "who": reason.who, "text": reason.text, "until": until}


def default_path(seq: Seq, spec: Spec, letter: str, keep: bool) -> str:
    """Where output goes by default: ``NAME.oSEQ`` where it was submitted, or in the owner's home (kept)."""
    return f"{f'~{spec.owner}' if keep else spec.workdir}/{spec.name}.{letter}{seq}"


def _what(seq: Seq, spec: Spec, queue: str, state: str, context: AnswerContext) -> dict[str, Any]:
    return {
        "id": JobRef(seq).full(context.host),
        "seq": seq,
        "name": spec.name,
        "owner": spec.owner,
        "group": spec.group,
        "account": spec.account,
        "queue": queue,
        "domain": context.domains.get(queue, APPLICATION),
        "state": state,
    }


def _priority(place: Place, context: AnswerContext) -> dict[str, Any]:
    return {
        "total": place.total,
        "share": place.share,
        "cpu": place.cpu,
        "memory": place.memory,
        "time": place.time,
        "at": context.zone.text(context.at),
    }


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
