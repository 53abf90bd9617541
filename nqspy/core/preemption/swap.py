"""Swap control: when memory is short, the requests that hold most of it give way. They return when there is
room (seed 003, section 6.3; manual page `swap`).

High: no request starts. Each reading suspends one request and frees its pages. Requests that hold at least a
quarter of what the largest holds are comparable; of these the one that gave way least often is chosen, then
the largest. A request that started or returned stays for ``min_resident``; small ones never give way.

Calm: each reading resumes one request, the longest suspended first, if the memory that it held fits under the
low mark. While a request is away, no other starts, so that the room goes to it. If no other large request
runs, it returns in any case. If the requests alone fill the memory, the last large one goes on, because only
its end helps. Both exceptions do not apply while people work at terminals.

A request that gives way keeps its PEs. Requests that people suspended are not touched.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields

from msgspec import Struct

from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.core.runtime import goes_since
from nqspy.model.actions import Action, Resume, Suspend
from nqspy.model.cause import declare_feature
from nqspy.model.health import Level, Pressure
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.registry import ALL, SettingsObject, Stamp, Status, Words, declare
from nqspy.model.requests import Request, State
from nqspy.model.site import Settings, Site
from nqspy.model.tree import setting

SWAP = declare_feature("swap")

_GIVES_WAY, _AWAY, _OTHERS_FIRST, _SCARCE = reason_kinds(
    ReasonCode.MEMORY,
    gives_way="suspended with {held} in memory, as memory is short: {now}; it resumes when there is room",
    gave_way="suspended for lack of memory: its {held} do not fit below {low:g} % yet, {now} now",
    others_come_back="requests that were suspended for lack of memory resume first",
    memory_scarce="memory is short: {now}; it starts when less than {low:g} % is in use",
)

COMPARABLE = 4
"""Requests are comparable if the smaller one holds at least a quarter of the memory of the larger."""


@dataclass(slots=True)
class SwapControl:
    """Settings of swap control: marks in per cent of the memory in use."""

    enabled: bool = setting("flag", False, "whether batch requests give way under memory pressure")
    high: float = setting("percent", 85.0, "memory in use from which requests give way", low=1, high=100)
    low: float = setting("percent", 70.0, "memory in use under which suspended ones resume", low=1, high=100)
    psi: float = setting(
        "percent", 10.0, "part of the time spent waiting for memory from which it counts as short too",
        low=1, high=100,
    )  # fmt: skip
    min_resident: int = setting("time", 120_000, "least time in memory after a start or return", low=0)
    small: int = setting("size", 4 * 1024**2, "memory up to which a request never gives way", low=0)
    interactive: bool = setting(
        "flag", True, "whether requests give way half way between low and high while people work at terminals"
    )
    idle: int = setting(
        "time", 120_000, "real time without input after which a terminal counts as idle", low=1000
    )


def _check(settings: Settings, touched: Collection[str] | None) -> Iterable[str]:
    if touched is not None and CONTROL.head not in touched:
        return
    control = CONTROL.one(settings)
    empty = [each.name for each in fields(control) if getattr(control, each.name) is None]
    if empty:
        yield f"swap_control: {empty[0]} needs a value"
    elif control.high <= control.low:
        yield f"swap_control: high ({control.high:g} %) must be above low ({control.low:g} %)"


def _settle(site: Site) -> bool:
    """Forget the last reading when swap control is switched off. Return True if there was one."""
    former, enabled = site.pressure, CONTROL.one(site.settings).enabled
    site.pressure = former if enabled else Pressure()
    return site.pressure != former


def _status(site: Site, stamp: Stamp) -> Status:
    """Return the state of the memory, and the requests that gave way."""
    known, at = site.pressure, stamp(site.pressure.at or None)
    gave = [r for _, r in sorted(site.started.items()) if r.run.preempted_times]
    rows, lines = [], [("memory", f"{known.level} ({_now(known)}) since {at}" if at else "not measured yet")]
    for r in gave:
        id, times, away, size = site.id_of(r.seq), r.run.preempted_times, gave_way(r), r.run.preempted_bytes
        rows.append({"id": id, "times": times, "away": away, "gave_bytes": size})
        often, state = "once" if times == 1 else f"{times} times", "away" if away else "back"
        lines.append((id, f"gave way {often} ({words(size)}), is {state}"))
    memory = {"level": known.level, "used_percent": known.used, "text": known.text, "at": at}
    return Status({"pressure": memory, "gave_way": rows}, lines)


_WORDS = Words(
    "Swap control",
    "whether requests give way when memory is short",
    "whether requests give way when memory is short, how it stands, and which gave way",
)
CONTROL = declare(
    SettingsObject(
        "swap_control", SwapControl, joined=ALL, words=_WORDS, check=_check, settle=_settle, status=_status
    )
)


# ---------------------------------------------------------------- in a pass


def act(draft: Draft, now: Instant) -> Instant | None:
    """Propose that one request gives way or returns. Return when another may give way; None: unknown."""
    control, pressure = CONTROL.one(draft.site.settings), draft.site.pressure
    away = sorted(suspended(draft.site), key=lambda r: (r.pause.at if r.pause is not None else 0, r.seq))
    if not control.enabled:
        for request in away:
            draft.resume(request, SWAP)
        return None
    held, due, back = ResidentMemory(draft), None, None
    if not pressure.answered:
        if pressure.level == "high":
            due = _give_way(draft, held, now)
        back = _comes_back(draft, held, away)
    if back is not None:
        draft.resume(back, SWAP)
    for request in away:
        if request is not back:
            draft.keep_suspended(request, why_away(request, control, pressure))
    if pressure.level != "calm" or len(away) > (back is not None):
        draft.barred = why_nothing_starts(control, pressure)
        for request in draft.released():
            if request.seq not in draft.reasons:
                draft.keep_suspended(request, draft.barred)
    return due


def stands(site: Site, action: Action) -> bool:
    """True if a proposal is still right: memory is short (to suspend), or the request is away (to resume)."""
    request, pressure = site.started.get(getattr(action, "seq", 0)), site.pressure
    if isinstance(action, Suspend):
        return action.cause == SWAP and pressure.level == "high" and not pressure.answered
    return isinstance(action, Resume) and request is not None and gave_way(request) and not action.pes


def why_held(site: Site, request: Request) -> Reason | None:
    """Return why a request does not start, or go on, because memory is short; None: it may."""
    control, pressure = CONTROL.one(site.settings), site.pressure
    if not control.enabled:
        return None
    if gave_way(request):
        return why_away(request, control, pressure)
    stays = request.state is State.SUSPENDED and not request.pes_released
    if stays or (pressure.level == "calm" and not any(suspended(site))):
        return None
    return why_nothing_starts(control, pressure)


def suspended(site: Site) -> Iterable[Request]:
    """Return the requests that swap control has suspended, except those that were asked to end."""
    return (r for r in site.paused.values() if gave_way(r) and not r.ending)


def gave_way(request: Request) -> bool:
    """True if swap control has suspended the request."""
    return request.pause is not None and request.pause.cause == SWAP


class ResidentMemory:
    """Bytes in memory of each request: by the last reading, else its peak. Requests of a domain that leaves
    this feature out never give way: they count like programs that are not requests."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._resident: Mapping[Seq, int] = dict(draft.site.pressure.resident)
        self.total = draft.site.pressure.total or draft.site.found.memory

    def now(self, request: Request) -> int:
        """Return the bytes that a request has in memory by the last reading; not read: its peak so far."""
        resident = self._resident.get(request.seq)
        sample = self._draft.samples.get(request.seq)
        return resident if resident is not None else max(request.used.memory, sample.memory if sample else 0)

    def needed(self, request: Request) -> int:
        """Return the memory (bytes) that must be free before a request that gave way can return."""
        return max(0, request.run.preempted_bytes - self._resident.get(request.seq, 0))

    def by_others(self) -> float:
        """Return the memory in use by all but requests that may give way, in per cent of the machine's."""
        site = self._draft.site
        left_out = [r.seq for r in site.started.values() if not site.domain_of(r.queue).lists(FEATURE.name)]
        ours = sum(self._resident.values()) - sum(self._resident.get(seq, 0) for seq in left_out)
        return site.pressure.used - (100 * ours / self.total if self.total else 0.0)

    def large(self) -> list[Request]:
        """Return the running requests that may give way: those above `SwapControl.small`."""
        small = CONTROL.one(self._draft.site.settings).small
        return [request for request in self._draft.running() if self.now(request) > small]


# ---------------------------------------------------------------- giving way


def _give_way(draft: Draft, held: ResidentMemory, now: Instant) -> Instant | None:
    """Propose that one running request gives way. If none may yet, return when the first may; else None."""
    control, large = CONTROL.one(draft.site.settings), held.large()
    if len(large) == 1 and held.by_others() < control.low and not draft.site.pressure.people:
        return None
    free = [request for request in large if free_at(request, control) <= now]
    victim = choose({request.seq: held.now(request) for request in free}, free)
    if victim is None:
        return min((free_at(request, control) for request in large), default=None)
    text = _GIVES_WAY(str(SWAP), words(held.now(victim)), _now(draft.site.pressure)).text
    draft.suspend(victim, SWAP, text, pes_released=False, page_out=True)
    return None


def free_at(request: Request, control: SwapControl) -> Instant:
    """Return the time at which a running request has been in memory for ``min_resident``."""
    return Instant(goes_since(request) + control.min_resident)


def choose(held: Mapping[Seq, int], requests: Iterable[Request]) -> Request | None:
    """Return the request that gives way: of comparable ones that which did so least often, then the largest;
    None: no request may. ``requests``: those that may; ``held``: bytes in memory by request."""
    most = max(held.values(), default=0)
    comparable = [request for request in requests if held[request.seq] * COMPARABLE >= most]
    return min(comparable, key=lambda r: (r.run.preempted_times, -held[r.seq], r.seq), default=None)


# ---------------------------------------------------------------- returning


def _comes_back(draft: Draft, held: ResidentMemory, away: list[Request]) -> Request | None:
    """Return the suspended request that resumes now, unless an earlier feature holds it; None: no request."""
    control, pressure = CONTROL.one(draft.site.settings), draft.site.pressure
    mine = [request for request in away if request.seq not in draft.reasons]
    alone = mine[0] if mine and not held.large() and not pressure.people else None
    if pressure.level == "calm":
        room = (control.low - pressure.used) * held.total / 100
        return next((request for request in mine if held.needed(request) <= room), alone)
    return alone if held.by_others() < control.low else None


# ---------------------------------------------------------------- in words


def why_away(request: Request, control: SwapControl, pressure: Pressure) -> Reason:
    """Return why a request that gave way stays away."""
    gave = words(request.run.preempted_bytes)
    if pressure.level == "calm":
        return _AWAY(str(SWAP), gave, control.low, _now(pressure))
    return _GIVES_WAY(str(SWAP), gave, _now(pressure))


def _now(pressure: Pressure) -> str:
    return pressure.text or f"{pressure.used:.0f} % in use"


def why_nothing_starts(control: SwapControl, pressure: Pressure) -> Reason:
    """Return the reason for which no request starts: memory is short, or suspended requests go first."""
    if pressure.level == "calm":
        return _OTHERS_FIRST(str(SWAP))
    return _SCARCE(str(SWAP), _now(pressure), control.low)


def words(size: int) -> str:
    """Return a size in words of 8 bytes, as computing centres write it: ``93 Mw``, ``0.5 Mw``."""
    mega = size / 8 / 2**20
    return f"{mega:.0f} Mw" if mega >= 10 else f"{mega:.1f} Mw"


# ---------------------------------------------------------------- the level


class Reading(Struct, frozen=True):
    """Reading of the machine: memory in use (per cent), time in which some process waits for memory (per
    cent), and True if people work at terminals."""

    used: float
    stalled: float = 0.0
    people: bool = False


def judge(control: SwapControl, reading: Reading, former: Level) -> tuple[Level, str]:
    """Return the level, and its cause in words: "high" from the mark ``high`` on (with ``interactive``, while
    people work, from half way between the marks), below it "tight" until less than ``low`` is in use, then
    "calm". ``former``: the level before. From ``low`` on, it is also "high" if processes wait for memory in
    ``psi`` per cent of the time or more (pressure stall information, "some" of the last 10 s)."""
    # Below ``low`` processes that wait for memory wait inside limits of their own.
    early = reading.people and control.interactive
    mark, text = (control.high + control.low) / 2 if early else control.high, f"{reading.used:.0f} % in use"
    if reading.used >= control.low and reading.stalled >= control.psi:
        return "high", f"{text}, processes wait for memory {reading.stalled:.0f} % of the time"
    if reading.used >= mark:
        return "high", f"{text}, people are at work" if mark < control.high else text
    if reading.used < control.low or former == "calm":
        return "calm", text
    return "tight", text


def near(control: SwapControl, reading: Reading) -> bool:
    """True if memory may become short within seconds, so that readings must be frequent."""
    return reading.used >= control.low - 15 or reading.stalled > 0


FEATURE = Feature("swap", act, stands=stands, why_held=why_held)
