"""Format 5: what belongs to an attempt stands in an object of its own (`former.live`)."""

import sqlite3

from nqspy.store import former

CHANGE = """UPDATE requests SET live = nested(live) WHERE instr(live, '"attempt":')"""


def up(connection: sqlite3.Connection) -> None:
    """Rewrites the rows of requests that were ever started."""
    connection.create_function("nested", 1, former.live, deterministic=True)
    connection.execute(CHANGE)
