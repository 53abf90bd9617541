"""``qstat --graph``: who waits for whom. Only loaded when it is asked for."""

from nqspy.cli import acting, fast
from nqspy.cli.fast import DaemonConnection, Failure

_WITH = ("graph", "home")


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, found, ids = acting.read("qstat", words, least=0)
    others = [one.flag for one in found if one.target not in _WITH]
    if others:
        raise Failure(f"--graph goes with no {others[0]}", 2)
    return fast.show("qstat", DaemonConnection(given.get("home")).ask("graph", "graph", ids=ids))
