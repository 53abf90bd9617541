"""``qdel``: deletes requests, or sends them a signal."""

import _signal  # type: ignore[import-not-found]  # the C half of signal: loaded at start
import os

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, Given, HelpWanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_SIGNAL_ROW = ((), "signal", "text", "", "")


def signal_number(text: str) -> "int | None":
    """The number of ``9``, ``KILL`` or ``SIGKILL`` in any case; None when there is no such signal."""
    if text.isdigit():
        number = int(text) if len(text) < 4 else 0
        return number if 0 < number < _signal.NSIG else None
    name = "SIG" + text.upper().removeprefix("SIG")
    found = getattr(_signal, name, None) if name[3:4] not in ("", "_") else None
    return found if isinstance(found, int) else None


def _signal_option(word: str) -> "Given | None":
    """``-9``, ``-TERM``: a signal, where no option of the table fits."""
    number = signal_number(word[1:])
    return None if number is None else Given(_SIGNAL_ROW, word, str(number))


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, _, ids = fast.read_options("qdel", words, _signal_option)
    if "help" in given:
        raise HelpWanted
    if not ids:
        raise Failure(f"which request? {fast.usage('qdel')}", 2)
    if given.get("how", "force") != "force":
        raise Failure(f"-W: {given['how']!r} is not known; there is -W force")
    dialect = given.get("dialect") or os.environ.get("NQSPY_DIALECT") or "pbs"
    message: dict[str, object] = {
        "cmd": "delete", "text": "qdel", "ids": ids, "owner": given.get("owner"),
        "kill": "kill" in given or given.get("how") == "force",
        "signal": int(given["signal"]) if "signal" in given else None, "force": dialect != "nqs",
    }  # fmt: skip
    return fast.show("qdel", DaemonConnection(given.get("home")).call(message))


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qdel", body)
