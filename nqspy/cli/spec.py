"""The options of the user commands, one table each: read by the fast parser, by the help and by completion.

A row is ``(flags, target, kind, metavar, help)``. Kinds: ``on``/``off`` take no value and set the target;
``note`` and ``note_value`` keep what means nothing today as an attribute of the request; ``time``, ``size``,
``count`` are limits of what is asked for; ``nothing`` is accepted, as there is nothing to do for it;
``refused`` and ``refused_value`` are refused by name, the target says what is not offered; the rest name a
value that the command reads itself. The tables are constants, so that loading them costs next to nothing.
Options that every room knows are declared in `model.options`; `rows` makes their rows.
"""

from nqspy.model.options import OPTIONS

Row = tuple[tuple[str, ...], str, str, str, str]
Table = tuple[Row, ...]

WITHOUT_VALUE = (
    "on", "off", "note", "export", "deletion", "nothing", "refused", "slurm_on", "slurm_optional",
    "slurm_refused_on",
)  # fmt: skip
"""Kinds of options that take no value. (``deletion`` takes one where a folder follows: PBS's ``-d PATH``.)"""

HOME: Row = (("--home",), "home", "text", "DIR", "home of the installation (else NQSPY_HOME)")
HELP: Row = (("--help",), "help", "on", "", "show this message")
DIALECT: Row = (
    ("--dialect",),
    "dialect",
    "dialect",
    "nqs|pbs|slurm",
    "read clashing letters so (else NQSPY_DIALECT)",
)

_OF_UNIT = {
    "name": ("text", "TEXT"), "flag": ("on", ""), "time": ("time", "TIME"), "size": ("size", "SIZE"),
    "count": ("count", "N"),
}  # fmt: skip
"""Kind and metavar of a declared option by its unit."""


def rows(dialect: str) -> Table:
    """Return the rows of the options that declare flags of this dialect (``qsub``: of every one)."""
    made: list[Row] = []
    for option in OPTIONS:
        if dialect in option.flags:
            kind, metavar = _OF_UNIT[option.unit]
            target = option.path.removeprefix("ask/")
            made.append((option.flags[dialect], target, kind, option.metavar or metavar, option.help))
    return tuple(made)


OWN: Table = (
    (("--list",), "list", "text", "FILE", "submit a list: a line is options, script, arguments; all or none"),
    (("--after",), "", "after", "ID[:ok|any|fail|start|each]", "start only after that request; repeatable"),
    *rows("qsub"),
    (("--key",), "key", "text", "TEXT", "the same key again gives the same request"),
    (("--dry-run",), "dry_run", "on", "", "check and route only, submit nothing"),
    (("--wait",), "wait", "on", "", "return when it has ended, with its exit status"),
    (("--json",), "json", "on", "", "answer as JSON"),
    (("--gpus",), "consumables/gpus", "count", "N", "GPUs, as -l gpus=N"),
    (("--array",), "", "array", "RANGE", "array of these indices: 1-1000:2%50, 1-10,15,20-30:5"),
    DIALECT,
    HOME,
    HELP,
)  # fmt: skip
"""Options of ours, the same in every dialect."""

_OF_NQS: Table = (
    *rows("nqs"),
    (("-ln",), "nice", "nice", "N", "nice increment"),
    (("-la",), "", "attribute", "TEXT", "attribute that the site's exits may look at"),
    (("-kj",), "keep_joblog", "note", "", "keep the job log in the home folder"),
    (("-mr",), "mail.rerun", "on", "", "mail when it is run again"),
    (("-mt",), "mail.transfer", "on", "", "mail when it is moved"),
    (("-bb",), "broadcast_begin", "note", "", "broadcast at begin (noted)"),
    (("-be",), "broadcast_end", "note", "", "broadcast at end (noted)"),
    (("-L",), "security_level", "note_value", "LEVEL", "security level (noted)"),
    (("-lq",), "quickfile_process", "note_value", "SIZE", "quick file space of a process (noted)"),
    (("-lQ",), "quickfile", "note_value", "SIZE", "quick file space (noted)"),
    (("-lr",), "disk", "note_value", "DIR,SIZE", "disk space reservation (noted)"),
    (("-lU",), "tapes", "note_value", "N", "tape drives (noted)"),
    (("-lUa", "-lUb", "-lUc", "-lUd", "-lUe", "-lUf", "-lUg", "-lUh"), "tapes", "tapes", "N",
     "tape drives of one type (noted)"),
)  # fmt: skip
"""Letters of NQS that mean nothing else in PBS."""

QSUB_NQS: Table = (
    *_OF_NQS,
    (("-q",), "queue", "queue", "QUEUE", "queue to submit to (else the default queue)"),
    (("-r",), "name", "name_or_rerun", "NAME", "name of the request; y or n: rerunnable (PBS)"),
    (("-N",), "name", "name", "NAME", "name of the request"),
    (("-A",), "account", "text", "GROUP", "group or account that is charged"),
    (("-a",), "eligible", "date", "DATE", "start not before, e.g. '23:00', 'noon tomorrow', 2026-03-02"),
    (("-h",), "held", "on", "", "hold the request"),
    (("-p",), "priority", "priority", "N", "priority among your own requests, -1024 to 1023"),
    (("-l",), "", "resources", "NAME=VALUE,...", "walltime, cput, mem, ncpus, pes, mpp_p, needs, ..."),
    (("-o",), "stdout", "path", "PATH", "file or folder for standard output"),
    (("-e",), "stderr", "path", "PATH", "file or folder for standard error"),
    (("-eo",), "output.join", "on", "", "standard error into the file of standard output"),
    (("-j",), "joblog", "join_or_joblog", "oe|eo|n|PATH", "join the outputs; a path: file of the job log"),
    (("-J",), "joblog", "array_or_joblog", "RANGE|m|y|n", "array of these indices; m, y, n: the job log"),
    (("-ko",), "output.keep_stdout", "on", "", "keep standard output in the home folder"),
    (("-ke",), "output.keep_stderr", "on", "", "keep standard error in the home folder"),
    (("-k",), "", "keep", "LETTERS", "keep: o, e; d: write in place; n: none"),
    (("-ro",), "output.direct_stdout", "on", "", "write standard output in place while running"),
    (("-re",), "output.direct_stderr", "on", "", "write standard error in place while running"),
    (("-mb",), "mail.begin", "on", "", "mail when the request begins"),
    (("-me",), "mail.end", "on", "", "mail when it ends"),
    (("-m",), "", "mail_letters", "LETTERS", "mail at a(bort), b(egin), e(nd); n: never"),
    (("-mu", "-M"), "mail.to", "mail_to", "USER,...", "who gets the mail"),
    (("-s", "-S"), "shell", "shell", "PATH", "shell that reads the script"),
    (("-x", "-V"), "", "export", "", "export the whole environment"),
    (("-v",), "", "variables", "NAME[=VALUE],...", "export these variables"),
    (("-u",), "user", "user", "USER", "run as another user (managers)"),
    (("-nr",), "rerunnable", "off", "", "not to be run again"),
    (("-nc",), "no_checkpoint", "note", "", "not to be checkpointed (noted)"),
    (("-c",), "checkpoint", "checkpoint", "TEXT", "checkpoint interval or account (noted)"),
    (("-C",), "compartment", "prefix_or_note", "TEXT", "compartments (noted); PBS: prefix of directives"),
    (("-P",), "project", "note_value", "NAME", "project (noted)"),
    (("-R",), "remove", "removal", "LETTERS", "remove output files at the end: o, e (PBS)"),
    (("-Rf",), "restart_file", "note_value", "TEXT", "restart (noted)"),
    (("-d",), "delete_script", "deletion", "", "delete the script once submitted; PBS: folder to start in"),
    (("-z",), "silent", "on", "", "no sentence about the submission; PBS: no identifier"),
    *OWN,
)  # fmt: skip
"""``qsub`` where the dialect is NQS's for sure, with what does not clash of PBS's."""

QSUB: Table = (
    *QSUB_NQS,
    (("-I",), "interactive", "on", "", "a session at this terminal (PBS)"),
    (("-W",), "", "wishes", "NAME=VALUE,...", "depend=, block=true, umask=, max_run_subjobs= (PBS)"),
    (("-t",), "", "array", "RANGE", "array of these indices (Torque)"),
    (("-w",), "start_in", "folder", "PATH", "folder to start in (PBS)"),
    (("-n",), "whole_nodes", "note", "", "whole nodes (PBS, noted)"),
    (("-f",), "", "nothing", "", "nothing: qsub never forks (PBS)"),
    (("-X",), "X forwarding", "refused", "", "X forwarding: refused (PBS)"),
    (("-G",), "a graphical session", "refused", "", "a graphical session: refused (PBS)"),
    (("-b",), "a time limit for reaching the server", "refused_value", "SECONDS", "refused (PBS)"),
    (("-D",), "a root folder for the job", "refused_value", "PATH", "refused (PBS)"),
    (("-T",), "a prologue of one's own", "refused_value", "NAME", "refused (PBS)"),
    *rows("pbs"),
)  # fmt: skip
"""``qsub`` while nothing has decided on a dialect: both."""

QSUB_PBS: Table = (
    (("-a",), "eligible", "date", "[[CC]YY]MMDDhhmm[.SS]", "start not before"),
    (("-A",), "account", "text", "TEXT", "account that is charged"),
    (("-c",), "checkpoint", "checkpoint", "n|s|c[=MIN]|w[=MIN]|u", "wish for checkpoints (noted)"),
    (("-C",), "compartment", "prefix_or_note", "PREFIX", "what directives begin with; empty: none are read"),
    (("-d", "-w"), "start_in", "folder", "PATH", "folder to start in"),
    (("-e",), "stderr", "path", "[HOST:]PATH", "file or folder for standard error"),
    (("-f",), "", "nothing", "", "nothing: qsub never forks"),
    (("-h",), "held", "on", "", "hold the request"),
    (("-I",), "interactive", "on", "", "a session at this terminal"),
    (("-j",), "joblog", "join_or_joblog", "oe|eo|n", "join the outputs"),
    (("-J", "-t"), "", "array", "RANGE", "array of these indices: 1-1000:2%50, 1-10,15,20-30:5"),
    (("-k",), "", "keep", "LETTERS", "keep in the home folder: o, e; d: write in place; n: none"),
    (("-l",), "", "resources", "NAME=VALUE,...", "resources: select, nodes, walltime, mem, ncpus, ..."),
    (("-m",), "", "mail_letters", "LETTERS", "mail at a(bort), b(egin), e(nd); n: never"),
    (("-M", "-mu"), "mail.to", "mail_to", "USER,...", "who gets the mail"),
    (("-n",), "whole_nodes", "note", "", "whole nodes (noted)"),
    (("-N",), "name", "name", "NAME", "name of the request"),
    (("-o",), "stdout", "path", "[HOST:]PATH", "file or folder for standard output"),
    (("-p",), "priority", "priority", "N", "priority among your own requests, -1024 to 1023"),
    (("-P",), "project", "note_value", "NAME", "project (noted)"),
    (("-q",), "queue", "queue", "QUEUE", "queue to submit to (else the default queue)"),
    (("-r",), "rerunnable", "name_or_rerun", "y|n", "whether it may run again"),
    (("-R",), "remove", "removal", "LETTERS", "remove output files at the end: o, e"),
    (("-S", "-s"), "shell", "shell", "PATH", "shell that reads the script"),
    (("-u",), "user", "user", "USER", "run as another user (managers)"),
    (("-v",), "", "variables", "NAME[=VALUE],...", "export these variables"),
    (("-V",), "", "export", "", "export the whole environment"),
    (("-W",), "", "wishes", "NAME=VALUE,...", "depend=, block=true, umask=, max_run_subjobs="),
    (("-z",), "silent", "on", "", "do not print the identifier"),
    (("-b",), "a time limit for reaching the server", "refused_value", "SECONDS", "refused"),
    (("-D",), "a root folder for the job", "refused_value", "PATH", "refused"),
    (("-G",), "a graphical session", "refused", "", "refused"),
    (("-T",), "a prologue of one's own", "refused_value", "NAME", "refused"),
    (("-x",), "a session without a shell (-V exports the environment)", "refused", "", "refused"),
    (("-X",), "X forwarding", "refused", "", "refused"),
    *rows("pbs"),
    *_OF_NQS,
    *OWN,
)  # fmt: skip
"""``qsub`` where the dialect is PBS's for sure: each letter as POSIX, OpenPBS and Torque have it."""

QSTAT: Table = (
    (("-f",), "full", "on", "", "everything about each request"),
    (("-F",), "format", "text", "json|dsv", "everything, in this format"),
    (("-D",), "delimiter", "text", "TEXT", "what stands between values with -F dsv (else |)"),
    (("-a",), "alternate", "on", "", "all requests, in PBS's second table"),
    (("-i",), "alternate", "on", "", "those that wait or are held, likewise"),
    (("-r",), "alternate", "on", "", "those that run or are suspended, likewise"),
    (("-H",), "alternate", "on", "", "those that have ended, likewise"),
    (("-u",), "user", "text", "USER,...", "those of these users, likewise"),
    (("-n",), "alternate", "on", "", "with the hosts of each, likewise"),
    (("-s",), "alternate", "on", "", "with why each waits, likewise"),
    (("-T",), "alternate", "on", "", "with the estimated start of each, likewise"),
    (("-G",), "alternate", "on", "", "memory in gigabytes, likewise"),
    (("-M",), "alternate", "on", "", "memory in megawords, likewise"),
    (("-1",), "one_line", "on", "", "-n, -s: on the line of the request; -f: no line is folded"),
    (("-w",), "wide", "on", "", "wide columns; -f: no line is folded"),
    (("-x",), "history", "on", "", "ended requests too"),
    (("-E",), "sorted", "on", "", "named requests in the order of their numbers"),
    (("-t",), "expand", "on", "", "arrays with all their indices"),
    (("-J",), "arrays", "on", "", "arrays alone"),
    (("-Q",), "queues", "on", "", "table of queues; -f: everything about each"),
    (("-q",), "queue_limits", "on", "", "queues with their limits"),
    (("-B",), "server", "on", "", "one line about the server; -f: everything about it"),
    (("-b",), "batch", "on", "", "summary of batch queues"),
    (("-p",), "pipes", "on", "", "summary of pipe queues; PBS: how much of each request is done"),
    (("-m",), "mpp", "on", "", "batch queues with their PEs"),
    (("-c",), "complexes", "on", "", "complexes and their queues"),
    (("-l",), "limits", "on", "", "limits of batch queues"),
    (("--json",), "json", "on", "", "requests as a JSON array"),
    (("--queue",), "queue", "text", "QUEUE", "only requests of this queue"),
    (("--user",), "user", "text", "USER", "only requests of this user"),
    (("--state",), "state", "text", "STATE", "only in this state: queued, running, held, ..."),
    (("--ended",), "ended", "on", "", "only those that have ended"),
    (("--limit",), "limit", "text", "N", "of what has ended the last N (1000), or unlimited"),
    (
        ("--since",),
        "since",
        "text",
        "T",
        "only what ended since: 2026-03-02T21:00, 21:00, 9h (before now)",
    ),
    (("--why",), "why", "text", "ID", "why a request waits, or what ended it"),
    (("--eta",), "eta", "on", "", "when those that wait start: at the latest, and probably"),
    (("--graph",), "graph", "on", "", "which requests wait for which, as a tree"),
    DIALECT,
    HOME,
    HELP,
)

QSELECT: Table = (
    (("-a",), "", "text", "[OP]DATE", "date before which they may not start"),
    (("-A",), "", "text", "ACCOUNT", "account"),
    (("-c",), "", "text", "[OP]INTERVAL", "checkpoint interval: n, s, c, c=MINUTES, u"),
    (("-h",), "", "text", "LETTERS", "just these holds: u, o, s; n: none"),
    (("-l",), "", "text", "NAME OP VALUE,...", "what they ask for, e.g. mem.ge.1gb,ncpus.eq.2"),
    (("-N",), "", "text", "NAME", "name"),
    (("-p",), "", "text", "[OP]PRIORITY", "priority"),
    (("-P",), "", "text", "PROJECT", "project"),
    (("-q",), "", "text", "QUEUE", "queue, @SERVER or QUEUE@SERVER"),
    (("-r",), "", "text", "y|n", "whether they may be run again"),
    (("-s",), "", "text", "[OP]STATES", "letters of their states, e.g. QR"),
    (("-t",), "", "text", "TIME[OP]DATE", "a, c, e, m, q or s: the time meant, e.g. s.gt.09251200"),
    (("-u",), "", "text", "USER,...", "owners"),
    (("-H",), "letters", "on", "", "those that have ended"),
    (("-J",), "letters", "on", "", "arrays"),
    (("-T",), "letters", "on", "", "the requests of arrays each for itself"),
    (("-x",), "letters", "on", "", "those that have ended too"),
    HOME,
    HELP,
)

PBSNODES: Table = (
    (("-a",), "all", "on", "", "all hosts that run requests"),
    (("-v",), "virtual", "on", "", "virtual nodes: here each host is one"),
    (("-l",), "letters", "on", "", "those that are out of use"),
    (("-F",), "format", "text", "json|dsv", "in this format"),
    (("-D",), "delimiter", "text", "TEXT", "what stands between values with -F dsv (else |)"),
    HOME,
    HELP,
)

QDEL: Table = (
    (("-k",), "kill", "on", "", "kill a running request (NQS dialect)"),
    (("-u",), "owner", "text", "USER", "requests of this user (managers and operators)"),
    (("-W",), "how", "text", "force|suppress_email[=N]",
     "kill at once; so many mails (none) about it at most"),
    (("-x",), "history", "on", "", "one that has ended is no failure; its record stays"),
    (("--all",), "all", "on", "", "all your requests that have not ended"),
    (("--name",), "name", "text", "PATTERN", "only of this name, e.g. 'sim*'"),
    (("--state",), "state", "text", "STATE", "only in this state: queued, running, held, ..."),
    (("--cascade",), "cascade", "on", "", "what waits for them, directly or not, as well"),
    (("--yes",), "yes", "on", "", "ask nothing back"),
    DIALECT,
    HOME,
    HELP,
)  # fmt: skip

QHOLD: Table = (
    (("-h",), "letters", "text", "LETTERS", "holds: u (user), o (operator), s (system); n: none"), HOME, HELP,
)  # fmt: skip
QRLS: Table = QHOLD
QMOVE: Table = (HOME, HELP)

QALTER: Table = (
    (("-a",), "eligible", "date", "DATE", "start not before"),
    (("-A",), "account", "text", "GROUP", "group or account that is charged"),
    (("-c",), "checkpoint", "checkpoint", "TEXT", "checkpoint interval (noted)"),
    (("-e",), "stderr", "path", "PATH", "file or folder for standard error"),
    (("-h",), "holds", "text", "LETTERS", "the holds it has from now on: letters of u, o, s; n: none"),
    (("-j",), "", "join_or_joblog", "oe|eo|n", "join the outputs"),
    (("-k",), "", "keep", "LETTERS", "keep in the home folder: o, e; n: none"),
    (("-l",), "", "resources", "NAME=VALUE,...", "resources, as of qsub; select= replaces the selection"),
    (("-m",), "", "mail_letters", "LETTERS", "mail at a(bort), b(egin), e(nd); n: never"),
    (("-M",), "mail.to", "mail_to", "USER,...", "who gets the mail"),
    (("-N",), "name", "name", "NAME", "name of the request"),
    (("-o",), "stdout", "path", "PATH", "file or folder for standard output"),
    (("-p",), "priority", "priority", "N", "priority among your own requests, -1024 to 1023"),
    (("-P",), "project", "note_value", "NAME", "project (noted)"),
    (("-r",), "name", "name_or_rerun", "y|n", "whether it may be run again"),
    (("-S",), "shell", "shell", "PATH", "shell that reads the script"),
    (("-u",), "owner", "text", "USER", "its owner, who stays the same"),
    (("-W",), "", "wishes", "NAME=VALUE,...", "max_run_subjobs=N (indices at a time, 0: any), umask="),
    *rows("qalter"),
    HOME,
    HELP,
)
FORCE: Row = (("-W",), "how", "text", "force", "force: kill at once")
QRERUN: Table = (FORCE, HOME, HELP)
QSIG: Table = (
    (("-s",), "signal", "text", "SIGNAL", "name or number (TERM), 0: only look; suspend, resume"), HOME, HELP,
)  # fmt: skip
QMSG: Table = (
    (("-E", "-e"), "stderr", "on", "", "into its standard error (default)"),
    (("-O", "-o"), "stdout", "on", "", "into its standard output"),
    (("-j",), "joblog", "on", "", "into its job log (not offered)"),
    HOME,
    HELP,
)
QWAIT: Table = (
    (("--all",), "all", "on", "", "for all your requests that have not ended"),
    (("--name",), "name", "text", "PATTERN", "for those of this name, e.g. 'sim*'"),
    (("--any",), "any", "on", "", "until the first of them has ended; prints its identifier"),
    (("--timeout",), "timeout", "time", "TIME", "at most this long; exit status 124 then"),
    HOME,
    HELP,
)
QORDER: Table = (HOME, HELP)
QCHKPNT: Table = (HOME, HELP)
QLIMIT: Table = ((("-v",), "verbose", "on", "", "how each is kept, in a sentence"), HOME, HELP)
QPING: Table = (HOME, HELP)

QCAT: Table = (
    (("-o",), "stdout", "on", "", "standard output (default)"),
    (("-e",), "stderr", "on", "", "standard error"),
    (("-f",), "follow", "on", "", "go on until the request has ended"),
    (
        ("--attempt",),
        "attempt",
        "text",
        "N",
        "what attempt N of a request that ran again has written",
    ),
    HOME,
    HELP,
)

GANGPARMS: Table = (
    (("--json",), "json", "on", "", "data instead of text"),
    HOME,
    HELP,
)

MPPRUN: Table = (
    (("-n",), "pes", "sizes", "PES", "PEs that it runs on (1); several will do: MIN-MAX, or A,B,C"),
    (("-l",), "units", "text", "NAME=N,...", "units of consumables that it holds: barrier=1"),
    (("-class", "--class"), "job_class", "text", "CLASS",
     "its job class (interactive, in a batch request production, if the site has it)"),
    (("-debug", "--debug"), "debug", "on", "", "as -class benchmark"),
    (("-t",), "wall", "time", "LIMIT", "end it after this time on its PEs; exit status 124 then"),
    (("-T",), "best_guess", "time", "BEST_GUESS", "how long it will run, as you think"),
    (("--contract",), "contract", "on", "", "start it in a shorter hole too: it is ended where that ends"),
    HOME,
    HELP,
)  # fmt: skip

QMGR: Table = (
    (("-c",), "commands", "text", "CMD", "run this command; repeatable"),
    (("-n",), "check", "on", "", "parse and verify only"),
    (("--atomic",), "atomic", "on", "", "all commands or none"),
    (
        ("--replay",),
        "replay",
        "text",
        "TIME",
        "verify, plan: what FILE would have changed in the last 7d, say; no: not",
    ),
    (("--json",), "json", "on", "", "show as JSON"),
    HOME,
    HELP,
)

SUMMARIES = {
    "qsub": (
        "[OPTIONS] [SCRIPT [ARGS]...]",
        "Submit a request: a script, else standard input; behind -- a command.",
    ),
    "qstat": ("[OPTIONS] [ID|QUEUE]...", "Show requests, queues and why requests wait."),
    "qdel": ("[OPTIONS] [-SIGNAL] [ID|FROM-TO|PATTERN]...", "Delete requests, or send them a signal."),
    "qhold": ("[OPTIONS] ID...", "Hold waiting requests."),
    "qrls": ("[OPTIONS] ID...", "Release held requests."),
    "qmove": ("[OPTIONS] QUEUE ID...", "Move waiting requests into another queue."),
    "qalter": ("[OPTIONS] ID...", "Change what requests ask for."),
    "qrerun": ("[OPTIONS] ID...", "End running requests and queue them again."),
    "qsig": ("[OPTIONS] ID...", "Send a signal to running requests."),
    "qmsg": ("[OPTIONS] MESSAGE ID...", "Write a line into the output of running requests."),
    "qwait": ("[OPTIONS] [ID]...", "Return when requests have ended: 0 where all ended well."),
    "qorder": ("[OPTIONS] ID ID", "Have two waiting requests exchange their places."),
    "qchkpnt": ("[OPTIONS] ID...", "Not offered: requests are not checkpointed here."),
    "qlimit": ("[OPTIONS] [HOST]...", "Show the limits that a request may ask for."),
    "qping": ("[OPTIONS] [HOST]", "Say whether the daemon answers."),
    "qcat": ("[OPTIONS] ID", "Show the output of a request so far."),
    "gangparms": ("[CLASS|gang SETTING=VALUE...]", "Show or set the parameters of job classes."),
    "mpprun": ("[OPTIONS] PROGRAM [ARGS]...", "Run a parallel program on PEs, when its turn comes."),
    "qselect": ("[OPTIONS]", "List the requests that satisfy all that is asked for, an identifier a line."),
    "pbsnodes": ("[OPTIONS] [NODE]...", "Show the host that runs requests."),
    "qmgr": (
        "[OPTIONS] [verify|plan|apply] [FILE]",
        "Show and change the installation; without a file, ask for commands.",
    ),
}
"""How each command is called, and what it does in a sentence."""

TABLES = {
    "qsub": QSUB, "qstat": QSTAT, "qdel": QDEL, "qhold": QHOLD, "qrls": QRLS, "qmove": QMOVE, "qcat": QCAT,
    "qmgr": QMGR, "qalter": QALTER, "qrerun": QRERUN, "qsig": QSIG, "qmsg": QMSG, "qwait": QWAIT,
    "qorder": QORDER, "qchkpnt": QCHKPNT, "qlimit": QLIMIT, "qping": QPING,
    "qselect": QSELECT, "pbsnodes": PBSNODES, "mpprun": MPPRUN, "gangparms": GANGPARMS,
}  # fmt: skip
