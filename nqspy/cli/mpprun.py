"""``mpprun``: runs a parallel program on PEs that it is given when its turn comes, or on those of the request
it is called in."""

import _signal  # type: ignore[import-not-found]  # the C half of signal: loaded at start
import os

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, Given, HelpWanted, Parser
from nqspy.cli.spec import TABLES
from nqspy.cli.values import UNLIMITED, Wrong, parse_count, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

LATE_KILL = "5"
"""Seconds from TERM to KILL, for a program past its limit on a request's own PEs."""


class MpprunOptions:
    """The command line: ``words`` of the program, PEs (None: not said), times in ms, class, contract, home.
    Raises Failure, HelpWanted."""

    def __init__(self, line: "list[str]") -> None:
        found, self.words = Parser(TABLES["mpprun"], interspersed=False).parse(line)
        given = {each.target: each for each in found}
        if "help" in given:
            raise HelpWanted
        if not self.words:
            raise Failure(f"which program? {fast.usage('mpprun')}")
        if "debug" in given and "job_class" in given:
            raise Failure("-debug stands for -class benchmark; give one of them")
        self.pes = _pes(given["pes"]) if "pes" in given else None
        self.wall = _time(given.get("wall"))
        self.best_guess = _time(given.get("best_guess"))
        self.contract = "contract" in given
        self.home = given["home"].value if "home" in given else None
        named = given["job_class"].value if "job_class" in given else ""
        inside = "production" if "QSUB_REQID" in os.environ else "interactive"
        self.job_class = "benchmark" if "debug" in given else named or inside

    def wanted(self) -> "dict[str, object]":
        """What it says of an application, by fields of `model.requests.Spec`."""
        said = {"pes": self.pes or 1, "wall": self.wall, "best_guess": self.best_guess}
        ask = {name: value for name, value in said.items() if value is not None}
        return {"job_class": self.job_class, "contract": self.contract, "ask": ask}


def _pes(given: Given) -> int:
    try:
        number = parse_count(given.value)
    except Wrong:
        number = 0
    if number < 1:
        raise Failure(f"-n: {given.value!r} is no number of PEs; write it like 4")
    return number


def _time(given: "Given | None") -> "int | None":
    try:
        return None if given is None else parse_time(given.value)
    except Wrong as error:
        assert given is not None
        raise Failure(f"{given.flag}: {error}") from None


def body(words: "list[str]") -> int:
    """The command: gives its exit status."""
    options = MpprunOptions(words)
    _check_program(options.words[0])
    own = os.environ.get("NQSPY_PES", "") if "QSUB_REQID" in os.environ else ""
    if own:
        _run_here(options, _number(own))
    from nqspy.cli import application

    daemon = DaemonConnection(options.home)
    with application.Door() as door:
        return application.Application(daemon, door, options.words, options.wanted()).hold()


def _check_program(name: str) -> None:
    """Raises Failure for a program that there is not: its PEs would be waited for in vain."""
    folders = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(":")
    found = [path for path in (os.path.join(folder, name) for folder in folders) if os.path.isfile(path)]
    if not found:
        raise Failure(f"there is no program {name}" + ("" if "/" in name else " on PATH"))
    if not any(os.access(path, os.X_OK) for path in found):
        raise Failure(f"{found[0]} cannot be executed")


def _number(pes: str) -> int:
    """How many PEs ``4-7,9`` names."""
    spans = [part.partition("-") for part in pes.split(",")]
    return sum([int(high or low) - int(low) + 1 for low, _, high in spans])


def _run_here(options: MpprunOptions, pes: int) -> "NoReturn":
    """Becomes the program, on the PEs of the request: it holds them already, and waits for none."""
    if options.pes is not None and options.pes > pes:
        around = os.environ["QSUB_REQID"]
        raise Failure(f"-n {options.pes}: request {around} has {pes} PEs, and its programs run on those")
    words = options.words
    if options.wall not in (None, UNLIMITED):
        words = ["timeout", "-k", LATE_KILL, f"{options.wall / 1000}", *words]
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # which Python ignores, and the program would too
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execvp(words[0], words)  # noqa: S606 - no shell is meant
    except OSError as error:
        raise Failure(f"cannot run {words[0]}: {error.strerror}") from None


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("mpprun", body)
