"""Invariants of a site, for tests and checks: data that are stored twice must agree."""

from collections.abc import Iterable

from nqspy.model import board, consumables, indices
from nqspy.model.board import Holders
from nqspy.model.columns import turn_of
from nqspy.model.errors import BrokenSite
from nqspy.model.ids import Seq, array_of, index_of, is_array, number_of
from nqspy.model.output_paths import files
from nqspy.model.requests import STARTED, Request, State
from nqspy.model.site import RequestCounts, Site


def check_site(site: Site) -> None:
    """Raise BrokenSite unless all data agree: columns, states, PEs, attempts, dates."""
    for seq, request in site.requests.items():
        _check_request(site, seq, request)
    _check_links(site)
    queued = sum(len(columns) for columns in site.waiting.values())
    rows = sum(r.slot >= 0 for r in site.requests.values())
    ensure(queued == rows, "columns hold requests that are not queued")
    started = {s for s, r in site.requests.items() if r.state in STARTED}
    ensure(set(site.started) == started, "started index is wrong")
    paused = {s for s in started if site.started[s].state is State.SUSPENDED}
    ensure(set(site.paused) == paused, "the index of suspended requests is wrong")
    holding: Holders = {}
    for request in site.started.values():
        if not request.pes_released:
            board.hold(holding, request.seq, request.pes)
    found = {pe: sorted(holders) for pe, holders in site.holders.items()}
    ensure(found == {pe: sorted(holders) for pe, holders in holding.items()}, "the board is wrong")
    overfull = any(site.board(name).overfull() for name in site.domains()) if found else False
    ensure(not overfull, "a PE was given too often")
    for domain in map(site.domain, site.domains()):
        anew = board.Board(domain, site.pes_of(domain), site.holders, site.offline(), site.foreign_pes())
        ensure(site.board(domain.name).is_like(anew), "a board is not up to date")
    going = (request for request in site.started.values() if request.state is not State.EXITING)
    holders = [(request.seq, request.units, request.spec.ask.consumables) for request in going]
    wrong = next(consumables.wrong(holders, site.units, site.away), "")
    ensure(not wrong, wrong)
    ensure(site.tally == RequestCounts.of(site.requests.values()), "the tally of requests is wrong")


def _check_request(site: Site, seq: Seq, request: Request) -> None:
    ensure(request.seq == seq, f"{seq} is filed under another number")
    ensure(number_of(seq) < site.next_seq, f"{seq} was never given out")
    ensure(request.state is not State.ENDED, f"{seq} has ended and is still in the site")
    queued = request.state is State.QUEUED
    ensure(queued == (request.slot >= 0), f"{seq} is {request.state} with row {request.slot}")
    if queued:
        columns = site.columns(request.queue)
        there = request.slot < len(columns) and columns.request(request.slot) is request
        ensure(there, f"{seq} is not in its row")
        ensure(int(columns.date[request.slot]) == request.date_in_queue, f"{seq} has another date in its row")
        ensure(int(columns.turn[request.slot]) == turn_of(request), f"{seq} has another place in its row")
    if request.state in STARTED:
        ensure(0 < request.run.number == request.attempts, f"{seq} runs without an attempt")
        asked = site.domain_of(request.queue).held_by(request.spec.ask.pes)
        due = 0 if request.state is State.EXITING else asked
        ensure(len(request.pes) == due, f"{seq} has not the PEs it asked for")
        suspended = request.state is State.SUSPENDED
        ensure(suspended == (request.pause is not None), f"{seq} is {request.state} and paused")
    else:
        ensure(request.attempt is None, f"{seq} is {request.state} and holds PEs")
    held = bool(request.holds or request.unmet)
    ensure((request.state is State.HELD) == held, f"{seq} is {request.state} and held")
    ensure(bool(request.unmet or not request.never), f"{seq} waits for nothing, for ever")
    of = array_of(seq)
    ensure(of is None or of in site.requests, f"{seq} has lost its array")
    check_array(request, site.members.get(seq, ()))


def _check_links(site: Site) -> None:
    watched = set(site.dates)
    dependants: dict[Seq, dict[Seq, None]] = {}
    writers: dict[str, dict[Seq, None]] = {}
    for seq, request in site.requests.items():
        if request.state is State.WAITING:
            ensure((request.eligible, seq) in watched, f"{seq} waits for a date that is not watched")
        for other in request.awaits():
            ensure(number_of(other) < number_of(seq), f"{seq} depends on a later request")
            dependants.setdefault(other, {})[seq] = None
        for file in files(seq, request.spec, request.queue):
            writers.setdefault(file, {})[seq] = None
        if request.reservation is not None:
            ensure(request.state is State.QUEUED, "a start is reserved for a request that is not queued")
    ensure(site.dependants == dependants, "the index of dependants is wrong")
    ensure(site.writers == writers, "the index of output files is wrong")
    reserved = {r.seq for r in site.requests.values() if r.reservation is not None}
    ensure(reserved == site.reserved.keys(), "the index of reserved starts is wrong")


def check_array(request: Request, members: Iterable[Seq]) -> None:
    """Raise BrokenSite unless each index is in one place: not begun, one of ``members``, or ended."""
    seq, state, spec = request.seq, request.array, request.spec.array
    ensure(is_array(seq) == (state is not None), f"{seq} is half an array")
    if state is None or spec is None:
        return
    own = indices.of(index_of(each) or 0 for each in members)
    placed: indices.Runs = ()
    for runs in (state.left, own, state.well, state.badly, state.dropped):
        ensure(not indices.both(placed, runs), f"an index of {seq} is in two places")
        placed = indices.plus(placed, runs)
    ensure(not indices.minus(spec.indices, placed), f"{seq} has lost an index")
    ensure(not indices.minus(placed, spec.indices), f"{seq} has an index too many")
    blocked = indices.plus(state.all_held, state.all_awaiting)
    ensure(not indices.minus(blocked, state.left), f"{seq} keeps indices that it has not")
    ensure(not indices.both(blocked, state.ready), f"{seq} has indices that are both ready and blocked")
    ensure(not indices.minus(state.left, indices.plus(blocked, state.ready)), f"{seq} has forgotten an index")


def ensure(holds: bool, text: str) -> None:
    """Raise BrokenSite with this text unless ``holds``."""
    if not holds:
        raise BrokenSite(text)
