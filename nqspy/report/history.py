"""The journal's events as flat objects, one JSON line each (interfaces.md 9)."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from nqspy.model import events as ev
from nqspy.model.actions import ExitFailure
from nqspy.model.ids import JobRef, Seq
from nqspy.model.requests import Spec, Used, finite
from nqspy.report.moments import Zone

_INSTANTS = {"date", "fired", "until", "since", "last", "taken", "began"}
"""Fields of events that are instants."""


def event_object(recorded: ev.Recorded, host: str, zone: Zone) -> dict[str, Any]:
    """``n at kind``, then ``request`` (or ``requests``) as full identifiers, then the event's own fields:
    instants in RFC 3339, use in seconds and bytes."""
    event = recorded.event
    found: dict[str, Any] = {"n": recorded.n, "at": zone.text(recorded.at), "kind": event.kind}
    special = _SPECIAL.get(type(event))
    if special is not None:
        return found | special(event, host, zone)
    for field in dataclasses.fields(event):
        name = field.name
        _add(found, name, getattr(event, name), host, zone)
    return found


def _add(found: dict[str, Any], name: str, value: Any, host: str, zone: Zone) -> None:
    if name == "cause" or (name == "began" and value is None):
        return  # its name stands beside it; as a rule an attempt begins when that is told
    if name == "seq":
        found["request"] = JobRef(value).full(host)
    elif name == "seqs":
        found["requests"] = [JobRef(seq).full(host) for seq in value]
    elif name == "prerequisite":
        found[name] = JobRef(value).full(host)
    elif name in _INSTANTS:
        found[name] = zone.stamp(value)
    elif name == "failures":
        found[name] = _failures(value, host)
    elif isinstance(value, Used):
        found[name] = used_object(value)
    else:
        plain = msgspec.to_builtins(value)
        found[name] = list(plain) if isinstance(plain, tuple) else plain


def used_object(used: Used) -> dict[str, Any]:
    """``used{}`` in seconds and bytes."""
    return {"cpu_s": used.cpu / 1000, "wall_s": used.wall / 1000, "memory_bytes": used.memory or None}


def requested(spec: Spec) -> dict[str, Any]:
    """``requested{}``: what was asked for; null where nothing or no limit was."""
    ask = spec.ask
    return {
        "cpu_s": seconds(finite(ask.cpu_wanted())),
        "wall_s": seconds(finite(ask.wall)),
        "memory_bytes": finite(ask.memory_wanted()),
        "pes": ask.pes,
        "needs": list(ask.needs),
        "processes": finite(dict(ask.others).get("per_request/process_limit")),
    }


def seconds(ms: int | None) -> float | None:
    """Seconds of milliseconds; None stays None."""
    return None if ms is None else ms / 1000


def _of_spec(spec: Spec, zone: Zone) -> dict[str, Any]:
    return {
        "name": spec.name,
        "owner": spec.owner,
        "group": spec.group,
        "account": spec.account,
        "requested": requested(spec),
        "eligible": zone.stamp(spec.eligible),
    }


def _submitted(event: ev.Submitted, host: str, zone: Zone) -> dict[str, Any]:
    head = {"request": JobRef(event.seq).full(host), "queue": event.queue, "state": event.state}
    after = [f"{JobRef(each.seq).full(host)}:{each.word}" for each in event.spec.after]
    return {**head, **_of_spec(event.spec, zone), "after": after, "key": event.key or None}


def _modified(event: ev.Modified, host: str, zone: Zone) -> dict[str, Any]:
    return {"request": JobRef(event.seq).full(host), **_of_spec(event.spec, zone), "who": event.who}


def _redated(event: ev.Redated, host: str, zone: Zone) -> dict[str, Any]:
    cause = JobRef(event.cause).full(host) if event.cause is not None else None
    requests = [JobRef(seq).full(host) for seq in event.seqs]
    return {"requests": requests, "date": zone.text(event.date), "cause": cause, "who": event.who}


def _decided(event: ev.Decided, host: str, zone: Zone) -> dict[str, Any]:
    def name(seq: Seq | None) -> str | None:
        return JobRef(seq).full(host) if seq is not None else None

    return {
        "as_of": event.as_of,
        "short_of_pes": event.short_of_pes,
        "samples": [{"request": name(seq), "used": used_object(used)} for seq, used in event.samples],
        "failures": _failures(event.failures, host),
        "wait": [
            {"request": name(seq), "code": code, "who": who, "text": text}
            for seq, code, who, text in event.wait
        ],
    }


def _failures(failures: Iterable[ExitFailure], host: str) -> list[dict[str, Any]]:
    return [
        {
            "exit": each.exit,
            "request": JobRef(each.seq).full(host) if each.seq is not None else None,
            "text": each.text,
            "off": each.off,
        }
        for each in failures
    ]


def _reported(event: ev.Reported, host: str, zone: Zone) -> dict[str, Any]:
    named = ("code", "who", "text")
    return {
        "day": event.day,
        "as_of": event.as_of,
        "taken": zone.text(event.taken),
        "files": list(event.files),
        "mails": event.mails,
        "samples": [
            {"request": JobRef(seq).full(host), "used": used_object(used)} for seq, used in event.samples
        ],
        "own": [
            {"request": JobRef(seq).full(host), **dict(zip(named, why, strict=True))}
            for seq, *why in event.own
        ],
        "closing": [{"queue": queue, **dict(zip(named, why, strict=True))} for queue, *why in event.closing],
    }


_SPECIAL: dict[type[ev.Event], Callable[[Any, str, Zone], dict[str, Any]]] = {
    ev.Submitted: _submitted,
    ev.Modified: _modified,
    ev.Redated: _redated,
    ev.Decided: _decided,
    ev.Reported: _reported,
}


def event_line(data: dict[str, Any]) -> str:
    """One event for people: number, time, kind, and what it names."""
    who = data.get("request") or " ".join(data.get("requests", ()))
    told = ("failures",) if data["kind"] == "alarm" else ()  # its text says so
    rest = [
        f"{key}={_short(value)}"
        for key, value in data.items()
        if key not in _HEAD and key not in told and not _nothing(value)
    ]
    return " ".join([f"{data['n']:>6}", str(data["at"])[:19], f"{data['kind']:<16}", who, *rest]).rstrip()


_HEAD = ("n", "at", "kind", "request", "requests")


def _nothing(value: Any) -> bool:
    return value is None or value is False or value == "" or value in ([], {})


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}:{_short(each)}" for key, each in value.items() if each is not None)
    if isinstance(value, list):
        return ",".join(_short(each) for each in value)
    text = str(value)
    return repr(text) if " " in text or not text or not text.isprintable() else text
