"""Job classes: what jobs of a queue with ``order=class`` may expect of each other (seed 000, "Job Scheduling
Parameters"). A table of settings, not constants: a site changes it while jobs run, by hand or by its shifts.

A *job* is a request of such a queue: an application, or a batch request that holds PEs itself.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf

from nqspy.core.runtime import goes_since
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant
from nqspy.model.moved_out import mean_move, slowest_move
from nqspy.model.people import lets_in
from nqspy.model.registry import SettingsObject, Stamp, Status, Words, declare
from nqspy.model.requests import Request, Spec
from nqspy.model.settings import Settings
from nqspy.model.site import Site
from nqspy.model.tree import setting

BY_CLASS = "class"
"""The ``order`` of a queue whose requests are scheduled by their classes."""


@dataclass(slots=True)
class JobClass:
    """Scheduling parameters of one class. None: no bound (the seed writes one year)."""

    name: str
    priority: int = setting("number", 1, "rank among the classes: higher first", low=0, high=63)
    wait: int | None = setting(
        "time", None, "time after which one that waits to be loaded has PEs reserved for it"
    )
    do_not_disturb: int | None = setting(
        "time", 0, "time for each of its PEs that one keeps them at least, once it was given them"
    )
    pe_limit: int | None = setting("count", None, "PEs that all loaded jobs of it have at a time")
    preempted: bool = setting("flag", True, "whether its jobs may be preempted")
    users: tuple[str, ...] = setting("names", (), "users that may use it; empty with groups empty: all")
    groups: tuple[str, ...] = setting("names", (), "Unix groups that may use it")


@dataclass(slots=True)
class GangParameters:
    """What holds for all jobs that are scheduled by class, whatever theirs is."""

    large_size: int | None = setting("count", None, "PEs from which a job is large", low=1, nothing="none")
    large_limit: int | None = setting("count", None, "PEs that all loaded large jobs have at a time")
    job_limit: int | None = setting("count", None, "PEs that a job may have", low=1)
    default_class: str = setting("name", "production", "class of jobs that name none")


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


CLASSES: SettingsObject[JobClass] = declare(
    SettingsObject(
        "class",
        JobClass,
        named=True,
        many="classes",
        words=Words(
            "Classes",
            "priority, wait, do-not-disturb time and PE limit of a job class, and who may use it",
            "job classes: what their jobs may expect of each other",
            create="a job class",
            usage="NAME priority=4 wait=0 do_not_disturb=10 pe_limit=256 preempted=on users=(a, b)",
            delete="a job class",
        ),
        check=_check,
    )
)


def _moves(site: Site, stamp: Stamp) -> Status:
    """What moves cost of late, and whose do-not-disturb time is shorter than that."""
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


_MOVES = "{mean_s:.3g} s for each PE that one left, mean of the last {count}; the slowest {slowest_s:.3g} s"
_SHORT = (
    "do_not_disturb={:g} is shorter than a move: of what a job keeps its PEs more may go into moves than work"
)

GANG: SettingsObject[GangParameters] = declare(
    SettingsObject(
        "gang",
        GangParameters,
        words=Words(
            "Gang",
            "large job size and limit, PEs that a job may have, class of jobs that name none",
            "what holds for jobs of all classes, and what moves cost of late",
        ),
        check=_check,
        status=_moves,
    )
)

_PLAIN = JobClass("")


class ClassTable:
    """The classes of a site as they are in force now."""

    def __init__(self, settings: Settings) -> None:
        self._known: Mapping[str, JobClass] = CLASSES.all(settings)
        self.gang = GANG.one(settings)

    def name(self, request: Request) -> str:
        """The name of a job's class."""
        return request.spec.job_class or self.gang.default_class

    def of(self, request: Request) -> JobClass:
        """The class of a job; one that is gone counts as one without bounds and of the lowest priority."""
        return self.named(self.name(request))

    def named(self, name: str) -> JobClass:
        """The class of that name, in the same way."""
        return self._known.get(name) or _PLAIN

    def is_large(self, pes: int) -> bool:
        """Whether a job of so many PEs is large."""
        return self.gang.large_size is not None and pes >= self.gang.large_size

    def forbids(self, request: Request) -> bool:
        """Whether it can never be loaded, whoever else is."""
        return request.spec.ask.pes > self.most(request.spec)

    def most(self, spec: Spec) -> float:
        """How many PEs such a job may have at the most, whoever else has some; without bound: infinite."""
        own = self._known.get(spec.job_class or self.gang.default_class) or _PLAIN
        large = self.gang.large_limit if self.is_large(spec.ask.pes) else None
        known = (self.gang.job_limit, own.pe_limit, large)
        return min((each for each in known if each is not None), default=inf)


def objection(site: Site, name: str, owner: str, groups: Collection[str] | None = ()) -> Refusal | None:
    """Why a user, member of these Unix groups, may not have a job of that class; None: he may. Without groups
    (None) all classes are open to him."""
    if not name:
        return None
    known = CLASSES.all(site.settings)
    if name not in known:
        return Refusal("no_such_class", name=name[:80], known=", ".join(known) or "none")
    found = known[name]
    if groups is not None and not lets_in(found.users, found.groups, owner, groups):
        return Refusal("class_not_open", name=name, owner=owner)
    return None


def too_large(site: Site, spec: Spec, queue: str) -> Refusal | None:
    """Why an application can never be loaded in a queue that goes by classes; None: it can."""
    most = ClassTable(site.settings).most(spec)
    if spec.caller is None or not is_served(site, queue) or spec.ask.pes <= most:
        return None
    return Refusal("class_too_small", pes=spec.ask.pes, name=spec.job_class, most=most)


def is_served(site: Site, queue: str) -> bool:
    """Whether requests of that queue are scheduled by class."""
    found = site.settings.queues.get(queue)
    return found is not None and found.order == BY_CLASS


def undisturbed_until(request: Request, kind: JobClass) -> Instant | None:
    """Until when a loaded job keeps its PEs: its class's do-not-disturb time for each of them, from when it
    was given them; None: for ever."""
    if kind.do_not_disturb is None:
        return None
    return Instant(goes_since(request) + kind.do_not_disturb * len(request.pes))


def class_in(site: Site, queue: str, named: str) -> str:
    """The class of a request of the queue that names that class, or none (empty); empty: it goes by none."""
    return (named or GANG.one(site.settings).default_class) if is_served(site, queue) else ""
