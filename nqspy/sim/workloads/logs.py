"""The Standard Workload Format, version 2.2, of the Parallel Workloads Archive: one job a line, 18 numbers,
-1 for unknown ones; comments begin with ``;``, those of the form ``; Label: value`` are the header.

A log is read twice: once for its header, its number of jobs, and whether they are in the order of their
submit times; then job by job during the simulation. Only a log with lines out of order is stored in memory.
Also here: recorded lists, CSV files with a header as `nqspy sim --requests FILE.csv` writes them. They need
``job width submit run``, all else may be missing; times in seconds."""

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from math import isfinite
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec.structs import replace

from nqspy.sim.workloads.jobs import LONGEST, NotSimulated, SimulatedJob, Wanted, Workload

FIELDS = 18
"""Numbers that a line has; more are not read."""

MOST = 1_000_000
"""Most characters of a line, and of the header: a packed file may have a line of many gigabytes."""

NO_SUBMIT = "no submit time"
NO_PROCESSORS = "no processors"
NEVER_RAN = "never ran"
TOO_WIDE = "wider than the machine"
TOO_LARGE = "more memory than the machine"
"""Reasons why lines are dropped, in the order in which they are checked."""

KB = 1024


def open_swf(path: Path, pes: int | None = None, memory: int | None = None) -> Workload:
    """Return a log as a workload for ``pes`` PEs (None: as its header says) and ``memory`` bytes (None: jobs
    ask for none). Raises NotSimulated if it cannot be read, or has no number of PEs or no usable job."""
    labels = read_labels(path)
    size = pes or _count(labels, "MaxProcs") or _count(labels, "MaxNodes")
    if not size:
        raise NotSimulated(f"{path}: its header has neither MaxProcs nor MaxNodes; give --pes N")
    dropped, last, ordered, used = Counter[str](), -1, True, 0
    for found in _lines(path, size, memory):
        if isinstance(found, str):
            dropped[found] += 1
        else:
            used, ordered, last = used + 1, ordered and found.submit >= last, found.submit
    if not used:
        raise NotSimulated(f"{path}: there is no job in it that could be run")

    def jobs() -> Iterator[SimulatedJob]:
        found = (each for each in _lines(path, size, memory) if not isinstance(each, str))
        placed = (replace(job, place=place) for place, job in enumerate(found))
        return placed if ordered else iter(sorted(placed, key=lambda job: job.submit))

    begin = _count(labels, "UnixStartTime") * 1000
    begin = begin if begin <= LONGEST else 0
    zone = _word(labels, "TimeZoneString") or "UTC"
    try:
        ZoneInfo(zone).utcoffset(datetime.fromtimestamp(0, UTC))
    except (ZoneInfoNotFoundError, OSError, ValueError):
        zone = "UTC"
    return Workload(path.name, size, used, jobs, dropped, begin, zone)


def read_labels(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the values of each label in a log's header, one a line with that label. Raises NotSimulated."""
    found: dict[str, list[str]] = {}
    label, size = "", 0
    for text in _text(path):
        if not text.startswith(";"):
            if text.strip():
                break
            continue
        size += len(text)
        if size > MOST:
            raise NotSimulated(f"{path} is not a log: its header is longer than {MOST} characters")
        name, colon, value = text.lstrip("; \t").partition(":")
        if colon and name.strip().isalpha():
            label = name.strip()
            found.setdefault(label, []).append(value.strip())
        elif label and (more := text.lstrip("; \t").strip()):
            found[label][-1] = f"{found[label][-1]} {more}".strip()
    return {name: tuple(values) for name, values in found.items()}


def _word(labels: Mapping[str, tuple[str, ...]], label: str) -> str:
    return labels.get(label, ("",))[0].partition(" ")[0]


def _count(labels: Mapping[str, tuple[str, ...]], label: str) -> int:
    """Return the number behind a label of the header; 0 if it is missing, no number, or too long."""
    word = _word(labels, label)
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 18 else 0


def _lines(path: Path, pes: int, memory: int | None) -> Iterator[SimulatedJob | str]:
    """Yield the job of each line, or why it has none; skip comments. Raises NotSimulated for a bad line."""
    for line, text in enumerate(_text(path), 1):
        if text.startswith(";") or text.isspace():
            continue
        words = text.split(None, FIELDS)
        try:
            yield job_of(words, pes, memory)
        except (ValueError, OverflowError):
            raise NotSimulated(f"{path}, line {line}: {_wrong(words)}") from None


def job_of(words: list[str], pes: int, memory: int | None = None) -> SimulatedJob | str:
    """Return the job that a line's fields give (``place`` 0), or the reason to drop it. ``pes`` and
    ``memory`` (bytes; None: not read) are the machine's. Raises ValueError for malformed fields."""
    if len(words) < FIELDS:
        raise ValueError("too few fields")
    submit, run, estimate = (_ms(words[n]) for n in (1, 3, 8))
    if max(submit, run, estimate) > LONGEST:
        raise ValueError("too large")
    asked, had = _whole(words[7]), _whole(words[4])
    width = asked if asked > 0 else had
    if submit < 0:
        return NO_SUBMIT
    if width <= 0:
        return NO_PROCESSORS
    if run < 0:
        return NEVER_RAN
    if width > pes:
        return TOO_WIDE
    each = max(_number(words[9]), 0) or max(_number(words[6]), 0) if memory is not None else 0
    needs = round(each * KB) * width or None
    if needs is not None and memory is not None and needs > memory:
        return TOO_LARGE
    limit = estimate if estimate > 0 else max(run, 1000)
    user, group = f"u{_whole(words[11])}", f"g{_whole(words[12])}"
    return SimulatedJob(0, _whole(words[0]), submit, run, limit, width, needs, user, group)


def _ms(word: str) -> int:
    """Return the whole milliseconds of a text in seconds. Raises ValueError."""
    return int(word) * 1000 if word.isdigit() else round(_number(word) * 1000)


def _whole(word: str) -> int:
    return int(word) if word.isdigit() else int(_number(word))


def _number(word: str) -> float:
    found = float(word)
    if not isfinite(found):
        raise ValueError(word)
    return found


def _wrong(words: list[str]) -> str:
    if len(words) < FIELDS:
        return f"{len(words)} fields instead of {FIELDS}"
    for number, word in enumerate(words[:FIELDS], 1):
        try:
            _number(word)
        except ValueError:
            return f"field {number} is not a number: {word[:40]}"
    return "a number is too large"


def _text(path: Path) -> Iterator[str]:
    """Yield the lines of a file. Raises NotSimulated."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rt", encoding="latin-1") if packed else path.open(encoding="latin-1") as lines:
            for text in iter(partial(lines.readline, MOST), ""):
                if len(text) == MOST:
                    raise NotSimulated(f"{path} is not a log: it has a line longer than {MOST} characters")
                yield text
    except OSError as error:
        raise NotSimulated(f"{path} cannot be read: {error.strerror or error}") from None
    except (EOFError, zlib.error):
        raise NotSimulated(f"{path} is damaged: it is cut off, or not a gzip file") from None


NEEDED = ("job", "width", "submit", "run")


def open_recorded(path: Path, wanted: Wanted) -> Workload:
    """Return the jobs of a recorded list (CSV) in the order of their submit times, without those wider than
    the wanted PEs (None: the widest job's). Raises NotSimulated if it cannot be read, or no job fits."""
    found = list(_read_rows(path))
    pes = wanted.pes or max((job.width for job in found), default=0)
    fitting = [job for job in found if job.width <= pes]
    if not fitting:
        raise NotSimulated(f"{path}: there is no job in it that could be run")
    dropped = Counter({TOO_WIDE: len(found) - len(fitting)}) if len(fitting) < len(found) else Counter[str]()
    fitting.sort(key=lambda job: job.submit)
    return Workload(path.name, pes, len(fitting), lambda: iter(fitting), dropped)


def _read_rows(path: Path) -> Iterator[SimulatedJob]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            missing = [name for name in NEEDED if name not in (rows.fieldnames or ())]
            if missing:
                raise NotSimulated(f"{path}: its first line has no column {missing[0]}")
            for place, row in enumerate(rows):
                try:
                    submit, run = _ms(row["submit"] or ""), _ms(row["run"] or "")
                    estimate = _ms(row.get("estimate") or "0") or max(run, 1000)
                    number, width = int(row["job"]), int(row["width"])
                    if min(submit, run, width - 1) < 0 or max(submit, run, estimate) > LONGEST:
                        raise ValueError
                except (ValueError, TypeError, OverflowError):
                    wrong = (
                        f"{path}, line {rows.line_num}: job, width, submit, run or estimate is not a number"
                    )
                    raise NotSimulated(wrong) from None
                user, group = row.get("user") or "u1", row.get("group") or "g1"
                yield SimulatedJob(place, number, submit, run, estimate, width, None, user, group)
    except OSError as error:
        raise NotSimulated(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise NotSimulated(f"{path} is not a CSV file") from None
