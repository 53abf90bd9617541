"""Queues, the server and the node that runs jobs, as PBS's commands show them (pbs-clients.md 8.5, 9)."""

from collections.abc import Callable, Mapping

from nqspy.model.ids import full_id
from nqspy.model.machine import foreign_in_words
from nqspy.model.queues import Queue
from nqspy.model.requests import STARTED, Spec
from nqspy.model.site import Site
from nqspy.report.pbs_attributes import Attributes, plain, state_counts
from nqspy.report.pbs_values import kilobytes, span

Counts = Mapping[str, int]
"""Number of requests by state word."""


def held_resources(site: Site, queue: str | None = None) -> dict[str, str | int]:
    """Return the resources that started requests of a queue (None: of all) hold: memory as asked for, CPUs,
    and the number of these requests as ``nodect``."""
    holding = [r for r in site.started.values() if r.pes and queue in (None, r.queue)]
    memory = sum(request.spec.ask.finite_memory() or 0 for request in holding)
    pes = sum(len(request.pes) for request in holding)
    return {"mem": kilobytes(memory), "ncpus": pes, "nodect": len(holding)}


def queue_attributes(site: Site, queue: Queue, counts: Counts) -> Attributes:
    """Return the attributes of a queue for ``qstat -Q -f``."""
    runs, most = queue.kind == "batch", queue.per_request
    greatest = (
        ("cput", span, most.cpu_limit), ("walltime", span, most.wall_limit),
        ("mem", kilobytes, most.memory_limit), ("ncpus", int, most.pe_limit),
    )  # fmt: skip
    return plain(
        {
            "queue_type": "Execution" if runs else "Route",
            "Priority": queue.priority,
            "total_jobs": sum(counts.values()),
            "state_count": state_counts(counts),
            "max_queuable": queue.queued_limit,
            "max_running": queue.run_limit,
            "max_user_run": queue.user_limit,
            "max_group_run": queue.group_limit,
            "acl_user_enable": "True" if queue.users else None,
            "acl_users": ",".join(queue.users) or None,
            "acl_group_enable": "True" if queue.groups else None,
            "acl_groups": ",".join(queue.groups) or None,
            "from_route_only": "True" if queue.pipeonly else None,
            "resources_max": {name: write(most) for name, write, most in greatest if most is not None},
            "resources_assigned": held_resources(site, queue.name) if runs else None,
            "route_destinations": ",".join(queue.destinations) or None,
            "enabled": str(queue.enabled),
            "started": str(queue.started),
        }
    )


def server_attributes(site: Site, counts: Counts, version: str, state: str) -> Attributes:
    """Return the server's attributes for ``qstat -B -f``. ``state``: Active, or another word."""
    limits = site.settings.global_
    return plain(
        {
            "server_state": state,
            "server_host": site.host or site.name,
            "scheduling": "True",
            "total_jobs": len(site.requests),
            "state_count": state_counts(counts),
            "default_queue": site.settings.default.queue,
            "max_queued": limits.queued_limit,
            "max_running": limits.run_limit,
            "max_user_run": limits.user_limit,
            "max_group_run": limits.group_limit,
            "query_other_jobs": str(site.settings.server.privacy == "all"),
            "resources_available": {"ncpus": site.pes()} | _memory(site),
            "resources_assigned": held_resources(site),
            "job_history_enable": "True",
            "job_history_duration": None if (keep := site.settings.history.keep) is None else span(keep),
            "pbs_version": version,
        }
    )


def node_name(site: Site) -> str:
    """Return the host that runs jobs, as attributes of jobs and nodes name it."""
    return (site.host or site.name).partition(".")[0]


def node_attributes(site: Site, version: str, sees: Callable[[Spec], bool]) -> Attributes:
    """Return the attributes for ``pbsnodes -a``: of the host, with the jobs that the caller ``sees``."""
    running = [request for request in site.started.values() if request.state in STARTED and request.pes]
    jobs = ", ".join(f"{full_id(r.seq, site.name)}/{pe}" for r in running if sees(r.spec) for pe in r.pes)
    node, held = node_name(site), held_resources(site)
    busy = held["ncpus"] >= site.pes() if isinstance(held["ncpus"], int) else False
    return plain(
        {
            "Mom": site.host or site.name,
            "pbs_version": version,
            "ntype": "PBS",
            "state": "job-busy" if busy else "free",
            "pcpus": len(site.found.cpus),
            "jobs": jobs or None,
            "comment": f"foreign jobs have {foreign_in_words(site.foreign)}" if site.foreign else None,
            "resources_available": {"arch": "linux", "host": node} | _memory(site)
            | {"ncpus": site.pes(), "vnode": node},
            "resources_assigned": {"mem": held["mem"], "ncpus": held["ncpus"]},
            "resv_enable": "False",
            "sharing": "default_shared",
        }
    )  # fmt: skip


def _memory(site: Site) -> dict[str, str | int]:
    memory = site.settings.machine.memory or site.found.memory
    return {"mem": kilobytes(memory)} if memory else {}


def jobs_of(attributes: Attributes) -> list[str]:
    """Return the identifiers of a node's jobs, each once, from its attribute ``jobs``."""
    found = str(attributes.get("jobs", ""))
    return list(dict.fromkeys(each.partition("/")[0].strip() for each in found.split(",") if each))
