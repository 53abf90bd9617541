"""A list that was recorded: a CSV file with a header, as `nqspy sim --requests FILE.csv` writes it. Needed
are ``job width submit run``, all else may be missing; times in seconds."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path

from nqspy.sim.workloads.jobs import LONGEST, BadWorkload, SimulatedJob, Wanted, Workload
from nqspy.sim.workloads.swf import TOO_WIDE

NEEDED = ("job", "width", "submit", "run")


def open_recorded(path: Path, wanted: Wanted) -> Workload:
    """The list, by submit time, then by place, for a machine as wide as its widest job where nothing else is
    asked for. Raises BadWorkload."""
    found = list(_read(path))
    pes = wanted.pes or max((job.width for job in found), default=0)
    fitting = [job for job in found if job.width <= pes]
    if not fitting:
        raise BadWorkload(f"{path}: there is no job in it that could be run")
    dropped = Counter({TOO_WIDE: len(found) - len(fitting)}) if len(fitting) < len(found) else Counter[str]()
    fitting.sort(key=lambda job: job.submit)
    return Workload(path.name, pes, len(fitting), lambda: iter(fitting), dropped)


def _read(path: Path) -> Iterator[SimulatedJob]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            missing = [name for name in NEEDED if name not in (rows.fieldnames or ())]
            if missing:
                raise BadWorkload(f"{path}: its first line names no column {missing[0]}")
            for place, row in enumerate(rows):
                yield _job(path, rows.line_num, row, place)
    except OSError as error:
        raise BadWorkload(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise BadWorkload(f"{path} is no CSV file") from None


def _job(path: Path, line: int, row: Mapping[str, str], place: int) -> SimulatedJob:
    try:
        submit, run = _ms(row["submit"]), _ms(row["run"])
        estimate = _ms(row.get("estimate") or "0") or max(run, 1000)
        number, width = int(row["job"]), int(row["width"])
        if min(submit, run, width - 1) < 0 or max(submit, run, estimate) > LONGEST:
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise BadWorkload(f"{path}, line {line}: job, width, submit, run or estimate is no number") from None
    user, group = row.get("user") or "u1", row.get("group") or "g1"
    return SimulatedJob(place, number, submit, run, estimate, width, None, user, group)


def _ms(word: str) -> int:
    found = float(word) * 1000
    if not isfinite(found):
        raise ValueError
    return round(found)
