"""qstat's texts: the POSIX table and full form (pbs-clients.md 8), and ``--why``."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nqspy.model.domains import spans
from nqspy.model.events import Ended
from nqspy.model.ids import Seq, full_id, request_named
from nqspy.model.reason_texts import NEEDED
from nqspy.model.requests import POSIX_LETTER, Request, State
from nqspy.model.units import format_size
from nqspy.report.time_text import clock_span

Row = tuple[str, str, str, str, str, str]
"""A row of the POSIX table, ready to print: id, name, owner, time use, state letter, queue."""

_ROW = "%-17s %-16s %-16s  %8s %1s %-16s\n"
_HEAD = (
    "Job id            Name             User              Time Use S Queue\n"
    "----------------  ---------------- ----------------  -------- - -----\n"
)
_LETTERS = {state.value: letter for state, letter in POSIX_LETTER.items()}


# ---------------------------------------------------------------- the POSIX table


def row_of(request: Request, host: str, cpu: int | None) -> Row:
    """The row of a request that has not ended; ``cpu`` ms used, None before its start."""
    spec = request.spec
    return _row(request.seq, host, spec.name, spec.owner, cpu, letter_of(request), request.queue)


def letter_of(request: Request) -> str:
    """POSIX's letter of a request that has not ended; PBS's B of an array that has begun."""
    begun = request.array is not None and request.array.begun
    return "B" if begun else POSIX_LETTER[request.shown_state]


def row_of_ended(row: Mapping[str, Any], host: str) -> Row:
    """The row of a request that has ended, from a row of `ports.Journal.ended`."""
    spec, event = row["spec"], row["ended"]
    cpu = event.used.cpu if isinstance(event, Ended) else None
    letter = POSIX_LETTER[State.ENDED]
    return _row(row["seq"], host, spec.name, spec.owner, cpu, letter, row["queue"])


def posix_rows(rows: Sequence[Row]) -> str:
    """The table of 8.1; nothing at all when there are no rows."""
    return posix_lines([posix_text(rows)])


def posix_text(rows: Sequence[Row]) -> str:
    """Lines of the table, for one that is made in slices."""
    return "".join([_ROW % row for row in rows])


def posix_lines(parts: Sequence[str]) -> str:
    """The table of slices that `posix_text` made."""
    lines = "".join(parts)
    return _HEAD + lines if lines else ""


def posix_table(objects: Iterable[Mapping[str, Any]]) -> str:
    """The same table from the objects of ``qstat --json``."""
    return posix_rows([_object_row(each) for each in objects])


def _object_row(each: Mapping[str, Any]) -> Row:
    cpu = each["used"]["cpu_s"]
    host = each["id"].partition(".")[2]
    used = None if cpu is None else round(cpu * 1000)
    array = each.get("array")
    letter = "B" if array and each["state"] == State.RUNNING else _LETTERS[each["state"]]
    seq = request_named(each["id"], host) or 0
    return _row(seq, host, each["name"], each["owner"], used, letter, each["queue"])


def _row(seq: Seq, host: str, name: str, owner: str, cpu: int | None, letter: str, queue: str) -> Row:
    """The id shows the server's first label; what is too long is cut, ``*`` its last character."""
    id = full_id(seq, host.partition(".")[0])
    if len(id) > 17:
        id = id[:16] + "*"
    if len(name) > 15:
        name = name[:15] + "*"
    if len(owner) > 16:
        owner = owner[:15] + "*"
    return (id, name, owner, "0" if cpu is None else clock_span(cpu // 1000), letter, queue)


# ---------------------------------------------------------------- full


def full(objects: Iterable[Mapping[str, Any]]) -> str:
    """``qstat -f``: a block of attributes for each request, in OpenPBS's order, an empty line after each."""
    return "".join(_block(each) for each in objects)


def _block(each: Mapping[str, Any]) -> str:
    lines = [_folded(f"    {name} = {value}") for name, value in _attributes(each) if value is not None]
    return "\n".join([f"Job Id: {each['id']}", *lines]) + "\n\n"


def _attributes(each: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    host = each["id"].partition(".")[2]
    used, asked, begun = each["used"], each["requested"], each["started"] is not None
    yield "Job_Name", each["name"]
    yield "Job_Owner", f"{each['owner']}@{host}"
    if used["cpu_s"] is not None:
        yield "resources_used.cput", clock_span(used["cpu_s"])
        if used["memory_bytes"] is not None:
            yield "resources_used.mem", _kb(used["memory_bytes"])
        yield "resources_used.ncpus", asked["pes"]
        yield "resources_used.walltime", clock_span(used["wall_s"])
    yield "job_state", _LETTERS[each["state"]]
    yield "queue", each["queue"]
    yield "domain", each["domain"] if each.get("divided") else None
    yield "server", host
    yield "Account_Name", each["account"]
    yield "ctime", _ctime(each["submitted"])
    yield "depend", ",".join(each["depends_on"]) or None
    yield "Error_Path", _with_host(host, each["error"])
    if each["pes"]:
        yield (
            "exec_host",
            f"{host}/{each['pes'][0]}" + (f"*{len(each['pes'])}" if len(each["pes"]) > 1 else ""),
        )
    yield "Execution_Time", _ctime(each["eligible"])
    yield "Hold_Types", "".join(each["held"]) or "n"
    options = each.get("options") or {}
    yield "Mail_Points", options.get("mail_points")
    yield "Mail_Users", options.get("mail_users")
    yield "Output_Path", _with_host(host, each["output"])
    yield "output_clash", each.get("shared_output")
    yield "Priority", options.get("priority")
    yield "qtime", _ctime(each["date_in_queue"])
    yield "Rerunable", options.get("rerunnable")
    yield from _asked(asked, options.get("nice"))
    yield from ((f"units.{name}", "+".join(units)) for name, units in each.get("units", {}).items())
    yield "stime", _ctime(each["started"])
    yield "obittime", _ctime(each["ended"])
    yield "Shell_Path_List", options.get("shell")
    yield "substate", _substate(each)
    yield "egroup", each["group"]
    yield "comment", each["reason"]["text"] if each["reason"] else None
    yield "run_count", each["attempt"] if begun else None
    yield "Exit_status", _exit_status(each)
    if each["end_reason"]:
        yield "end_reason", each["end_reason"]


def _asked(asked: Mapping[str, Any], nice: int | None) -> Iterable[tuple[str, Any]]:
    if asked["cpu_s"] is not None:
        yield "Resource_List.cput", clock_span(asked["cpu_s"])
    if asked["memory_bytes"] is not None:
        yield "Resource_List.mem", _kb(asked["memory_bytes"])
    yield "Resource_List.ncpus", asked["pes"]
    for name, count in asked.get("consumables", {}).items():
        yield f"Resource_List.{'ngpus' if name == 'gpu' else name}", count
    if asked.get("needs"):
        yield "Resource_List.needs", "+".join(asked["needs"])
    if nice is not None:
        yield "Resource_List.nice", nice
    if asked.get("processes") is not None:
        yield "Resource_List.nproc", asked["processes"]
    if asked["wall_s"] is not None:
        yield "Resource_List.walltime", clock_span(asked["wall_s"])


def _folded(line: str) -> str:
    """A line cut at its commas where it would reach 78 characters; each next one begins with a tab."""
    if len(line) < 78:
        return line
    lines, current = [], ""
    pieces = line.split(",")
    for number, piece in enumerate(pieces):
        piece += "," if number < len(pieces) - 1 else ""
        if current.strip() and len(current) + len(piece) >= 78:
            lines.append(current)
            current = "\t"
        current += piece
        while len(current) >= 78:
            lines.append(current[:77])
            current = "\t" + current[77:]
    return "\n".join([*lines, current] if current.strip() else lines)


def _ctime(text: str | None) -> str | None:
    return None if text is None else datetime.fromisoformat(text).ctime()


_SUBSTATES = {"waiting": 30, "held": 20, "queued": 10, "running": 42, "suspended": 43, "exiting": 50}


def _substate(each: Mapping[str, Any]) -> int | None:
    if each["state"] == "held" and each["depends_on"]:
        return 22
    if each["state"] != "ended":
        return _SUBSTATES.get(each["state"])
    return 91 if each["end_reason"] == "deleted" else 92 if each["exit_status"] == 0 else 93


def _exit_status(each: Mapping[str, Any]) -> int | None:
    """PBS writes a signal as 256 and its number."""
    status: int | None = each["exit_status"]
    return status if each["exit_signal"] is None else 256 + int(each["exit_signal"])


def _with_host(host: str, path: str | None) -> str | None:
    return None if path is None else f"{host}:{path}"


def _kb(size: int) -> str:
    return f"{-(-size // 1024)}kb"


# ---------------------------------------------------------------- why


def why_text(each: Mapping[str, Any]) -> str:
    """``qstat --why``: why a request waits, who says so, its place and when it may start; or what ended it.

    ``each`` is an object of ``qstat --json`` with ``estimate`` ({start basis} or null), ``chain`` and
    ``redated`` ({at who cause} or null) besides, and ``needed``: what its reason says must happen.
    """
    state = each["state"]
    lines = [
        f"{each['id']}  {each['name']}  {each['owner']} ({each['group']})  {state} in queue {each['queue']}"
    ]
    if state == "ended":
        lines += _why_ended(each)
    elif each["started"] is not None:
        lines.append(f"  it was started at {each['started']} on PEs {','.join(spans(sorted(each['pes'])))}")
        lines += _why_started(each)
    else:
        lines += _why_waiting(each)
    return "".join(f"{line}\n" for line in lines)


def _why_started(each: Mapping[str, Any]) -> Iterable[str]:
    """Why it is suspended, or what will become of it."""
    reason = each["reason"]
    if reason:
        word = "why:" if each["state"] == "suspended" else "told:"
        yield f"  {word:<10}{reason['text']}"
        yield f"  says:     {reason['who'] or 'its holder'} ({reason['code']})"
        if each["state"] == "suspended":
            yield f"  needed:   {_needed(each)}"


def _why_waiting(each: Mapping[str, Any]) -> Iterable[str]:
    reason, rank, estimate = each["reason"], each["priority"], each.get("estimate")
    if reason:
        yield from _why_kept(reason)
    yield from _why_chain(each.get("chain") or ())
    if redated := each.get("redated"):
        cause = f" when {redated['cause']} was started" if redated["cause"] else ""
        yield f"  redated:  it counts as submitted at {each['date_in_queue']}, set by {redated['who']}{cause}"
    if rank:
        factors = "  ".join(f"{name} {rank[name]:.4f}" for name in ("share", "cpu", "memory", "time"))
        yield f"  place:    {each['position']} in queue {each['queue']} at {rank['at']}"
        yield f"  priority: {rank['total']:.4f} ({factors})"
    if reason:
        yield f"  needed:   {_needed(each)}"
    if estimate and estimate.get("start"):
        yield f"  estimate: it starts at {estimate['start']} ({estimate['basis']})"
    elif estimate:
        yield f"  estimate: none ({estimate.get('basis')})"


def _why_kept(reason: Mapping[str, Any]) -> Iterable[str]:
    until = f", until {reason['until']}" if reason["until"] else ""
    yield f"  why:      {reason['text']}{until}"
    yield f"  says:     {reason['who'] or 'its holder'} ({reason['code']})"


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


def _why_ended(each: Mapping[str, Any]) -> Iterable[str]:
    reason, used = each["reason"], each["used"]
    yield f"  it ended at {each['ended']}: {_ending(each)}"
    if reason:
        who = f" ({reason['who']})" if reason["who"] else ""
        yield f"  {reason['text'] or 'asked for'}{who}"
    if used["cpu_s"] is not None:
        size = f", {format_size(used['memory_bytes'])} memory" if used["memory_bytes"] is not None else ""
        yield f"  used:     {used['cpu_s']:.2f} s CPU, {used['wall_s']:.2f} s wall time{size}"
    if each["output"]:
        yield f"  output:   {each['output']}  {each['error']}"


def _ending(each: Mapping[str, Any]) -> str:
    if each["exit_signal"] is not None:
        return f"{each['end_reason']}, signal {each['exit_signal']}"
    if each["exit_status"] is not None:
        return f"{each['end_reason']}, status {each['exit_status']}"
    return str(each["end_reason"])
