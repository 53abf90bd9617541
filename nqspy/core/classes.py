"""Job classes: how the jobs of queues with ``order=class`` share their PEs (seed 000, "Job Scheduling
Parameters"). Classes are settings: a site changes them while jobs run, by hand or by its shifts.

A *job* is a request of such a queue: an application, or a batch request that holds PEs itself.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf

from nqspy.core.runtime import goes_since
from nqspy.model.cause import declare_feature
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant
from nqspy.model.lifetimes import mean_move, slowest_move
from nqspy.model.people import lets_in
from nqspy.model.registry import SettingsObject, Stamp, Status, Words, declare
from nqspy.model.requests import Request, Spec
from nqspy.model.settings import Settings
from nqspy.model.site import Site
from nqspy.model.tree import setting

BY_CLASS = "class"
"""The ``order`` of a queue that schedules its requests by class."""
BUMPER = declare_feature("bumper")
"""The cause for which a job gives way to one that has waited longer than its class allows."""


@dataclass(slots=True)
class JobClass:
    """Scheduling parameters of one job class. None: no bound (for which the seed writes one year)."""

    name: str
    priority: int = setting("number", 1, "rank among the classes: highest first", low=0, high=63)
    wait: int | None = setting("time", None, "time that a job waits before PEs are reserved for it")
    do_not_disturb: int | None = setting(
        "time", 0, "least time for which a job keeps its PEs, for each PE that it has"
    )
    pe_limit: int | None = setting("count", None, "PEs that all its loaded jobs have at a time")
    preempted: bool = setting("flag", True, "whether its jobs may be preempted")
    users: tuple[str, ...] = setting("names", (), "users that may use it; empty with groups empty: all")
    groups: tuple[str, ...] = setting("names", (), "Unix groups that may use it")


@dataclass(slots=True)
class GangParameters:
    """Settings for jobs of all classes: large jobs, PEs of one job, class of jobs that name none."""

    large_size: int | None = setting("count", None, "PEs from which a job is large", low=1, nothing="none")
    large_limit: int | None = setting("count", None, "PEs that all loaded large jobs have at a time")
    job_limit: int | None = setting("count", None, "PEs that a job may have", low=1)
    default_class: str = setting("name", "production", "class of jobs that name no class")


def _check(settings: Settings, touched: Collection[str] | None) -> Iterable[str]:
    heads = None if touched is None else {path.partition("/")[0] for path in touched}
    if heads is not None and not heads & {"class", "gang"}:
        return
    known, default = CLASSES.all(settings), GANG.one(settings).default_class
    if known and default not in known:
        names = ", ".join(known)
        yield (
            f"gang: its default_class is {default}, and there is no such class; classes: {names}"
            f" (create class {default} or set gang default_class= first)"
        )


_CLASS_WORDS = Words(
    "Classes",
    "priority, wait, do-not-disturb time and PE limit of a job class, and who may use it",
    "job classes: what their jobs may expect of each other",
    create="a job class",
    usage="NAME priority=4 wait=0 do_not_disturb=10 pe_limit=256 preempted=on users=(a, b)",
    delete="a job class",
)
CLASSES: SettingsObject[JobClass] = declare(
    SettingsObject("class", JobClass, named=True, many="classes", words=_CLASS_WORDS, check=_check)
)


def _moves(site: Site, stamp: Stamp) -> Status:
    """Return the mean and slowest of the last moves (seconds for each PE that a job left), and the classes
    with a do-not-disturb time shorter than a move."""
    mean, slowest = mean_move(site.moves), slowest_move(site.moves)
    if mean is None or slowest is None:
        return Status({"moves": {"count": 0, "mean_s": None, "slowest_s": None}}, [("moves", "none yet")])
    short = [
        (f"class {each.name}", _SHORT.format(each.do_not_disturb / 1000))
        for each in CLASSES.all(site.settings).values()
        if each.preempted and each.do_not_disturb is not None and each.do_not_disturb < mean
    ]
    moves = {"count": len(site.moves), "mean_s": mean / 1000, "slowest_s": slowest / 1000}
    return Status({"moves": moves}, [("moves", _MOVES.format(**moves)), *short])


_MOVES = "{mean_s:.3g} s for each PE that a job left, mean of the last {count}; the slowest {slowest_s:.3g} s"
_SHORT = "do_not_disturb={:g} is shorter than a move: its jobs may spend more time on moves than on work"

_GANG_WORDS = Words(
    "Gang",
    "large job size and limit, PEs that a job may have, class of jobs that name no class",
    "settings for jobs of all classes, and what moves cost of late",
)
GANG: SettingsObject[GangParameters] = declare(
    SettingsObject("gang", GangParameters, words=_GANG_WORDS, check=_check, status=_moves)
)

_PLAIN = JobClass("")


class ClassTable:
    """The job classes of a site as set now, and the settings for all classes."""

    def __init__(self, settings: Settings) -> None:
        self._known: Mapping[str, JobClass] = CLASSES.all(settings)
        self.gang = GANG.one(settings)

    def name(self, request: Request) -> str:
        """Return the name of the class of a job: the one that it names, else the default."""
        return request.spec.job_class or self.gang.default_class

    def of(self, request: Request) -> JobClass:
        """Return the parameters of the class of a job."""
        return self.named(self.name(request))

    def named(self, name: str) -> JobClass:
        """Return the parameters of the class of that name; of a deleted one: lowest priority, no bounds."""
        return self._known.get(name) or _PLAIN

    def is_large(self, pes: int) -> bool:
        """True if a job of that many PEs is large; without ``large_size`` none is."""
        return self.gang.large_size is not None and pes >= self.gang.large_size

    def forbids(self, request: Request) -> bool:
        """True if a job asks for more PEs than limits of classes allow on an otherwise empty machine."""
        return request.spec.ask.pes > self.most(request.spec)

    def most(self, spec: Spec) -> float:
        """Return the most PEs that a job may have if nothing else is loaded; infinite: no limit."""
        own = self.named(spec.job_class or self.gang.default_class)
        large = self.gang.large_limit if self.is_large(spec.ask.pes) else None
        bounds = (self.gang.job_limit, own.pe_limit, large)
        return min((each for each in bounds if each is not None), default=inf)


def objection(site: Site, name: str, owner: str, groups: Collection[str] | None = ()) -> Refusal | None:
    """Return a refusal if a class does not exist, or a user in these Unix groups may not use it (None: users
    are not checked); None: they may, or ``name`` is empty."""
    if not name:
        return None
    known = CLASSES.all(site.settings)
    if name not in known:
        return Refusal("no_such_class", name=name[:80], known=", ".join(known) or "none")
    named = known[name]
    if groups is not None and not lets_in(named.users, named.groups, owner, groups):
        return Refusal("class_not_open", name=name, owner=owner)
    return None


def too_large(site: Site, spec: Spec, queue: str) -> Refusal | None:
    """Return a refusal if an application asks for more PEs than its class allows, so that a queue that goes
    by class can never start it. None: it can, or this is another queue or no application."""
    most = ClassTable(site.settings).most(spec)
    if spec.caller is None or not is_served(site, queue) or spec.ask.pes <= most:
        return None
    return Refusal("class_too_small", pes=spec.ask.pes, name=spec.job_class, most=most)


def is_served(site: Site, queue: str) -> bool:
    """True if the requests of a queue are scheduled by class (``order=class``)."""
    found = site.settings.queues.get(queue)
    return found is not None and found.order == BY_CLASS


def is_bumped(request: Request) -> bool:
    """True if a request is suspended because it gave way to a bumper."""
    return request.pause is not None and request.pause.cause == BUMPER


def may_bump(bumper: JobClass, other: JobClass) -> bool:
    """True if jobs of a class may bump those of another: never those of a higher class or of one that is not
    preempted (seed 000), nor those of an equal one if the class has no wait (processors.md 4)."""
    if not other.preempted or other.priority > bumper.priority:
        return False
    return other.priority < bumper.priority or bool(bumper.wait)


def undisturbed_until(request: Request, kind: JobClass) -> Instant | None:
    """Return the instant until which a loaded job of this class keeps its PEs: the do-not-disturb time of the
    class, times its number of PEs, after it started or resumed; None: for ever."""
    if kind.do_not_disturb is None:
        return None
    return Instant(goes_since(request) + kind.do_not_disturb * len(request.pes))


def class_in(site: Site, queue: str, named: str) -> str:
    """Return the name of a request's class in a queue: ``named`` by the request, else the default; empty: the
    queue does not go by class."""
    return (named or GANG.one(site.settings).default_class) if is_served(site, queue) else ""
