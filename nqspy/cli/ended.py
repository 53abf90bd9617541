"""``--limit`` and ``--since`` of ``qstat``: which of the requests that have ended a list shows."""

from nqspy.cli.fast import DaemonConnection, Failure
from nqspy.cli.qsub import ask_now
from nqspy.model.amounts import UNLIMITED, Wrong, parse_count
from nqspy.model.errors import BadValue
from nqspy.report.time_text import Zone, parse_since


def narrow(question: dict[str, object], given: dict[str, str]) -> None:
    """Put both into the question. Raises Failure."""
    name = "limit"
    try:
        if "limit" in given:
            limit = parse_count(given["limit"])
            question["limit"] = None if limit == UNLIMITED else limit
        if "since" in given:
            name = "since"
            now, zone = ask_now(DaemonConnection(given.get("home")))
            question["since"] = parse_since(given["since"], Zone(zone), now)
    except (Wrong, BadValue) as error:
        raise Failure(f"--{name}: {error}", 2) from None
