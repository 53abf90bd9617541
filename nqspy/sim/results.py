"""Results of a simulated workload, written while it runs: starts in the order of the list, jobs as they
end."""

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from nqspy.sim.batch import EndedJob, NotSimulated

COLUMNS = ("job", "user", "group", "width", "estimate", "submit", "start", "end", "run", "wait")
"""Of a job in results, times in seconds."""


class Results(Protocol):
    """Where ended jobs go."""

    def add(self, ended: EndedJob) -> None:
        """One more."""

    def close(self) -> None:
        """There are no more. What was kept back is written."""


def seconds(ms: int) -> str:
    """A time as a number without trailing zeros."""
    whole, rest = divmod(ms, 1000)
    return f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)


def row_of(ended: EndedJob) -> dict[str, str | int | float]:
    """A job as `COLUMNS` name it."""
    job = ended.job
    times = (job.estimate, job.submit, ended.start, ended.end, ended.run, ended.wait)
    numbers = [ms // 1000 if ms % 1000 == 0 else ms / 1000 for ms in times]
    return dict(zip(COLUMNS, (job.number, job.user, job.group, ended.pes, *numbers), strict=True))


class ResultFile:
    """A file that is begun anew. Its methods raise NotSimulated where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._told():
            self._file = path.open("w", encoding="utf-8", newline="")

    def write(self, text: str) -> None:
        """Adds a text."""
        with self._told():
            self._file.write(text)

    def close(self) -> None:
        """Closes it; what it had not written yet is written."""
        with self._told():
            self._file.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise NotSimulated(f"{self._path} cannot be written: {error.strerror}") from None


class Starts:
    """Lines ``job_id start_time`` in the order of the list. What has ended before those ahead of it in the
    list is kept back until they have."""

    def __init__(self, path: Path) -> None:
        self._file = ResultFile(path)
        self._kept: dict[int, str] = {}
        self._next = 0

    def add(self, ended: EndedJob) -> None:
        """One more."""
        self._kept[ended.job.place] = f"{ended.job.number} {seconds(ended.start)}\n"
        while (line := self._kept.pop(self._next, None)) is not None:
            self._file.write(line)
            self._next += 1

    def close(self) -> None:
        """Writes what waits for some that have not ended."""
        self._file.write("".join(line for _, line in sorted(self._kept.items())))
        self._file.close()


class Table:
    """A CSV file with a line for each job, as they end."""

    def __init__(self, path: Path) -> None:
        self._file = ResultFile(path)
        self._writer = csv.DictWriter(self._file, COLUMNS, lineterminator="\n")
        self._writer.writeheader()

    def add(self, ended: EndedJob) -> None:
        """One more."""
        self._writer.writerow(row_of(ended))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class JsonLines:
    """A JSON object on a line for each job, as they end."""

    def __init__(self, path: Path) -> None:
        self._file = ResultFile(path)

    def add(self, ended: EndedJob) -> None:
        """One more."""
        self._file.write(json.dumps(row_of(ended)) + "\n")

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


FORMS: dict[str, Callable[[Path], Results]] = {".csv": Table, ".json": JsonLines, ".jsonl": JsonLines}
"""What is written, by the file's ending."""


def opened(path: Path) -> Results:
    """The file of all jobs. Raises NotSimulated."""
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise NotSimulated(f"{path}: its ending says no format; there are {', '.join(FORMS)}")
    return form(path)
