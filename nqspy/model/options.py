"""The options of a request, each declared once: fields of `requests.Spec` and `requests.Ask` by path, with
the fields' defaults. ``modify request``, `qalter`, user exits, JSON, ``qstat -f``, the Python client, ``qsub
-l`` and long options derive from this list. For clients: it imports nothing."""


class Option:
    """An option. ``path``: its field below `Spec`; a limit of `Ask.others` by its qmgr path below ``ask``.
    ``unit`` as of `tree.Declared`, and ``date`` (an instant), ``path``, ``shape`` (an object); ``doc``: a
    sentence; ``low``, ``high``: bounds. ``when`` it can be changed: waiting, running (both) or never (empty);
    ``as_owner``: by callers that may run programs as its owner. Its names, empty where it has none:
    ``modify`` of qmgr (behind ``per_process/`` a limit of each process), ``python`` of `Client.submit`,
    ``shown`` of ``request`` and ``changes`` of ``changes()`` in user exits, ``json`` of ``qstat --json``
    (``rare``: only of requests that have it), ``pbs`` of ``qstat -f``, ``resources`` of ``-l``, ``flags`` by
    dialect (qsub means each) with ``metavar`` and ``help``."""

    __slots__ = (
        "as_owner", "changes", "doc", "flags", "help", "high", "json", "low", "metavar", "modify", "path",
        "pbs", "python", "rare", "resources", "shown", "unit", "when",
    )  # fmt: skip

    def __init__(
        self, path: str, unit: str, doc: str, *, low: int | None = None, high: int | None = None,
        when: str = "", as_owner: bool = False, modify: str = "", python: str = "", shown: str = "",
        changes: str = "", json: str = "", rare: bool = False, pbs: str = "",
        resources: tuple[str, ...] = (), flags: dict[str, tuple[str, ...]] | None = None, metavar: str = "",
        help: str = "",
    ) -> None:  # fmt: skip
        self.path, self.unit, self.doc, self.low, self.high = path, unit, doc, low, high
        self.when, self.as_owner, self.modify = when or ("waiting" if modify else ""), as_owner, modify
        self.python, self.shown, self.changes = python, shown, changes
        self.json, self.rare, self.pbs, self.resources = json, rare, pbs, resources
        self.flags, self.metavar, self.help = flags or {}, metavar, help or doc


OPTIONS = (
    Option("ask/cpu", "time", "CPU time of the request", modify="cpu_limit", python="cpu", shown="cpu",
           changes="cpu", json="requested/cpu_s", pbs="Resource_List/cput", resources=("cput",),
           flags={"nqs": ("-lT",)}),
    Option("ask/cpu_process", "time", "CPU time of each process", modify="per_process/cpu_limit",
           python="cpu_process", pbs="Resource_List/pcput", resources=("pcput", "p_mpp_t"),
           flags={"nqs": ("-lt",)}),
    Option("ask/wall", "time", "wall-clock time of the request", when="running", modify="wall_limit",
           python="wall", shown="wall", changes="wall", json="requested/wall_s", pbs="Resource_List/walltime",
           resources=("walltime", "mpp_t")),
    Option("ask/memory", "size", "memory of the request", modify="memory_limit", python="memory",
           shown="memory", changes="memory", json="requested/memory_bytes", pbs="Resource_List/mem",
           resources=("mem", "vmem"), flags={"nqs": ("-lM",)}),
    Option("ask/memory_process", "size", "memory of each process", modify="per_process/memory_limit",
           python="memory_process", pbs="Resource_List/pmem", resources=("pmem", "pvmem"),
           flags={"nqs": ("-lm",)}),
    Option("ask/pes", "count", "PEs of the request", modify="pe_limit", python="pes", shown="pes",
           changes="pes", json="requested/pes", pbs="Resource_List/ncpus",
           resources=("ncpus", "procs", "pes", "mpp_p"), flags={"nqs": ("-lP", "-lp")}, help="PEs"),
    Option("ask/needs", "names", "resources it needs, none: removes them", modify="needs", python="needs",
           json="requested/needs", pbs="Resource_List/needs", resources=("needs",)),
    Option("ask/consumables", "amounts", "units it asks for, none: removes them", modify="consumables",
           python="consumables", shown="consumables", json="requested/consumables"),
    Option("ask/per_request/process_limit", "count", "processes of the request", low=2,
           modify="process_limit", json="requested/processes", pbs="Resource_List/nproc",
           resources=("nproc",)),
    Option("ask/best_guess", "time", "run time that its owner expects", when="running",
           modify="best_guess", python="best_guess", json="requested/best_guess_s", rare=True,
           pbs="Resource_List/best_guess", resources=("best_guess",)),
    Option("ask/nice", "number", "nice value of the request", high=19, modify="nice", python="nice",
           pbs="Resource_List/nice", resources=("nice",)),
    Option("ask/per_process/corefile_limit", "size", "core file", flags={"nqs": ("-lc",)}),
    Option("ask/per_process/data_limit", "size", "data segment of each process", flags={"nqs": ("-ld",)}),
    Option("ask/per_process/permfile_limit", "size", "size of each permanent file",
           pbs="Resource_List/file", resources=("file",), flags={"nqs": ("-lf",)}),
    Option("ask/per_request/permfile_limit", "size", "permanent file space of the request",
           flags={"nqs": ("-lF",)}),
    Option("ask/per_process/stack_limit", "size", "stack of each process", flags={"nqs": ("-ls",)}),
    Option("ask/per_process/tempfile_limit", "size", "size of each temporary file", flags={"nqs": ("-lv",)}),
    Option("ask/per_request/tempfile_limit", "size", "temporary file space of the request",
           flags={"nqs": ("-lV",)}),
    Option("ask/per_process/working_set_limit", "size", "working set of each process",
           flags={"nqs": ("-lw",)}),
    Option("priority", "number", "rank among its owner's requests: higher goes first", low=-1024, high=1023,
           modify="priority", python="priority", shown="priority", changes="priority"),
    Option("name", "name", "name of the request", when="running", modify="name", python="name", shown="name",
           changes="name"),
    Option("account", "name", "account the request is charged to", modify="account", python="account",
           shown="account", changes="account"),
    Option("group", "name", "group the request is charged to", shown="group", changes="group"),
    Option("shell", "name", "shell that runs the script", as_owner=True, modify="shell", python="shell",
           changes="shell"),
    Option("rerunnable", "flag", "it may be run again", when="running", modify="rerunnable",
           python="rerunnable"),
    Option("contract", "flag", "it may start in a hole shorter than its wall limit", modify="contract",
           python="contract", flags={"qsub": ("--contract",)},
           help="start it in a shorter hole too: it is ended where that ends"),
    Option("job_class", "name", "its job class, where its queue goes by classes", when="running",
           modify="job_class", python="job_class", json="class", rare=True,
           flags={"qsub": ("--class",), "qalter": ("--class",)}, metavar="CLASS"),
    Option("eligible", "date", "not before this date (the forms of qsub -a), none: at once",
           modify="eligible", python="eligible", changes="date"),
    Option("held", "flag", "it is held", python="held", changes="hold"),
    Option("array/limit", "count", "most indices of the array that run at a time, 0: any",
           modify="array_limit"),
    Option("queue", "name", "the queue it waits in", modify="queue", python="queue", changes="queue"),
    Option("attributes", "names", "attributes that the site's exits can read", python="attributes",
           shown="attributes", changes="attributes"),
    Option("output/stdout", "path", "file or folder for standard output", as_owner=True, when="running",
           python="stdout", changes="output"),
    Option("output/stderr", "path", "file or folder for standard error", as_owner=True, when="running",
           python="stderr", changes="error"),
    Option("output/join", "flag", "standard error into the file of standard output", as_owner=True,
           when="waiting", python="join"),
    Option("umask", "number", "permissions that its files lack", as_owner=True, when="waiting"),
    Option("layout", "shape", "how its PEs are laid out", when="waiting"),
    Option("mold", "shape", "the numbers of PEs on which it may run", when="waiting"),
)  # fmt: skip

RESOURCE_NAMES = (
    *(name for option in OPTIONS for name in option.resources),
    "nodes", "select", "place", "software", "host", "vnode", "arch", "filesystems", "ppn", "mpiprocs",
    "ompthreads", "property",
)  # fmt: skip
"""Names of ``-l`` at every site; no consumable may have one of them."""
GPUS = ("gpus", "ngpus")
"""Other words for the consumable ``gpu``, unless a consumable has that name."""
_LONG = 5
"""Least length of names in which a typing error is recognised."""


def resource_named(name: str) -> str:
    """Return the name in `RESOURCE_NAMES` that equals ``name``, or differs by one typing error; else ""."""
    if name in RESOURCE_NAMES or name in GPUS:
        return name if name in RESOURCE_NAMES else ""
    for each in RESOURCE_NAMES:
        if len(each) >= _LONG and len(name) >= _LONG - 1 and _is_slip(name, each):
            return each
    return ""


def _is_slip(name: str, known: str) -> bool:
    """True if the names differ by one letter, or by two neighbours that changed places."""
    at = 0
    while at < min(len(name), len(known)) and name[at] == known[at]:
        at += 1
    rest, wanted = name[at:], known[at:]
    crossed = rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:]
    return crossed or rest[1:] == wanted[1:] or rest == wanted[1:] or rest[1:] == wanted
