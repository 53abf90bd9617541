"""Options of ``sbatch`` as a table of `spec`. Loaded only by ``--dialect slurm`` and `nqspy submit`."""

from nqspy.cli.request_tables import OWN, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nqspy.cli.spec import Table

_NOT_OFFERED = {
    "constraint": ("there is one node, without features", "-C --constraint", ""),
    "nodelist": ("there is one node", "-w --nodelist", ""),
    "exclude": ("there is one node", "-x --exclude", ""),
    "exclusive": ("PEs are never shared, and the machine is not given to one request", "", "--exclusive"),
    "share": ("PEs are never shared", "", "-s --oversubscribe -O --overcommit"),
    "qos": ("there are no qualities of service; queues have priorities", "-q --qos", ""),
    "reservation": ("there are no reservations by name", "--reservation", ""),
    "signal": ("no signal is sent before the end; -lT TIME,WARNING warns of CPU time", "--signal", ""),
    "priority": ("the site sets priorities; --nice lowers a request among your own", "--priority", ""),
    "clusters": ("there is one machine", "-M --clusters", ""),
    "uid": ("qsub -u USER runs as another user (managers)", "--uid --gid", ""),
    "no_kill": ("a request ends with its machine", "", "-k --no-kill"),
    "propagate": ("limits are those that the request asks for", "--propagate", ""),
    "profile": ("use is measured always; qstat -f shows it", "--profile --acctg-freq", ""),
    "switches": ("there is one node", "--switches", "--contiguous --use-min-nodes --spread-job --reboot"),
    "threads": (
        "PEs have no sockets, cores and threads here",
        "--threads-per-core --cores-per-socket --sockets-per-node -B --hint --mincpus --ntasks-per-core "
        "--ntasks-per-socket -m --distribution -S --core-spec -F --nodefile",
        "",
    ),
    "kill_on_invalid": (
        "set dependency_failed decides about a request that can never start",
        "--kill-on-invalid-dep",
        "",
    ),
    "delay": ("requests start as soon as they can", "--delay-boot --deadline", ""),
    "container": ("start the container in the script", "--container", ""),
    "burst": ("there are no burst buffers", "--bb --bbf", ""),
    "login": ("write bash -l in the script", "", "--get-user-env"),
    "time_min": ("a request has one limit of time; --time names it", "--time-min", ""),
    "gpus_of_tasks": (
        "GPUs are counted for the whole request: --gpus=N",
        "--gpus-per-node --gpus-per-task --gpus-per-socket --cpus-per-gpu --mem-per-gpu",
        "",
    ),
}  # fmt: skip
"""Options that are refused: the reason, and their flags, with a value and without."""
REFUSED = {target: text for target, (text, *_) in _NOT_OFFERED.items()}

SLURM: "Table" = (
    (("-J", "--job-name"), "name", "slurm", "NAME", "name of the request"),
    (("-t", "--time"), "time", "slurm", "TIME", "wall time: minutes, H:MM:SS, D-HH:MM:SS, or 90min, 2h"),
    (("-n", "--ntasks"), "tasks", "slurm", "N", "tasks; each has --cpus-per-task PEs"),
    (("-c", "--cpus-per-task", "--cpus"), "cpus", "slurm", "N", "PEs of each task, 1"),
    (("-N", "--nodes"), "nodes", "slurm", "N", "nodes; all are on the one machine"),
    (("--ntasks-per-node", "--tasks-per-node"), "tasks_per_node", "slurm", "N", "tasks of each node"),
    (("--mem",), "memory", "slurm", "SIZE", "memory of each node: 4G, 500M; a number alone: megabytes"),
    (("--mem-per-cpu",), "memory_per_cpu", "slurm", "SIZE", "memory for each PE"),
    (("-G", "--gpus"), "gpus", "slurm", "N", "GPUs of the request"),
    (("--gres",), "gres", "slurm", "NAME:N,...", "units of consumables: gpu:2"),
    (("-L", "--licenses"), "gres", "slurm", "NAME:N,...", "units of consumables"),
    (("-p", "--partition"), "queue", "slurm", "QUEUE", "queue (else the default queue)"),
    (("-A", "--account"), "account", "slurm", "GROUP", "group or account that is charged"),
    (("-o", "--output"), "output", "slurm", "PATH", "standard output, slurm-NUMBER.out; %j %A %a %x %u %N"),
    (("-e", "--error"), "error", "slurm", "PATH", "standard error, else into the same file"),
    (("-i", "--input"), "input", "slurm", "PATH", "standard input: /dev/null or none only"),
    (("--open-mode",), "open_mode", "slurm", "truncate", "truncate only"),
    (("-D", "--chdir"), "folder", "folder", "DIR", "folder to start in, else where it is submitted"),
    (("-a", "--array"), "array", "array", "RANGE", "an array of requests"),
    (("-d", "--dependency"), "depend", "slurm", "TYPE:ID,...", "after afterok afternotok afterany aftercorr"),
    (("-b", "--begin"), "begin", "slurm", "DATE", "start not before: 16:00, now+2hours, 2026-12-24T18:00"),
    (("-H", "--hold"), "held", "on", "", "hold the request"),
    (("--mail-type",), "mail_type", "slurm", "WORD,...", "NONE, BEGIN, END, FAIL, REQUEUE, ALL"),
    (("--mail-user",), "mail.to", "text", "USER", "receiver of the mail"),
    (("--export",), "export", "slurm", "ALL|NONE|NAME[=VALUE],...", "variables to export, all"),
    (("--nice",), "nice", "slurm_optional", "", "lower its priority among your own: --nice, --nice=N"),
    (("--requeue",), "rerunnable", "on", "", "it may run again"),
    (("--no-requeue",), "rerunnable", "off", "", "it may not run again"),
    (("--wckey",), "project", "note_value", "NAME", "project, as -P of qsub; exits see it"),
    (("--comment",), "comment", "note_value", "TEXT", "kept as an attribute"),
    (("--wrap",), "wrap", "slurm", "COMMAND", "a line for the shell instead of a script"),
    (("-v", "--verbose", "--parsable"), "nothing", "nothing", "", "no effect: it prints the identifier"),
    *((tuple(flags.split()), target, "slurm_refused", "VALUE", f"refused: {text}")
      for target, (text, flags, _) in _NOT_OFFERED.items() if flags),
    *((tuple(flags.split()), target, "slurm_refused_on", "", f"refused: {text}")
      for target, (text, _, flags) in _NOT_OFFERED.items() if flags),
    (("-W", "--wait"), "wait", "on", "", "return when it has ended, with its exit status"),
    (("-Q", "--quiet"), "silent", "on", "", "no message about the submission"),
    (("--test-only",), "dry_run", "on", "", "check and route only, submit nothing"),
)  # fmt: skip
"""Options of ``sbatch``."""

_CLASHING = (("--wait",), ("--array",), ("--list",))
TABLE: "Table" = (*(row for row in OWN if row[0] not in _CLASHING), *rows("slurm"), *SLURM)
"""Options of ``sbatch`` with nqspy's own."""
