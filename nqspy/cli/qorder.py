"""``qorder``: has two waiting requests of one queue exchange their places."""

from nqspy.cli import acting, fast
from nqspy.cli.fast import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, _, ids = acting.read("qorder", words)
    if len(ids) != 2:
        raise Failure(f"two requests are needed, not {len(ids)}; {fast.usage('qorder')}", 2)
    return acting.tell("qorder", "exchange", given.get("home"), ids=ids)


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qorder", body)
