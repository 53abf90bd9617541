"""``qstat --why`` and ``--eta`` in words, and expected starts for ``qsub --dry-run``."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nqspy.core.depend import AWAITED
from nqspy.model.domains import APPLICATION, spans
from nqspy.model.endings import End
from nqspy.model.machine import written
from nqspy.model.reasons import NEEDED
from nqspy.model.texts import aligned, some_of
from nqspy.model.units import format_size, format_time
from nqspy.report.time_text import when


def why_text(each: Mapping[str, Any], now: str | None = None) -> str:
    """Return ``qstat --why``: why a request waits or is suspended, or how it ended.

    ``each`` is an object of ``qstat --json`` with more fields: ``estimate`` (`Estimate`), ``chain`` (requests
    that it waits for), ``redated`` ({at who cause} or null), ``causes`` ({indices reason} of an array with
    several reasons), ``needed`` (what its reason says must happen), ``hint`` (on its wall limit),
    ``by_class`` (its class if its queue goes by classes). ``now``: the site's time, RFC 3339."""
    state, domain = each["state"], each["domain"]
    where = f"queue {each['queue']}" + ("" if domain == APPLICATION else f", domain {domain}")
    where += f", class {each['by_class']}" if each.get("by_class") else ""
    lines = [f"{each['id']}  {each['name']}  {each['owner']} ({each['group']})  {state} in {where}"]
    if state == "ended":
        lines += _why_ended(each, now)
    elif each["started"] is not None:
        lines += _why_started(each, now)
    else:
        lines += _why_waiting(each, now)
    return "".join(f"{line}\n" for line in lines)


def _why_started(each: Mapping[str, Any], now: str | None) -> Iterable[str]:
    """Yield lines on its PEs, its size, its moves, and why it is suspended or what comes next."""
    moved, suspended, base = each.get("moved"), each["state"] == "suspended", ""
    word = " on" if not moved else ", now on" if each["state"] == "running" else ", last on"
    if each.get("coordinate"):
        base = f", base {each['base']} ({written(each['coordinate'])})"
    pes = ",".join(spans(sorted(each["pes"])))
    yield f"  started {when(each['started'], now)}{word} PE{'s' * (len(each['pes']) != 1)} {pes}{base}"
    yield from _why_contract(each, now)
    yield from _why_sizes(each)
    if each["requested"].get("sizes"):
        why = [f"{one['pes']} ({_LACKED.get(one['why'], 'blocked')})" for one in each.get("lacked") or ()]
        but = f"; it could not start on {some_of(why, SIZES)}" if why else ""
        best = "the largest that was free" if each.get("by_class") else "on which it ends soonest"
        yield f"  size:     {each['requested']['pes']} PEs, {best}{but}"
    if moved:
        times = "once" if moved["times"] == 1 else f"{moved['times']} times"
        duration, paged = f"{moved['took_s']:g} s in all", moved["paged_bytes"] >> 20
        yield f"  moved:    gave up its PEs {times}, which took {duration}; {paged} MB were paged out"
    if reason := each["reason"]:
        yield f"  {'why:' if suspended else 'note:':<10}{reason['text']}"
        yield f"  source:   {reason['who'] or 'its holder'} ({reason['code']})"
        if suspended:
            yield f"  needed:   {_needed(each)}"


def _why_contract(each: Mapping[str, Any], now: str | None) -> Iterable[str]:
    contract = each.get("contract")
    if contract and contract["until"]:
        yield f"  contract: fills a hole before a reservation and is ended {when(contract['until'], now)}"
    elif contract and each["started"] is None:
        yield "  contract: may start in a hole shorter than its wall limit (backfill=contract)"


def _why_sizes(each: Mapping[str, Any]) -> Iterable[str]:
    """Yield lines on sizes on which it may run, how long on each, and which is chosen."""
    asked = each["requested"]
    if sizes := asked.get("sizes"):
        times = ["" if wall is None else f" ({format_time(round(wall * 1000))})" for wall in asked["walls_s"]]
        shown = [f"{pes}{time}" for pes, time in zip(sizes, times, strict=True)]
        by_class = each.get("by_class")
        chosen = "the largest that is free" if by_class else "the one with the earliest expected end"
        yield f"  sizes:    {some_of(shown, SIZES)} PEs; {chosen}"


SIZES = 8
"""Most sizes that are named."""
_LACKED = {
    "NO_PES": "too few free",
    "NO_UNITS": "too few units",
    "LIMIT": "above a limit",
    "RESERVED": "reserved for others",
}


def _why_waiting(each: Mapping[str, Any], now: str | None) -> Iterable[str]:
    reason, rank, estimate = each["reason"], each["priority"], each.get("estimate")
    if reason:
        yield f"  why:      {reason['text']}"
        if reason["until"]:
            yield f"  until:    {when(reason['until'], now)}"
        yield f"  source:   {reason['who'] or 'its holder'} ({reason['code']})"
    for cause in each.get("causes") or ():
        yield f"  indices:  {cause['indices']}: {cause['reason']['text']} ({cause['reason']['code']})"
    for link in each.get("chain") or ():
        other, by = link["reason"] or {"text": "", "who": ""}, ""
        if text := other["text"] or (other["who"] and f"by {other['who']}"):
            by = f": {text}"
        how = f" ({End.of_object(link).words})" if link["state"] == "ended" else ""
        awaited = f"{link['id']} {AWAITED[link['word']]}; {link['id']} is {link['state']}{how}{by}"
        yield f"  chain:    {link['needed_by']} waits until {awaited}"
    if redated := each.get("redated"):
        cause = f" when {redated['cause']} was started" if redated["cause"] else ""
        date = when(each["date_in_queue"], now)
        yield f"  redated:  counts as submitted {date}, set by {redated['who']}{cause}"
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
    if hint := each.get("hint"):
        yield f"  hint:     {hint}"
    if estimate:
        yield from (f"  {word + ':':<10}{text}" for word, text in both(estimate))


def _why_promised(reservation: Mapping[str, Any], now: str | None) -> Iterable[str]:
    """Yield a line on its reserved start, and on a delay."""
    size = f" on {reservation['pes']} PEs" if reservation.get("pes") else ""
    if reservation["late"]:
        yield f"  reserved: {when(reservation['at'], now)} at the latest{size}"
        yield f"  late:     {reservation['late']}"
        return
    by = f"; after the end of {', '.join(reservation['by'])}" if reservation["by"] else ""
    unless = "unless a request that passed it runs longer than expected"
    sure = "at the latest" if reservation["promised"] else unless
    at = f"{when(reservation['at'], now)} {sure}" if reservation["at"] else "at an unknown time"
    yield f"  reserved: {at}{size}{by}"


def _needed(each: Mapping[str, Any]) -> str:
    """Return what must happen for a start, by the kind of its reason, else by the code."""
    text: str = each.get("needed") or NEEDED.get(each["reason"]["code"], NEEDED["LATER"])
    return text.format(id=each["id"])


def _why_ended(each: Mapping[str, Any], now: str | None) -> Iterable[str]:
    reason, used = each["reason"], each["used"]
    yield f"  ended {when(each['ended'], now)}: {End.of_object(each).words}"
    if reason:
        who = f" ({reason['who']})" if reason["who"] else ""
        yield f"  {reason['text'] or 'asked for'}{who}"
    if used["cpu_s"] is not None:
        size = f", {format_size(used['memory_bytes'])} memory" if used["memory_bytes"] is not None else ""
        yield f"  used:     {used['cpu_s']:.2f} s CPU, {used['wall_s']:.2f} s wall time{size}"
    if hint := each.get("hint"):
        yield f"  hint:     {hint}"
    if each["output"]:
        yield f"  output:   {each['output']}  {each['error']}"


Estimate = Mapping[str, Any]
"""``{start basis latest{start basis} probably{start basis} as_of}``: times as text or null; then ``basis``
says why it is unknown. ``start`` and ``basis`` are those of ``probably``; ``as_of``: when it was asked."""

_WORDS = (("latest", "at the latest", "latest start"), ("probably", "probably", "probable start"))
_HEAD: tuple[str, ...] = ("request", "name", "owner", "queue", "at the latest", "probably")
SHOWN = 5
"""Most requests that are named for one basis."""


def both(estimate: Estimate) -> Iterator[tuple[str, str]]:
    """Yield (``latest``, its text), and the same for ``probably``; once, as ``start``, if both are alike."""
    alike = estimate["latest"] == estimate["probably"]
    for key, *_ in _WORDS[alike:]:
        found = estimate[key]
        start = f"{when(found['start'], estimate.get('as_of'))}," if found["start"] else "unknown:"
        yield "start" if alike else key, f"{start} {found['basis']}"


def eta_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return ``qstat --eta``: a table of requests with their ``estimate``, its basis, what is unknown."""
    if not rows:
        return "no request waits\n"
    cells = [_HEAD]
    known: dict[tuple[str, str], dict[str, None]] = {}
    unknown: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        estimate, times = row["estimate"], list[str]()
        alike = estimate["latest"] == estimate["probably"]
        for key, word, start in _WORDS:
            found = estimate[key]
            times.append(when(found["start"], estimate.get("as_of")) if found["start"] else "-")
            name = word if found["start"] else "start" if alike else start
            kind = known if found["start"] else unknown
            kind.setdefault((name, found["basis"]), {})[row["id"]] = None
        cells.append((row["id"], row["name"], row["owner"], row["queue"], *times))
    lines, several = list(aligned(cells)), Counter(word for word, _ in known)
    for (word, basis), ids in known.items():  # named if starts of a kind have several bases
        of = "" if several[word] == 1 else f" ({some_of([*ids], SHOWN)})"
        lines.append(f"{word}{of}: {basis}")
    lines += [f"{some_of([*ids], SHOWN)}: {key} unknown: {basis}" for (key, basis), ids in unknown.items()]
    return "".join(f"{line}\n" for line in lines)
