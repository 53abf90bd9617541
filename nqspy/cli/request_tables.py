"""Option tables of `qsub` and `qalter`, made from `model.options` and the dialects' own letters."""

from nqspy.cli.spec import DIALECT, HELP, HOME, TABLES, Row, Table
from nqspy.model.options import OPTIONS

_OF_UNIT = {
    "name": ("text", "TEXT"), "flag": ("on", ""), "time": ("time", "TIME"), "size": ("size", "SIZE"),
    "count": ("count", "N"), "number": ("number", "N"), "names": ("names", "NAME,..."),
}  # fmt: skip
"""Kind and metavar of a declared option by its unit."""


def rows(dialect: str) -> Table:
    """Return the rows for the options with flags in this dialect (``qsub``: in any)."""
    made: list[Row] = []
    for option in OPTIONS:
        if dialect in option.flags:
            kind, metavar = _OF_UNIT[option.unit]
            target = option.path.removeprefix("ask/")
            made.append((option.flags[dialect], target, kind, option.metavar or metavar, option.help))
    return tuple(made)


_ALIKE: Table = (
    (("-m",), "", "mail_letters", "LETTERS", "mail at a(bort), b(egin), e(nd); n: never"),
    (("-N",), "name", "name", "NAME", "name of the request"),
    (("-p",), "priority", "number", "N", "priority among your own requests, -1024 to 1023"),
    (("-P",), "project", "note_value", "NAME", "project (noted)"),
)
"""Options that are the same in PBS and NQS, also of `qalter`."""

_OF_QSUB: Table = (
    *_ALIKE,
    (("-q",), "queue", "text", "QUEUE", "queue to submit to (else the default queue)"),
    (("-h",), "held", "on", "", "hold the request"),
    (("-u",), "user", "user", "USER", "run as another user (managers)"),
    (("-v",), "", "variables", "NAME[=VALUE],...", "export these variables"),
)

OWN: Table = (
    (("--list",), "list", "text", "FILE", "submit a list: a line is options, script, arguments; all or none"),
    (("--after",), "", "after", "ID[:ok|any|fail|start|each]", "start only after that request; repeatable"),
    *rows("qsub"),
    (("--key",), "key", "text", "TEXT", "repeating the key returns the same request"),
    (("--dry-run",), "dry_run", "on", "", "check and route only, submit nothing"),
    (("--wait",), "wait", "on", "", "return when it has ended, with its exit status"),
    (("--json",), "json", "on", "", "answer as JSON"),
    (("--gpus",), "consumables/gpus", "count", "N", "GPUs, as -l gpus=N"),
    (("--array",), "", "array", "RANGE", "array of these indices: 1-1000:2%50, 1-10,15,20-30:5"),
    DIALECT,
    HOME,
    HELP,
)  # fmt: skip
"""Options of nqspy's own, the same in every dialect."""

_OF_NQS: Table = (
    *rows("nqs"),
    (("-ln",), "nice", "nice", "N", "nice increment"),
    (("-la",), "", "attribute", "TEXT", "attribute that the site's exits can read"),
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
"""Letters of NQS that have no other meaning in PBS."""

QSUB_NQS: Table = (
    *_OF_NQS,
    *_OF_QSUB,
    (("-r",), "name", "name_or_rerun", "NAME", "name of the request; y or n: rerunnable (PBS)"),
    (("-A",), "account", "text", "GROUP", "group or account that is charged"),
    (("-a",), "eligible", "date", "DATE", "start not before, e.g. '23:00', 'noon tomorrow', 2026-03-02"),
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
    (("-mu", "-M"), "mail.to", "text", "USER,...", "receiver of the mail"),
    (("-s", "-S"), "shell", "shell", "PATH", "shell that reads the script"),
    (("-x", "-V"), "", "export", "", "export the whole environment"),
    (("-nr",), "rerunnable", "off", "", "do not run it again"),
    (("-nc",), "no_checkpoint", "note", "", "not to be checkpointed (noted)"),
    (("-c",), "checkpoint", "checkpoint", "TEXT", "checkpoint interval or account (noted)"),
    (("-C",), "compartment", "prefix_or_note", "TEXT", "compartments (noted); PBS: prefix of directives"),
    (("-R",), "remove", "removal", "LETTERS", "remove output files at the end: o, e (PBS)"),
    (("-Rf",), "restart_file", "note_value", "TEXT", "restart (noted)"),
    (("-d",), "delete_script", "deletion", "", "delete the script once submitted; PBS: folder to start in"),
    (("-z",), "silent", "on", "", "no message about the submission; PBS: no identifier"),
    *OWN,
)  # fmt: skip
"""Options of ``qsub`` when the dialect is NQS's for sure: its own, and PBS's where these do not clash."""

QSUB: Table = (
    *QSUB_NQS,
    (("-I",), "interactive", "on", "", "a session at this terminal (PBS)"),
    (("-W",), "", "wishes", "NAME=VALUE,...", "depend=, block=true, umask=, max_run_subjobs= (PBS)"),
    (("-t",), "", "array", "RANGE", "array of these indices (Torque)"),
    (("-w",), "start_in", "folder", "PATH", "folder to start in (PBS)"),
    (("-n",), "whole_nodes", "note", "", "whole nodes (PBS, noted)"),
    (("-f",), "", "nothing", "", "no effect: qsub never forks (PBS)"),
    (("-X",), "X forwarding", "refused", "", "X forwarding: refused (PBS)"),
    (("-G",), "a graphical session", "refused", "", "a graphical session: refused (PBS)"),
    (("-b",), "a time limit for reaching the server", "refused_value", "SECONDS", "refused (PBS)"),
    (("-D",), "a root folder for the job", "refused_value", "PATH", "refused (PBS)"),
    (("-T",), "a private prologue", "refused_value", "NAME", "refused (PBS)"),
    *rows("pbs"),
)  # fmt: skip
"""Options of ``qsub`` while the dialect is undecided: NQS's and PBS's."""

QSUB_PBS: Table = (
    (("-a",), "eligible", "date", "[[CC]YY]MMDDhhmm[.SS]", "start not before"),
    (("-A",), "account", "text", "TEXT", "account that is charged"),
    (("-c",), "checkpoint", "checkpoint", "n|s|c[=MIN]|w[=MIN]|u", "wish for checkpoints (noted)"),
    (("-C",), "compartment", "prefix_or_note", "PREFIX", "prefix of directives; empty: none are read"),
    (("-d", "-w"), "start_in", "folder", "PATH", "folder to start in"),
    (("-e",), "stderr", "path", "[HOST:]PATH", "file or folder for standard error"),
    (("-f",), "", "nothing", "", "no effect: qsub never forks"),
    (("-I",), "interactive", "on", "", "a session at this terminal"),
    (("-j",), "joblog", "join_or_joblog", "oe|eo|n", "join the outputs"),
    (("-J", "-t"), "", "array", "RANGE", "array of these indices: 1-1000:2%50, 1-10,15,20-30:5"),
    (("-k",), "", "keep", "LETTERS", "keep in the home folder: o, e; d: write in place; n: none"),
    (("-l",), "", "resources", "NAME=VALUE,...", "resources: select, nodes, walltime, mem, ncpus, ..."),
    (("-M", "-mu"), "mail.to", "text", "USER,...", "receiver of the mail"),
    (("-n",), "whole_nodes", "note", "", "whole nodes (noted)"),
    (("-o",), "stdout", "path", "[HOST:]PATH", "file or folder for standard output"),
    (("-r",), "rerunnable", "name_or_rerun", "y|n", "whether it may run again"),
    (("-R",), "remove", "removal", "LETTERS", "remove output files at the end: o, e"),
    (("-S", "-s"), "shell", "shell", "PATH", "shell that reads the script"),
    (("-V",), "", "export", "", "export the whole environment"),
    (("-W",), "", "wishes", "NAME=VALUE,...", "depend=, block=true, umask=, max_run_subjobs="),
    (("-z",), "silent", "on", "", "do not print the identifier"),
    (("-b",), "a time limit for reaching the server", "refused_value", "SECONDS", "refused"),
    (("-D",), "a root folder for the job", "refused_value", "PATH", "refused"),
    (("-G",), "a graphical session", "refused", "", "refused"),
    (("-T",), "a private prologue", "refused_value", "NAME", "refused"),
    (("-x",), "a session without a shell (-V exports the environment)", "refused", "", "refused"),
    (("-X",), "X forwarding", "refused", "", "refused"),
    *rows("pbs"),
    *_OF_QSUB,
    *_OF_NQS,
    *OWN,
)  # fmt: skip
"""Options of ``qsub`` when the dialect is PBS's for sure: letters as in POSIX, OpenPBS and Torque."""

QALTER: Table = (
    (("-a",), "eligible", "date", "DATE", "start not before"),
    (("-A",), "account", "text", "GROUP", "group or account that is charged"),
    (("-c",), "checkpoint", "checkpoint", "TEXT", "checkpoint interval (noted)"),
    (("-e",), "stderr", "path", "PATH", "file or folder for standard error"),
    (("-h",), "holds", "text", "LETTERS", "its new holds: letters of u, o, s; n: none"),
    (("-j",), "", "join_or_joblog", "oe|eo|n", "join the outputs"),
    (("-k",), "", "keep", "LETTERS", "keep in the home folder: o, e; n: none"),
    (("-l",), "", "resources", "NAME=VALUE,...", "resources, as of qsub; select= replaces the selection"),
    (("-M",), "mail.to", "text", "USER,...", "receiver of the mail"),
    (("-o",), "stdout", "path", "PATH", "file or folder for standard output"),
    (("-r",), "name", "name_or_rerun", "y|n", "it may be run again"),
    (("-S",), "shell", "shell", "PATH", "shell that reads the script"),
    (("-u",), "owner", "text", "USER", "its owner, which cannot change"),
    (("-W",), "", "wishes", "NAME=VALUE,...", "max_run_subjobs=N (indices at a time, 0: any), umask="),
    *_ALIKE,
    *rows("qalter"),
    HOME,
    HELP,
)


def table_of(command: str) -> Table:
    """Return the table of a command's options."""
    return {**TABLES, "qsub": QSUB, "qalter": QALTER}[command]
