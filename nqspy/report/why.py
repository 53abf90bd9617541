"""``qstat --why`` in words."""

from collections.abc import Iterable, Mapping
from typing import Any

from nqspy.model.domains import APPLICATION, spans
from nqspy.model.endings import End
from nqspy.model.machine import written
from nqspy.model.reasons import NEEDED
from nqspy.model.units import format_size, format_time
from nqspy.report.eta import both
from nqspy.report.time_text import when


def why_text(each: Mapping[str, Any], now: str | None = None) -> str:
    """``qstat --why``: why a request waits, who says so, its place and when it may start; or what ended it.

    ``each`` is an object of ``qstat --json`` with more fields: ``estimate`` (`eta.Estimate` or null),
    ``chain``, ``redated`` ({at who cause} or null), ``causes`` ({indices reason} of an array that waits for
    several), ``needed`` (what its reason says must happen), ``hint`` (on its wall limit), ``by_class`` (its
    class where its queue goes by classes).
    ``now``: the site's time, as text.
    """
    state, domain = each["state"], each["domain"]
    where = f"queue {each['queue']}" + ("" if domain == APPLICATION else f", domain {domain}")
    where += f", class {each['by_class']}" if each.get("by_class") else ""
    lines = [f"{each['id']}  {each['name']}  {each['owner']} ({each['group']})  {state} in {where}"]
    if state == "ended":
        lines += _why_ended(each, now)
    elif each["started"] is not None:
        lines.append(f"  it was started {when(each['started'], now)}{_on_pes(each)}")
        lines += _why_contract(each, now)
        lines += _why_size(each)
        lines += _why_started(each)
    else:
        lines += _why_waiting(each, now)
    return "".join(f"{line}\n" for line in lines)


def _on_pes(each: Mapping[str, Any]) -> str:
    """Its PEs; of one that left some for others they need not be those that it was started on."""
    word = " on"
    if each.get("moved"):
        word = ", now on" if each["state"] == "running" else ", last on"
    base = f", base {each['base']} ({written(each['coordinate'])})" if each.get("coordinate") else ""
    return f"{word} PEs {','.join(spans(sorted(each['pes'])))}{base}"


def _why_started(each: Mapping[str, Any]) -> Iterable[str]:
    """Lines on what it cost that it left its PEs, and why it is suspended or what will become of it."""
    if moved := each.get("moved"):
        times = "once" if moved["times"] == 1 else f"{moved['times']} times"
        took, paged = f"{moved['took_s']:g} s in all", moved["paged_bytes"] >> 20
        yield f"  moved:    it left its PEs {times}, which took {took}; {paged} MB left the memory"
    reason = each["reason"]
    if reason:
        word = "why:" if each["state"] == "suspended" else "told:"
        yield f"  {word:<10}{reason['text']}"
        yield f"  says:     {reason['who'] or 'its holder'} ({reason['code']})"
        if each["state"] == "suspended":
            yield f"  needed:   {_needed(each)}"


def _why_contract(each: Mapping[str, Any], now: str | None) -> Iterable[str]:
    """True if it is in a hole, or will take one."""
    contract = each.get("contract")
    if contract and contract["until"]:
        yield f"  contract: it fills a hole and is ended {when(contract['until'], now)}"
    elif contract and each["started"] is None:
        yield "  contract: a hole shorter than its wall limit will do, where its queue has backfill=contract"


def _why_sizes(each: Mapping[str, Any]) -> Iterable[str]:
    """On which sizes it may run, how long on each, and which is chosen."""
    asked = each["requested"]
    if sizes := asked.get("sizes"):
        times = [None if wall is None else format_time(round(wall * 1000)) for wall in asked["walls_s"]]
        pairs = zip(sizes, times, strict=True)
        shown = [str(pes) if time is None else f"{pes} ({time})" for pes, time in pairs]
        more = f" and {len(shown) - SIZES} more" if len(shown) > SIZES else ""
        chosen = (
            "the largest that is free" if each.get("by_class") else "the one with the earliest expected end"
        )
        yield f"  sizes:    {', '.join(shown[:SIZES])}{more} PEs; {chosen}"


def _why_size(each: Mapping[str, Any]) -> Iterable[str]:
    """Which of its sizes it was started on, and why on that."""
    yield from _why_sizes(each)
    if each["requested"].get("sizes"):
        why = [f"{one['pes']} ({_LACKED.get(one['why'], 'held back')})" for one in each.get("lacked") or ()]
        more = f" and {len(why) - SIZES} more" if len(why) > SIZES else ""
        but = f"; it could not start on {', '.join(why[:SIZES])}{more}" if why else ""
        best = "the largest that was free" if each.get("by_class") else "on which it ends soonest"
        yield f"  size:     {each['requested']['pes']} PEs, {best}{but}"


SIZES = 8
"""So many sizes are named."""
_LACKED = {
    "NO_PES": "too few free",
    "NO_UNITS": "too few units",
    "LIMIT": "above a limit",
    "RESERVED": "kept for others",
}


def _why_waiting(each: Mapping[str, Any], now: str | None) -> Iterable[str]:
    reason, rank, estimate = each["reason"], each["priority"], each.get("estimate")
    if reason:
        until = f", until {when(reason['until'], now)}" if reason["until"] else ""
        yield f"  why:      {reason['text']}{until}"
        yield f"  says:     {reason['who'] or 'its holder'} ({reason['code']})"
    for cause in each.get("causes") or ():
        yield f"  indices:  {cause['indices']}: {cause['reason']['text']} ({cause['reason']['code']})"
    yield from _why_chain(each.get("chain") or ())
    if redated := each.get("redated"):
        cause = f" when {redated['cause']} was started" if redated["cause"] else ""
        date = when(each["date_in_queue"], now)
        yield f"  redated:  it counts as submitted {date}, set by {redated['who']}{cause}"
    yield from _why_contract(each, now)
    yield from _why_sizes(each)
    if reservation := each.get("reservation"):
        yield from _why_promised(reservation, now)
    if rank:
        factors = "  ".join(f"{name} {rank[name]:.4f}" for name in ("share", "cpu", "memory", "time"))
        yield f"  place:    {each['position']} in queue {each['queue']}"
        yield f"  priority: {rank['total']:.4f} ({factors})"
    if reason:
        yield f"  needed:   {_needed(each)}"
    yield from _why_hint(each)
    if estimate:
        yield from (f"  {word + ':':<10}{said}" for word, said in both(estimate))


def _why_promised(reservation: Mapping[str, Any], now: str | None) -> Iterable[str]:
    """The start that it was promised, and whether that was kept."""
    size = f" on {reservation['pes']} PEs" if reservation.get("pes") else ""
    if reservation["late"]:
        yield f"  reserved: its start{size} was to be {when(reservation['at'], now)} at the latest"
        yield f"  late:     {reservation['late']}"
        return
    by = f"; it waits for {', '.join(reservation['by'])}" if reservation["by"] else ""
    sure = (
        "at the latest"
        if reservation["promised"]
        else "unless a request that starts past it runs longer than expected"
    )
    at = f"{when(reservation['at'], now)} {sure}" if reservation["at"] else "at a time that is not known"
    yield f"  reserved: its start{size}, {at}{by}"


def _why_chain(chain: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """What it waits for, and what that waits for in its turn."""
    for link in chain:
        why = f": {said}" if (said := _said(link["reason"])) else ""
        how = f" ({_ending(link)})" if link["state"] == "ended" else ""
        awaited = f"{link['id']}:{link['word']}"
        yield f"  chain:    {link['needed_by']} waits for {awaited}, {link['state']}{how}{why}"


def _said(reason: Mapping[str, Any] | None) -> str:
    """A reason in words; of who deleted it without saying why, the name."""
    if not reason:
        return ""
    return str(reason["text"]) or (f"by {reason['who']}" if reason["who"] else "")


def _needed(each: Mapping[str, Any]) -> str:
    """What must happen, by the kind of its reason, else by the code."""
    said: str = each.get("needed") or NEEDED.get(each["reason"]["code"], NEEDED["LATER"])
    return said.format(id=each["id"])


def _why_ended(each: Mapping[str, Any], now: str | None) -> Iterable[str]:
    reason, used = each["reason"], each["used"]
    yield f"  it ended {when(each['ended'], now)}: {_ending(each)}"
    if reason:
        who = f" ({reason['who']})" if reason["who"] else ""
        yield f"  {reason['text'] or 'asked for'}{who}"
    if used["cpu_s"] is not None:
        size = f", {format_size(used['memory_bytes'])} memory" if used["memory_bytes"] is not None else ""
        yield f"  used:     {used['cpu_s']:.2f} s CPU, {used['wall_s']:.2f} s wall time{size}"
    yield from _why_hint(each)
    if each["output"]:
        yield f"  output:   {each['output']}  {each['error']}"


def _why_hint(each: Mapping[str, Any]) -> Iterable[str]:
    """What its owner is told of its wall limit."""
    if hint := each.get("hint"):
        yield f"  hint:     {hint}"


def _ending(each: Mapping[str, Any]) -> str:
    return End.of_object(each).words
