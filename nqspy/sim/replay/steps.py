"""Steps of a replay: what each pass examined, what it started, and why the others were not started."""

from collections.abc import Iterator
from typing import Any

from nqspy.engine.replay.follow import Follower
from nqspy.model import events as ev
from nqspy.model.actions import Start
from nqspy.model.events import Recorded
from nqspy.model.ids import Instant, Seq, array_of
from nqspy.model.site import Site
from nqspy.report.time_text import Zone
from nqspy.sim.replay.comparison import reason_object
from nqspy.sim.replay.what_if import Replayed

BEFORE = 600_000
"""Time in ms before the shown one at which the replay begins: failures of exits count for so long."""
MOST = 200
"""Most requests named for one pass."""


def passes(found: Replayed, begin: Instant, end: Instant) -> Iterator[dict[str, Any]]:
    """Yield an object (`_pass`) for each pass that decided something from ``begin`` to before ``end``. ``n``:
    number of its event; ``asked``: when it was requested; ``as_of``: last event that it saw; ``waits``: why
    requests wait, as examined (at most `MOST`); ``queues``: why it started no more of each."""
    was, events = found.was, found.recording.events
    while was.place < len(events) and events[was.place].at < end:
        before = was.place
        was.step()
        recorded = events[before]
        if isinstance(recorded.event, ev.Decided) and recorded.at >= begin:
            yield _pass(was, found.zone, recorded, [each.event for each in events[before + 1 : was.place]])


def _pass(was: Follower, zone: Zone, recorded: Recorded, followed: list[Any]) -> dict[str, Any]:
    event, site, plan = recorded.event, was.site, was.engine.plan
    assert isinstance(event, ev.Decided)
    starts = {action.seq for action in plan.actions if isinstance(action, Start)}
    waits = []
    for seq, why in [(seq, why) for seq, why in plan.reasons.own.items() if seq not in starts][:MOST]:
        request = site.to_be(seq)
        about = {"name": _name(site, seq), "queue": None if request is None else request.queue}
        waits.append({"request": site.id_of(seq), **about, **reason_object(why)})
    return {
        "n": recorded.n,
        "at": zone.text(recorded.at),
        "asked": zone.text(event.asked or recorded.at),
        "as_of": event.as_of,
        "shift": site.shift.current,
        "started": [
            {"request": site.id_of(each.seq), "name": _name(site, each.seq), "pes": list(each.pes),
             "forced": each.forced}
            for each in followed
            if each.kind == "starting"
        ],
        "waits": waits,
        "queues": [{"queue": name, **reason_object(why)} for name, why in plan.reasons.closing.items()],
        "short_of_pes": plan.short_of_pes,
        "failures": [{"exit": failure.exit, "text": failure.text} for failure in plan.failures],
        "others": [
            {"kind": each.kind, "requests": [
                site.id_of(seq)
                for seq in getattr(each, "seqs", (getattr(each, "seq", None),)) if seq is not None
            ]}
            for each in followed
            if each.kind != "starting"
        ],
    }  # fmt: skip


def _name(site: Site, seq: Seq) -> str:
    request = site.to_be(seq) or site.requests.get(array_of(seq) or 0)
    return "" if request is None else request.name


def lines(step: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a pass for people."""
    shift = f", shift {step['shift']}" if step["shift"] else ""
    asked = "" if step["asked"] == step["at"] else f", requested at {step['asked'][11:23]}"
    made = f"pass {step['n']}, on the state after event {step['as_of']}"
    yield f"{step['at'][:10]} {step['at'][11:23]}  {made}{asked}{shift}"
    for each in step["started"]:
        forced = ", forced" if each["forced"] else ""
        pes = ",".join(map(str, each["pes"]))
        yield f"    {each['request']} {each['name']}: starts on PE {pes}{forced}"
    for each in step["others"]:
        yield f"    {each['kind']} {', '.join(each['requests'])}".rstrip()
    for each in step["waits"]:
        yield f"    {each['request']} {each['name']}: {each['code']} ({each['who']}) {each['text']}"
    for each in step["queues"]:
        yield f"    others in queue {each['queue']}: {each['code']} ({each['who']}) {each['text']}"
    for each in step["failures"]:
        yield f"    exit {each['exit']} failed: {each['text']}"
