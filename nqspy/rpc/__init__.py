"""The counter: how commands reach the daemon and answers return (lines of JSON over a Unix socket)."""
