"""``pbsnodes``: shows the host that runs requests. It changes nothing."""

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure
from nqspy.cli.pbs_options import format_of, read_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_CHANGING = ("-o", "-r", "-C", "-c", "-d", "-R")


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    changing = next((word for word in words if word in _CHANGING), None)
    if changing is not None:
        raise Failure(
            f"{changing} is not offered here: pbsnodes only shows; qmgr changes the installation", 2
        )
    given, _, operands = read_options("pbsnodes", words)
    if not operands and not {"all", "letters", "virtual"} & given.keys():
        raise Failure(f"which host? {fast.usage('pbsnodes')}", 2)
    question: dict[str, object] = {
        "cmd": "pbsnodes", "text": "nodes", "operands": operands, "format": format_of(given),
        "letters": "l" if "letters" in given else "", "delimiter": given.get("delimiter"),
    }  # fmt: skip
    return fast.show("pbsnodes", DaemonConnection(given.get("home")).call(question, repeat=True))


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("pbsnodes", body)
