"""The exits a site may write: pluggy's specifications, one function each. This file is the contract.

Common to all: a function may take any subset of the arguments, by name; ``request`` and ``view`` are read
only; sizes are bytes (None: unlimited or not given), times and instants ms. An exit that raises, answers
nonsense or overruns its budget counts as the fallback named here, and is not called again in that pass.
The deciding exits (jobselect, elected, shrpri, submit, route) are pure: they work the same in the simulator.
The notices (jobinit, jobend, shift_changed, night_report) come after the commit and may do I/O; nothing waits
for their answer.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import pluggy

from nqspy.model.actions import Redate
from nqspy.model.ids import Instant
from nqspy.ports import Answer, RequestView
from nqspy.userexit.answers import CHECKS, Changes
from nqspy.userexit.view import View

PROJECT = "nqspy"
MARK = f"{PROJECT}_impl"
FORCES = f"{PROJECT}_forces"
"""Attribute of a function: True if it may force."""

_hookspec = pluggy.HookspecMarker(PROJECT)
_hookimpl = pluggy.HookimplMarker(PROJECT)

F = TypeVar("F", bound=Callable[..., Any])


@overload
def userexit(function: F) -> F: ...
@overload
def userexit(*, forces: bool | None = None) -> Callable[[F], F]: ...
def userexit(function: F | None = None, *, forces: bool | None = None) -> F | Callable[[F], F]:
    """Mark a function of a site's file as the exit of its name.

    ``forces`` (jobselect): True if it may answer force(); None: if its file imports ``force``. If no exit may
    force, a pass stops offering requests once nothing can start.
    """

    def marked(function: F) -> F:
        if forces is not None:
            setattr(function, FORCES, forces)
        return _hookimpl(function)

    if function is None:
        return marked
    if not callable(function):
        raise TypeError("@userexit must stand above a function")
    return marked(function)


@_hookspec
def jobselect(request: RequestView, view: View, now: Instant) -> Answer | None:
    """Called for each candidate of a pass, best priority first.

    None leaves it to the standard rules. ``force()`` starts it past run, user and memory limits, never past a
    stopped queue, a hold or a date. ``refuse("why")`` keeps it waiting; with ``alike=("owner", ...)`` also
    all of its queue with equal values in these fields, with ``within={"memory": (least, most)}`` those with
    numbers within these bounds; ``until=view.at("06:00")``: it is asked again then. ``never("why")``: waiting
    does not help. ``hold_line("why")`` refuses, and closes its queue behind it. Of several answers a refusal
    goes before a force, else the first other than None in file-name order counts. An answer is stored until
    something changes on which it depends. Fallback: this request is refused for now.
    """


@_hookspec
def elected(request: RequestView, view: View, now: Instant) -> Sequence[Redate] | None:
    """Called after a request was chosen to start.

    Returns a list of actions: ``redate(request or selection, date)`` sets the date in queue of waiting
    requests (never of the chosen one; not later than now). They are dropped with the start if that fails. The
    actions of all exits count. Fallback: no actions.
    """


@_hookspec
def shrpri(owner: str, group: str, view: View, now: Instant) -> float | None:
    """Called for each owner in a group with waiting requests, again after each start of a pass; once for all
    owners that differ in nothing that it takes, if the file can store nothing of its own.

    Returns the share term of their priority before it is divided by the largest, a number from 0, or None for
    the stock rule (``set global share_rule``), that is ``view.stock_shrpri(owner, group)``. The first
    answer other than None counts; loading reports files after it. Fallback: the stock rule.
    """


@_hookspec
def submit(request: RequestView, view: View, now: Instant) -> Answer | Changes | None:
    """Called when a request is submitted, before routing; its owner waits for the answer.

    None accepts it; ``refuse("why")`` and ``never("why")`` tell the owner why not; ``changes(queue=,
    priority=, group=, account=, name=, shell=, date=, hold=, cpu=, memory=, wall=, pes=, attributes=,
    output=, error=)`` accepts it changed, if it could have been submitted so (`answers.changes`). The request
    has ``script`` in addition, its first 64 KiB as text. One refusal refuses; of changes to the same field
    the first in file-name order counts. Fallback: accepted as it is.
    """


@_hookspec
def route(
    request: RequestView, destinations: Sequence[str], view: View, now: Instant
) -> Sequence[str] | None:
    """Called when a request is submitted to a pipe queue, or waits in one.

    Returns the destinations to try, in order: some or all of ``destinations``; or None. The first answer
    other than None counts. Fallback: the queue's own order.
    """


@_hookspec
def jobinit(request: RequestView) -> None:
    """A notice: a request has started."""


@_hookspec
def jobend(request: RequestView) -> None:
    """A notice: a request has ended."""


@_hookspec
def shift_changed(old: str | None, new: str | None) -> None:
    """A notice: another shift is in force; names of the former and the new one."""


@_hookspec
def night_report(report: Any) -> None:
    """A notice: the night's report is made and its files are written. ``report``: the operators' data as
    ``nqspy report night --json`` prints it, read-only mappings and tuples."""


REGISTRY = pluggy.PluginManager(PROJECT)
"""Registry that knows these specifications; an exit is in it only while it is verified."""
REGISTRY.add_hookspecs(sys.modules[__name__])

_NAMES = (
    "jobselect", "elected", "shrpri", "submit", "route", "jobinit", "jobend", "shift_changed", "night_report"
)  # fmt: skip

ARGUMENTS: dict[str, tuple[str, ...]] = {
    name: tuple(getattr(REGISTRY.hook, name).spec.argnames) for name in _NAMES
}
"""Hook -> its arguments in their order."""
NOTICES: tuple[str, ...] = tuple(name for name in ARGUMENTS if name not in CHECKS)
