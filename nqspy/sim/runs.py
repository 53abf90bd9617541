"""One run of a workload, said in a few words that another process understands, and what came of it."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from nqspy.model.errors import NqspyError
from nqspy.sim.batch import BatchRun, JobRun, NotSimulated, Texts
from nqspy.sim.batch_policies import BATCH_POLICIES, SITE, BatchPolicy
from nqspy.sim.night_site import NAME as NIGHT
from nqspy.sim.night_site import NightRun, shipped_run
from nqspy.sim.results import Results
from nqspy.sim.running import Simulated, simulate
from nqspy.sim.variants import Variant
from nqspy.sim.workloads.jobs import BadWorkload, Workload
from nqspy.sim.workloads.known import GENERATORS, open_workload
from nqspy.sim.workloads.resampled import resampled
from nqspy.sim.workloads.wanted import Wanted

DEFAULT = "firstfit"


class RunTask(Struct, frozen=True):
    """What is run: a workload (`open_workload`) under a variant. ``config``: settings in place of the plain
    site, as (name, text); ``drawn``: weeks of a recorded workload are drawn by the seed; ``pictured``: what
    pictures are drawn from is kept."""

    workload: str
    wanted: Wanted
    variant: Variant
    config: tuple[str, str] | None = None
    drawn: bool = False
    pictured: bool = False

    @property
    def policy(self) -> str | None:
        """Its policy; None: what its configuration says."""
        if self.variant.policy is not None:
            return self.variant.policy
        if self.workload == NIGHT:
            return NIGHT
        return DEFAULT if self.config is None else None

    @property
    def label(self) -> str:
        """What tables call it."""
        other = self.policy or (self.config[0] if self.config is not None else DEFAULT)
        return self.variant.label(other)


class SimulatedRun(Struct, frozen=True):
    """What came of a task."""

    label: str
    seed: int
    found: Simulated


def run_task(
    task: RunTask, results: Sequence[Results] = (), far: Callable[[int], None] = lambda jobs: None
) -> SimulatedRun:
    """Runs it; ``far`` is told how many jobs have ended. Raises BadWorkload, NotSimulated."""
    try:
        workload, run = _begun(task)
        found = simulate(workload, run, results, far, task.pictured)
    except NqspyError as error:
        raise NotSimulated(str(error)) from None
    return SimulatedRun(task.label, task.wanted.seed, found)


def workload_of(task: RunTask) -> Workload:
    """Its workload. Raises BadWorkload."""
    found = open_workload(task.workload, task.wanted)
    return resampled(found, task.wanted.seed) if task.drawn and task.workload not in GENERATORS else found


def begun(tasks: Sequence[RunTask]) -> Workload:
    """The first one's workload; each variant's settings are looked at, so that what is wrong with them is
    told before anything is run. Raises BadWorkload, NotSimulated."""
    first = {task.label: task for task in reversed(tasks)}.values()
    try:
        return [_begun(task)[0] for task in first][-1]
    except NqspyError as error:
        raise NotSimulated(str(error)) from None


def _begun(task: RunTask) -> tuple[Workload, JobRun]:
    own, varied = [] if task.config is None else [task.config], task.variant.texts
    if task.policy == NIGHT and task.workload == NIGHT:
        night = _own_night(task, own, varied)
        return night.workload, night
    workload, memory = workload_of(task), task.wanted.memory
    if task.policy == NIGHT:
        return workload, shipped_run(workload, memory, own, varied)
    site: Texts = own or [("the plain site", SITE)]
    policy = BatchPolicy("", "") if task.policy is None else BATCH_POLICIES[task.policy]
    texts = [*site, (f"policy {policy.name}", policy.commands)]
    return workload, BatchRun(
        workload, texts, memory, kept=varied, ask=policy.ask, molding=policy.molding
    )  # fmt: skip


def _own_night(task: RunTask, own: Texts, varied: Texts) -> NightRun:
    if task.wanted != replace(task.wanted, pes=None, memory=None, jobs=None):
        raise BadWorkload(
            "the night of the computing centre has its own machine and lists: "
            "--pes, --memory and --jobs go with another --policy"
        )
    return NightRun(task.wanted.seed, own, varied)
