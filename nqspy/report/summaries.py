"""``qstat`` on queues, complexes and limits: NQS's summaries (nqs.md 3.4) and POSIX's ``-Q``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nqspy.model.queues import Queue
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.model.texts import boxed, grid
from nqspy.model.units import format_size
from nqspy.report.pbs_tables import cut

Counts = Mapping[str, Mapping[str, int]]
"""Number of requests of each queue, by state word."""


def _queues(site: Site, kind: str) -> list[Queue]:
    found = [queue for queue in site.settings.queues.values() if queue.kind == kind]
    return sorted(found, key=lambda queue: (-queue.priority, queue.name))


def _numbers(counts: Mapping[str, int], columns: str) -> tuple[int, ...]:
    """Return the number of requests for each column: ``running+suspended`` counts both states."""
    return tuple(sum(counts.get(state, 0) for state in each.split("+")) for each in columns.split())


_BATCH = "queued running+suspended waiting held arriving exiting"
_PIPE = "queued routing waiting held arriving exiting"
_POSIX = "queued running+suspended held waiting arriving+routing exiting"


def _counted(site: Site, counts: Counts, kind: str, columns: str) -> list[tuple[Any, ...]]:
    """Return a row for each queue: name, run limit, number of requests, two states, counts, destinations."""
    rows: list[tuple[Any, ...]] = []
    for queue in _queues(site, kind):
        mine = counts.get(queue.name, {})
        [runs] = _numbers(mine, "running+suspended+exiting")
        # ``ing``, stopping, is a stopped queue that still has running requests.
        states = "yes" if queue.enabled else "no", "on" if queue.started else "ing" if runs else "off"
        passes_to = (" ".join(queue.destinations),) if kind == "pipe" else ()
        numbers = (sum(mine.values()), *states, *_numbers(mine, columns))
        rows.append((queue.name, _limit(queue.run_limit), *numbers, *passes_to))
    return rows


def nqs_batch_summary(site: Site, counts: Counts) -> str:
    """Return ``qstat -b``: batch queues with limits, states and counts; the last row is the whole host."""
    rows = _counted(site, counts, "batch", _BATCH)
    total, *totals = (sum(row[at] for row in rows) for at in (2, *range(5, 11)))
    rows.append((site.name, _limit(site.settings.global_.run_limit), total, "", "", *totals))
    heads = ["LIM", "TOT", "ENA", "STS", "QUE", "RUN", "WAI", "HLD", "ARR", "EXI"]
    return boxed("NQS BATCH QUEUE SUMMARY", grid(("QUEUE NAME", *heads), rows, foot=True))


def pipe_summary(site: Site, counts: Counts) -> str:
    """Return ``qstat -p``: pipe queues and their destinations."""
    rows = _counted(site, counts, "pipe", _PIPE)
    heads = ["LIM", "TOT", "ENA", "STS", "QUE", "ROU", "WAI", "HLD", "ARR", "DEP"]
    return _named("NQS PIPE QUEUE SUMMARY", ("QUEUE NAME", *heads, "DESTINATIONS"), rows)


def _named(title: str, heads: Sequence[str], rows: list[tuple[object, ...]]) -> str:
    """Return a summary with its last column, a list of names, flush left."""
    *others, last = heads
    width = max([len(str(row[-1])) for row in rows] + [len(last)])
    padded = [(*row[:-1], f"{row[-1]:<{width}}") for row in rows]
    return boxed(title, grid((*others, f"{last:<{width}}"), padded))


def limits(site: Site, counts: Counts) -> str:
    """Return ``qstat -l``: limits of the batch queues, and what counts against them."""
    settings = site.settings
    holders: list[tuple[str, Any, set[str]]] = [(q.name, q, {q.name}) for q in _queues(site, "batch")]
    everything = {name for name, queue in settings.queues.items() if queue.kind == "batch"}
    rows: list[tuple[object, ...]] = []
    for name, holder, queues in (*holders, (site.name, settings.global_, everything)):
        running = [request for request in site.started.values() if request.queue in queues]
        runs, pes = f"{_limit(holder.run_limit)}/{len(running)}", f"{_limit(holder.pe_limit)}/{_pes(running)}"
        memory = sum(max(request.spec.ask.memory_wanted() or 0, 0) for request in running)
        most = "--" if holder.memory_limit is None else format_size(holder.memory_limit)
        own = (_limit(holder.user_limit), _limit(holder.group_limit), f"{most}/{format_size(memory)}")
        rows.append((name, runs, *own, pes))
    heads = ("QUEUE NAME", "RUN lim/cnt", "USR lim", "GRP lim", "MEM lim/cnt", "PE lim/cnt")
    return boxed("NQS BATCH QUEUE LIMITS", grid(heads, rows, foot=True))


def _pes(running: Iterable[Request]) -> int:
    return sum(len(request.pes) for request in running)


def mpp(site: Site, counts: Counts) -> str:
    """Return ``qstat -m``: PEs of the batch queues: limit, in use, most that one request may ask for."""
    rows: list[tuple[object, ...]] = []
    for queue in _queues(site, "batch"):
        running = [request for request in site.started.values() if request.queue == queue.name]
        runs, pes = f"{_limit(queue.run_limit)}/{len(running)}", f"{_limit(queue.pe_limit)}/{_pes(running)}"
        rows.append((queue.name, runs, pes, _limit(queue.per_request.pe_limit)))
    runs = f"{_limit(site.settings.global_.run_limit)}/{len(site.started)}"
    rows.append((site.name, runs, f"{site.pes()}/{_pes(site.started.values())}", ""))
    heads = ("QUEUE NAME", "RUN lim/cnt", "PES lim/cnt", "PES/REQ")
    return boxed("NQS MPP QUEUE SUMMARY", grid(heads, rows, foot=True))


def complexes(site: Site, counts: Counts) -> str:
    """Return ``qstat -c``: complexes, how many of their requests run, their limits and member queues."""
    rows: list[tuple[object, ...]] = []
    for complex_ in site.settings.complexes.values():
        running = sum(1 for request in site.started.values() if request.queue in complex_.queues)
        bounds = (complex_.run_limit, complex_.user_limit, complex_.group_limit)
        rows.append((complex_.name, *map(_limit, bounds), running, " ".join(complex_.queues)))
    return _named("NQS QUEUE COMPLEXES", ("COMPLEX NAME", "RUN", "USR", "GRP", "CNT", "QUEUES"), rows)


def _limit(value: int | None) -> str:
    return "--" if value is None else str(value)


_QUEUE_ROW = "%-16s %5s %5s %3s %3s %5s %5s %5s %5s %5s %5s %s\n"


def queues_posix(queues: Sequence[Queue], counts: Counts) -> str:
    """Return ``qstat -Q``: the table of pbs-clients.md 8.5; empty without queues."""
    rows: list[tuple[object, ...]] = []
    for queue in queues:
        mine, gates = counts.get(queue.name, {}), (queue.enabled, queue.started)
        numbers = (queue.run_limit or 0, sum(mine.values()), *("yes" if gate else "no" for gate in gates))
        kind = "Exec" if queue.kind == "batch" else "Rout"
        rows.append((cut(queue.name, 16), *numbers, *_numbers(mine, _POSIX), kind))
    heads = ("Queue", "Max", "Tot", "Ena", "Str", "Que", "Run", "Hld", "Wat", "Trn", "Ext", "Type")
    rule = ("-" * 16, *["-" * 5] * 2, *["-" * 3] * 2, *["-" * 5] * 6, "-" * 4)
    return "".join(_QUEUE_ROW % row for row in (heads, rule, *rows)) if rows else ""


_SERVER_ROW = "%-16s %5s %5s %5s %5s %5s %5s %5s %5s %s\n"


def server_posix(name: str, run_limit: int | None, total: int, state: str, counts: Mapping[str, int]) -> str:
    """Return ``qstat -B``: the server in one row."""
    heads = ("Server", "Max", "Tot", "Que", "Run", "Hld", "Wat", "Trn", "Ext", "Status")
    rule = ("-" * 16, *["-" * 5] * 8, "-" * 11)
    row = (cut(name, 16), run_limit or 0, total, *_numbers(counts, _POSIX), state)
    return "".join(_SERVER_ROW % each for each in (heads, rule, row))
