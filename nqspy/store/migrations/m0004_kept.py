"""What each user keeps of scripts and environments, and which of it is of requests that have run."""

import sqlite3

TABLES = (
    """CREATE TABLE kept (owner TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL,
    ran INTEGER NOT NULL, PRIMARY KEY (owner, digest)) WITHOUT ROWID""",
    "CREATE INDEX kept_digest ON kept (digest)",
)
FILL = """INSERT INTO kept (owner, digest, size, ran)
SELECT owner, digest, length(body), max(ended IS NOT NULL OR coalesce(json_extract(live, '$.attempt'), 0) > 0)
FROM (SELECT owner, json_extract(spec, '$.script') AS digest, ended, live FROM requests
    UNION ALL SELECT owner, json_extract(spec, '$.environment'), ended, live FROM requests)
JOIN blobs USING (digest) GROUP BY owner, digest"""


def up(connection: sqlite3.Connection) -> None:
    """Adds the table, with what is there."""
    for statement in TABLES:
        connection.execute(statement)
    connection.execute(FILL)
