"""``qwait``: waits until requests have ended; the exit status shows how."""

import _signal  # type: ignore[import-not-found]  # the C half of signal: loaded at start

from nqspy.cli import fast, request_commands
from nqspy.cli.fast import DaemonConnection, Failure, Program
from nqspy.model.amounts import UNLIMITED, Wrong, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nqspy.cli.fast import TextAnswer

LATE = 124
"""Exit status if the requests have not ended in time, like timeout(1)."""
_LEAST = 0.5
"""Seconds for an answer in any case: a timeout of 0 asks whether they have ended already."""


def body(words: list[str]) -> int:
    """Run ``qwait`` with these arguments; return 0 if all requests (``--any``: the first) ended by themselves
    with 0, 1 if one did not, and the status of the refusal, like 153, if one is unknown."""
    given, _, ids = request_commands.read("qwait", words, least=0)
    daemon, first = DaemonConnection(given.get("home")), "any" in given
    if "timeout" in given:  # the command ends after that time at the latest
        try:
            ms = parse_time(given["timeout"])
        except Wrong as error:
            raise Failure(f"--timeout: {error}", 2) from None

        def late(number: int, frame: object) -> None:
            raise Failure(f"not all requests ended within {given['timeout']}", LATE)

        if ms != UNLIMITED:
            _signal.signal(_signal.SIGALRM, late)
            _signal.setitimer(_signal.ITIMER_REAL, max(ms / 1000, _LEAST))
    if request_commands.names_more(given, ids):
        ids, _ = request_commands.choose("qwait", daemon, given, ids, ended="all" not in given)
    elif not ids:
        raise fast.missing("request", "qwait")
    if not ids:
        return 0
    ended: list[TextAnswer] = []
    for some in [ids] if first else request_commands.batches(ids):
        message: dict[str, object] = {"cmd": "wait", "text": "qwait", "ids": some, "any": first}
        ended.append(daemon.call(message, keyed=True, repeat=True, patient=True))
    if "timeout" in given:
        _signal.setitimer(_signal.ITIMER_REAL, 0)
    return max([fast.show("qwait", one) for one in ended])


main = Program(body, "qwait")
