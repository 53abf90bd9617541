"""Data for pictures of a simulated workload, collected while it runs: which PEs were held when, and how many
jobs waited. Its size is bounded for any number of jobs: time is cut into columns; when these do not reach far
enough, each two neighbours become one."""

from itertools import accumulate, groupby

from msgspec import Struct

from nqspy.sim.batch import EndedJob, HeldPes

COLUMNS = 640
"""Most columns; once there were more, between half as many and all of them are used."""
FINEST = 100
"""Length of a column at first, in ms."""
ROWS = 64
"""Most rows of PEs: on a larger machine a row stands for several PEs side by side."""
MOST_BOXES = 600
"""Most times of jobs on PEs that are stored one by one; beyond, there are only columns and rows."""


class _TimeLine:
    """An amount over time, and its integral over each column: steps are stored, and summed at the end."""

    __slots__ = ("_change", "_part")

    def __init__(self) -> None:
        self._part = [0] * (COLUMNS + 1)
        self._change = [0] * (COLUMNS + 2)

    def add(self, begin: int, end: int, width: int, amount: int = 1) -> None:
        """Add ``amount`` from ``begin`` to ``end`` (ms); columns are ``width`` ms long."""
        first, last = begin // width, end // width
        if first == last:
            self._part[first] += (end - begin) * amount
            return
        self._part[first] += ((first + 1) * width - begin) * amount
        self._part[last] += (end - last * width) * amount
        self._change[first + 1] += amount
        self._change[last] -= amount

    def fold(self, width: int) -> None:
        """Join each two neighbouring columns to one; ``width``: their length (ms) before."""
        part, change = self._part, self._change
        pairs = range(COLUMNS // 2)
        parts = [part[2 * n] + part[2 * n + 1] + change[2 * n + 1] * width for n in pairs]
        changes = [change[2 * n] + (change[2 * n - 1] if n else 0) for n in range(COLUMNS // 2 + 1)]
        self._part = [*parts, *([0] * (COLUMNS + 1 - len(parts)))]
        self._change = [*changes, *([0] * (COLUMNS + 2 - len(changes)))]

    def sums(self, columns: int, width: int) -> list[float]:
        """Return the mean amount in each of the first ``columns`` columns; ``width``: their length in ms."""
        levels = accumulate(self._change)
        return [part / width + level for part, level, _ in zip(self._part, levels, range(columns))]  # noqa: B905


class PeBox(Struct, frozen=True):
    """A job on PEs ``first`` to ``last``, from ``begin`` to ``end`` (ms from the first submission on)."""

    number: int
    first: int
    last: int
    begin: int
    end: int


class Trail:
    """Follows the jobs on a machine of ``pes`` PEs. Times count from ``origin`` (the first submission), in ms
    since the workload's beginning.

    ``boxes``: each time of a job on neighbouring PEs; None once there were too many."""

    def __init__(self, pes: int, origin: int) -> None:
        self.pes, self._origin = pes, origin
        self.width, self.end = FINEST, 0
        self.per_row = -(-pes // ROWS)
        self._rows = [_TimeLine() for _ in range(-(-pes // self.per_row))]
        self._waiting = _TimeLine()
        self.boxes: list[PeBox] | None = []

    def add(self, ended: EndedJob) -> None:
        """Add an ended job's wait and the PEs that it held."""
        self.wait(ended.job.submit, ended.start)
        for held in ended.held:
            self.hold(ended.job.number, held)

    def wait(self, begin: int, end: int) -> None:
        """Add the wait of a job from ``begin`` to ``end``, in ms since the workload's beginning."""
        self._reach(end - self._origin)
        self._waiting.add(begin - self._origin, end - self._origin, self.width)

    def hold(self, number: int, held: HeldPes) -> None:
        """Add the PEs held by the job of that number; neighbouring PEs are one box."""
        self._reach(held.end - self._origin)
        begin, end = held.begin - self._origin, held.end - self._origin
        for _, run in groupby(enumerate(sorted(held.pes)), lambda each: each[1] - each[0]):
            pes = [pe for _, pe in run]
            for row, some in groupby(pes, lambda pe: pe // self.per_row):
                self._rows[row].add(begin, end, self.width, len(list(some)))
            if self.boxes is not None:
                self.boxes.append(PeBox(number, pes[0], pes[-1], begin, end))
                if len(self.boxes) > MOST_BOXES:
                    self.boxes = None

    def _reach(self, end: int) -> None:
        self.end = max(self.end, end)
        while self.end // self.width >= COLUMNS:
            for line in (*self._rows, self._waiting):
                line.fold(self.width)
            self.width *= 2

    @property
    def columns(self) -> int:
        """Return the number of columns that the time takes."""
        return -(-self.end // self.width)

    def rows(self) -> list[list[float]]:
        """Return the mean number of PEs held, by row (``per_row`` PEs) and column (``width`` ms)."""
        return [line.sums(self.columns, self.width) for line in self._rows]

    def held(self) -> list[float]:
        """Return the mean number of PEs held, by column."""
        return [sum(column) for column in zip(*self.rows(), strict=True)]

    def waiting(self) -> list[float]:
        """Return the mean number of jobs waiting, by column."""
        return self._waiting.sums(self.columns, self.width)
