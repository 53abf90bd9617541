"""The counter: how commands reach the daemon and answers come back (JSON lines over a Unix socket)."""
