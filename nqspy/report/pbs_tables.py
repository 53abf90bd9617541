"""Tables of jobs as PBS's qstat prints them: the default and the alternate one (pbs-clients.md 8.1, 8.2)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from nqspy.model import indices
from nqspy.model.ids import DAY, full_id, name_of
from nqspy.model.queues import Queue
from nqspy.model.requests import Request, State, finite
from nqspy.report.pbs_attributes import Subject, exec_host, letter_of
from nqspy.report.pbs_values import kilobytes, span
from nqspy.report.time_text import Zone

UNKNOWN = " -- "
"""Text in place of unknown values."""
_TIME = 8
"""Most characters of a time."""


def cut(text: str, width: int) -> str:
    """Return a text cut to ``width``, then with ``*`` as its last character."""
    return text if len(text) <= width else text[: width - 1] + "*"


class Shape(NamedTuple):
    """Layout of the default table: ``head`` and format of a ``row``, widths of the columns ``name``,
    ``owner``, ``queue``; ``label``: end of identifiers; ``done``: with ``% done``."""

    head: str
    row: str
    name: int
    owner: int
    queue: int
    label: str = ""
    done: bool = False


_NARROW = Shape(
    "Job id            Name             User              Time Use S Queue\n"
    "----------------  ---------------- ----------------  -------- - -----\n",
    "%-17s %-16s %-16s  %8s %1s %-16s\n", 16, 16, 16,
)  # fmt: skip
_WIDE = Shape(
    "Job id                         Name            User             Time Use S Queue\n"
    "-----------------------------  --------------- ---------------  -------- - ---------------\n",
    "%-30s %-15s %-15s  %8s %1s %-15s\n", 15, 15, 15,
)  # fmt: skip


def shape(server: str, *, wide: bool = False, done: bool = False) -> Shape:
    """Return the default table's layout: ``wide`` columns or not, ``done``: with ``% done`` in place of the
    time. Identifiers end with the first label of ``server``."""
    found = _WIDE if wide else _NARROW
    head = found.head.replace("Time Use", " % done ") if done else found.head
    return found._replace(head=head, label=server.partition(".")[0], done=done)


def line(subject: Subject, table: Shape) -> str:
    """Return the line of a job. Names are cut to their columns, as in PBS; identifiers never."""
    request, used = subject.request, subject.used
    _, row, widest_name, widest_owner, widest_queue, label, done = table
    name, owner, queue = request.spec.name, request.spec.owner, request.queue
    time = _done(subject) if done else "0" if used is None else cut(span(used.cpu), _TIME)
    return row % (
        f"{name_of(request.seq)}.{label}",
        name if len(name) < widest_name else name[: widest_name - 1] + "*",
        owner if len(owner) <= widest_owner else cut(owner, widest_owner),
        time,
        letter_of(subject),
        queue if len(queue) <= widest_queue else cut(queue, widest_queue),
    )


def _done(subject: Subject) -> str:
    """Return the percentage of its CPU or wall limit used (the greater); of an array's indices ended."""
    used, ask, array = subject.used, subject.request.spec.ask, subject.request.array
    if array is not None and array.begun:
        over = sum(indices.count(each) for each in (array.well, array.badly, array.dropped))
        whole = over + indices.count(array.left) + len(subject.members)
        return f"{over * 100 // whole:3d} "
    if used is None:
        return "-- "
    asked = ((used.cpu, finite(ask.cpu)), (used.wall, finite(ask.wall)))
    parts = [have * 100 // whole for have, whole in asked if whole]
    return f"{max(parts):3d} " if parts else "-- "


class Style(Struct, frozen=True):
    """Style of the alternate table: ``wide``; memory in ``megawords`` or ``gigabytes``; ``hosts`` and
    ``comments`` with each job, on its own line (``one_line``) or the next; ``starts``: expected starts (ms)
    by request, shown in place of elapsed times (None: they are not)."""

    wide: bool = False
    megawords: bool = False
    gigabytes: bool = False
    hosts: bool = False
    comments: bool = False
    one_line: bool = False
    starts: Mapping[int, int] | None = None


_WIDTHS = (15, 8, 8, 10, 6, 3, 3)
_WIDTHS_WIDE = (30, 15, 15, 15, 8, 4, 5)
_HEADS = ("Job ID", "Username", "Queue", "Jobname", "SessID", "NDS", "TSK")
_COMMENT, _COMMENT_WIDE = 74, 114
"""Most characters of a comment."""


def alternate_head(server: str, style: Style) -> str:
    """Return the head of the alternate table: an empty line, ``server: ``, and the columns' heads."""
    widths = _WIDTHS_WIDE if style.wide else _WIDTHS
    margin = " " * (sum(widths) + len(widths))
    last = "Start" if style.starts is not None else "Elap"
    titles = " ".join(f"{head:<{width}}" for head, width in zip(_HEADS, widths, strict=True))
    estimated = f"{margin}{'':15}Est\n" if style.starts is not None else ""
    return (
        f"\n{server}: \n{estimated}{margin}Req'd  Req'd   {last}\n"
        f"{titles} Memory Time  S Time\n"
        f"{' '.join('-' * width for width in widths)} ------ ----- - -----\n"
    )


class Where(NamedTuple):
    """Place and time of a table: server, ``node`` that runs the jobs, the site's zone, ``now`` (ms)."""

    server: str
    node: str
    zone: Zone
    now: int


def alternate_row(subject: Subject, style: Style, at: Where) -> str:
    """Return the line of a job in the alternate table, with hosts and comment (`Style`) below or behind
    it."""
    request = subject.request
    spec = request.spec
    ask = spec.ask
    by_cpu = finite(ask.cpu) is not None
    widths = _WIDTHS_WIDE if style.wide else _WIDTHS
    words = (spec.owner, request.queue, spec.name)
    cells = [f"{full_id(request.seq, at.server):<{widths[0]}}"]
    cells += [f"{cut(word, width):<{width}}" for word, width in zip(words, widths[1:], strict=False)]
    cells += [f"{UNKNOWN:>{widths[4]}}", f"{1:{widths[5]}}", f"{cut(str(ask.pes), widths[6]):>{widths[6]}}"]
    asked, used = finite(ask.cpu if by_cpu else ask.wall), subject.used
    elapsed = None if used is None else used.cpu if by_cpu else used.wall
    time = _hours(elapsed) if style.starts is None else _start(request, style.starts, at)
    head = f"{' '.join(cells)} {_memory(finite(ask.memory), style):>6.6} {_hours(asked):>5.5}"
    line = f"{head} {letter_of(subject)} {time:>5.5}" + (" " if style.one_line else "\n")
    extra = ""
    if style.hosts:
        hosts = exec_host(request, at.node.partition(".")[0]) or UNKNOWN
        extra += f"{hosts}\n" if style.one_line else f"   {hosts}\n"
    if style.comments:
        most = _COMMENT_WIDE if style.wide else _COMMENT
        text = " ".join(subject.comment.split()) or UNKNOWN
        extra += f"   {text if len(text) <= most else text[: most - 3] + '...'}\n"
    return line + (extra if extra or not style.one_line else "\n")


def _hours(ms: int | None) -> str:
    return UNKNOWN if ms is None else span(ms)[:-3]


def _memory(size: int | None, style: Style) -> str:
    """Return ``512mb``: at most four digits, rounded up; with ``-M`` in words of 8 bytes."""
    if size is None:
        return UNKNOWN
    letter, amount, place = "b", size, 1
    if style.megawords:
        letter, amount, place = "w", -(-size // (8 << 20)), 2
    elif style.gigabytes:
        amount, place = -(-size // (1 << 30)), 3
    else:
        amount = -(-size // 1024)
        while amount % 1024 == 0 and amount:
            amount, place = amount // 1024, place + 1
    while amount > 9999:
        amount, place = -(-amount // 1024), place + 1
    return f"{amount}{' kmgtpe'[place].strip()}{letter}"


_WEEK = 7 * DAY


def _start(request: Request, starts: Mapping[int, int], at: Where) -> str:
    """Return the expected start of a waiting job: ``15:30`` today, ``Fr 15`` this week, else month or
    year."""
    start = starts.get(request.seq)
    if start is None or start < at.now or request.state not in (State.QUEUED, State.SUSPENDED):
        return UNKNOWN.strip()
    there, today = at.zone.local(start), at.zone.local(at.now)
    if there.date() == today.date():
        return there.strftime("%H:%M")
    if start - at.now < _WEEK:
        return f"{there.strftime('%a')[:2]} {there.hour:02d}"
    return there.strftime("%b") if there.year == today.year else str(there.year)


_QUEUE = "%-16.16s %6.6s %8.8s %8.8s %4.4s %5s %5s %4.4s   %s %s\n"


_UNITS = (("gb", 1 << 30), ("mb", 1 << 20))


def queue_limits(server: str, queues: Iterable[Queue], counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return ``qstat -q``: limits, counts and state letters of each queue, and sums; empty without queues."""
    rows, sums = list[str](), [0, 0]
    for queue in queues:
        most, mine = queue.per_request, counts.get(queue.name, {})
        size, memory = most.memory_limit, "--  "
        if size is not None:
            whole = (f"{size // unit}{name}" for name, unit in _UNITS if size % unit == 0)
            memory = next(whole, kilobytes(size))
        running = sum(mine.get(state, 0) for state in (State.RUNNING, State.SUSPENDED))
        waiting = sum(mine.get(state, 0) for state in (State.QUEUED, State.HELD, State.WAITING))
        sums = [sums[0] + running, sums[1] + waiting]
        rows.append(_QUEUE % (
            queue.name, memory, "  --   " if most.cpu_limit is None else span(most.cpu_limit),
            "  --   " if most.wall_limit is None else span(most.wall_limit), "-- ", running, waiting,
            "  --   " if queue.run_limit is None else queue.run_limit, "E" if queue.enabled else "D",
            "R" if queue.started else "S",
        ))  # fmt: skip
    head = (
        f"\nserver: {server}\n\n"
        "Queue            Memory CPU Time Walltime Node   Run   Que   Lm  State\n"
        "---------------- ------ -------- -------- ---- ----- ----- ----  -----\n"
    )
    foot = f"{'':47}----- -----\n{'':47}{sums[0]:5d} {sums[1]:5d}\n"
    return "".join([head, *rows, foot]) if rows else ""
