"""Jobs and the PEs that they hold, as `nqspy gangster` and ``--json`` get them (text: `gangster`)."""

from collections.abc import Callable, Iterator
from typing import Any

from nqspy.core.classes import CLASSES, ClassTable, is_served
from nqspy.model.domains import spans
from nqspy.model.ids import Instant
from nqspy.model.machine import ForeignJob, torus_of
from nqspy.model.requests import Request, Spec, State
from nqspy.model.site import Site

CIRCUIT = "barrier"
"""Consumable that stands for the seed's barrier circuits (column W)."""
FOREIGN = "foreign"
"""Class of jobs that nqspy did not start (`Site.foreign`)."""
MOST_WAITING = 200
"""Most waiting jobs in an answer; there may be very many."""


def state_of(request: Request, now: Instant) -> str:
    """Return the state of a job by the seed's letters.

    ``N`` new: it has no PEs yet. ``W``: it has PEs and is about to begin. ``R``: it runs. ``o``: it is moving
    out. ``O``: it gave up its PEs and comes back by itself. ``S``: a person suspended it, or it keeps its
    PEs. ``i``: it came back less long ago than its moves took on average, so its memory is moving in."""
    run = request.attempt
    if run is None:
        return "N"
    if (pause := run.pause) is not None:
        if pause.leaving:
            return "o"
        return "O" if pause.pes_released and not pause.cause.is_person else "S"
    if run.resumed is not None and run.moved.times and now - run.resumed < run.moved.took / run.moved.times:
        return "i"
    return "W" if run.starting else "R"


def jobs_on_nodes(
    site: Site, now: Instant, allows: Callable[[Spec], bool], ran: Callable[[Request], int]
) -> dict[str, Any]:
    """Return ``{pes shape pes_per_node offline[] hidden[] classes[] jobs[] further}``: the machine, its job
    classes, and the jobs by number: all that hold PEs or gave them up, and those that wait by class
    (``further``: how many more of these). ``hidden``: PEs of jobs that the caller may not see (``allows``);
    ``ran``: run time of a started job (ms)."""
    loaded = [
        each
        for each in site.started.values()
        if each.state is not State.EXITING and not site.domain_of(each.queue).is_command
    ]
    waiting = sorted(
        filter(lambda each: allows(each.spec), _waiting(site)),
        key=lambda each: (each.date_in_queue, each.seq),
    )
    shown = [each for each in loaded if allows(each.spec)] + waiting[:MOST_WAITING]
    hidden = {pe for each in loaded if not each.pes_released and not allows(each.spec) for pe in each.pes}
    machine, table = torus_of(site.settings.machine), ClassTable(site.settings)
    return {
        "pes": site.pes(),
        "shape": None if machine is None else [machine.x, machine.y, machine.z],
        "pes_per_node": 1 if machine is None else machine.per_node,
        "offline": spans(sorted(site.offline())),
        "hidden": spans(sorted(hidden)),
        "classes": list(CLASSES.all(site.settings)),
        "jobs": [_job(site, each, table, now, ran) for each in sorted(shown, key=lambda each: each.seq)]
        + [_foreign(each, table) for each in site.foreign],
        "further": len(waiting[MOST_WAITING:]),
    }


def _foreign(job: ForeignJob, table: ClassTable) -> dict[str, Any]:
    """Return the row of a job that nqspy did not start, like that of `_job`; no command knows its ``id``."""
    return {
        "id": f"process {job.pid}", "class": FOREIGN, "rank": table.named(FOREIGN).priority, "user": job.user,
        "pid": job.pid, "command": job.command, "pes": len(job.pes), "base": min(job.pes), "circuit": None,
        "places": spans(job.pes), "state": "R", "ran_s": 0,
    }  # fmt: skip


def _waiting(site: Site) -> Iterator[Request]:
    for name, columns in site.waiting.items():
        if len(columns) and is_served(site, name):
            yield from columns.requests()


def _job(
    site: Site, request: Request, table: ClassTable, now: Instant, ran: Callable[[Request], int]
) -> dict[str, Any]:
    """Return ``{id class rank user pid command pes base circuit places[] state ran_s}`` of a job. ``rank``:
    priority of its class, -1 without; ``pid``: process of the command that waits for it; ``base``: its lowest
    PE, also while it is away; ``places``: the PEs that it holds now."""
    spec, by_class = request.spec, is_served(site, request.queue)
    process, circuit = spec.caller or spec.session, dict(request.units).get(CIRCUIT)
    return {
        "id": site.id_of(request.seq),
        "class": table.name(request) if by_class else "",
        "rank": table.of(request).priority if by_class else -1,
        "user": spec.owner,
        "pid": None if process is None else process[0],
        "command": spec.name,
        "pes": len(request.pes) or spec.ask.pes,
        "base": min(request.pes, default=None),
        "circuit": None if circuit is None else ",".join(circuit),
        "places": [] if request.pes_released else spans(sorted(request.pes)),
        "state": state_of(request, now),
        "ran_s": 0 if request.attempt is None else ran(request) // 1000,
    }
