"""Orders for shepherds: a request, its attempt and the site's settings made into one plain dictionary."""

from collections.abc import Mapping
from math import ceil, isfinite
from typing import Any

from nqspy.engine.zones import local
from nqspy.executors import variables
from nqspy.model import output_paths as paths
from nqspy.model import slots
from nqspy.model.actions import Start
from nqspy.model.consumables import device_of, units_of
from nqspy.model.domains import spans
from nqspy.model.ids import Instant, Seq, full_id, index_of
from nqspy.model.job_variables import leave_behind
from nqspy.model.machine import base_in, torus_of, written
from nqspy.model.queues import PROCESSES, Queue
from nqspy.model.requests import Request, Spec, finite
from nqspy.model.site import Site

KEEP_LOG = "keep_joblog"
"""Name of the attribute for ``-kj``: the request's job log stays in its owner's home."""

_MEASURED = {
    "cpu": "per_request/cpu_limit",
    "cpu_warning": "per_request/cpu_warning",
    "wall": "per_request/wall_limit",
    "memory": "per_request/memory_limit",
    "cpu_process": "per_process/cpu_limit",
    "cpu_process_warning": "per_process/cpu_warning",
}
"""Limits that the shepherd enforces by measuring: their names in an order, and their paths in qmgr."""
_LINE = 256
"""Bytes of a script's first line that the kernel reads."""
_TWINS = ("HOME", "HOST", "LOGNAME", "PATH", "SHELL", "TZ")


def make_order(
    request: Request, start: Start, site: Site, *, home: str, speed: float, script: bytes, environment: bytes
) -> dict[str, Any]:
    """Return the order for one attempt: rlimits in real seconds, measured limits in ms of the site's clock,
    sizes in bytes. ``home``: folder of the nqsd; ``environment``: ``NAME=VALUE`` items with a NUL between
    them. The shepherd adds the machine's data (the owner's home, login shell)."""
    spec = request.spec
    queue = site.settings.queues.get(request.queue) or Queue(request.queue)
    limits = _limits(spec, queue)
    grace = site.settings.server.grace
    # The variables that a request brings along, one character for each byte (Latin-1).
    pairs = (item.partition("=") for item in environment.decode("latin-1").split("\0"))
    brought = leave_behind({name: value for name, equals, value in pairs if name and equals})
    defaults = variables.defaults(request, start) | variables.of_launchers(request, start, site)
    given = _environment(request, start, site, home, defaults | brought)
    units = _units(start, site, given)
    server = site.settings.server
    shell, login, script_args = _shell(spec, server.shell_strategy, script)
    measured = {name: limits[path] for name, path in _MEASURED.items()}
    if start.until is not None and request.started is not None:
        # How long it may be there at all, suspended or not (`Spec.contract`).
        measured["hole"] = max(0, start.until - request.started)
    # An application has its caller's variables except these (`cli.application_end`).
    own = {} if spec.caller is None else {OWN: " ".join((*variables.OF_PES, *units))}
    return {
        "seq": request.seq,
        "attempt": start.attempt,
        "id": full_id(request.seq, site.name),
        "owner": spec.owner,
        "uid": spec.uid,
        "gid": spec.gid,
        "shell": shell,
        "login": login,
        "shell_args": script_args,
        "interpreter": _interpreter(script) if shell is None else [],
        "script": script.decode("latin-1"),
        "script_name": spec.script_name or spec.name,
        "login_env": {"age": server.login_env_age, "failed": server.login_env_failed},
        "args": list(spec.args),
        "environment": given | units | own,
        "defaults": sorted(defaults.keys() - brought),
        "start_in": spec.start_in or (spec.workdir if queue.workdir == "submit" else None),
        "hosts": variables.hosts(request, start, site),
        "umask": spec.umask,
        "nice": spec.ask.nice if spec.ask.nice is not None else queue.nice,
        "cpus": cpus_of(start.pes, site),
        "rlimits": _rlimits(limits, speed, grace),
        "limits": measured,
        "processes": limits["per_request/process_limit"],
        "keep_processes": limits["per_request/process_limit"] not in (None, PROCESSES),
        "grace": grace,
        "speed": speed,
        "output": _output(request, site, start.attempt),
        **_devices(start, site),
        "log": _log(request, start, site),
    }


def adjustment(request: Request, site: Site) -> dict[str, Any]:
    """Return the message that gives a running request's shepherd its new wall limit (ms) and output paths."""
    queue = site.settings.queues.get(request.queue) or Queue(request.queue)
    output, sent = _output(request, site, request.attempts), ("path", "name", "keep")
    places = {stream: {key: output[stream][key] for key in sent} for stream in ("stdout", "stderr")}
    return {"do": "adjust", "wall": _limits(request.spec, queue)["per_request/wall_limit"], "output": places}


def _limits(spec: Spec, queue: Queue) -> dict[str, int | None]:
    """Return the limits in force by qmgr path: the request's, else its queue's; None: no limit."""
    asked = {**spec.ask.limits(), **dict(spec.ask.others)}
    paths = [f"per_request/{name}" for name in queue.per_request.__slots__]
    paths += [f"per_process/{name}" for name in queue.per_process.__slots__]
    found = {}
    for path in paths:
        branch, _, name = path.partition("/")
        ask = asked.get(path)
        found[path] = finite(ask if ask is not None else getattr(getattr(queue, branch), name))
    return found


def _rlimits(limits: Mapping[str, int | None], speed: float, grace: int) -> dict[str, tuple[int, int]]:
    """Return soft and hard limits of each process by name of the rlimit; -1: unlimited."""
    found: dict[str, tuple[int, int]] = {}
    cpu = _cpu_rlimit(limits, speed, grace)
    if cpu is not None:
        found["CPU"] = cpu
    paths = (f"per_{of}/{kind}_limit" for of in ("process", "request") for kind in ("permfile", "tempfile"))
    sizes = {
        "FSIZE": min((size for path in paths if (size := limits[path]) is not None), default=None),
        "CORE": limits["per_process/corefile_limit"],
        "DATA": limits["per_process/data_limit"],
        "STACK": limits["per_process/stack_limit"],
        "AS": limits["per_process/memory_limit"],
    }
    return found | {name: (size, size) for name, size in sizes.items() if size is not None}


def _cpu_rlimit(limits: Mapping[str, int | None], speed: float, grace: int) -> tuple[int, int] | None:
    """Return RLIMIT_CPU in real seconds: SIGXCPU at the warning or the limit, SIGKILL after the grace time.
    If only the whole request has a limit, that is used, in case the shepherd is killed. None: no limit."""
    extra = max(1, ceil(grace / 1000))
    limit, warning = limits["per_process/cpu_limit"], limits["per_process/cpu_warning"]
    whole = limits["per_request/cpu_limit"]
    if limit is not None:
        soft = _seconds(limit, speed)
        if warning is not None and warning < limit:
            return _seconds(warning, speed), max(soft, _seconds(warning, speed) + 1)
        return soft, soft + extra
    if warning is not None:
        return _seconds(warning, speed), -1
    if whole is not None:
        return (_seconds(whole, speed) + extra,) * 2
    return None


def _seconds(ms: int, speed: float) -> int:
    """Return ms of the site's clock as whole real seconds, at least one."""
    seconds = ms / 1000 / speed
    return max(1, ceil(seconds)) if isfinite(seconds) else 1


def _shell(spec: Spec, strategy: str, script: bytes) -> tuple[str | None, str, list[str]]:
    """Return the interpreter (None: the owner's shell), when its login shell is run ("": never, "once" for
    all requests of its owner, "each": for this one), and its arguments before the script. ``strategy``:
    setting ``shell_strategy`` of the server."""
    if spec.shell is not None:
        # An application's leader is Python that needs none of the site's packages: a third of its start.
        return spec.shell, "", ["-IS"] if spec.caller is not None else []
    word, _, path = strategy.partition("=")
    if word == "fixed" and path:
        return path, "once", []
    named = _interpreter(script) if word == "free" or spec.dialect == "slurm" else []
    return (named[0], "", named[1:]) if named else (None, "each" if word == "login_each" else "once", [])


def _interpreter(script: bytes) -> list[str]:
    """Return the program and its one argument behind ``#!`` in a script; empty without that line."""
    if not script.startswith(b"#!"):
        return []
    words = script[2:_LINE].split(b"\n", 1)[0].strip().split(None, 1)
    return [word.strip().decode("utf-8", "replace") for word in words]  # an order holds no other bytes


def cpus_of(pes: tuple[int, ...], site: Site) -> list[int] | None:
    """Return the CPUs of the PEs; None (bind to none) without PEs, or if there are more PEs than CPUs."""
    cpus = site.found.cpus
    if not pes or site.pes() > len(cpus) or max(pes) >= len(cpus):
        return None
    return [cpus[pe] for pe in pes]


def turns_of(site: Site, request: Request, speed: float) -> dict[str, Any]:
    """Return the message to a shepherd about the slots in which its job runs (`slot_clock`), lengths in real
    seconds; without ``lengths``: it runs all the time."""
    table = slots.table_for(site, request)
    if table is None:
        return {"do": "turns", "lengths": []}
    lengths = [length / 1000 / speed for length in table.lengths]
    return {"do": "turns", "slots": table.turns()[request.seq], "lengths": lengths, "partial": table.partial}


def _environment(
    request: Request, start: Start, site: Site, home: str, found: dict[str, str]
) -> dict[str, str]:  # Latin-1: one character is one byte
    spec = request.spec
    for name in _TWINS:
        if f"QSUB_{name}" in found:
            found.setdefault(f"PBS_O_{name}", found[f"QSUB_{name}"])
    unless_brought = {
        "QSUB_HOST": spec.host or site.host, "QSUB_USER": spec.owner, "QSUB_LOGNAME": spec.owner,
        "QSUB_TZ": site.timezone,
    }  # fmt: skip
    always = {
        "QSUB_REQID PBS_JOBID": full_id(request.seq, site.name),
        "QSUB_REQNAME PBS_JOBNAME": spec.name,
        "QSUB_WORKDIR PBS_O_WORKDIR": spec.workdir,
        "ENVIRONMENT": "BATCH",
        "NQSPY_HOME": home,
        "NQSPY_ATTEMPT": str(start.attempt),
        "NQSPY_PES": ",".join(spans(start.pes)),
        "PBS_QUEUE": request.queue,
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_O_QUEUE": spec.queue,
        "NQSPY_DEPENDENCIES": str(len(request.prerequisites)),
    }
    for number, each in enumerate(request.prerequisites, 1):
        began = "began" if each.began else "never_began"
        always[f"NQSPY_DEPENDENCY_{number}"] = f"{site.id_of(each.seq)} {each.reason or 'started'} {began}"
    always |= variables.of_array(request, site) | _of_torus(start, site)
    given = variables.of_dialect(request, start, site) | variables.by_name(always)
    return _latin(unless_brought) | found | _latin(given)


def _of_torus(start: Start, site: Site) -> dict[str, str]:
    """Return the variables for a machine with a shape: the shape, the lowest PE, its position; else none."""
    torus = torus_of(site.settings.machine)
    if torus is None:
        return {}
    found = base_in(torus, start.pes)
    where = {} if found is None else {"NQSPY_BASE": str(found[0]), "NQSPY_COORDINATE": written(found[1])}
    return where | {"NQSPY_SHAPE": str(torus), "NQSPY_PES_PER_NODE": str(torus.per_node)}


def _units(start: Start, site: Site, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of consumables: for each the units that the start holds, "" for none."""
    held, settings = dict(start.units), site.settings.consumables
    found = {each.env: ",".join(held.get(each.name, ())) for each in settings.values() if each.env}
    if CUDA in found and CUDA_ORDER not in environment:
        found[CUDA_ORDER] = "PCI_BUS_ID"
    if held:
        found["NQSPY_UNITS"] = " ".join(f"{name}={','.join(units)}" for name, units in held.items())
    return found


OWN = "NQSPY_OWN"
CUDA, CUDA_ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
"""Variables for NVIDIA's GPUs; their numbers are those of the device files only with the second one."""


def _devices(start: Start, site: Site) -> dict[str, Any]:
    """Return ``denied``: device numbers of units that the start does not hold; ``devices``: file and number
    of those that it holds, by variable. Empty if none is denied."""
    denied: list[str] = []
    mine: dict[str, list[tuple[str, str]]] = {}
    for each in site.settings.consumables.values():
        held = dict(start.units).get(each.name, ())
        for unit in units_of(each, site.found):
            device = device_of(each, unit, site.found)
            if device is not None and device.numbers and unit in held:
                mine.setdefault(each.env or "", []).append((device.files[0], device.numbers[0]))
            elif device is not None and device.numbers:
                denied += device.numbers
    mine.pop("", None)
    return {"denied": denied, "devices": mine} if denied else {}


def _latin(given: Mapping[str, str]) -> dict[str, str]:
    """Return variables with one character for each byte of a value."""
    return {name: value.encode("utf-8", "surrogateescape").decode("latin-1") for name, value in given.items()}


def _output(request: Request, site: Site, attempt: int) -> dict[str, Any]:
    """Return where both streams go, and what to do with output that earlier attempts have written there."""
    spec, seq, output, host = request.spec, request.seq, request.spec.output, site.name

    def stream(path: str | None, letter: str, keep: bool, direct: bool) -> dict[str, Any]:
        return {
            "path": path and paths.fill(path, seq, spec, request.queue, host, attempt),
            "name": paths.default_name(seq, spec, letter),
            "inside": paths.in_folder(seq, spec, host, letter),
            "keep": keep,
            "direct": direct,
            "folder": spec.workdir,
            **_rerun(request, site, attempt, letter),
        }

    found = {
        "join": output.join,
        "stdout": stream(output.stdout, "o", output.keep_stdout, output.direct_stdout),
        "stderr": stream(output.stderr, "e", output.keep_stderr, output.direct_stderr),
    }
    if output.log == "own" or (output.log and output.direct_stdout):
        found["joblog"] = stream(output.log_path, "l", KEEP_LOG in spec.attributes, False)
    return found


def _rerun(request: Request, site: Site, attempt: int, letter: str) -> dict[str, Any]:
    """Return how this attempt treats earlier attempts' output of a stream (``letter``: o, e, or l for the job
    log): ``rerun`` (append, number), ``mark`` (line above appended output), ``former`` (paths that they
    wrote). Empty if there was none, or if it is replaced."""
    way, former = site.settings.default.rerun_output, request.former
    if not former or way == "replace":
        return {}
    written = [each.stderr if letter == "e" else each.stdout for each in former] if letter != "l" else [""]
    mark = paths.attempt_mark(full_id(request.seq, site.name), attempt)
    return {"rerun": way, "attempt": attempt, "mark": mark, "former": sorted({*written} - {None})}


def _log(request: Request, start: Start, site: Site) -> list[str]:
    """Return lines for the job log about submission and start; none without a log."""
    spec = request.spec
    if not spec.output.log:
        return []
    who = f"{full_id(request.seq, site.name)} {spec.name} of {spec.owner}, group {spec.group}"
    pes = ",".join(map(str, start.pes)) or "none"
    started = request.started if request.started is not None else request.submitted
    return [
        f"{_at(request.submitted, site)}  {who}: submitted on {spec.host or site.host}",
        f"{_at(started, site)}  started: queue {request.queue}, attempt {start.attempt}, PEs {pes}",
    ]


def _at(instant: Instant, site: Site) -> str:
    return local(instant, site.timezone).isoformat(" ", "seconds")


class Clashes:
    """Finds second outputs: those to a path that another request, which began earlier, writes too. ``set
    output_clash`` decides how they are written. In an array each is second if all indices share one path."""

    def __init__(self) -> None:
        self._second: dict[Seq, set[str]] = {}

    def mark(self, request: Request, output: dict[str, Any], site: Site) -> None:
        """Mark second outputs in a starting request's ``output`` by ``clash``: a suffix, or ``append``."""
        second = self._second.pop(request.seq, set())
        if index_of(request.seq) is not None:
            second |= paths.of_all_indices(request.seq, request.spec, request.queue)
        for file in paths.files(request.seq, request.spec, request.queue):
            others = site.writers.get(file, {}).keys() - {request.seq}
            if any(seq in site.started for seq in others):
                second.add(file)
            for seq in others - site.started.keys():
                self._second.setdefault(seq, set()).add(file)
        way = site.settings.server.output_clash
        if second and way != "overwrite":
            seq, spec = request.seq, request.spec
            for stream, path in (("stdout", spec.output.stdout), ("stderr", spec.output.stderr)):
                if path is not None and paths.plain(paths.fill(path, seq, spec, request.queue, "")) in second:
                    output[stream]["clash"] = "append" if way == "append" else f".{paths.suffix(seq)}"
        if len(self._second) > len(site.requests):
            self._second = {seq: held for seq, held in self._second.items() if seq in site.requests}
