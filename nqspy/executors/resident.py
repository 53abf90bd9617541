"""How much memory attempts hold now, seen from the daemon: the processes below each shepherd and in its
cage."""

from nqspy.executors import cage, proc, records
from nqspy.executors.pageout import resident

_MOST = 10_000


class Residents:
    """Measures attempts by their folders; remembers who their shepherds are."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}

    def of(self, folder: str) -> int | None:
        """Bytes the processes of an attempt hold, None when it has not begun or has ended."""
        found = self._known.get(folder) or self._look(folder)
        if found is None:
            return None
        shepherd, group = found
        pids = {*proc.descendants(shepherd), *(cage.members(group) if group else ())} - {shepherd}
        if not pids:
            self._known.pop(folder, None)
            return None
        return resident(sorted(pids))

    def _look(self, folder: str) -> tuple[int, str] | None:
        record, holder = records.read(folder, "pid"), records.holder(folder)
        if record is None or holder is None:
            return None
        try:
            found = proc.Identity.parse(holder).pid, str(record["cage"][1])
        except (ValueError, KeyError, IndexError):
            return None
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[folder] = found
        return found
