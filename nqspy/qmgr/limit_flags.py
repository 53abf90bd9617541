"""Limits as ``qlimit`` lists them: the option of qsub that asks for each, and how it is kept."""

from nqspy.qmgr.show import ENFORCED

_LIMITS = (
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
"""What is limited, the option, and the setting (`show.ENFORCED`) that is kept; "": it is only noted."""
_FOR_ALL = ("-lF", "-lV")
"""Limits of a request that are kept for each of its processes."""


def limit_flags(strategy: str, verbose: bool) -> str:
    """The list, and how the shell of a request is chosen (``strategy``); ``verbose``: how each is kept, else
    a note about those that are not, or not whole."""
    how = {path: text for path, _, text in ENFORCED}
    rows = []
    for label, flag, path in _LIMITS:
        note = "" if path else "Not run-time enforceable"
        note = "Enforced per-process" if flag in _FOR_ALL else note
        note = f"{note}{'; ' * bool(note)}{how[path]}" if verbose and path else note
        rows.append(f"  {label:<34}{flag:<13}{note}".rstrip())
    return "\n".join([*rows, "", f"  Shell strategy: {strategy}"]) + "\n"
