"""``mpprun``: runs a parallel program on PEs when its turn comes, or on the PEs of the request around it."""

import _signal  # type: ignore[import-not-found]  # the C half of signal: loaded at start
import os

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, Given, HelpWanted, Parser, Program
from nqspy.cli.spec import TABLES
from nqspy.model.amounts import UNLIMITED, Wrong, parse_count, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MOST_SIZES = 256
"""Most numbers of PEs of one program (`model.shapes.MOST_SIZES`, not read here: loading takes long)."""
LATE_KILL = "5"
"""Seconds from TERM to KILL for a program past its limit on a request's own PEs."""


class MpprunOptions:
    """Options of a command line. ``words``: program and arguments; ``sizes``: numbers of PEs, ascending;
    ``wall``, ``best_guess``: ms, None: not given. Raises Failure, HelpWanted."""

    def __init__(self, line: "list[str]") -> None:
        found, self.words = Parser(TABLES["mpprun"], interspersed=False).parse(line)
        self.given = given = {each.target: each for each in found}
        if "help" in given:
            raise HelpWanted
        if not self.words:
            raise fast.missing("program", "mpprun")
        if "debug" in given and "job_class" in given:
            raise Failure("-debug means -class benchmark; give one of them", 2)
        self.sizes = _sizes(given["pes"]) if "pes" in given else []
        times: dict[str, int | None] = {}
        for name in ("wall", "best_guess"):
            try:
                times[name] = parse_time(given[name].value) if name in given else None
            except Wrong as error:
                raise Failure(f"{given[name].flag}: {error}", 2) from None
        self.wall, self.best_guess = times["wall"], times["best_guess"]
        self.contract = "contract" in given
        self.units = _units([each for each in found if each.target == "units"])
        self.home = given["home"].value if "home" in given else None
        named = given["job_class"].value if "job_class" in given else ""
        self.job_class = "benchmark" if "debug" in given else named

    def wanted(self) -> "dict[str, object]":
        """Return what the options ask for, by field of `model.requests.Spec`."""
        asked = {"wall": self.wall, "best_guess": self.best_guess, "consumables": self.units or None}
        ask: dict[str, object] = {name: value for name, value in asked.items() if value is not None}
        if len(self.sizes) > 1:
            mold: dict[str, object] = {"mold": {"sizes": self.sizes}}
        else:
            mold, ask["pes"] = {}, self.sizes[0] if self.sizes else 1
        return {"job_class": self.job_class, "contract": self.contract, "ask": ask, **mold}


def _sizes(given: Given) -> "list[int]":
    """Return the numbers of PEs of ``4``, ``2-8`` or ``2,4,8``, ascending. Raises Failure."""
    text = given.value
    low, to, high = text.partition("-")
    try:
        numbers = [parse_count(word.strip()) for word in ((low, high) if to else text.split(","))]
    except Wrong:
        numbers = [0]
    if to and max(numbers) - min(numbers) >= MOST_SIZES:
        raise Failure(f"-n: {text!r} has more than {MOST_SIZES} sizes; name some, like 2,4,8", 2)
    sizes = list(range(numbers[0], numbers[1] + 1)) if to and min(numbers) else sorted(numbers)
    if not sizes or sizes[0] < 1 or len(set(sizes)) < len(sizes):
        wrong = f"-n: {text!r} is not a number of PEs or a list of them; write it like 4, 2-8 or 2,4,8"
        raise Failure(wrong, 2)
    return sizes


def _units(given: "list[Given]") -> "list[tuple[str, int]]":
    """Return units of consumables of ``NAME=N,...``, by name. Raises Failure."""
    found: list[tuple[str, int]] = []
    for option in given:
        for piece in option.value.split(","):
            name, _, count = piece.strip().partition("=")
            try:
                number = parse_count(count)
            except Wrong:
                number = 0
            if not name or number < 1:
                raise Failure(f"-l: {piece!r} asks for no units of a consumable; write it like barrier=1", 2)
            found.append((name, number))
    return found


def body(words: "list[str]") -> int:
    """Run ``mpprun``; return its exit status."""
    options = MpprunOptions(words)
    name = options.words[0]
    folders = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(":")
    found = [path for path in (os.path.join(folder, name) for folder in folders) if os.path.isfile(path)]
    if not found:  # its PEs would be waited for in vain
        raise Failure(f"there is no program {name}" + ("" if "/" in name else " on PATH"))
    if not any(os.access(path, os.X_OK) for path in found):
        raise Failure(f"you cannot run {found[0]}; make it executable")
    own = os.environ.get("NQSPY_PES", "") if "QSUB_REQID" in os.environ else ""
    if own:
        _run_here(options, own)
    from nqspy.cli import application

    daemon = DaemonConnection(options.home)
    with application.Door() as door:
        return application.Application(daemon, door, options.words, options.wanted()).hold()


def _run_here(options: MpprunOptions, own: str) -> "NoReturn":
    """Become the program, on the PEs (``own``, like ``4-7,9``) of the request around it. Raises Failure."""
    spans = [part.partition("-") for part in own.split(",")]
    try:
        pes = sum([int(high or low) - int(low) + 1 for low, _, high in spans])
    except ValueError:
        raise Failure(f"NQSPY_PES is {own!r} and names no PEs; do not change it in a request") from None
    around = os.environ["QSUB_REQID"]
    if options.units:
        raise Failure(f"-l: ask for units when you submit request {around}, not with mpprun in it")
    flags = [options.given[name].flag for name in _OF_WAITING if name in options.given]
    if flags:
        flag, means = ", ".join(flags), "have" if len(flags) > 1 else "has"
        fast.complain("mpprun", f"{flag} {means} no effect here: the program runs on PEs of request {around}")
    if options.sizes:
        fitting = [size for size in options.sizes if size <= pes]
        if not fitting:
            text = options.given["pes"].value
            raise Failure(f"-n {text}: request {around} has only {pes} PEs; ask for at most as many")
        os.environ["NCPUS"] = str(fitting[-1])
        if "NQSPY_UNITS" not in os.environ:  # torchrun has a process for each GPU
            os.environ["PET_NPROC_PER_NODE"] = str(fitting[-1])
    words = options.words
    if options.wall not in (None, UNLIMITED):
        words = ["timeout", "-k", LATE_KILL, f"{options.wall / 1000}", *words]
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # which Python ignores; the program would inherit that
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execvp(words[0], words)  # noqa: S606 - no shell is meant
    except OSError as error:
        raise Failure(f"cannot run {words[0]}: {error.strerror}") from None


_OF_WAITING = ("job_class", "debug", "best_guess", "contract")

main = Program(body, "mpprun")
