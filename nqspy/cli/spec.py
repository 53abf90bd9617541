"""The options of the user commands, one table each: read by the fast parser, by the help and by completion.

A row is ``(flags, target, kind, metavar, help)``. Kinds: ``on``/``off`` take no value and set the target;
``note`` and ``note_value`` keep what means nothing today as an attribute of the request; ``time``, ``size``,
``count`` are limits of what is asked for; ``nothing`` is accepted, as there is nothing to do for it;
``refused`` and ``refused_value`` are refused by name, the target says what is not offered; the rest name a
value that the command reads itself. The tables are constants, so that loading them costs next to nothing.
Tables of commands that take options of requests stand in `request_tables`.
"""

Row = tuple[tuple[str, ...], str, str, str, str]
Table = tuple[Row, ...]

WITHOUT_VALUE = (
    "on", "off", "note", "export", "deletion", "nothing", "refused", "slurm_optional", "slurm_refused_on",
)  # fmt: skip
"""Kinds of options that take no value. (``deletion`` takes one where a folder follows: PBS's ``-d PATH``.)"""

HOME: Row = (("--home",), "home", "text", "DIR", "home of the installation (else NQSPY_HOME)")
HELP: Row = (("--help",), "help", "on", "", "show this message")
DIALECT: Row = (
    ("--dialect",), "dialect", "dialect", "nqs|pbs|slurm", "how to read letters (else NQSPY_DIALECT)",
)  # fmt: skip

_OF_COMMANDS: "dict[str, Table]" = {
    "qstat": (
        (("-f",), "full", "on", "", "everything about each request"),
        (("-F",), "format", "text", "json|dsv", "everything, in this format"),
        (("-D",), "delimiter", "text", "TEXT", "separator of values with -F dsv (else |)"),
        (("-a",), "alternate", "on", "", "all requests, in PBS's alternate table"),
        (("-i",), "alternate", "on", "", "waiting and held requests, same table"),
        (("-r",), "alternate", "on", "", "running and suspended requests, same table"),
        (("-H",), "alternate", "on", "", "ended requests, same table"),
        (("-u",), "user", "text", "USER,...", "requests of these users, same table"),
        (("-n",), "alternate", "on", "", "with the hosts of each, same table"),
        (("-s",), "alternate", "on", "", "with the reason why each waits, same table"),
        (("-T",), "alternate", "on", "", "with the estimated start of each, same table"),
        (("-G",), "alternate", "on", "", "memory in gigabytes, same table"),
        (("-M",), "alternate", "on", "", "memory in megawords, same table"),
        (("-1",), "one_line", "on", "", "-n, -s: on the line of the request; -f: no line is folded"),
        (("-w",), "wide", "on", "", "wide columns; -f: no line is folded"),
        (("-x",), "history", "on", "", "ended requests too"),
        (("-E",), "sorted", "on", "", "named requests in the order of their numbers"),
        (("-t",), "expand", "on", "", "arrays with all their indices"),
        (("-J",), "arrays", "on", "", "only arrays"),
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
        (("--limit",), "limit", "text", "N", "the last N ended requests (1000), or unlimited"),
        (("--since",), "since", "text", "T",
         "only requests that ended since: 2026-03-02T21:00, 21:00, 9h (before now)"),
        (("--why",), "why", "text", "ID", "why a request waits, or what ended it"),
        (("--eta",), "eta", "on", "", "latest and probable start of waiting requests"),
        (("--graph",), "graph", "on", "", "dependencies of requests, as a tree"),
        DIALECT,
    ),
    "qselect": (
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
        (("-T",), "letters", "on", "", "each index of arrays"),
        (("-x",), "letters", "on", "", "ended requests too"),
    ),
    "pbsnodes": (
        (("-a",), "all", "on", "", "all hosts that run requests"),
        (("-v",), "virtual", "on", "", "virtual nodes: here each host is one"),
        (("-l",), "letters", "on", "", "hosts out of use"),
        (("-F",), "format", "text", "json|dsv", "in this format"),
        (("-D",), "delimiter", "text", "TEXT", "separator of values with -F dsv (else |)"),
    ),
    "qdel": (
        (("-k",), "kill", "on", "", "kill a running request (NQS dialect)"),
        (("-u",), "owner", "text", "USER", "requests of this user (managers and operators)"),
        (("-W",), "how", "text", "force|suppress_email[=N]",
         "kill at once; send at most N mails (none)"),
        (("-x",), "history", "on", "", "ended requests are no failure; their records stay"),
        (("--all",), "all", "on", "", "all your requests that have not ended"),
        (("--name",), "name", "text", "PATTERN", "only of this name, e.g. 'sim*'"),
        (("--state",), "state", "text", "STATE", "only in this state: queued, running, held, ..."),
        (("--cascade",), "cascade", "on", "", "also requests that depend on them, directly or not"),
        (("--yes",), "yes", "on", "", "do not ask for confirmation"),
        DIALECT,
    ),
    "qhold": ((("-h",), "letters", "text", "LETTERS", "holds: u (user), o (operator), s (system); n: none"),),
    "qrerun": ((("-W",), "how", "text", "force", "force: kill at once"),),
    "qsig": ((("-s",), "signal", "text", "SIGNAL", "name or number (TERM), 0: only check; suspend, resume"),),
    "qmsg": (
        (("-E", "-e"), "stderr", "on", "", "into its standard error (default)"),
        (("-O", "-o"), "stdout", "on", "", "into its standard output"),
        (("-j",), "joblog", "on", "", "into its job log (not offered)"),
    ),
    "qwait": (
        (("--all",), "all", "on", "", "for all your requests that have not ended"),
        (("--name",), "name", "text", "PATTERN", "for those of this name, e.g. 'sim*'"),
        (("--any",), "any", "on", "", "until the first of them has ended; prints its identifier"),
        (("--timeout",), "timeout", "time", "TIME", "at most this long; exit status 124 then"),
    ),
    "qlimit": ((("-v",), "verbose", "on", "", "how each limit is enforced"),),
    "qcat": (
        (("-o",), "stdout", "on", "", "standard output (default)"),
        (("-e",), "stderr", "on", "", "standard error"),
        (("-f",), "follow", "on", "", "go on until the request has ended"),
        (("--attempt",), "attempt", "text", "N", "output of attempt N of a request that ran again"),
    ),
    "gangparms": ((("--json",), "json", "on", "", "data instead of text"),),
    "mpprun": (
        (("-n",), "pes", "sizes", "PES", "PEs that it runs on (1); a choice: MIN-MAX, or A,B,C"),
        (("-l",), "units", "text", "NAME=N,...", "units of consumables that it holds: barrier=1"),
        (("-class", "--class"), "job_class", "text", "CLASS",
         "its job class (interactive, in a batch request production, if the site has it)"),
        (("-debug", "--debug"), "debug", "on", "", "as -class benchmark"),
        (("-t",), "wall", "time", "LIMIT", "end it after this time on its PEs; exit status 124 then"),
        (("-T",), "best_guess", "time", "BEST_GUESS", "run time that you expect"),
        (("--contract",), "contract", "on", "",
         "start it in a shorter hole too: it is ended where that ends"),
    ),
    "qmgr": (
        (("-c",), "commands", "text", "CMD", "run this command; repeatable"),
        (("-n",), "check", "on", "", "parse and verify only"),
        (("--atomic",), "atomic", "on", "", "all commands or none"),
        (("--replay",), "replay", "text", "TIME",
         "verify, plan: what FILE would have changed in this time (7d); no: nothing"),
        (("--json",), "json", "on", "", "show as JSON"),
    ),
}  # fmt: skip

SUMMARIES = {
    "qsub": ("[OPTIONS] [SCRIPT [ARGS]...]",
             "Submit a request: a script, else standard input; behind -- a command."),
    "qstat": ("[OPTIONS] [ID|QUEUE]...", "Show requests, queues and why requests wait."),
    "qdel": ("[OPTIONS] [-SIGNAL] [ID|FROM-TO|PATTERN]...", "Delete requests, or send them a signal."),
    "qhold": ("[OPTIONS] ID...", "Hold waiting requests."),
    "qrls": ("[OPTIONS] ID...", "Release held requests."),
    "qmove": ("[OPTIONS] QUEUE ID...", "Move waiting requests into another queue."),
    "qalter": ("[OPTIONS] ID...", "Change what requests ask for."),
    "qrerun": ("[OPTIONS] ID...", "End running requests and queue them again."),
    "qsig": ("[OPTIONS] ID...", "Send a signal to running requests."),
    "qsuspend": ("[OPTIONS] ID...", "Suspend running requests; jobs by class give up their PEs."),
    "qresume": ("[OPTIONS] ID...", "Let suspended requests go on."),
    "qmsg": ("[OPTIONS] MESSAGE ID...", "Write a line into the output of running requests."),
    "qwait": ("[OPTIONS] [ID]...", "Wait until requests have ended; return 0 if all succeeded."),
    "qorder": ("[OPTIONS] ID ID", "Exchange the places of two waiting requests."),
    "qchkpnt": ("[OPTIONS] ID...", "Not offered: requests are not checkpointed here."),
    "qlimit": ("[OPTIONS] [HOST]...", "Show the limits that a request may ask for."),
    "qping": ("[OPTIONS] [HOST]", "Say whether the daemon answers."),
    "qcat": ("[OPTIONS] ID", "Show the output of a request so far."),
    "gangparms": ("[CLASS|gang SETTING=VALUE...]", "Show or set the parameters of job classes."),
    "mpprun": ("[OPTIONS] PROGRAM [ARGS]...", "Run a parallel program on PEs, when its turn comes."),
    "qselect": ("[OPTIONS]", "List the identifiers of requests that satisfy all options, one a line."),
    "pbsnodes": ("[OPTIONS] [NODE]...", "Show the host that runs requests."),
    "qmgr": ("[OPTIONS] [verify|plan|apply] [FILE]",
             "Show and change the installation; without a file, ask for commands."),
}  # fmt: skip
"""Usage of each command, and a sentence on what it does."""

TABLES: "dict[str, Table]" = {name: (*table, HOME, HELP) for name, table in _OF_COMMANDS.items()}
TABLES |= {"qrls": TABLES["qhold"]} | dict.fromkeys(
    ("qmove", "qorder", "qchkpnt", "qping", "qsuspend", "qresume"), (HOME, HELP)
)
