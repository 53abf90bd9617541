"""Format 7: a lifetime may say how its owner's best guess came true (`model.lifetimes.Lived`).

No table changes; an earlier nqspy could not read such a lifetime.
"""

import sqlite3


def up(connection: sqlite3.Connection) -> None:
    """Nothing is to be done: who gave no best guess says nothing of one."""
