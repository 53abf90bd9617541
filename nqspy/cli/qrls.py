"""``qrls``: releases held requests."""

from nqspy.cli import fast, holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    return holds.body("qrls", "release", words, lenient=True)


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qrls", body)
