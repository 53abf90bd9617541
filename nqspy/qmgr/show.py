"""Displays of ``show`` as text: `show_settings` from settings alone, others from rows of the daemon."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nqspy.model import people, registry, units
from nqspy.model.machine import WAYS, Found, torus_of
from nqspy.model.queues import Queue, RunningLimits, Weights, is_heeded
from nqspy.model.registry import SettingsObject
from nqspy.model.site import Settings
from nqspy.model.texts import counted, folded, pairs, short, table
from nqspy.model.tree import changed, declared, get, items
from nqspy.qmgr import show_shifts
from nqspy.qmgr.values import write, written

Counts = Mapping[str, Mapping[str, int]]
"""Number of requests of each queue by state word."""

_COUNTED = (
    ("exiting", "exit"), ("running", "run"), ("queued", "queued"), ("waiting", "wait"), ("held", "hold"),
    ("arriving", "arrive"),
)  # fmt: skip
_FACTORS = (
    ("share", "Fair Share Priority"), ("cpu", "Requested CPU Time"), ("memory", "Requested Memory"),
    ("time", "Time-in-Queue"),
)  # fmt: skip


def _titled(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{body}"


def _value(node: Any, path: str) -> str:
    return write(declared(type(node))[path], get(node, path))


# ---------------------------------------------------------------- factors


def show_sched_factor(settings: Settings) -> str:
    """Return the weights of the site and of queues with their own, and their bound (seed 003, 6.1)."""
    site = settings.sched_factor.over(settings.sched_factor)
    parts = [_weights("for all queues", site)]
    for name, queue in settings.queues.items():
        own = settings.weights(name)
        if any(changed(queue.sched_factor)) and own != site:
            parts.append(_weights(f"for queue {name}", own))
    return "\n\n".join(parts)


def _weights(scope: str, weights: Weights) -> str:
    rows = [f"  {title:<22}{factor:<8}{getattr(weights, factor):>6}" for factor, title in _FACTORS]
    notes = [f"  {bound(weights)}"]
    if weights.share and weights.time:
        bounds = 4 * weights.time / weights.share
        notes.append(
            "  share_rule deficit: the share factor beats the time term once what two departments are "
            f"owed (K)\n  differs by {bounds:.3g} b, b being what all PEs do in the mean time of a run"
        )
    return "\n".join([f"Job Initiation Weighting Factors {scope}", *rows, *map(folded, notes)])


def bound(weights: Weights) -> str:
    """Return a sentence on ``tau_max`` (`Weights.tau_max`): it bounds the wait of the longest waiter only."""
    if not any((weights.share, weights.cpu, weights.memory, weights.time)):
        return "all weights are 0: first in, first out"
    tau = weights.tau_max()
    if tau is None:
        return (
            "warning: tau_max: there is no bound; even the queue's longest waiter may be overtaken for ever, "
            "because time is not greater than share + cpu + memory"
        )
    return (
        f"tau_max = {tau:.2f}: nothing overtakes the queue's longest waiter once that has waited more than "
        f"{tau:.2f} times as long; between two others there is no bound"
    )


# ---------------------------------------------------------------- settings


def show_parameters(settings: Settings) -> str:
    """Return the defaults, the server's general settings, global limits and weights as text."""
    server, default, mail = settings.server, settings.default, settings.mail
    way = next((f"{name} {value}" for name in WAYS if (value := getattr(mail, name))), "none")
    if way.startswith("smtp ") and mail.tls != "none":
        way += f" ({mail.tls}{f', as {mail.user}' if mail.user else ''})"
    way += f" from {mail.sender}" if mail.sender else ""
    rows = [
        ("Default queue", _value(default, "queue")),
        ("Default priority", _value(default, "priority")),
        ("CPU time assumed for routing", _value(default, "cpu_limit")),
        ("Wall time assumed in plans", _value(default, "wall_limit")),
        ("Server name", server.name or "auto"),
        ("Time zone", server.timezone or "auto"),
        ("Grace between TERM and KILL", _value(server, "grace")),
        ("Size of a script", _value(server, "script_limit")),
        ("Scripts kept for a user", _value(server, "user_spool")),
        ("Shell strategy", server.shell_strategy),
        ("Mail by", way),
        ("Mails to a person in an hour", _value(settings.mail, "limit")),
        ("Lost requests", server.lost_request),
        ("Second outputs of one path", server.output_clash),
        ("Outputs of further attempts", default.rerun_output),
        ("Failed prerequisites", server.dependency_failed),
        ("Wall limit hint, times use", _value(server, "limit_hint")),
        ("Users see requests of", server.privacy),
        ("Log level", server.log_level),
        ("Half-life of use", _value(settings.usage, "half_life")),
        ("Greatest effect of past use", _value(settings.usage, "payback")),
        ("Charged", settings.usage.charge),
        ("Planning period", _value(settings.usage, "period")),
        ("Backups every", _value(settings.backup, "every")),
        ("Backups kept", _value(settings.backup, "keep")),
        ("History in the database", _value(settings.history, "keep")),
        ("Database at most", _value(settings.history, "size")),
        ("Night reports kept", _value(settings.history, "reports")),
        ("Memory of the exits' process", _value(settings.decider, "memory")),
    ]
    body = _titled("Parameters", pairs(rows))
    return "\n\n".join([body, show_global(settings), show_sched_factor(settings)])


def show_feature(settings: Settings, kind: SettingsObject[Any], rows: Sequence[tuple[str, str]] = ()) -> str:
    """Return the settings that a feature has declared, and ``rows`` about its state, as text."""
    values = written(items(kind.one(settings)))
    state = {kind.head.replace("_", " "): values.pop("enabled")} if "enabled" in values else {}
    return pairs([*(state | values).items(), *rows])


def show_global(settings: Settings) -> str:
    """Return the limits over all queues as text."""
    return _titled("Global limits", pairs(written(items(settings.global_)).items()))


def show_machine(settings: Settings, found: Found | None = None) -> str:
    """Return PEs and memory as text; ``found``: the values that ``auto`` stands for."""
    machine = settings.machine
    pes, memory = _value(machine, "pes"), _value(machine, "memory")
    if found and machine.pes is None:
        pes = f"auto ({len(found.cpus)})"
    if found and machine.memory is None:
        memory = f"auto ({units.format_size(found.memory)})"
    rows = [("pes", pes), ("memory", memory)]
    if (torus := torus_of(machine)) is not None:
        nodes = "x".join(map(str, torus.nodes))
        rows.append(("shape", f"{torus}, nodes {nodes} of {torus.per_node} PE{'s'[: torus.per_node > 1]}"))
    if machine.offline:
        rows.append(("offline", f"PEs {', '.join(machine.offline)}"))
    if machine.foreign_scan is not None:
        rows.append(("foreign_scan", _value(machine, "foreign_scan")))
    return _titled("Machine", pairs(rows))


def show_managers(settings: Settings) -> str:
    """Return managers and operators as text."""
    words = {"m": "manager", "o": "operator"}
    rows = [f"  {user:<16}{words[role]}" for user, role in settings.managers.items()]
    always = "  root and the owner of this home are managers"
    return _titled("Managers and operators", "\n".join([*rows, always]))


def show_complex(settings: Settings, names: Sequence[str] = ()) -> str:
    """Return the named complexes, or all, with members and limits as text."""
    chosen = _chosen(settings.complexes, names)
    if not chosen:
        return "no complexes"
    limits = _limits()
    heads = (name.removesuffix("_limit").upper() for name in limits)
    rows = [(c.name, ", ".join(c.queues), *(_value(c, name) for name in limits)) for c in chosen]
    values = ((c.name, *each) for c in chosen for each in changed(c))
    amounts = ((name, path, info, value) for name, path, info, value in values if info.unit == "amounts")
    lists = [f"{name}: {path}={write(info, value)}" for name, path, info, value in amounts]
    return "\n".join([table(("COMPLEX", "QUEUES", *heads), rows), *lists])


def _limits() -> list[str]:
    """Return the names of limits that are numbers; those on units of consumables are lists."""
    return [name for name, info in declared(RunningLimits).items() if info.unit != "amounts"]


def _chosen(objects: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    return [one for name, one in objects.items() if not names or name in names]


def show_groups(settings: Settings, names: Sequence[str] = ()) -> str:
    """Return the share tree as text: weight, part among the siblings, cap, members."""
    lines: list[str] = []
    for group, depth in people.walk(settings.groups):
        if not names or group.name in names:
            whole = sum(each.share for each in settings.groups.values() if each.parent == group.parent)
            part = 100 * group.share / whole if whole else 0.0
            lines.append(
                f"{'  ' * depth + group.name:<24}{group.share:>7}{part:>8.1f} %  "
                f"{_value(group, 'limit') if group.limit is not None else '':<7}"
                f"{', '.join(group.members)}".rstrip()
            )
    head = f"{'GROUP':<24}{'SHARE':>7}{'PART':>10}  {'LIMIT':<7}MEMBERS"
    return "\n".join([head, *lines]) if lines else "no groups"


# ---------------------------------------------------------------- queues


_ALWAYS = ("age_from", "per_request/process_limit")
"""Settings of a batch queue that are always shown."""


def show_queue(
    settings: Settings, names: Sequence[str] = (), long: bool = False, counts: Counts | None = None,
    host: str = "localhost",
) -> str:  # fmt: skip
    """Return queues with state words (nqs.md 5.1) and counts as text; ``long``: with all their settings."""
    parts = []
    for queue in _chosen(settings.queues, names):
        mine = (counts or {}).get(queue.name, {})
        busy = mine.get("running", 0) + mine.get("suspended", 0) > 0
        state = ("INACTIVE", "RUNNING")[busy] if queue.started else ("STOPPED", "STOPPING")[busy]
        counted = " ".join(f"{mine.get(counted_as, 0)} {word};" for counted_as, word in _COUNTED)
        name = f"{queue.name}@{settings.server.name or host}"
        parts.append(_queue(queue, name, state, [f"  {counted}"], long))
    return "\n\n".join(parts) if parts else "no queues"


def _queue(queue: Queue, name: str, state: str, counted: Sequence[str] = (), long: bool = True) -> str:
    """Return a queue's text; ``long``: its limits, and other settings that differ from the defaults."""
    enabled = "ENABLED" if queue.enabled else "DISABLED"
    lines = [f"{name}; type={queue.kind.upper()}; [{enabled}, {state}]; pri={queue.priority}", *counted]
    if queue.kind == "pipe":
        lines.append(f"  destinations: {', '.join(queue.destinations) or 'none'}")
    if long:
        apart, always = ("enabled", "started", "priority", "destinations"), (*_limits(), *_ALWAYS)
        rows = [
            (path.replace("/", " "), write(info, value))
            for path, info, value in items(queue)
            if is_heeded(queue.kind, path)
            and (path in always or (path not in apart and value != info.default))
        ]
        lines.append(pairs(rows))
    return "\n".join(lines)


# ---------------------------------------------------------------- what holds for every site

ENFORCED = (
    ("per_request cpu_limit", "time", "measured; TERM, after the grace time KILL"),
    ("per_request wall_limit", "time", "measured; TERM, after the grace time KILL"),
    ("per_request memory_limit", "size", "measured, or by cgroup; TERM, after the grace time KILL"),
    ("per_request pe_limit", "count", "at submission"),
    ("per_request process_limit", "count", "by cgroup, or measured; TERM, after the grace time KILL"),
    ("per_process cpu_limit", "time", "RLIMIT_CPU; SIGXCPU at the warning"),
    ("per_process memory_limit", "size", "RLIMIT_AS"),
    ("per_process permfile_limit", "size", "RLIMIT_FSIZE"),
    ("per_process corefile_limit", "size", "RLIMIT_CORE"),
    ("per_process data_limit", "size", "RLIMIT_DATA"),
    ("per_process stack_limit", "size", "RLIMIT_STACK"),
    ("nice", "number", "setpriority"),
)
"""Limits of one request that can be set: unit, and how they are enforced."""


def limits_supported() -> str:
    """Return as text the limits that can be set, and how they are enforced; others are ignored."""
    running = [
        (name, "list" if info.unit == "amounts" else info.unit, "when requests are chosen")
        for name, info in declared(RunningLimits).items()
    ]
    return table(("LIMIT", "UNIT", "ENFORCED BY"), [*ENFORCED, *running])


_FLAGS = (
    ("Per-process core file size", "-lc", "per_process corefile_limit"),
    ("Per-process data segment size", "-ld", "per_process data_limit"),
    ("Per-process permanent file size", "-lf", "per_process permfile_limit"),
    ("Per-request permanent file size", "-lF", "per_process permfile_limit"),
    ("Per-process memory size", "-lm", "per_process memory_limit"),
    ("Per-request memory size", "-lM", "per_request memory_limit"),
    ("Nice value", "-ln", "nice"),
    ("PEs", "-lP", "per_request pe_limit"),
    ("Per-process quick file size", "-lq", ""),
    ("Per-request quick file size", "-lQ", ""),
    ("Per-process stack size", "-ls", "per_process stack_limit"),
    ("Per-process CPU time", "-lt", "per_process cpu_limit"),
    ("Per-request CPU time", "-lT", "per_request cpu_limit"),
    ("Tape drives", "-lU", ""),
    ("Per-process temporary file size", "-lv", "per_process permfile_limit"),
    ("Per-request temporary file size", "-lV", "per_process permfile_limit"),
    ("Per-process working set size", "-lw", ""),
    ("Per-request wall-clock time", "-l walltime=", "per_request wall_limit"),
    ("Processes of a request", "-l nproc=", "per_request process_limit"),
)
"""Limited resource, the option, and the enforced setting (`show.ENFORCED`); "": it is only stored."""
_FOR_ALL = ("-lF", "-lV")
"""Limits of a request that are enforced for each of its processes."""


def limit_flags(strategy: str, verbose: bool) -> str:
    """Return limits and the shell ``strategy`` as text; ``verbose``: with how each is enforced."""
    how = {path: text for path, _, text in ENFORCED}
    rows = []
    for label, flag, path in _FLAGS:
        note = "" if path else "Not run-time enforceable"
        note = "Enforced per-process" if flag in _FOR_ALL else note
        note = f"{note}{'; ' * bool(note)}{how[path]}" if verbose and path else note
        rows.append(f"  {label:<34}{flag:<13}{note}".rstrip())
    return "\n".join([*rows, "", f"  Shell strategy: {strategy}"]) + "\n"


# ---------------------------------------------------------------- rows of the daemon


_QUOTA = (("entitled", "{:.1f} %"), ("got", "{:.1f} %"), ("deviation", "{:+.1f}"))


def show_shares(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the share tree as text. Each row: ``group``, ``depth``, ``share`` (weight), ``entitlement`` and
    ``usage`` (fractions of the whole), ``used_s`` (decayed seconds of ``charge``: CPU or PE time)."""
    shown = [
        (
            "  " * row.get("depth", 0) + row["group"], row["share"], f"{100 * row['entitlement']:.1f} %",
            f"{100 * row['usage']:.1f} %", f"{row['used_s']:.0f}",
        )
        for row in rows
    ]  # fmt: skip
    head = "PE S" if any(row.get("charge") == "pe_wall" for row in rows) else "CPU S"
    text = table(("GROUP", "SHARE", "ENTITLED", "USED", head), shown) if shown else "no groups"
    owed = [row for row in rows if row.get("entitled") is not None or row.get("works")]
    if not owed:
        return text
    since = f"since {short(owed[0]['since'])}" if owed[0]["since"] else "so far"
    accounts = [
        (
            row["group"],
            "yes" if row["works"] else "no",
            *("-" if row["entitled"] is None else form.format(100 * row[name]) for name, form in _QUOTA),
            "-" if row["target"] is None else f"{100 * row['target']:.1f} %",
            f"{row['present_s']:+.0f}",
            f"{row['past_s']:+.0f}",
            f"{row['stock']:.3f}",
        )
        for row in owed
    ]
    heads = ("GROUP", "WORK", "ENTITLED", "GOT", "POINTS", "TARGET", "OWED S", "PAST S", "STOCK")
    little = "too little use to judge, " if owed[0]["little_use"] else ""
    return f"{text}\n\nshare_rule {owed[0]['rule']}; {little}{since}:\n{table(heads, accounts)}"


def show_exits(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return exits as text, from rows of `ports.Exits.listing`."""
    parts = []
    for row in rows:
        state = "on" if row.get("enabled", True) else "off"
        hooks = ", ".join(row.get("hooks", ()))
        parts.append(f"{row['name']} [{state}] {hooks}".rstrip())
        if row.get("doc"):
            parts.append(f"  {str(row['doc']).splitlines()[0]}")
        settings = row.get("settings") or {}
        for name, value in settings.items():
            doc = f"    # {value['doc']}" if isinstance(value, dict) and value.get("doc") else ""
            parts.append(f"  {name} = {value.get('value') if isinstance(value, dict) else value}{doc}")
        parts += [f"  left out: {row['left_out']}"] if row.get("left_out") else []
        calls, failures = counted(row.get("calls", 0), "time"), counted(row.get("failures", 0), "failure")
        parts.append(f"  called {calls}, {failures}")
    return "\n".join(parts) if parts else "no exits"


def show_listed(
    settings: Settings, kind: SettingsObject[Any], names: Sequence[str] = (),
    found: Mapping[str, tuple[str, str]] | None = None,
) -> str:  # fmt: skip
    """Return objects declared by a feature as text; ``found``: by name, words beside it and a line below."""
    parts = []
    for node in _chosen(kind.all(settings), names):
        beside, below = (found or {}).get(node.name, ("", ""))
        given = " ".join(
            f"{path}={write(info, value)}" for path, info, value in items(node) if value is not None
        )
        parts += [f"{node.name} {beside}".rstrip(), f"  {given}", *([f"  {below}"] if below else [])]
    return "\n".join(parts) if parts else f"no {kind.many}"


# ---------------------------------------------------------------- all of it


def show_all(settings: Settings) -> str:
    """Return all settings as text, without states: it is the same after ``snap`` into a new home."""
    queues = (
        _queue(queue, queue.name, "STARTED" if queue.started else "STOPPED")
        for queue in settings.queues.values()
    )
    exits = []
    for one in settings.exits.values():
        values = "".join(f" {name}={value}" for name, value in one.values.items())
        exits.append(f"  {one.name} {'enabled' if one.enabled else 'disabled'} budget={one.budget}ms{values}")
    parts = [
        show_parameters(settings),
        show_machine(settings),
        *(_titled(words.title, show_feature(settings, kind)) for kind, words in registry.switched()),
        show_managers(settings),
        _titled("Queues", "\n\n".join(queues) or "no queues"),
        _titled("Complexes", show_complex(settings)),
        _titled("Groups", show_groups(settings)),
        *(_titled(words.title, show_listed(settings, kind)) for kind, words in registry.listed()),
        _titled("Exits", "\n".join(exits) or "  no exit has settings of its own"),
        show_shifts.show_calendar(settings),
        _titled("Shifts", show_shifts.shift_settings(settings)),
    ]
    return "\n\n".join(parts)


_BY_SETTINGS: dict[str, Callable[[Settings], str]] = {
    "all": show_all, "parameters": show_parameters, "managers": show_managers,
    "limits_supported": lambda settings: limits_supported(), "sched_factor": show_sched_factor,
    "machine": show_machine, "global": show_global,
}  # fmt: skip
_NAMED = {"queue": show_queue, "complex": show_complex, "groups": show_groups}


def show_settings(what: str, settings: Settings, names: Sequence[str] = ()) -> str:
    """Return the display of ``show WHAT`` from settings alone. Raises KeyError if that needs the daemon."""
    for kind, _ in registry.listed():
        if kind.many == what:
            return show_listed(settings, kind, names)
    for kind, _ in registry.switched():
        if kind.head == what:
            return show_feature(settings, kind)
    return _NAMED[what](settings, names) if what in _NAMED else _BY_SETTINGS[what](settings)
