"""The journal in SQLite: events are the history, rows the snapshot, written in one transaction."""
