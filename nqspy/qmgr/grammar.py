"""All commands as one table: keywords, what follows them, the role, a sentence, and the rule that reads the
rest. Spellings are the manual's (nqs.md 1.3, 1.4): the capitals always suffice as an abbreviation."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from nqspy.model import registry
from nqspy.model.ids import DAY
from nqspy.qmgr.attributes import SPELLING, SYNONYMS, settings_of
from nqspy.qmgr.cursor import Keyword

Who = Literal["owner", "manager", "operator", "submitter", "any"]


class Form(Struct, frozen=True):
    """Form of a command: keywords, ``usage`` of what follows, the ``rule`` that reads that, its sentence, the
    least role that may give it. ``kind``: the object of its settings; ``option``: a detail for the rule."""

    spelling: str
    usage: str
    rule: str
    doc: str
    who: Who = "manager"
    kind: str = ""
    option: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """Return the keywords of the form."""
        return tuple(self.spelling.lower().split())


_LISTED = [each.head for each, _ in registry.listed()]

VERBS = {
    "create": ("CReate", f"makes a queue, a complex, a group or a {' or a '.join(_LISTED)}"),
    "define": ("define", "makes a shift: the lines up to `end` are its commands"),
    "delete": ("DElete", "removes objects, names from lists, or requests"),
    "add": ("ADd", "adds names to a list"),
    "remove": ("REMove", "removes names from a list"),
    "set": ("SEt", "changes settings"),
    "enable": ("ENable", "opens a queue for submissions, or switches an exit on"),
    "disable": ("DIsable", "closes a queue for submissions, or switches an exit off"),
    "start": ("STArt", "starts the requests of a queue"),
    "stop": ("STOp", "starts no more requests of a queue; running ones go on"),
    "hold": ("HOld", "holds waiting requests"),
    "release": ("RELease", "releases holds"),
    "rerun": ("rerun", "ends started requests and queues them again"),
    "suspend": ("suspend", "stops the processes of started requests"),
    "resume": ("resume", "resumes suspended requests"),
    "move": ("MOVe", "moves waiting requests into another queue"),
    "modify": ("MODify", "changes what waiting requests ask for"),
    "schedule": ("schedule", "changes a request's place in its queue"),
    "abort": ("ABort", "ends running requests"),
    "purge": ("PUrge", "deletes all waiting requests of a queue"),
    "reload": ("reload", "loads the exits again, or applies changed files of queues.d"),
    "switch": ("switch", "puts a shift in force by hand"),
    "shutdown": ("SHUtdown", "stops the daemon"),
    "show": ("SHOw", "prints settings and states"),
    "snap": ("SNap", "writes the whole configuration as commands"),
    "help": ("HElp", "explains a command"),
    "exit": ("EXit", "leaves qmgr"),
    "quit": ("Quit", "leaves qmgr"),
}
"""Verbs: spelling and sentence."""

_SYNONYMS = SYNONYMS | {"destinations": "destination"}

_ATTRIBUTES = "ATTRIBUTE=VALUE ..."

_CREATE = (
    Form("CReate Batch_queue", f"NAME [PRiority=N] [{_ATTRIBUTES}]", "create",
         "a queue that runs requests; a new one is disabled and stopped", kind="queue", option="batch"),
    Form("CReate Pipe_queue", f"NAME [PRiority=N] [destination=(QUEUE, ...)] [{_ATTRIBUTES}]", "create",
         "a queue that passes requests to the first queue that accepts them", kind="queue", option="pipe"),
    Form("CReate Complex", f"NAME queues=(QUEUE, ...) [{_ATTRIBUTES}] | =(QUEUE, ...) NAME", "create",
         "a set of batch queues that share limits", kind="complex"),
    Form("CReate group", "NAME [parent=GROUP] [share=N] [members=(USER, ...)] [limit=N%]", "create",
         "a department: a node of the share tree; shares are weights among siblings", kind="group"),
    *(Form(f"CReate {each.head}", f"{words.usage} [{_ATTRIBUTES}]", "create", words.create, kind=each.head)
      for each, words in registry.listed()),
    Form("define shift", 'NAME when=("CRON", ...) [spill=leave|drain|suspend|requeue] [now]', "define_shift",
         "a shift: the lines that follow, up to `end`, run when it comes into force", kind="shift"),
)  # fmt: skip

_DELETE = tuple(
    Form(f"DElete {word}", "NAME", "delete", doc, kind=kind)
    for word, kind, doc in (
        ("Queue", "queue", "a queue that is stopped, disabled and empty"),
        ("Complex", "complex", "a complex; its queues stay"),
        ("group", "group", "a resource group"),
        ("shift", "shift", "a shift"),
        *((each.head, each.head, words.delete) for each, words in registry.listed()),
    )
)

_LISTS = (
    ("DEStination", "queue", "destinations"),
    ("users", "queue", "users"),
    ("groups", "queue", "groups"),
    ("queues", "complex", "queues"),
    ("members", "group", "members"),
    ("needs", "queue", "needs"),
)
_LIST_VERBS = {
    "ADd": "adds names to a list", "REMove": "removes names from a list",
    "DElete": "removes names from a list", "SEt": "sets a list",
}  # fmt: skip
_DOCUMENTED = ("ADd Users", "ADd Groups", "ADd Queues", "REMove Queues", "DElete Users", "DElete Groups")


def _list_forms() -> Iterator[Form]:
    for verb, does in _LIST_VERBS.items():
        for word, kind, path in _LISTS:
            capital = f"{verb} {word.capitalize()}"
            spelling = capital if capital in _DOCUMENTED else f"{verb} {word}"
            doc = f"{does}: {settings_of(kind)[path].doc}"
            yield Form(spelling, f"=(NAME, ...) {kind.upper()}", "change_list", doc, kind=kind, option=path)
        doc = "managers (m) and operators (o); root and the home's owner always are managers"
        yield Form(f"{verb} Managers", "=(USER:m, USER:o, ...)", "managers", doc)


def _attribute_forms() -> Iterator[Form]:
    listed = {path for _, _, path in _LISTS}.union(_LISTED)  # set domain is of domains, not of queues
    for name, info in settings_of("queue").items():
        if name not in listed:
            who: Who = "operator" if info.operator else "manager"
            short = SPELLING.get(name, name) if name != "memory_limit" else name  # m is managers here
            yield Form(f"SEt {short}", "=VALUE QUEUE", "set_attribute", info.doc, who, "queue", name)
    for name in ("corefile_limit", "data_limit", "stack_limit", "working_set_limit"):
        doc, path = settings_of("queue", "per_process")[name].doc, f"per_process/{name}"
        yield Form(f"SEt {SPELLING[name]}", "=SIZE QUEUE", "set_attribute", doc, "manager", "queue", path)


def _one(spelling: str, path: str, usage: str = "") -> Form:
    """Return the form of a command for one setting, with its sentence; ``usage``: words for its value."""
    kind, _, name = path.partition("/")
    info = settings_of(kind)[name]
    return Form(f"SEt {spelling}", usage or "|".join(info.words), "set_one", info.doc, kind=kind,
                option=name)  # fmt: skip


_SET = (
    Form("SEt Queue", f"QUEUE {_ATTRIBUTES} | {_ATTRIBUTES} QUEUE", "set_object", "attributes of a queue",
         kind="queue"),
    Form("SEt COMplex", f"COMPLEX {_ATTRIBUTES} | {_ATTRIBUTES} COMPLEX", "set_object",
         "members and common limits of a complex", kind="complex"),
    Form("SEt group", f"GROUP {_ATTRIBUTES}", "set_object", "share, parent, members and cap of a department",
         kind="group"),
    *(Form(f"SEt {each.head}", f"{each.head.upper()} {_ATTRIBUTES}", "set_object", words.set, kind=each.head)
      for each, words in registry.listed()),
    Form("SEt PER_Request", "LIMIT=(VALUE[, WARNING]) QUEUE", "set_branch",
         "the greatest value that a request of the queue may have", kind="queue", option="per_request"),
    Form("SEt PER_Process", "LIMIT=(VALUE[, WARNING]) QUEUE", "set_branch",
         "the greatest value for each process of a request", kind="queue", option="per_process"),
    Form("SEt REQuest", "ID ... prime", "prime",
         "at once, despite limits, and alone in its domain; taken back by schedule request ID system",
         "operator"),
    Form("SEt sched_factor", "share|cpu|memory|time N ...", "set_factors",
         "weights of the intra-queue priority, for queues that have none of their own", kind="sched_factor"),
    Form("SEt global", _ATTRIBUTES, "set_single",
         "limits over all queues, bounds of a pass, and the rule of the share term", kind="global"),
    Form("SEt machine", "pes=N|auto memory=SIZE|auto shape=XxYxZ|none pes_per_node=N offline=(PE, ...)"
         " foreign_scan=TIME|off",
         "set_single", "what there is to schedule, its shape, PEs that no request gets, foreign jobs",
         kind="machine"),
    Form("SEt usage", "half_life=TIME charge=cpu|pe_wall payback=PERCENT period=TIME", "set_single",
         "how use is charged and forgotten", kind="usage", option="of"),
    Form("SEt usage of group", "GROUP TIME | +TIME | -TIME", "correct_usage",
         "corrects the decayed use of a group and those below it by hand"),
    Form("SEt calendar", "[holidays=COUNTRY|none] [extra=(DATE, ...)] [workdays=(DATE, ...)]", "set_single",
         "days that count as Sundays when shifts fire", kind="calendar"),
    *(
        Form(f"{verb} calendar", "extra=(DATE, ...) | workdays=(DATE, ...)", "change_dates", doc,
             kind="calendar")
        for verb, doc in (
            ("ADd", "further days that count as Sundays, or holidays that are worked"),
            ("REMove", "removes days from the calendar"),
        )
    ),
    Form("SEt decider", "memory=SIZE", "set_single",
         "memory of the user-exit process", kind="decider"),
    Form("SEt server", _ATTRIBUTES, "set_single", "name, zone and general settings", kind="server"),
    Form("SEt backup", "every=TIME|off keep=N", "set_single", "when backups are made, and how many are kept",
         kind="backup"),
    Form("SEt history", "keep=TIME|unlimited size=SIZE|unlimited reports=TIME|unlimited", "set_single",
         "how long events and ended requests stay in the database, and night reports on the disk",
         kind="history"),
    Form("SEt timezone", "ZONE", "set_timezone", "zone of shifts and reports", kind="server",
         option="timezone"),
    _one("grace", "server/grace", "TIME"),
    Form("SEt SHell_strategy", "fixed=(PATH) | free | login | login_each", "shell_strategy",
         "shell of a request that names none", "owner", kind="server", option="shell_strategy"),
    Form("SEt MAIl", "COMMAND|none | command=TEXT sendmail=PATH smtp=HOST:PORT tls=none|starttls|implicit "
         "user=NAME|none password_file=PATH|none from=ADDRESS limit=N",
         "set_mail",
         "how mails are sent: one of three ways; how many a person gets within an hour", kind="mail"),
    _one("lost_request", "server/lost_request"),
    _one("output_clash", "server/output_clash"),
    _one("log_level", "server/log_level"),
    _one("dependency_failed", "server/dependency_failed"),
    _one("limit_hint", "server/limit_hint", "N|off"),
    _one("privacy", "server/privacy"),
    _one("DEFault Batch_request Queue", "default/queue", "QUEUE"),
    _one("DEFault Batch_request PRiority", "default/priority", "N"),
    _one("DEFault Queue", "default/queue", "=QUEUE"),
    _one("DEFault cpu_limit", "default/cpu_limit", "=TIME"),
    _one("DEFault PRiority", "default/priority", "=N"),
    _one("DEFault wall_limit", "default/wall_limit", "=TIME"),
    _one("DEFault rerun_output", "default/rerun_output"),
    Form("SEt NO_Default Batch_request Queue", "", "no_default_queue", "no default queue any more",
         kind="default", option="queue"),
    _one("DEFault Mpprun Queue", "default/mpprun_queue", "QUEUE"),
    Form("SEt NO_Default Mpprun Queue", "", "no_default_queue", "no queue for mpprun any more",
         kind="default", option="mpprun_queue"),
    Form("SEt NO_Access", "QUEUE", "access", "no user may submit until users are added", kind="queue",
         option="none"),
    Form("SEt UNrestricted_access", "QUEUE", "access", "all users may submit", kind="queue", option="all"),
    Form("SEt shift",
         'automatic | NAME [when=("CRON", ...)] [spill=leave|drain|suspend|requeue] [now]', "set_shift",
         "back to the calendar; or other settings of a shift", "operator", "shift"),
    Form("SEt exit", "NAME SETTING=VALUE ...", "set_exit",
         "settings of a user exit, and the CPU time one call may take (budget)", kind="exit"),
    *(Form(f"SEt {each.head}", f"{'[on|off] ' * ('enabled' in each.known)}[{_ATTRIBUTES}]", "set_single",
           words.set, kind=each.head)
      for each, words in registry.switched()),
)  # fmt: skip

_GATES = (
    Form("ENable Queue", "QUEUE ...|all", "gate", "it accepts submissions", "operator", "queue", "enabled"),
    Form("DIsable Queue", "QUEUE ...|all", "gate", "it refuses submissions", "operator", "queue", "enabled"),
    Form("STArt Queue", "QUEUE ...|all", "gate", "its requests start", "operator", "queue", "started"),
    Form("STOp Queue", "QUEUE ...|all", "gate", "nothing more is started; running requests go on",
         "operator", "queue", "started"),
    Form("ENable exit", "NAME", "gate", "the exit is called", "operator", "exit", "enabled"),
    Form("DIsable exit", "NAME", "gate", "the exit is not called", "operator", "exit", "enabled"),
)  # fmt: skip

_REQUESTS = (
    *(
        Form(f"{VERBS[verb][0]} Request", "ID ...", "on_requests", doc,
             "operator" if verb in ("suspend", "resume") else "submitter", option=verb)
        for verb, doc in (
            ("hold", "waiting requests do not start until they are released"),
            ("release", "releases holds"),
            ("delete", "waiting requests; started ones need abort request"),
            ("rerun", "ends started requests and queues them again"),
            ("suspend", "stops the processes of started requests; they keep their PEs, except jobs by class"),
            ("resume", "resumes suspended requests"),
            ("abort", "ends requests, running ones too"),
        )
    ),
    Form("MOVe Request", "=(ID, ...) QUEUE", "move", "moves waiting requests into another queue",
         "submitter"),
    Form("MOVe Queue", "QUEUE QUEUE", "move", "moves all waiting requests of one queue into another",
         "operator", option="queue"),
    Form("MODify Request", f"ID ... {_ATTRIBUTES}", "modify",
         "changes what waiting requests ask for, or their queue", "submitter"),
    Form("schedule Request", "ID ... first|next|now|system", "schedule",
         "head of its queue, ahead of all queues, at once despite limits, or by the rules again",
         "operator"),
    Form("ABort Queue", "QUEUE [SECONDS]", "abort_queue",
         "TERM, after 60 s (or SECONDS) KILL, to every running request of a queue", "operator"),
    Form("PUrge Queue", "QUEUE", "purge_queue", "deletes all waiting requests of a queue; running ones stay",
         "operator"),
)  # fmt: skip

_DAEMON = (
    Form("reload exits", "", "reload", "loads the exits again: all, or none if one is broken"),
    Form("reload queues", "", "reload",
         "applies changed files of queues.d: all, or none if one is wrong", option="queues"),
    Form("switch shift", "NAME [until=HH:MM]", "switch_shift",
         "puts a shift in force until its next firing, or until then", "operator"),
    Form("SHUtdown", "[leave|drain|requeue | SECONDS]", "shutdown",
         "stops the daemon; running requests go on (leave), are waited for, or queued again (SECONDS too)",
         "operator"),
    Form("SNap", "[FILE]", "snap", "writes the whole configuration as commands"),
    Form("HElp", "[COMMAND]", "client", "explains a command", "any", option="help"),
    Form("EXit", "", "client", "leaves qmgr", "any", option="exit"),
    Form("Quit", "", "client", "leaves qmgr", "any", option="quit"),
)  # fmt: skip

SHOWS = (
    {
        "ALl": "all settings",
        "Queue": "queues with their states",
        "LOng Queue": "queues with all their limits",
        "COmplex": "complexes with their limits",
        "PArameters": "defaults, global limits and weighting factors",
        "MAnagers": "managers and operators",
        "LImits_supported": "limits that can be set, and how they are enforced",
        "sched_factor": "weights of the intra-queue priority, with the bound of waiting times",
        "shares": "the share tree with entitlement and use",
        "shifts": "shifts, the one in force and the coming switches (--next 14d)",
        "calendar": "days that count as Sundays, and those that come (--next 365d)",
        "exits": "user exits, their settings and figures",
        "counters": "CPU use of the departments in this period, day and week",
        "groups": "the share tree as it is set",
        "machine": "PEs and memory, and how the PEs lie",
        "global": "limits over all queues",
    }
    | {each.head: words.show for each, words in registry.switched()}
    | {each.many: words.show for each, words in registry.listed()}
)
"""Objects of ``show``: spelling and sentence."""

AHEAD = ("shifts", "calendar")
"""Objects of ``show`` with coming instants: they have the option ``--next``."""

FARTHEST = 366 * DAY
"""Most time ahead (ms) of ``--next``."""

NAMED = ("queue", "complex", "groups", *(each.many for each, _ in registry.listed()))
"""Objects of ``show`` that can be shown by name."""

_SHOW = tuple(
    Form(f"SHOw {spelling}", "[--next TIME]" if what in AHEAD else "[NAME ...]" if what in NAMED else "",
         "show", doc, "any", option=what)
    for spelling, doc in SHOWS.items()
    for what in (spelling.lower().removeprefix("long "),)
)  # fmt: skip

FORMS: tuple[Form, ...] = (
    *_CREATE, *_DELETE, *_SET, *_list_forms(), *_attribute_forms(), *_GATES, *_REQUESTS, *_DAEMON, *_SHOW,
)  # fmt: skip
"""All commands."""

ABSENT = {
    ("set", "debug"): "the log shows events", ("set", "lifetime"): "requests do not expire",
    ("set", "log_file"): "the log is in the home's log folder",
    ("set", "network"): "there is no network of queues", ("set", "pipe_client"): "the daemon routes itself",
    ("set", "fair_share"): "set the share weight with set sched_factor share",
    ("set", "job_log"): "nqspy events shows the journal", ("set", "accounting"): "use is always charged",
    ("set", "checkpoint_directory"): "there are no checkpoints",
    ("set", "sequence_number"): "identifiers are never used again",
    ("lock", "local_daemon"): "the daemon is not pinned in memory",
    ("unlock", "local_daemon"): "the daemon is not pinned in memory",
    ("create", "device"): "there are no printers", ("create", "device_queue"): "there are no printers",
}  # fmt: skip
"""Commands of old NQS that have no meaning here: why, in a few words."""


@dataclass(slots=True)
class Node:
    """A node in the tree of keywords: the words that may follow, and the form that is complete here."""

    keywords: dict[str, Keyword] = field(default_factory=dict)
    below: dict[str, "Node"] = field(default_factory=dict)
    form: Form | None = None


def build(forms: tuple[Form, ...] = FORMS) -> Node:
    """Return the tree of keywords of all forms."""
    root = Node()
    for form in forms:
        node = root
        for spelling in form.spelling.split():
            keyword = Keyword.spelt(spelling)
            node.keywords.setdefault(keyword.name, keyword)
            node = node.below.setdefault(keyword.name, Node())
        node.form = form
    _add_synonyms(root)
    return root


def _add_synonyms(node: Node) -> None:
    for other, name in _SYNONYMS.items():
        if name in node.keywords and other not in node.keywords:
            node.keywords[other] = Keyword.spelt(SPELLING.get(other, other), name)
    for below in node.below.values():
        _add_synonyms(below)


TREE = build()
"""The tree of keywords."""
