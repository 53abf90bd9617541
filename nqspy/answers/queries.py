"""Questions about the site as a whole: status, the clock, counters, reports, exits, what `doctor` asks."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from typing import Any

import msgspec

from nqspy.answers import fields, nights, shows, texts
from nqspy.answers.named import seq_of
from nqspy.answers.serving import Serving
from nqspy.answers.slow import Work
from nqspy.answers.visibility import Visibility
from nqspy.core import alike
from nqspy.engine.handlers.people import need
from nqspy.model.errors import Refusal
from nqspy.model.ids import DAY, Instant, Seq
from nqspy.model.machine import foreign_in_words
from nqspy.model.queues import without_effect
from nqspy.model.reasons import ALIKE, ReasonCode
from nqspy.model.requests import Request, State
from nqspy.model.texts import counted
from nqspy.qmgr.show import limit_flags
from nqspy.report import counters, estimates, gang_jobs, quotas, swf, usage
from nqspy.report.time_text import Zone, short
from nqspy.rpc import server as rpc


def _status(serving: Serving, asked: rpc.Asked) -> dict[str, Any]:
    site = serving.engine.site
    zone = Zone(site.timezone)
    running = len(site.started)
    clock = zone.text(serving.clock.now())
    view = Visibility(serving, asked.caller)
    alarms = [view.masked(text) for text in serving.alarms()]
    warnings = [view.masked(text) for text in without_effect(site.settings.queues.values())]
    home = str(serving.home.path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    count = len(site.requests)
    faster = f" (accelerated: {serving.clock.text})" if serving.clock.accelerated else ""
    words = [
        f"nqsd serves {home}: {counted(count, 'request')}, {running} started, {site.pes()} PEs",
        f"clock {short(clock)} {site.timezone}{faster}",
        f"shift {site.shift.current or 'none'}{' (switched by hand)' if site.shift.manual else ''}",
        serving.decider.state(),
        *([f"foreign jobs: {foreign_in_words(site.foreign)}"] if site.foreign else []),
        *(f"ALARM {text}" for text in alarms),
        *(f"warning: {text}" for text in warnings),
    ]
    return {
        "text": "\n".join(words), "host": site.name, "requests": count, "started": running,
        "pes": site.pes(), "clock": clock, "shift": site.shift.current, "alarms": alarms,
        "warnings": warnings, "events": site.n, "commits": serving.engine.commits,
        "decider": serving.decider.state(),
    }  # fmt: skip


def _limits(serving: Serving, asked: rpc.Asked) -> Any:
    """Answer ``qlimit`` (limits; ``verbose``: how each is enforced) and ``qping``. Raises Refusal."""
    site, message = serving.engine.site, asked.message
    for host in message.get("hosts") or ():
        if host not in (site.name, site.host):
            raise Refusal("other_host", host=host[:80], name=site.name)
    if message.get("text") == "qping":
        text = f"{site.name}: nqsd answers\n"
    else:
        text = limit_flags(site.settings.server.shell_strategy, bool(message.get("verbose")))
    return texts.either(asked, {"host": site.name, "text": text}, text)


def _counters(serving: Serving, asked: rpc.Asked) -> Work:
    made = shows.counting(serving)
    return lambda: texts.with_text(made(), counters.counters_text)


def _instants(message: Mapping[str, Any]) -> tuple[Instant | None, Instant | None]:
    """Return a question's ``from`` and ``to``. Raises Refusal if one is no instant."""
    found = [message.get(name) for name in ("from", "to")]
    for name, value in zip(("from", "to"), found, strict=True):
        if value is not None and (type(value) is not int or not 0 <= value <= fields.LATEST):
            raise Refusal("bad_instant", field=name, value=value)
    return found[0], found[1]


def _report_quota(serving: Serving, asked: rpc.Asked) -> Work:
    site, now = shows.snapshot(serving.engine.site), serving.clock.now()
    samples = dict(serving.engine.samples)
    reader, clock, zone = serving.readers.live, serving.clock.text, Zone(serving.engine.site.timezone)
    (begin, end), shift = _instants(asked.message), asked.message.get("shift")
    oldest = min((request.submitted for request in site.requests.values()), default=now)
    since = Instant(min(oldest, now - 8 * DAY)) if begin is None and end is None else Instant(0)

    def work() -> dict[str, Any]:
        events = list(reader.events(since=since))
        period = quotas.period_of(events, zone, now, begin, end, None if shift is None else str(shift))
        before = nights.Past(reader).before(since)
        data = quotas.quota_report(events, site, period, now, samples=samples, clock=clock, before=before)
        return texts.with_text(data, quotas.quota_text)

    return work


def _report_swf(serving: Serving, asked: rpc.Asked) -> Work:
    serving.commit()
    site, reader = serving.engine.site, serving.readers.reports
    begin, end = _instants(asked.message)
    zone, fractions = Zone(site.timezone), bool(asked.message.get("fractions"))
    frame = swf.SwfFrame(site.name, "nqspy", zone, begin, end, fractions)
    view, last = Visibility(serving, asked.caller), site.n

    upto = partial(takewhile, lambda each: each.n <= last)
    return lambda: {"text": swf.swf_log(upto(reader.events()), frame, view.allows)}


def _report_estimates(serving: Serving, asked: rpc.Asked) -> Work:
    site, now, view = serving.engine.site, serving.clock.now(), Visibility(serving, asked.caller)
    known, zone, shown = dict(site.lifetimes.known), Zone(site.timezone), view.users()

    def work() -> dict[str, Any]:
        mine = {key: each for key, each in known.items() if shown is None or key[0] in shown}
        return texts.with_text(estimates.estimates(mine, now, zone), estimates.estimates_text)

    return work


def _gangster(serving: Serving, asked: rpc.Asked) -> dict[str, Any]:
    now, unset = serving.clock.now(), serving.run_times.unset
    allows = Visibility(serving, asked.caller).allows

    def ran(request: Request) -> int:
        return request.run.ran(unset(request.seq, now))

    return gang_jobs.jobs_on_nodes(serving.engine.site, now, allows, ran)


def _exits_loaded(serving: Serving, asked: rpc.Asked) -> Any:
    """Return the exits in use with code, and the engine's position, for `exits try` on a copy of the site."""
    need(serving.engine.site.settings, asked.caller, "manager", "exits try")
    serving.commit()
    decider = serving.decider
    at_work = [source for source in decider.sources if source.path.stem not in decider.backoff.out]
    return {
        "now": serving.clock.now(),
        "exits": [{"path": str(each.path), "code": each.text.decode("latin-1")} for each in at_work],
        "between": msgspec.to_builtins(serving.engine.between),
    }


def _exits_trace(serving: Serving, asked: rpc.Asked) -> Any:
    site = serving.engine.site
    view = Visibility(serving, asked.caller)
    seq = seq_of(serving, view, str(asked.message["request"]))
    view.need(seq)
    return {"id": site.id_of(seq), "trace": [*serving.exits.trace(seq), *_reached(serving, seq)]}


def _reached(serving: Serving, seq: Seq) -> list[dict[str, Any]]:
    """Return a trace row if an exit's refusal of another request covers this one too; else an empty list."""
    engine = serving.engine
    request, reasons = engine.site.requests.get(seq), engine.plan.reasons
    if request is None or request.state is not State.QUEUED or seq in reasons.own:
        return []
    found = next((each for each in reasons.reach if alike.covers(each, request)), None)
    if found is None:
        return []
    verdict = "never" if found.reason.code is ReasonCode.NEVER else "refuse"
    row = {"at": int(serving.clock.now()), "exit": found.reason.who, "hook": "jobselect", "error": None}
    named = [name for name, _ in found.fields if name in ALIKE]
    bounded = [name for name, *_ in found.within]
    return [row | {"answer": f"{verdict}({found.reason.text!r})", "alike": named, "within": bounded}]


QUESTIONS: dict[str, Callable[[Serving, rpc.Asked], Any]] = {
    "status": _status,
    "ping": lambda serving, asked: {"ok": True},
    "now": lambda serving, asked: {"now": serving.clock.now(), "zone": serving.engine.site.timezone},
    "limits": _limits,
    "counters": _counters,
    "report_night": nights.answer,
    "report_quota": _report_quota,
    "report_swf": _report_swf,
    "report_usage": lambda serving, asked: texts.with_text(
        Visibility(serving, asked.caller).usage(usage.usage(serving.engine.site, serving.clock.now())),
        usage.usage_text,
    ),
    "report_estimates": _report_estimates,
    "gangster": _gangster,
    "exits_list": lambda serving, asked: {"exits": serving.exits.listing()},
    "exits_loaded": _exits_loaded,
    "exits_trace": _exits_trace,
}
