"""``qsig``: sends a signal to running requests, or has them suspended and resumed."""

from nqspy.cli import acting, fast
from nqspy.cli.fast import Failure
from nqspy.cli.qdel import signal_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_NULL = ("0", "NULL", "SIGNULL")
_PAUSES = {"suspend": False, "resume": True}


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, _, ids = acting.read("qsig", words)
    home, name = given.get("home"), given.get("signal", "SIGTERM")
    if name.lower() in _PAUSES:
        return acting.tell("qsig", "suspend", home, ids=ids, resume=_PAUSES[name.lower()])
    number = 0 if name.upper() in _NULL else signal_number(name)
    if number is None:
        raise Failure(f"Unknown/illegal signal name {name}", 165)
    return acting.tell("qsig", "signal", home, ids=ids, signal=number)


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qsig", body)
