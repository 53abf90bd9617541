"""``nqspy submit``: submits a script or, behind ``--``, a command, with options like sbatch's."""

from nqspy.cli import fast
from nqspy.cli.fast import Failure
from nqspy.cli.qsub import QsubOptions, hand_in
from nqspy.cli.slurm_options import TABLE
from nqspy.cli.spec import WITHOUT_VALUE

PROGRAM = "nqspy submit"


def body(words: list[str]) -> int:
    """Run ``nqspy submit``; return its exit status."""
    options = QsubOptions(words, PROGRAM, "slurm")
    if not options.operands and not options.wraps:
        raise Failure("no script given: name one, or write -- and a command, or - for standard input", 2)
    return hand_in(options)


def run(words: list[str]) -> int:
    """Run ``nqspy submit``; return its exit status. A failure becomes one line on stderr."""
    return fast.run(PROGRAM, body, words, _about)


def _about(program: str, words: list[str]) -> int:
    """Answer ``--version``, or ``--help`` with the options that are not refused."""
    if words[:1] == ["--version"]:
        from nqspy.cli.help import answer

        return answer(program, words)
    lines = [
        f"usage: {PROGRAM} [OPTIONS] SCRIPT [ARGS]...",
        f"       {PROGRAM} [OPTIONS] -- COMMAND [ARGS]...",
        "",
    ]
    for flags, _, kind, metavar, text in TABLE:
        if not kind.startswith("slurm_refused"):
            named = ", ".join(flags) + ("" if kind in WITHOUT_VALUE else f" {metavar}")
            lines.append(f"  {named:34} {text}")
    fast.write(1, ("\n".join(lines) + "\n").encode())
    return 0
