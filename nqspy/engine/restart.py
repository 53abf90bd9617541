"""Restart: brings what runs by the database in line with what the executor finds (architecture.md 5.8)."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from nqspy.engine.handlers import health
from nqspy.engine.handlers import observations as executor_desk
from nqspy.engine.handlers.advice import names
from nqspy.engine.handlers.context import Transaction
from nqspy.engine.inputs import Outcome
from nqspy.engine.loop import Engine
from nqspy.model import indices
from nqspy.model.cause import Cause
from nqspy.model.events import Event, Held, MachineFound, Parted, Restored
from nqspy.model.ids import Instant, Seq, array_of, index_of, number_of
from nqspy.model.indices import Runs
from nqspy.model.machine import Found
from nqspy.model.observations import Observation, ObservedVoid
from nqspy.model.requests import STARTED
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site


class Later(Struct, frozen=True):
    """Facts from after the last event in the database, if it is an older copy or lost its latest commits.
    ``text``, ``subject``: of the alarm and the mail about it. ``next_seq``: lowest number that is surely
    unused; ``attempts``: last attempt of each request started then, also of requests not in the database.
    ``forgotten``: an operator had the former state set aside, so nothing is missing but these numbers."""

    text: str
    next_seq: Seq = 1
    attempts: Mapping[Seq, int] = field(default_factory=dict)
    subject: str = "a backup was restored"
    forgotten: bool = False


def later_than(site: Site, spooled: Mapping[Seq, int], noted: Later | None = None) -> Later | None:
    """Return what the database misses; None: it misses nothing, as usual. ``spooled``: last attempt of each
    request that has files in the spool; ``noted``: note left by a restore of a backup, if any."""
    later = {
        seq: attempt
        for seq, attempt in spooled.items()
        if number_of(seq) >= site.next_seq
        or ((request := site.to_be(seq)) is not None and attempt > request.attempts)
    }
    if noted is None and not later:
        return None
    noted = noted or Later("the spool has runs of jobs that are not in the database")
    attempts = dict(noted.attempts)
    for seq, attempt in later.items():
        attempts[seq] = max(attempt, attempts.get(seq, 0))
    next_seq = max(noted.next_seq, site.next_seq, *(number_of(seq) + 1 for seq in attempts))
    return replace(noted, next_seq=next_seq, attempts=attempts)


def begin(
    engine: Engine, found: Found, host: str, zone: str, now: Instant, later: Later | None = None
) -> Outcome:
    """Record the machine, adopt attempts that run, end those that ended, and queue again those that never
    began; then check the site. Raises BrokenSite.

    ``found``, ``host``, ``zone``: the machine as it is now. ``later``: what the database misses
    (`later_than`); then no number is given out again, and requests started in that time are held until an
    operator releases them.

    Before that the executor claims every attempt that has not begun as void, so that nothing runs twice. If
    the commit fails, the observations are applied again later.
    """
    site = engine.site
    expected = {seq: request.attempts for seq, request in site.started.items()}
    observations = engine.executor.scan(expected)
    engine.exits.begin(site)
    tx = engine.transaction(now)
    _meet_machine(tx, found, host, zone)
    for observation in observations:
        engine.adopt(tx, observation)
    _meet_machine(tx, found, host, zone)
    executor_desk.report_strays(tx, observations)
    if later is not None:
        _meet_later(tx, later, observations)
    check_site(site)
    return engine.feed((), now)


def again(engine: Engine, events: Sequence[Event], now: Instant) -> Outcome:
    """Apply the recorded events of a start of the daemon (`begin`) again, in a replay."""
    engine.happen_again(engine.transaction(now), events)
    return engine.feed((), now)


def _meet_machine(tx: Transaction, found: Found, host: str, zone: str) -> None:
    site = tx.site
    now = site.found.updated(found, bool(site.started))
    if site.n == 0 or (site.found, site.host, site.zone) != (now, host, zone):
        before, new = site.found, site.n == 0
        tx.emit(MachineFound(now.cpus, now.memory, host, zone, now.offline, now.devices))
        if not new:
            health.report_machine(tx, before)


def _meet_later(tx: Transaction, later: Later, observations: Sequence[Observation]) -> None:
    site, first = tx.site, tx.site.next_seq
    if later.forgotten:
        tx.emit(Restored(later.text, later.next_seq))
        return
    begun: dict[Seq, Runs] = {}  # indices that are in their arrays still, by array
    for seq in later.attempts:
        array, index = array_of(seq), index_of(seq)
        if array is not None and index is not None and seq not in site.requests and site.to_be(seq):
            begun[array] = indices.add(begun.get(array, ()), index)
    for array, some in begun.items():
        tx.emit(Parted(array, some))
    tx.emit(Restored(later.text, later.next_seq, tuple(sorted(later.attempts.items()))))
    # An attempt without a trace may have ended after the backup: it must not run again by itself either.
    vanished = {each.seq for each in observations if isinstance(each, ObservedVoid)}
    held = [
        seq
        for seq in sorted({*later.attempts, *vanished})
        if (request := site.requests.get(seq)) is not None and request.state not in STARTED
    ]
    if held:
        tx.emit(Held(tuple(held), "o", "nqsd", HELD, cause=Cause("system", "nqsd")))
    unknown = sorted(seq for seq in later.attempts if seq not in site.requests)
    parts = [f"{later.text}; the next identifier is {site.id_of(site.next_seq)}"]
    if held:
        parts.append(f"held, because they may have run since: {names(site, held, _FEW)}")
    if unknown:
        parts.append(f"started since, but not in the database: {names(site, unknown, _FEW)}")
    began = {number_of(seq) for seq in later.attempts}
    if lost := [Seq(number) for number in range(first, later.next_seq) if number not in began]:
        parts.append(f"submitted since and lost, submit again: {names(site, lost, _FEW)}")
    tx.alarm("restore", "; ".join(parts), later.subject)


HELD = "it may have run after the last event in the database; to run it (again), release it with qrls -h o"
"""Reason why a request is held after a restore of the database."""

_FEW = 20
