"""The commands that people type; they know no rule of scheduling and reach the daemon through `rpc` only."""
