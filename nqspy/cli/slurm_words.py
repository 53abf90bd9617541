"""The meaning of Slurm's directives in the words of PBS, for a script submitted without the dialect. Only
loaded then."""

from nqspy.cli.fast import Failure, Given, Parser
from nqspy.cli.slurm import parse_time
from nqspy.cli.slurm_options import TABLE
from nqspy.cli.words import split
from nqspy.model.amounts import Wrong

_OURS = {
    "name": "-N {}", "time": "-l walltime={}", "tasks": "-l select={}", "cpus": "-l ncpus={}",
    "nodes": "-l nodes={}", "memory": "-l mem={}", "queue": "-q {}", "account": "-A {}", "output": "-o {}",
    "error": "-e {}", "folder": "-d {}", "array": "-J {}", "depend": "-W depend={}", "begin": "-a {}",
    "held": "-h", "mail_type": "-m", "mail.to": "-M {}", "export": "-v", "rerunnable": "-r {}",
    "gpus": "-l gpus={}",
}  # fmt: skip
"""What is said in PBS's words for Slurm's."""


MOST = 12
"""Directives that are explained; more are counted."""


def meaning(lines: list[str]) -> str:
    """``--time=10 is -l walltime=0:10:00, -n 2 is -l select=2``; empty where nothing can be said."""
    parser, found = Parser(TABLE), list[str]()
    for line in lines:
        try:
            options, _ = parser.parse(split(line))
        except (Failure, Wrong):
            continue
        for given in options:
            if given.target in _OURS:
                between = "=" if given.flag[:2] == "--" and given.value else " "
                said = f"{given.flag}{between}{given.value}".rstrip()
                found.append(f"{said} is {_OURS[given.target].format(_value(given))}".rstrip())
    more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
    return ", ".join([*found[:MOST], *more])


def _value(given: Given) -> str:
    if given.kind in ("on", "off"):
        return "y" if given.kind == "on" else "n"
    if given.target != "time":
        return given.value
    try:
        seconds = parse_time(given.value) // 1000
    except Wrong:
        return given.value
    return "unlimited" if seconds < 0 else f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
