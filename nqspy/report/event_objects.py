"""The journal's events as flat objects, one JSON line each (interfaces.md 9)."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import msgspec

from nqspy.model import events as ev
from nqspy.model.endings import End
from nqspy.model.ids import Seq, full_id
from nqspy.model.indices import show
from nqspy.model.options import OPTIONS, Option
from nqspy.model.requests import Reservation, Spec, Used, finite
from nqspy.model.specs import shown_part
from nqspy.report.time_text import Zone

_INSTANTS = {"date", "fired", "until", "since", "last", "taken", "began"}
"""Fields of events that are instants."""

_SHOWN: dict[type[ev.Event], tuple[str, ...]] = {
    ev.Submitted: ("seq", "queue", "state", "spec", "after", "key"),
    ev.Redated: ("seqs", "date", "cause", "who"),
    ev.Decided: ("as_of", "short_of_pes", "samples", "failures", "wait"),
}
"""By kind of event, the fields to show in order, if not all."""


def event_object(recorded: ev.Recorded, host: str, zone: Zone) -> dict[str, Any]:
    """Return an event as an object for JSON: ``n at kind``, ``request`` or ``requests``, and its own fields;
    instants as texts in ``zone``, identifiers with ``host``."""
    event = recorded.event
    shown: dict[str, Any] = {"n": recorded.n, "at": zone.text(recorded.at), "kind": event.kind}
    for name in _SHOWN.get(type(event)) or event.__struct_fields__:
        if name in _SPECIAL:
            shown |= _SPECIAL[name](event, host, zone)
            continue
        value = getattr(event, name)
        if name in _INSTANTS:
            shown[name] = zone.stamp(value)
        elif isinstance(value, Used):
            shown[name] = used_object(value)
        else:
            plain = msgspec.to_builtins(value)
            shown[name] = list(plain) if isinstance(plain, tuple) else plain
    return shown


def used_object(used: Used) -> dict[str, Any]:
    """Return ``used{cpu_s wall_s memory_bytes}``; memory is null if unknown (0)."""
    return {"cpu_s": used.cpu / 1000, "wall_s": used.wall / 1000, "memory_bytes": used.memory or None}


def requested(spec: Spec) -> dict[str, Any]:
    """Return ``requested{}``: what was asked for; null for nothing or no limit. For a request with several
    sizes: ``sizes``, ``walls_s`` (its wall limits on these), and the ``speedup`` that they come from."""
    made = {name: read(spec) for name, read in _REQUESTED}
    for name, read in _RARELY:
        if (value := read(spec)) is not None:
            made[name] = value
    if (mold := spec.mold) is not None:
        made |= {
            "sizes": list(mold.sizes),
            "walls_s": [seconds(finite(mold.wall_on(pes))) for pes in mold.sizes],
        }
        made |= {} if mold.speedup is None else {"speedup": msgspec.structs.asdict(mold.speedup)}
    return made


def own_options(spec: Spec) -> dict[str, Any]:
    """Return the options, by name in JSON, that the request has and that are not part of ``requested{}``."""
    return {option.json: value for option in _OWN if (value := getattr(spec, option.path))}


def _reader(option: Option) -> tuple[str, Callable[[Spec], Any]]:
    """Return the last part of an option's name in JSON, and a function that reads its value from a `Spec`."""
    path, convert = shown_part(option)
    name, field = option.json.rpartition("/")[2], attrgetter(path)
    if option.unit == "time" and convert is not None:
        return name, lambda spec: None if (value := convert(field(spec))) is None else value / 1000
    convert = list if option.unit == "names" else convert
    return name, field if convert is None else lambda spec: convert(field(spec))


_OWN = [option for option in OPTIONS if option.json and "/" not in option.json]
_ASKED = [option for option in OPTIONS if option.json.startswith("requested/")]
_REQUESTED = [_reader(option) for option in _ASKED if not option.rare]
_RARELY = [_reader(option) for option in _ASKED if option.rare]


def seconds(ms: int | None) -> float | None:
    """Return milliseconds as seconds; None stays None."""
    return None if ms is None else ms / 1000


def _spec(event: ev.Submitted | ev.Modified, host: str, zone: Zone) -> dict[str, Any]:
    spec = event.spec
    array = {} if spec.array is None else {"indices": show(spec.array.indices), "limit": spec.array.limit}
    return {
        "name": spec.name,
        "owner": spec.owner,
        "group": spec.group,
        "account": spec.account,
        "project": spec.project,
        "requested": requested(spec),
        "eligible": zone.stamp(spec.eligible),
        **({"array": array} if array else {}),
    }


def _reasons(rows: Iterable[tuple[Seq, str, str, str]], host: str) -> list[dict[str, Any]]:
    return [
        {"request": _id(seq, host), "code": code, "who": who, "text": text} for seq, code, who, text in rows
    ]


def _id(seq: Seq | None, host: str) -> str | None:
    return None if seq is None else full_id(seq, host)


def _reservation(seq: Seq, start: Reservation | None, host: str, zone: Zone) -> dict[str, Any]:
    if start is None:
        return {"request": _id(seq, host), "at": None, "by": None, "late": None}
    by = [_id(each, host) for each in start.by]
    return {"request": _id(seq, host), "at": zone.stamp(start.at), "by": by, "late": start.late or None}


_SPECIAL: dict[str, Callable[[Any, str, Zone], dict[str, Any]]] = {
    "seq": lambda event, host, zone: {"request": _id(event.seq, host)},
    "seqs": lambda event, host, zone: {"requests": [_id(seq, host) for seq in event.seqs]},
    "prerequisite": lambda event, host, zone: {"prerequisite": _id(event.prerequisite, host)},
    "spec": _spec,
    "starts": lambda event, host, zone: {
        "starts": [_reservation(seq, start, host, zone) for seq, start in event.starts.items()]
    },
    "causes": lambda event, host, zone: (
        {"causes": {_id(seq, host): text for seq, text in event.causes.items()}} if event.causes else {}
    ),
    "after": lambda event, host, zone: {
        "after": [f"{_id(each.seq, host)}:{each.word}" for each in event.spec.after]
    },
    "key": lambda event, host, zone: {"key": event.key or None},
    "indices": lambda event, host, zone: {"indices": show(event.indices)} if event.indices else {},
    # The request whose start changed another's date. The name of any other cause has a field of its own.
    "cause": lambda event, host, zone: (
        {"cause": _id(event.cause, host)} if isinstance(event, ev.Redated) else {}
    ),
    # Usually an attempt begins when its start is reported.
    "began": lambda event, host, zone: {} if event.began is None else {"began": zone.text(event.began)},
    "units": lambda event, host, zone: (
        ({"units": {name: list(units) for name, units in event.units}} if event.units else {})
        | ({} if event.until is None else {"until": zone.text(event.until)})
    ),
    "devices": lambda event, host, zone: (
        {"devices": msgspec.to_builtins(event.devices)} if event.devices else {}
    ),
    "samples": lambda event, host, zone: {
        "samples": [{"request": _id(seq, host), "used": used_object(used)} for seq, used in event.samples]
    },
    "failures": lambda event, host, zone: {
        "failures": [
            {"exit": each.exit, "request": _id(each.seq, host), "text": each.text, "off": each.off}
            for each in event.failures
        ]
    },
    "wait": lambda event, host, zone: {"wait": _reasons(event.wait, host)},
    # What became of the prerequisite, if that is known.
    "what": lambda event, host, zone: (
        {} if event.what is None else {"end_reason": event.what.reason or None, "began": event.what.began}
    ),
    "exit_status": lambda event, host, zone: {
        "ok": End.of(event).ok,
        "exit_status": End.of(event).shown_status,
    },
    "own": lambda event, host, zone: {"own": _reasons(event.own, host)},
    "closing": lambda event, host, zone: {
        "closing": [dict(zip(("queue", "code", "who", "text"), row, strict=True)) for row in event.closing]
    },
}
"""Functions by field name: each gets (event, host, zone) and returns what is shown instead of the field: any
number of names and values, empty to show nothing."""


def event_line(data: dict[str, Any]) -> str:
    """Return an object of `event_object` as a line for people: number, time, kind, requests, other fields
    as NAME=VALUE; empty fields are left out."""
    who = data.get("request") or " ".join(data.get("requests", ()))
    hidden = (*_HEAD, "failures") if data["kind"] == "alarm" else _HEAD  # an alarm's text has them
    others = ((key, value) for key, value in data.items() if key not in hidden and value is not False)
    rest = [f"{key}={_short(value)}" for key, value in others if value not in ("", [], {}, None)]
    return " ".join([f"{data['n']:>6}", str(data["at"])[:19], f"{data['kind']:<16}", who, *rest]).rstrip()


_HEAD = ("n", "at", "kind", "request", "requests")


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}:{_short(each)}" for key, each in value.items() if each is not None)
    if isinstance(value, list):
        return ",".join(_short(each) for each in value)
    text = str(value)
    return repr(text) if " " in text or not text or not text.isprintable() else text
