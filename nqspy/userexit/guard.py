"""Guard around a call of an exit: a budget of CPU time, ten times that of wall time, and real interruption.

In the main thread an interval timer (ITIMER_REAL, SIGALRM) watches the call. Its handler reads the CPU time
of the thread and the wall time, and raises in the exit's own code when a budget is used up. Afterwards the
former timer and handler are restored. In another thread Python cannot be interrupted: there a call that ran
too long is detected when it returns, its answer does not count, and an endless loop never ends. So the live
engine runs its exits in the main thread.

Nothing can interrupt a single long call into C code that does not check signals (``sum(range(10**12))``); it
is detected when it returns.
"""

import _thread
import functools
import gc
import signal
import threading
from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from types import FrameType
from typing import Any

WALL_FACTOR = 10
"""Budget of wall time as a multiple of that of CPU time."""

NS = 1_000_000
_STORM = (1e-3, 1e-3, 37e-6, 53e-6, 71e-6, 29e-6, 113e-6, 43e-6)
"""Seconds until an exit that swallowed the interruption and kept it is interrupted again: short and uneven,
so that one of them comes while the exit is outside its own ``try``."""

_DROPPED = signal.SIGVTALRM


class Overrun(Exception):
    """An exit used up its budget; the text says which budget."""


class _Interrupt(BaseException):
    """Raised inside a running exit by the timer. No Exception, so that ``except Exception`` lets it pass."""

    trip: "_Trip"


class _Trip:
    """Part of an interruption that interrupts the exit again when it is destroyed: an exit that catches and
    drops one is by then outside that ``try``. All C, so that the interpreter handles signals only afterwards.
    Its signal is not handled outside a guard, so an interruption dropped later does nothing."""

    __slots__ = ()
    __del__ = staticmethod(functools.partial(_thread.interrupt_main, _DROPPED))


def is_ctrl_c(error: BaseException) -> bool:
    """True if a person at the keyboard stops the program. If SIGINT is handled otherwise, as in the daemon, a
    KeyboardInterrupt can only be the exit's own and is a failure like any other."""
    return type(error) is KeyboardInterrupt and signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Guard:
    """Calls functions under a budget: ``with guard: guard.call(...)``, several calls in one ``with``.
    ``took``: wall time (ns) of the last call.

    The ``with`` takes over timer and handler (about 4 us); each call only sets the timer (under 1 us). The
    garbage collector is off meanwhile, so that a full collection does not count as the exit's time.
    """

    def __init__(self) -> None:
        self.took = 0
        self._armed = self._active = self._collecting = self._heeds = False
        self._over = ""
        self._fired = self._shield = 0
        self._budget = self._limit = 0
        self._cpu = self._wall = self._since = 0
        self._handler: Any = None
        self._timer: tuple[float, float] = (0.0, 0.0)

    def __enter__(self) -> "Guard":
        self._collecting = gc.isenabled()
        gc.disable()
        if threading.get_ident() == threading.main_thread().ident:
            self._handler = signal.signal(signal.SIGALRM, self._tick)
            self._timer = signal.setitimer(signal.ITIMER_REAL, 0)
            self._since = perf_counter_ns() if self._timer[0] else 0
            self._armed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._armed:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL if self._handler is None else self._handler)
            if self._heeds:
                self._heeds = False
                signal.signal(_DROPPED, signal.SIG_DFL)
            if self._timer[0]:
                rest = self._timer[0] - (perf_counter_ns() - self._since) / 1e9
                signal.setitimer(signal.ITIMER_REAL, max(rest, 1e-6), self._timer[1])
        if self._collecting:
            gc.enable()

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], budget: int, wall: int | None = None
    ) -> Any:
        """Return what the function returns. ``budget``: ms of CPU time; ``wall``: ms of wall time (None: ten
        times the budget). Raises Overrun, or whatever the function raises, BaseExceptions included."""
        self._begin(budget, budget * WALL_FACTOR if wall is None else wall)
        try:
            self._active = True
            answer = function(*args)
        except BaseException as error:
            # A plain store: from here on the timer does nothing, whenever it fires.
            self._active = False
            self.took = perf_counter_ns() - self._wall
            if not self._over:
                raise
            where = error.__traceback__
        else:
            self._active = False
            self.took = took = perf_counter_ns() - self._wall
            if not self._over and (took < self._budget or not self._late()):
                return answer
            where = None
        raise Overrun(self._over).with_traceback(where)

    def shielded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method protected from interruption, for our own code that an exit calls."""

        def call(*args: Any, **words: Any) -> Any:
            self._shield += 1
            try:
                return method(*args, **words)
            finally:
                self._shield -= 1
                if self._over and self._active and not self._shield:
                    raise self._interruption()

        return call

    def _begin(self, budget: int, wall: int) -> None:
        self._over = ""
        self._fired = self._shield = 0
        self._budget, self._limit = budget * NS, wall * NS
        if self._armed:
            first = min(budget, wall) / 1000
            signal.setitimer(signal.ITIMER_REAL, first, max(first / 5, 1e-3))
        self._cpu, self._wall = thread_time_ns(), perf_counter_ns()

    def _late(self) -> bool:
        """True if a budget is used up; the text is in ``_over``."""
        if perf_counter_ns() - self._wall >= self._limit:
            self._over = f"ran longer than {self._limit // NS} ms of wall time"
        elif thread_time_ns() - self._cpu >= self._budget:
            self._over = f"ran longer than its budget of {self._budget // NS} ms of CPU time"
        return bool(self._over)

    def _tick(self, _signum: int, _frame: FrameType | None) -> None:
        if not self._active or not (self._over or self._late()):
            return
        if not self._heeds:
            self._heeds = True
            signal.signal(_DROPPED, self._tick)
        signal.setitimer(signal.ITIMER_REAL, _STORM[self._fired % len(_STORM)])
        self._fired += 1
        if not self._shield:
            raise self._interruption()

    def _interruption(self) -> _Interrupt:
        made = _Interrupt()
        made.trip = _Trip()
        return made


class Unguarded(Guard):
    """Calls functions without a budget: under virtual time, load of the computer must not change a decision.
    An endless loop never ends; Ctrl-C stops it."""

    def __enter__(self) -> "Unguarded":
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: there is nothing to restore."""

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], budget: int, wall: int | None = None
    ) -> Any:
        """Return what the function returns. Raises whatever it raises."""
        return function(*args)

    def shielded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method itself: nothing interrupts it."""
        return method
