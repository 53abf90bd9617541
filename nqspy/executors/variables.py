"""Variables of a job: its PEs and their layout, as PBS and Slurm say it (pure)."""

from nqspy.executors import scratch
from nqspy.model import indices
from nqspy.model.actions import Start
from nqspy.model.ids import index_of, number_of
from nqspy.model.requests import Request, finite
from nqspy.model.shapes import MOST_RANKS, Layout
from nqspy.model.site import Site

_NONE = Layout()


def hosts(request: Request, start: Start, site: Site) -> tuple[str, int]:
    """The name of the machine, and for how many MPI processes it stands in the file of hosts."""
    return site.host, min(_slots(request, start), MOST_RANKS)


def _slots(request: Request, start: Start) -> int:
    """Return how many processes a launcher begins where nobody says it: the ranks of the layout; where there
    is none, one in the dialects that know ranks, else one for each PE."""
    layout, spec = request.spec.layout, request.spec
    if layout is None and spec.dialect == "nqs":
        return max(len(start.pes), 1)
    return max((layout or _NONE).ranks, 1)


def defaults(request: Request, start: Start) -> dict[str, str]:
    """Variables that what the request brings along may replace. An application is told no number of threads:
    its program counts its PEs, or a launcher in it settles that."""
    layout = request.spec.layout or _NONE
    cpus = layout.cpus if layout.cpus is not None else len(start.pes) or request.spec.ask.pes
    found = {"NCPUS": str(cpus), "OMP_NUM_THREADS": str(layout.threads or max(cpus, 1))}
    if request.spec.caller is not None:
        del found["OMP_NUM_THREADS"]
    return found


def of_launchers(request: Request, start: Start, site: Site) -> dict[str, str]:
    """Return what launchers of parallel programs read, beside the file of hosts (`scratch`); replaced
    likewise.

    Open MPI binds by the whole machine, whatever its own affinity is: it is told not to, so that processes
    stay on the PEs. It (PRRTE: from 5 on) may begin more processes than the file has lines; MPICH's Hydra
    begins them here, without the remote shell of a batch system whose variables it sees. torchrun has one
    process for each GPU that is held, where none is for each slot, and a port of its own.
    """
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
"""Variables that say how many PEs there are: an application's are its own, whatever its caller's say."""


def of_dialect(request: Request, start: Start, site: Site) -> dict[str, str]:
    """Variables of the dialect it was handed in by."""
    spec = request.spec
    if spec.dialect == "pbs":
        return {"PBS_NP": str((spec.layout or _NONE).ranks)}
    return _of_slurm(request, start, site) if spec.dialect == "slurm" else {}


def _of_slurm(request: Request, start: Start, site: Site) -> dict[str, str]:
    """Return what sbatch's scripts look at; numbers of one node, for there is one."""
    spec, layout = request.spec, request.spec.layout or _NONE
    number, ranks = str(number_of(request.seq)), str(layout.ranks)
    found = {
        "SLURM_JOB_ID": number, "SLURM_JOBID": number, "SLURM_JOB_NAME": spec.name,
        "SLURM_JOB_PARTITION": request.queue, "SLURM_JOB_USER": spec.owner, "SLURM_JOB_UID": str(spec.uid),
        "SLURM_JOB_ACCOUNT": spec.account or spec.group, "SLURM_CLUSTER_NAME": site.name,
        "SLURM_SUBMIT_DIR": spec.workdir, "SLURM_SUBMIT_HOST": spec.host or site.host,
        "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1", "SLURM_JOB_NODELIST": site.host,
        "SLURM_NODELIST": site.host, "SLURMD_NODENAME": site.host, "SLURM_NODEID": "0", "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0", "SLURM_NTASKS": ranks, "SLURM_NPROCS": ranks, "SLURM_TASKS_PER_NODE": ranks,
        "SLURM_CPUS_ON_NODE": str(len(start.pes) or spec.ask.pes),
        "SLURM_JOB_CPUS_PER_NODE": str(len(start.pes) or spec.ask.pes),
        "SLURM_RESTART_COUNT": str(start.attempt - 1),
    }  # fmt: skip
    if layout.threads is not None:
        found["SLURM_CPUS_PER_TASK"] = str(layout.threads)
    memory = finite(spec.ask.memory)
    if memory is not None:
        found["SLURM_MEM_PER_NODE"] = str(memory >> 20)
    index, array = index_of(request.seq), request.spec.array
    if index is None or array is None:
        return found
    runs = array.indices
    return found | {
        "SLURM_ARRAY_JOB_ID": str(number_of(request.seq)), "SLURM_ARRAY_TASK_ID": str(index),
        "SLURM_ARRAY_TASK_COUNT": str(indices.count(runs)), "SLURM_ARRAY_TASK_MIN": str(runs[0][0]),
        "SLURM_ARRAY_TASK_MAX": str(runs[-1][1]),
        "SLURM_ARRAY_TASK_STEP": str(runs[0][2] if len(runs) == 1 else 1),
    }  # fmt: skip
