"""Requests as PBS shows them: the value of each attribute of a job (pbs-clients.md 8.3).

All attributes come from `attributes`: the full form, JSON, DSV and those that programs select by. What is
unknown of a request has no attribute."""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Struct

from nqspy.model import indices
from nqspy.model.arrays import ArrayState
from nqspy.model.endings import End
from nqspy.model.events import Deleted, Ended
from nqspy.model.ids import Instant, array_of, full_id, index_of
from nqspy.model.machine import Torus, base_of
from nqspy.model.options import OPTIONS, Option
from nqspy.model.output_paths import shown_paths
from nqspy.model.requests import POSIX_LETTER, STARTED, AfterWord, Request, Spec, State, Used, finite
from nqspy.model.shapes import Layout, shown_sizes
from nqspy.model.specs import field_part
from nqspy.report.pbs_values import VariableList, kilobytes, number_or_text, span
from nqspy.report.time_text import Zone

Value = str | int | Mapping[str, str | int] | VariableList
"""Value of an attribute: a text, a number, resources by name, or variables."""
Attributes = dict[str, Value]
"""Attributes by name, in OpenPBS's order."""

_WORD: dict[AfterWord, str] = {
    "ok": "afterok", "any": "afterany", "fail": "afternotok", "start": "after", "each": "afterok",
}  # fmt: skip
_SUBSTATE = {
    State.WAITING: 30, State.HELD: 20, State.QUEUED: 10, State.RUNNING: 42, State.SUSPENDED: 43,
    State.EXITING: 50,
}  # fmt: skip
_MAIL = (("a", "abort"), ("b", "begin"), ("e", "end"), ("r", "rerun"), ("t", "transfer"))
_STARTING, _DEPENDS, _DELETED, _FINISHED, _FAILED = 41, 22, 91, 92, 93


class Subject(Struct, frozen=True):
    """A request to be shown, as it is at one moment. ``used``: use of its attempt, None before its start;
    ``comment``: why it waits, or what ended it; ``variables``: None if the caller may not see them;
    ``ended``: how it ended, ``at``: when; ``shared_output``: requests that write into the same files;
    ``members``: indices of an array that are requests of their own. (A Struct is made in a tenth of a named
    tuple's time.)"""

    request: Request
    used: Used | None = None
    comment: str = ""
    variables: VariableList | None = None
    ended: Ended | Deleted | None = None
    at: Instant | None = None
    shared_output: str = ""
    members: tuple[Request, ...] = ()


class PbsContext(NamedTuple):
    """Facts for all jobs of an answer. ``server``: host part of identifiers; ``node``: host that runs the
    jobs; ``domains``: by queue, empty if there is only one; ``torus``: shape of the machine, None: it has
    none."""

    server: str
    node: str
    zone: Zone
    domains: Mapping[str, str] = {}
    torus: Torus | None = None


def attributes(subject: Subject, context: PbsContext) -> Attributes:
    """Return the attributes, in OpenPBS's order, of a job that have a value."""
    request, spec, at = subject.request, subject.request.spec, subject.at
    notes, begun, own = notes_of(spec), request.started, moving(subject, context)
    ctime, used, asked = context.zone.ctime, subject.used, finite(spec.ask.memory)
    memory = "" if asked is None else f":mem={kilobytes(asked)}"
    keep = "o" * (spec.output.keep_stdout or spec.output.direct_stdout)
    keep += "e" * (spec.output.keep_stderr or spec.output.direct_stderr)
    use: dict[str, str | int] | None = None
    if used is not None:
        use = {"cput": span(used.cpu)}
        use |= {"mem": kilobytes(used.memory)} if used.memory else {}
        use |= {"ncpus": spec.ask.pes, "walltime": span(used.wall)}
    found: dict[str, Value | None] = {
        "Job_Name": own["Job_Name"],
        "Job_Owner": f"{spec.owner}@{spec.host or context.server}",
        "resources_used": use,
        "job_state": letter_of(subject),
        "queue": request.queue,
        "domain": context.domains.get(request.queue),
        "base": base_of(request.pes, context.torus),
        "server": context.server,
        "Account_Name": spec.account,
        "Checkpoint": checkpoint(notes),
        "ctime": own["ctime"],
        "depend": _depend(spec, context.server),
        "Error_Path": own["Error_Path"],
        "exec_host": exec_host(request, context.node),
        "exec_vnode": f"({context.node}:ncpus={len(request.pes)}{memory})" if request.pes else None,
        "Execution_Time": None if spec.eligible is None else ctime(spec.eligible),
        "Hold_Types": request.letters or "n",
        "Join_Path": ("eo" if notes.get("join") == "eo" else "oe") if spec.output.join else "n",
        "Keep_Files": keep + "d" * (spec.output.direct_stdout or spec.output.direct_stderr) or "n",
        "Mail_Points": "".join([letter for letter, wish in _MAIL if getattr(spec.mail, wish)]) or "n",
        "Mail_Users": spec.mail.to,
        "mtime": own["mtime"],
        "Output_Path": own["Output_Path"],
        "output_clash": subject.shared_output or None,
        "Priority": spec.priority or 0,
        "qtime": own["qtime"],
        "Rerunable": str(spec.rerunnable),
        "Resource_List": resource_list(spec, notes),
        "units": {name: "+".join(units) for name, units in request.units} or None,
        "stime": None if begun is None else ctime(begun),
        "obittime": None if at is None or begun is None else ctime(at),
        "Shell_Path_List": spec.shell,
        "substate": _substate(subject),
        "Variable_List": subject.variables,
    }
    found |= {"euser": spec.owner, "egroup": spec.group, **_last(subject, notes, own, context.server)}
    return {name: value for name, value in found.items() if value is not None}


def _last(
    subject: Subject, notes: Mapping[str, str], own: Mapping[str, str], server: str
) -> dict[str, Value | None]:
    """Return the attributes from ``comment`` on, in order; ``notes``, ``own``: of `notes_of` and `moving`."""
    request, spec, at, ended = subject.request, subject.request.spec, subject.at, subject.ended
    return {
        "comment": own.get("comment"),
        "etime": own.get("etime"),
        "umask": int(f"{spec.umask:o}"),
        "run_count": request.attempts or None,
        "Exit_status": exit_status(ended),
        **_of_array(subject, server),
        "history_timestamp": None if at is None else at // 1000,
        "project": project(spec),
        "Submit_Host": spec.host or None,
        "end_reason": None if ended is None else getattr(ended, "end_reason", "deleted"),
        **_declared(spec, _MORE),
    }


def moving(subject: Subject, context: PbsContext) -> dict[str, str]:
    """Return the attributes that may differ between equal waiting requests (`is_alike`), in order."""
    request, ctime = subject.request, context.zone.ctime
    host = request.spec.host or context.server
    ended = subject.ended
    went = (ended.stdout, ended.stderr) if isinstance(ended, Ended) else (None, None)
    output, error = shown_paths(request, context.server, *went)
    submitted, latest, queued = request.submitted, changed(subject), request.date_in_queue
    created = ctime(submitted)
    found = {
        "Job_Name": request.spec.name,
        "ctime": created,
        "Error_Path": f"{host}:{error}",
        "mtime": created if latest == submitted else ctime(latest),
        "Output_Path": f"{host}:{output}",
        "qtime": (in_queue := created if queued == submitted else ctime(queued)),
    }
    if subject.comment:
        found["comment"] = subject.comment
    eligible = eligible_since(subject)
    if eligible is not None:
        found["etime"] = in_queue if eligible == queued else ctime(eligible)
    return found


_SHOWN = [option for option in OPTIONS if option.pbs and "/" not in option.pbs]
_ASKED = attrgetter(
    "owner", "host", "account", "attributes", "eligible", "output", "mail", "priority", "rerunnable", "ask",
    "shell", "umask", "group", "after", "layout", "mold", *(option.path for option in _SHOWN),
)  # fmt: skip


def letter_of(subject: Subject) -> str:
    """Return the letter of a job's state; B for an array that has begun, X for an ended index."""
    request = subject.request
    if subject.ended is not None:
        return POSIX_LETTER[State.ENDED] if array_of(request.seq) is None else "X"
    if request.array is None:
        return POSIX_LETTER[request.state]
    return "B" if request.array.begun else POSIX_LETTER[request.shown_state]


def used_by_indices(state: ArrayState) -> Used | None:
    """Return the summed use of an array's ended indices; None before one began."""
    return Used(state.cpu, state.wall, state.memory) if state.begun else None


def _of_array(subject: Subject, server: str) -> dict[str, Value | None]:
    """Return the attributes that only arrays and indices have."""
    request = subject.request
    array, state, asked = array_of(request.seq), request.array, request.spec.array
    if array is not None:
        return {"array_id": full_id(array, server), "array_index": index_of(request.seq)}
    if state is None or asked is None:
        return {}
    runs = sum(member.state in STARTED for member in subject.members)
    exiting = sum(member.state is State.EXITING for member in subject.members)
    expired = sum(indices.count(each) for each in (state.well, state.badly, state.dropped))
    queued = indices.count(state.left) + len(subject.members) - runs
    count = f"Queued:{queued} Running:{runs - exiting} Exiting:{exiting} Expired:{expired} "
    return {
        "array": "True",
        "array_state_count": count,
        "max_run_subjobs": asked.limit,
        "array_indices_submitted": indices.show(asked.indices),
        "array_indices_remaining": indices.show(state.left) or None,
    }


def is_alike(subject: Subject) -> bool:
    """True if a request waits and is no array, so that others may equal it in all attributes but `moving`."""
    request = subject.request
    lone = request.array is None and array_of(request.seq) is None
    return lone and request.attempt is None and subject.ended is None


def asked_for(spec: Spec) -> tuple[Any, ...]:
    """Return a key of what a request asks for; requests with equal keys have the same attributes from it."""
    found: tuple[Any, ...] = _ASKED(spec)
    return found


def standing(subject: Subject) -> tuple[Any, ...]:
    """Return a key of all attributes that neither `asked_for` nor `moving` covers, equal for equal ones."""
    request = subject.request
    own = (request.queue, request.state, request.letters, not request.unmet, request.attempts)
    return (*own, subject.variables, subject.shared_output, not subject.comment)


def notes_of(spec: Spec) -> dict[str, str]:
    """Return by name the options of the submission that are stored as texts in ``Spec.attributes``."""
    return {name: value for name, _, value in (each.partition(":") for each in spec.attributes)}


def checkpoint(notes: Mapping[str, str]) -> str:
    """Return ``Checkpoint``: what ``qsub -c`` asked for, ``n``: none, ``u``: nothing was said."""
    return "n" if "no_checkpoint" in notes else notes.get("checkpoint", "u")


def project(spec: Spec) -> str:
    """Return ``project``: the request's, or PBS's default if none was given."""
    return spec.project or "_pbs_project_default"


def resource_list(spec: Spec, notes: Mapping[str, str] | None = None) -> dict[str, str | int]:
    """Return ``Resource_List``: what was asked for, and what follows from it, by name."""
    ask, notes = spec.ask, notes_of(spec) if notes is None else notes
    layout = spec.layout or Layout()
    way, _, words = layout.text.partition("=")
    found = _declared(spec, _RESOURCES)
    chunk = f"1:ncpus={ask.pes}" + (f":mem={found['mem']}" if found.get("mem") else "")
    found |= {
        "nodect": layout.chunks,
        "nodes": number_or_text(words if way == "nodes" else notes.get("nodes")),
        "place": layout.place or notes.get("place", "pack"),
        "select": words if way == "select" else notes.get("select", chunk),
        "software": number_or_text(notes.get("software")),
    }
    if (mold := spec.mold) is not None:  # it may run on several numbers of PEs
        curve = mold.speedup
        speedup = None if curve is None else f"{curve.parallelism:g}:{curve.sigma:g}"
        walls = ",".join(map(span, mold.walls)) or None
        found |= {"pes": shown_sizes(mold.sizes), "speedup": speedup, "walltimes": walls}
    found |= {"ngpus" if name == "gpu" else name: count for name, count in ask.consumables}
    return {name: found[name] for name in sorted(found) if found[name] is not None}


_WRITERS: Mapping[str, Callable[[Any], Value]] = {
    "time": span, "size": kilobytes, "names": "+".join, "flag": str,
}  # fmt: skip


def _reader(option: Option) -> tuple[str, Callable[[Spec], Any], Callable[[Any], Any]]:
    """Return the last part of an option's name in PBS, and functions to read its field and write its
    value."""
    path, convert = field_part(option)
    write = _WRITERS.get(option.unit)

    def written(value: Any) -> Any:
        shown = value if convert is None else convert(value)
        return shown if shown is None or write is None else write(shown)

    return option.pbs.rpartition("/")[2], attrgetter(path), written


_RESOURCES = [_reader(option) for option in OPTIONS if option.pbs.startswith("Resource_List/")]
_MORE = [_reader(option) for option in _SHOWN]


def _declared(spec: Spec, readers: Iterable[tuple[str, Any, Any]]) -> dict[str, Any]:
    """Return a request's options that have a value, by their names in PBS; ``readers``: of `_reader`."""
    return {name: write(value) for name, read, write in readers if (value := read(spec)) not in _NOTHING}


_NOTHING = (None, (), "")


def _depend(spec: Spec, server: str) -> str | None:
    """Return ``afterok:12.server@server:13.server@server,afterany:…``; None without dependencies."""
    awaited: dict[str, list[str]] = {}
    for each in spec.after:
        awaited.setdefault(_WORD[each.word], []).append(f"{full_id(each.seq, server)}@{server}")
    return ",".join(":".join((word, *ids)) for word, ids in awaited.items()) or None


def exec_host(request: Request, node: str) -> str | None:
    """Return ``host/0*2`` (host, first PE, how many); None before its start."""
    pes = request.pes
    return f"{node}/{pes[0]}" + (f"*{len(pes)}" if len(pes) > 1 else "") if pes else None


def changed(subject: Subject) -> Instant:
    """Return the latest instant at which the job is known to have changed: submission, start, pause, end."""
    request, run = subject.request, subject.request.attempt
    if run is None:
        return request.submitted if subject.at is None else max(request.submitted, subject.at)
    known = (run.started, subject.at, None if run.pause is None else run.pause.at, run.resumed)
    return max(at for at in known if at is not None)


def eligible_since(subject: Subject) -> int | None:
    """Return the instant (ms) since which a job may start; None if it is held, waits for its date, or ended
    before it started."""
    request = subject.request
    ran = request.started is not None or subject.at is None
    waits = request.state in (State.HELD, State.WAITING)
    return max(request.date_in_queue, request.spec.eligible or 0) if ran and not waits else None


def _substate(subject: Subject) -> int | None:
    request, ended = subject.request, subject.ended
    if ended is not None:
        whole = isinstance(ended, Ended) and ended.end_reason != "deleted"
        return (_FINISHED if End.of(ended).ok else _FAILED) if whole else _DELETED
    if request.state is State.HELD and request.unmet:
        return _DEPENDS
    if request.state is State.RUNNING and request.run.starting:
        return _STARTING
    return _SUBSTATE.get(request.shown_state)


def exit_status(ended: Ended | Deleted | None) -> int | None:
    """Return the job's ``Exit_status``; None before its end, or if it was deleted before it ran."""
    return End.of(ended).pbs_status if isinstance(ended, Ended) else None


def comment_of(ended: Ended | Deleted) -> str:
    """Return the text on how a request ended, for its ``comment``; empty if there is none."""
    if ended.text or isinstance(ended, Ended):
        return ended.text
    return f"deleted by {ended.who}" if ended.who else ""


def state_counts(counts: Mapping[str, int]) -> str:
    """Return ``state_count``: the number of jobs in each state of PBS, as ``Transit:0 Queued:3 ``, with a
    space at the end. ``counts``: number of requests by state word."""
    numbers = ((name, sum(counts.get(word, 0) for word in words)) for name, words in _COUNTED.items())
    return "".join([f"{name}:{number} " for name, number in numbers])


_COUNTED: Mapping[str, tuple[State, ...]] = {
    "Transit": (State.ARRIVING, State.ROUTING), "Queued": (State.QUEUED,), "Held": (State.HELD,),
    "Waiting": (State.WAITING,), "Running": (State.RUNNING, State.SUSPENDED), "Exiting": (State.EXITING,),
    "Begun": (),
}  # fmt: skip


def plain(found: Mapping[str, Any]) -> Attributes:
    """Return the attributes without those that are None or ``{}``."""
    return {name: value for name, value in found.items() if value is not None and value != {}}
