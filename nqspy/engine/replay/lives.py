"""What attempts did, as a journal has it: when they began after they were started, how long they ran, how
they ended. What ended by itself would have run as long whenever it had been started; of all others nobody
knows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any, Literal

from nqspy.model import events as ev
from nqspy.model.cause import HANDS
from nqspy.model.event import Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.model.moved_out import MeasuredMove, MovedOut, mean_move
from nqspy.model.requests import Ending, Used

Fate = Literal["open", "natural", "cut", "ordered", "lost", "void", "not_started"]
_OWN_ENDS = ("exit", "signal", "memory_limit", "file_limit", "process_limit")
"""Reasons of ends that would have come as well if it had been started at another time."""


@dataclass(slots=True)
class Life:
    """One attempt. ``starting``: when it was decided to start it (None: before the journal's part that is
    looked at); ``began``, ``exited``, ``over``: when it was seen to run, to have ended, and to have delivered
    its output; ``paused``: ms that it was suspended; ``ordered``: when somebody asked for its end; ``late``:
    a daemon was started meanwhile, which may have seen its end late; ``pes``: how many it had (0: nobody
    knows); ``moves``: how long it took each time to leave them (ms), by when it was suspended."""

    starting: Instant | None = None
    began: Instant | None = None
    exited: Instant | None = None
    over: Instant | None = None
    ordered: Instant | None = None
    ending: Ending | None = None
    fate: Fate = "open"
    paused: int = 0
    late: bool = False
    pes: int = 0
    moves: dict[Instant, int] = field(default_factory=dict)
    _pause: Instant | None = None

    @property
    def wall(self) -> int:
        """ms from its begin to its end as it was seen, without those in which it was suspended."""
        if self.began is None or self.over is None:
            return 0
        return max(0, self.over - self.began - self.paused)

    @property
    def own_wall(self) -> int:
        """The same as it would have been seen by a daemon that was always there."""
        told = self.ending.used.wall if self.ending is not None else 0
        return min(self.wall, told) if self.late and told else self.wall

    @property
    def delivery(self) -> int:
        """ms that its output took."""
        return 0 if self.exited is None or self.over is None else self.over - self.exited

    def is_it(self, started: Instant) -> bool:
        """Whether an attempt that was started then is this one."""
        return self.starting is None or started in (self.starting, self.began)


class Lives:
    """Of all attempts that ``events`` tell of. ``delay`` and ``killing``: ms that a start, and an end that
    somebody asked for, usually took."""

    def __init__(self, events: Iterable[Recorded]) -> None:
        self._lives: dict[tuple[Seq, int], Life] = {}
        self._natural: dict[Seq, Life] = {}
        self._began: set[Seq] = set()
        self._running: set[tuple[Seq, int]] = set()
        self._void: tuple[Seq, Life] | None = None
        self._moves: list[MeasuredMove] = []
        for recorded in events:
            self._take(recorded)
        every = self._lives.values()
        self.delay = _middle(
            each.began - each.starting
            for each in every
            if each.began is not None and each.starting is not None
        )
        self.killing = _middle(
            each.over - each.ordered for each in every if each.over is not None and each.ordered is not None
        )

    def of(self, seq: Seq, attempt: int) -> Life | None:
        """An attempt's."""
        return self._lives.get((seq, attempt))

    def began(self, seq: Seq) -> bool:
        """Whether a request was started."""
        return seq in self._began

    def natural(self, seq: Seq) -> Life | None:
        """That of the last attempt of a request that ended by itself."""
        return self._natural.get(seq)

    def move(self, seq: Seq, attempt: int, pes: int, at: Instant, usual: float) -> int:
        """How long (ms) an attempt takes to leave so many PEs: as long as it did if it did so at that
        instant, else as its moves did on the average; of one that never did so for each PE what all took
        then, or where nobody did what is ``usual``."""
        life = self._lives.get((seq, attempt))
        if life is not None and life.moves:
            return life.moves.get(at) or round(mean(life.moves.values()) * pes / (life.pes or pes))
        per_pe = mean_move(self._moves)
        return round(pes * (usual if per_pe is None else per_pe))

    # ------------------------------------------------------------ reading

    def _take(self, recorded: Recorded) -> None:
        event: Any = recorded.event
        take = _TAKERS.get(type(event))
        if take is not None:
            take(self, event, recorded.at)
        if self._void is not None and type(event) is not ev.Requeued:
            self._no_void(event)

    def _life(self, event: Any) -> Life:
        key = event.seq, event.attempt
        life = self._lives.get(key)
        if life is None:
            life = self._lives[key] = Life()
            self._running.add(key)
        return life

    def _started_anew(self, event: ev.DaemonStarted, at: Instant) -> None:
        for key in self._running:
            self._lives[key].late = True

    def _starting(self, event: ev.Starting, at: Instant) -> None:
        life = self._life(event)
        life.starting, life.pes = at, len(event.pes)
        self._began.add(event.seq)

    def _started(self, event: ev.Started, at: Instant) -> None:
        self._life(event).began = at if event.began is None else event.began

    def _suspended(self, event: ev.Suspended, at: Instant) -> None:
        self._life(event)._pause = at

    def _moved_out(self, event: MovedOut, at: Instant) -> None:
        life = self._life(event)
        life.moves[Instant(at - event.took)] = event.took
        if life.pes:
            self._moves.append((life.pes, event.took))

    def _resumed(self, event: ev.Resumed, at: Instant) -> None:
        life = self._life(event)
        life.paused += 0 if life._pause is None else at - life._pause
        life._pause = None

    def _deleting(self, event: ev.Deleting, at: Instant) -> None:
        life = self._life(event)
        life.ordered = at if life.ordered is None else life.ordered

    def _exiting(self, event: ev.Exiting, at: Instant) -> None:
        self._life(event).exited = at

    def _ended(self, event: ev.Ended, at: Instant) -> None:
        if event.attempt == 0:
            return
        ending = Ending(
            event.end_reason, event.exit_status, event.exit_signal, event.used, event.text,
            event.stdout, event.stderr,
        )  # fmt: skip
        life = self._over(event, at, ending)
        if life.ordered is not None:
            life.fate = "ordered"
        elif event.end_reason in _OWN_ENDS:
            life.fate = "natural"
            self._natural[event.seq] = life
        else:
            life.fate = "lost" if event.end_reason == "lost" else "cut"

    def _requeued(self, event: ev.Requeued, at: Instant) -> None:
        life = self._over(event, at, Ending("requeued", None, None, event.used, event.text))
        if life.ordered is not None:
            life.fate = "ordered"
        elif life.began is not None:
            life.fate = "lost"
        else:
            life.fate = "void"
            self._void = event.seq, life

    def _no_void(self, event: Any) -> None:
        """One that never began and is held for it could not be started, and never could be."""
        assert self._void is not None
        seq, life = self._void
        self._void = None
        if isinstance(event, ev.Held) and event.cause == HANDS and seq in event.seqs:
            life.fate = "not_started"
            self._natural.setdefault(seq, life)

    def _over(self, event: Any, at: Instant, ending: Ending) -> Life:
        life = self._life(event)
        self._resumed(event, at)
        life.over, life.ending = at, ending
        self._running.discard((event.seq, event.attempt))
        return life


_TAKERS: Mapping[type[ev.Event], Callable[[Lives, Any, Instant], None]] = {
    ev.DaemonStarted: Lives._started_anew,
    ev.Starting: Lives._starting,
    ev.Started: Lives._started,
    ev.Suspended: Lives._suspended,
    MovedOut: Lives._moved_out,
    ev.Resumed: Lives._resumed,
    ev.Deleting: Lives._deleting,
    ev.Exiting: Lives._exiting,
    ev.Ended: Lives._ended,
    ev.Requeued: Lives._requeued,
}


def _middle(values: Iterable[int]) -> int:
    found = list(values)
    return round(median(found)) if found else 0


def told(ending: Ending | None) -> Used:
    """What an attempt had used at its end."""
    return Used() if ending is None else ending.used
