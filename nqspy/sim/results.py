"""Results of a simulated workload, written while it runs: starts in the list's order, jobs as they end."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nqspy.sim.batch import EndedJob
from nqspy.sim.workloads.jobs import NotSimulated

COLUMNS = ("job", "user", "group", "width", "estimate", "submit", "start", "end", "run", "wait")
"""Columns of a job in results, times in seconds."""


def seconds(ms: int) -> str:
    """Return a time in ms as text in seconds, without trailing zeros."""
    whole, rest = divmod(ms, 1000)
    return f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)


def row_of(ended: EndedJob) -> dict[str, str | int | float]:
    """Return an ended job as a dictionary of `COLUMNS`; times in seconds."""
    job = ended.job
    times = (job.estimate, job.submit, ended.start, ended.end, ended.run, ended.wait)
    numbers = [ms // 1000 if ms % 1000 == 0 else ms / 1000 for ms in times]
    return dict(zip(COLUMNS, (job.number, job.user, job.group, ended.pes, *numbers), strict=True))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise OSErrors of the block as NotSimulated with the name of the file that is written."""
    try:
        yield
    except OSError as error:
        raise NotSimulated(f"{path} cannot be written: {error.strerror}") from None


class Results:
    """A new file with a JSON object on a line for each job. Methods raise NotSimulated if it fails."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with writing(path):
            self._file = path.open("w", encoding="utf-8", newline="")

    def add(self, ended: EndedJob) -> None:
        """Write the line of a job that has ended. Raises NotSimulated."""
        self.write(json.dumps(row_of(ended)) + "\n")

    def write(self, text: str) -> None:
        """Add a text to the file. Raises NotSimulated."""
        with writing(self._path):
            self._file.write(text)

    def close(self, done: bool) -> None:
        """Write what remains, and close the file. If not ``done`` (the run failed), remove the file."""
        with writing(self._path):
            self._file.close()
            if not done and self._path.is_file() and not self._path.is_symlink():  # not /dev/stdout
                self._path.unlink()


class Starts(Results):
    """Lines ``job_id start_time`` (s) in the workload's order: a line waits until jobs ahead of it end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._stored: dict[int, str] = {}
        self._next = 0

    def add(self, ended: EndedJob) -> None:
        """Write a job that has ended, or store it until those ahead have ended."""
        self._stored[ended.job.place] = f"{ended.job.number} {seconds(ended.start)}\n"
        while (line := self._stored.pop(self._next, None)) is not None:
            self.write(line)
            self._next += 1

    def close(self, done: bool) -> None:
        """Write the lines still stored (jobs ahead of theirs have not ended), and close the file."""
        self.write("".join(line for _, line in sorted(self._stored.items())))
        super().close(done)


class Table(Results):
    """A CSV file with a line for each job."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._writer = csv.DictWriter(self, COLUMNS, lineterminator="\n")
        self._writer.writeheader()

    def add(self, ended: EndedJob) -> None:
        """Write the row of a job that has ended. Raises NotSimulated."""
        self._writer.writerow(row_of(ended))


FORMS: dict[str, type[Results]] = {".csv": Table, ".json": Results, ".jsonl": Results}
"""Classes for a file of all jobs, by its ending."""


def opened(path: Path) -> Results:
    """Open a new file of all jobs, in the format of its ending (`FORMS`). Raises NotSimulated."""
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise NotSimulated(f"{path}: unknown format; use a name that ends in {', '.join(FORMS)}")
    return form(path)
