"""The journal in SQLite: tables of events are the history, other rows a snapshot; in one transaction."""
