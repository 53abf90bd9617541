"""Whether a job's process stands still, as the kernel shows it."""

from pathlib import Path

from nqspy.executors import proc


def stands_still(pid: int | str) -> bool:
    """Whether it is stopped or frozen. A shell that forks (vfork) stops only when its child has gone on to
    another program: where the child stands still before that, the shell waits for it, in state D."""
    seen = proc.stat(int(pid))
    return frozen(pid) or (
        seen is not None and (seen.still or (seen.state == "D" and _child_stands(int(pid))))
    )


def frozen(pid: int | str) -> bool:
    """Whether its cgroup (version 2) is frozen."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, _, path = line.split(":", 2)
        events = Path(f"/sys/fs/cgroup/unified{path}/cgroup.events")
        if number == "0" and events.exists():
            return "frozen 1" in events.read_text()
    return False


def _child_stands(pid: int) -> bool:
    children = [proc.stat(child) for child in proc.children(pid)]
    return any(child is not None and child.still for child in children)
