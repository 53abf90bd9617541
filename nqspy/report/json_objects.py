"""Requests as the objects of ``qstat --json``: exactly these keys, in this order (interfaces.md 5)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from nqspy.core import Place
from nqspy.model import indices
from nqspy.model.domains import APPLICATION
from nqspy.model.endings import End
from nqspy.model.events import Deleted, Ended
from nqspy.model.ids import Instant, array_of, full_id, index_of, number_of
from nqspy.model.machine import Torus, base_in
from nqspy.model.output_paths import shown_paths
from nqspy.model.reasons import Reason, ReasonCode, quoted
from nqspy.model.requests import Request, Reservation, State, Used
from nqspy.ports import EndedRow
from nqspy.report.event_objects import own_options, requested, used_object
from nqspy.report.time_text import Zone

_encoder = msgspec.json.Encoder()

_NOTHING_USED = {"cpu_s": None, "wall_s": None, "memory_bytes": None}
Paths = tuple[str | None, str | None]


class AnswerContext(NamedTuple):
    """Facts common to all objects of one answer. ``host``: part of identifiers after the dot; ``at``: the
    instant of the answer, for which priorities hold; ``domains``: by queue, for queues outside the domain
    ``application``; ``torus``: shape of the machine, None: it has none."""

    host: str
    zone: Zone
    at: Instant
    domains: Mapping[str, str] = {}
    torus: Torus | None = None


def request_object(
    request: Request, context: AnswerContext, place: Place | None = None, reason: Reason | None = None
) -> dict[str, Any]:
    """Return the object of a request that has not ended. ``place``: its priority and position in its queue,
    shown only if it is queued; ``reason``: why it waits, None: unknown (a hold's own text is then shown)."""
    if reason is None and request.state is State.HELD and request.hold_text:
        reason = quoted(ReasonCode.HELD, "", request.hold_text)
    if reason is not None and reason.ahead and place is not None:
        reason = structs.replace(reason, ahead=place.position - 1)
    shown = None if reason is None else reason_object(reason, context.zone)
    used = _NOTHING_USED if request.started is None else used_object(request.used)
    if request.array is not None and request.array.begun:
        used = used_object(Used(request.array.cpu, request.array.wall, request.array.memory))
    made = _object(request, request.shown_state, used, shown, shown_paths(request, context.host), context)
    if request.state is State.QUEUED and place is not None:
        rank = {"total": place.total, "share": place.share, "cpu": place.cpu, "memory": place.memory}
        made["priority"] = rank | {"time": place.time, "at": context.zone.text(context.at)}
        made["position"] = place.position
    made["held"] = list(request.letters)
    awaited = dict.fromkeys(each.seq for each in request.unmet)
    if request.array is not None:
        awaited |= dict.fromkeys(seq for seq, _ in request.array.awaiting)
    made["depends_on"] = [full_id(seq, context.host) for seq in awaited]
    return made


def ended_object(row: EndedRow, context: AnswerContext) -> dict[str, Any]:
    """Return the object of an ended request, from a row of `ports.Journal.ended`."""
    request, event = row["request"], row["ended"]
    if isinstance(event, Ended):
        paths = shown_paths(request, context.host, event.stdout, event.stderr)
        made = _object(request, State.ENDED, used_object(event.used), _ending(event), paths, context)
        made["exit_status"], made["exit_signal"] = End.of(event).shown_status, event.exit_signal
        made["end_reason"] = event.end_reason
    else:
        made = _object(request, State.ENDED, _NOTHING_USED, _ending(event), (None, None), context)
        made["end_reason"] = "deleted"
    made["ended"], made["ok"] = context.zone.stamp(row["at"]), End.of(event).ok
    return made


def _object(
    request: Request, state: State, used: Any, reason: Any, paths: Paths, context: AnswerContext
) -> dict[str, Any]:
    """Return a request's object; what only live or only ended ones have is null or empty for the others."""
    spec, stamp = request.spec, context.zone.stamp
    return {
        "id": full_id(request.seq, context.host),
        "seq": number_of(request.seq),
        "name": spec.name,
        "owner": spec.owner,
        "group": spec.group,
        "account": spec.account,
        "project": spec.project,
        "queue": request.queue,
        "domain": context.domains.get(request.queue, APPLICATION),
        "state": state.value,
        "attempt": request.attempts,
        "submitted": stamp(request.submitted),
        "date_in_queue": stamp(request.date_in_queue),
        "eligible": stamp(spec.eligible),
        "started": stamp(request.started),
        "ended": None,
        "requested": requested(spec),
        "used": used,
        "priority": None,
        "position": None,
        "pes": request.pes,
        "units": {name: list(units) for name, units in request.units},
        "exit_status": None,
        "exit_signal": None,
        "end_reason": None,
        "ok": None,
        "reason": reason,
        "depends_on": [],
        "held": [],
        "output": paths[0],
        "error": paths[1],
        **_rare(request, context),
    }


def _rare(request: Request, context: AnswerContext) -> dict[str, Any]:
    """Return the keys that only some requests have.

    - ``array_id array_index`` of an index; ``array{}`` of an array that has ended, else see `array_object`
    - ``contract{until}`` with a contract: end of the hole that it was started in, null: in none
    - options of its own (`own_options`)
    - ``lacked[{pes why}]`` if it runs on one of several sizes: those on which it would have ended sooner,
      with the code of why it could not start on them
    - ``base coordinate[]`` where the machine has a shape: the lowest of its PEs, and its position
    - ``moved{times took_s paged_bytes}`` if it left its PEs for others in this attempt
    - ``within`` of an application: the request it runs in"""
    spec, attempt, array, found = request.spec, request.attempt, array_of(request.seq), dict[str, Any]()
    if array is not None:
        found |= {"array_id": full_id(array, context.host), "array_index": index_of(request.seq)}
    elif request.array is not None:
        found["array"] = array_object(request, ())
    if spec.contract:
        found["contract"] = {"until": context.zone.stamp(None if attempt is None else attempt.until)}
    found |= own_options(spec)
    if spec.mold is not None and attempt is not None:
        found["lacked"] = [{"pes": pes, "why": why} for pes, why in attempt.lacked]
    if context.torus is not None:
        base, place = base_in(context.torus, request.pes) or (None, None)
        found |= {"base": base, "coordinate": None if place is None else list(place)}
    if attempt is not None and attempt.moved.times:
        times, ms, paged = attempt.moved
        found["moved"] = {"times": times, "took_s": ms / 1000, "paged_bytes": paged}
    if spec.caller is not None:
        found["within"] = spec.within or None
    return found


def array_object(request: Request, members: Iterable[Request]) -> dict[str, Any]:
    """Return ``array{indices counts{} limit}``: indices that have not begun, the number of indices by state,
    most that may run at a time. ``members``: indices that have become requests of their own."""
    state, spec = request.array, request.spec.array
    assert state is not None
    assert spec is not None
    rest = indices.count(state.left)
    counts = dict.fromkeys(("held", "waiting", "queued", "running", "ended", "failed"), 0)
    others = indices.count(indices.plus(state.all_held, state.all_awaiting))
    own = _COUNTED.get(request.state, "queued")
    counts["held"] += rest if own == "held" else others
    counts[own] += 0 if own == "held" else rest - others
    for member in members:
        counts[_COUNTED.get(member.state, "queued")] += 1
    counts["failed"] = indices.count(state.badly)
    counts["ended"] = indices.count(state.well) + counts["failed"] + indices.count(state.dropped)
    return {"indices": indices.show(state.left), "counts": counts, "limit": spec.limit}


_COUNTED = {
    State.HELD: "held", State.WAITING: "waiting", State.RUNNING: "running", State.SUSPENDED: "running",
    State.EXITING: "running",
}  # fmt: skip
"""States in which indices are counted by their state; others count as queued."""


def redating_object(request: Request, context: AnswerContext) -> dict[str, Any] | None:
    """Return ``redated{at who cause}`` for ``qstat --why``; None if the date is still its submission's."""
    redated = request.redated
    if redated is None:
        return None
    cause = full_id(redated.cause, context.host) if redated.cause is not None else None
    return {"at": context.zone.stamp(redated.at), "who": redated.who, "cause": cause}


def reservation_object(start: Reservation, sure: bool, context: AnswerContext) -> dict[str, Any]:
    """Return ``reservation{at by late promised pes}`` for ``qstat --why``: latest start (null: unknown), the
    requests it waits for, why it is late; ``sure``: the time is promised, not a guess of a queue that takes
    chances; ``pes``: on how many, if it has several sizes."""
    by = [full_id(seq, context.host) for seq in start.by]
    made = {"at": context.zone.stamp(start.at), "by": by, "late": start.late or None, "promised": sure}
    return made | ({"pes": start.pes} if start.pes else {})


def encode(objects: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> bytes:
    """Return objects of requests as bytes of JSON."""
    return _encoder.encode(objects)


def reason_object(reason: Reason, zone: Zone) -> dict[str, Any]:
    """Return a reason as ``reason{code who text until}``, its instant in the zone."""
    until = zone.stamp(reason.until)
    return {"code": reason.code.value, "who": reason.who, "text": reason.text, "until": until}


def _ending(event: Ended | Deleted) -> dict[str, Any] | None:
    who = event.who if isinstance(event, Deleted) else ""
    return {"code": "ENDED", "who": who, "text": event.text, "until": None} if event.text or who else None
