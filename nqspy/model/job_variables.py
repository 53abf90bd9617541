"""Names of the environment variables that jobs get from the daemon. A submission from inside a job leaves
them out: they describe the outer job, not the new one. Clients import this file, so it imports nothing."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ATTEMPT = "NQSPY_ATTEMPT"
"""Variable that every job has, and no login: an environment with it is that of a job."""

_ORIGIN = ("HOME", "HOST", "LANG", "LOGNAME", "MAIL", "PATH", "QUEUE", "SHELL", "SYSTEM", "TZ", "WORKDIR")
_NQSPY = (
    "ATTEMPT", "PES", "UNITS", "OWN", "BASE", "COORDINATE", "SHAPE", "PES_PER_NODE", "ARRAY_INDEX",
    "DEPENDENCIES", "ARRAY_ID", "ARRAY_COUNT", "ARRAY_MIN", "ARRAY_MAX", "ARRAY_STEP", "ARRAY_INDICES",
)  # fmt: skip
_PBS = (
    "JOBID", "JOBNAME", "QUEUE", "ENVIRONMENT", "JOBDIR", "NODEFILE", "NP", "ARRAY_INDEX", "ARRAYID",
    "ARRAY_ID",
)  # fmt: skip
_SLURM = (
    "JOB_ID", "JOBID", "JOB_NAME", "JOB_PARTITION", "JOB_USER", "JOB_UID", "JOB_ACCOUNT", "CLUSTER_NAME",
    "SUBMIT_DIR", "SUBMIT_HOST", "JOB_NUM_NODES", "NNODES", "JOB_NODELIST", "NODELIST", "NODEID", "PROCID",
    "LOCALID", "NTASKS", "NPROCS", "TASKS_PER_NODE", "CPUS_ON_NODE", "JOB_CPUS_PER_NODE", "RESTART_COUNT",
    "CPUS_PER_TASK", "MEM_PER_NODE", "ARRAY_JOB_ID", "ARRAY_TASK_ID", "ARRAY_TASK_COUNT",
    "ARRAY_TASK_MIN", "ARRAY_TASK_MAX", "ARRAY_TASK_STEP",
)  # fmt: skip
_OF_LAUNCHERS = (
    "NCPUS", "OMP_NUM_THREADS", "CUDA_DEVICE_ORDER", "OMPI_MCA_hwloc_base_binding_policy",
    "OMPI_MCA_rmaps_base_oversubscribe", "OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE",
    "HYDRA_LAUNCHER", "PRTE_MCA_prte_default_hostfile", "PRTE_MCA_hwloc_default_binding_policy",
    "PRTE_MCA_rmaps_default_mapping_policy", "PET_NNODES", "PET_STANDALONE", "PET_NPROC_PER_NODE",
)  # fmt: skip

NAMES = frozenset({
    *("NQSPY_" + name for name in _NQSPY),
    *("PBS_" + name for name in _PBS),
    *("PBS_O_" + name for name in _ORIGIN),
    *("QSUB_" + name for name in (*_ORIGIN, "USER", "REQID", "REQNAME", "ARRAY_INDEX")),
    *("SLURM_" + name for name in _SLURM),
    *_OF_LAUNCHERS, "SLURMD_NODENAME", "ENVIRONMENT", "TMPDIR",
})  # fmt: skip
"""All names, except those of `NUMBERED`, ``NQSPY_HOME``, and the variables of consumables."""

NUMBERED = "NQSPY_DEPENDENCY_"
"""Beginning of the names of which a job has one for each request that it waited for."""


def leave_behind(variables: "Mapping[str, str]", *, stays: str = "") -> dict[str, str]:
    """Return the variables without those that describe the job in which they were read; outside of a job all.
    A ``TMPDIR`` that is not the job's scratch folder is the user's own and stays, as does ``stays``."""
    if ATTEMPT not in variables:
        return dict(variables)
    scratch = variables.get("PBS_NODEFILE", "").rpartition("/")[0]
    own_folder = bool(scratch) and not variables.get("TMPDIR", "").startswith(f"{scratch}/")
    keep = (stays, "TMPDIR" if own_folder else "")
    return {
        name: value
        for name, value in variables.items()
        if name in keep or not (name in NAMES or name.startswith(NUMBERED))
    }
