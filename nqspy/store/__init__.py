"""The journal in SQLite: tables of events are the history, other rows a snapshot; one transaction writes
both."""
