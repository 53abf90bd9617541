"""Variables of a job: its PEs and their layout, in the forms of PBS and Slurm (pure)."""

from collections.abc import Mapping

from nqspy.executors import scratch
from nqspy.model import indices
from nqspy.model.actions import Start
from nqspy.model.ids import array_of, full_id, index_of, number_of
from nqspy.model.requests import Request, finite
from nqspy.model.shapes import MOST_RANKS, Layout
from nqspy.model.site import Site

_NONE = Layout()


def hosts(request: Request, start: Start, site: Site) -> tuple[str, int]:
    """Return the machine's name, and the number of MPI processes for it in the file of hosts."""
    return site.host, min(_slots(request, start), MOST_RANKS)


def _slots(request: Request, start: Start) -> int:
    """Return the number of processes for a launcher: the layout's ranks, else one, or in NQS one per PE."""
    layout, spec = request.spec.layout, request.spec
    if layout is None and spec.dialect == "nqs":
        return max(len(start.pes), 1)
    return max((layout or _NONE).ranks, 1)


def defaults(request: Request, start: Start) -> dict[str, str]:
    """Return NCPUS and (not for an application) OMP_NUM_THREADS; the request may bring its own ones."""
    layout = request.spec.layout or _NONE
    cpus = layout.cpus if layout.cpus is not None else len(start.pes) or request.spec.ask.pes
    found = {"NCPUS": str(cpus), "OMP_NUM_THREADS": str(layout.threads or max(cpus, 1))}
    if request.spec.caller is not None:
        del found["OMP_NUM_THREADS"]
    return found


def of_launchers(request: Request, start: Start, site: Site) -> dict[str, str]:
    """Return the variables that launchers of parallel programs read, besides the file of hosts. With them
    Open MPI binds no process to PEs of its own choice, MPICH's Hydra forks its processes on this machine, and
    torchrun starts one process for each GPU of the job, without GPUs as many as `_slots` says."""
    visible = {each.name for each in site.settings.consumables.values() if (each.env or "").endswith(_GPUS)}
    gpus = sum(len(units) for name, units in start.units if name in visible)
    return {
        "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "HYDRA_LAUNCHER": "fork",
        "PET_NNODES": "1", "PET_STANDALONE": "1", "PET_NPROC_PER_NODE": str(gpus or _slots(request, start)),
    }  # fmt: skip


_GPUS = "_VISIBLE_DEVICES"
OF_PES = ("NCPUS", "PET_NPROC_PER_NODE", *scratch.HOSTFILES)
"""Names of variables with the number of PEs: an application has its own values, not its caller's."""


def by_name(table: Mapping[str, str]) -> dict[str, str]:
    """Return a table's variables by name; a key in it may be several names with spaces between."""
    return {name: value for names, value in table.items() for name in names.split()}


def of_dialect(request: Request, start: Start, site: Site) -> dict[str, str]:
    """Return the variables of the submission's dialect, none for NQS; Slurm's are those of one node."""
    spec, layout = request.spec, request.spec.layout or _NONE
    if spec.dialect == "pbs":
        return {"PBS_NP": str(layout.ranks)}
    if spec.dialect != "slurm":
        return {}
    table = {
        "SLURM_JOB_ID SLURM_JOBID": str(number_of(request.seq)),
        "SLURM_JOB_NAME": spec.name,
        "SLURM_JOB_PARTITION": request.queue,
        "SLURM_JOB_USER": spec.owner,
        "SLURM_JOB_UID": str(spec.uid),
        "SLURM_JOB_ACCOUNT": spec.account or spec.group,
        "SLURM_CLUSTER_NAME": site.name,
        "SLURM_SUBMIT_DIR": spec.workdir,
        "SLURM_SUBMIT_HOST": spec.host or site.host,
        "SLURM_JOB_NUM_NODES SLURM_NNODES": "1",
        "SLURM_JOB_NODELIST SLURM_NODELIST SLURMD_NODENAME": site.host,
        "SLURM_NODEID SLURM_PROCID SLURM_LOCALID": "0",
        "SLURM_NTASKS SLURM_NPROCS SLURM_TASKS_PER_NODE": str(layout.ranks),
        "SLURM_CPUS_ON_NODE SLURM_JOB_CPUS_PER_NODE": str(len(start.pes) or spec.ask.pes),
        "SLURM_RESTART_COUNT": str(start.attempt - 1),
    }
    if layout.threads is not None:
        table["SLURM_CPUS_PER_TASK"] = str(layout.threads)
    memory = finite(spec.ask.memory)
    if memory is not None:
        table["SLURM_MEM_PER_NODE"] = str(memory >> 20)
    return by_name(table)


def of_array(request: Request, site: Site) -> dict[str, str]:
    """Return the variables for an index of an array, as a table for `by_name`."""
    index, array, spec = index_of(request.seq), array_of(request.seq), request.spec.array
    if index is None or array is None or spec is None:
        return {}
    runs = spec.indices
    table = {
        "PBS_ARRAY_INDEX PBS_ARRAYID QSUB_ARRAY_INDEX NQSPY_ARRAY_INDEX": str(index),
        "PBS_ARRAY_ID NQSPY_ARRAY_ID": full_id(array, site.name),
        "NQSPY_ARRAY_INDICES": indices.show(runs)[:1024],
    }
    extent = {
        "COUNT": str(indices.count(runs)), "MIN": str(runs[0][0]), "MAX": str(runs[-1][1]),
        "STEP": str(runs[0][2] if len(runs) == 1 else 1),
    }  # fmt: skip
    table |= {f"NQSPY_ARRAY_{name}": value for name, value in extent.items()}
    if request.spec.dialect == "slurm":
        table |= {f"SLURM_ARRAY_TASK_{name}": value for name, value in extent.items()}
        table |= {"SLURM_ARRAY_JOB_ID": str(number_of(request.seq)), "SLURM_ARRAY_TASK_ID": str(index)}
    return table
