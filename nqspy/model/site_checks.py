"""What must hold of a site in every state: all that stands twice stands there alike."""

from typing import Protocol

from nqspy.model import board, consumables
from nqspy.model.array_checks import check_array, ensure
from nqspy.model.board import Holders
from nqspy.model.columns import Columns, turn_of
from nqspy.model.domains import Domain
from nqspy.model.ids import Instant, Seq, array_of, number_of
from nqspy.model.outputs import files
from nqspy.model.request_counts import RequestCounts
from nqspy.model.requests import STARTED, Request, State


class Linked(Protocol):
    """What is looked at of a site."""

    requests: dict[Seq, Request]
    waiting: dict[str, Columns]
    started: dict[Seq, Request]
    paused: dict[Seq, Request]
    holders: Holders
    units: consumables.UnitHolders
    away: consumables.UnitHolders
    dates: list[tuple[Instant, Seq]]
    dependants: dict[Seq, set[Seq]]
    writers: dict[str, dict[Seq, None]]
    members: dict[Seq, dict[Seq, None]]
    reserved: dict[Seq, None]
    tally: RequestCounts
    next_seq: Seq

    def columns(self, queue: str) -> Columns: ...
    def domains(self) -> list[str]: ...
    def domain_of(self, queue: str) -> Domain: ...
    def board_anew(self, domain: str = ...) -> board.Board: ...
    def board(self, domain: str = ...) -> board.Board: ...


def check_site(site: Linked) -> None:
    """Raises BrokenSite."""
    for seq, request in site.requests.items():
        _check_request(site, seq, request)
    _check_dates(site)
    _check_dependants(site)
    _check_writers(site)
    _check_reserved(site)
    queued = sum(len(columns) for columns in site.waiting.values())
    rows = sum(r.slot >= 0 for r in site.requests.values())
    ensure(queued == rows, "columns hold requests that are not queued")
    started = {s for s, r in site.requests.items() if r.state in STARTED}
    ensure(set(site.started) == started, "started index is wrong")
    paused = {s for s in started if site.started[s].state is State.SUSPENDED}
    ensure(set(site.paused) == paused, "the index of suspended requests is wrong")
    _check_pes(site)
    _check_units(site)
    ensure(site.tally == RequestCounts.of(site.requests.values()), "the tally of requests is wrong")


def _check_request(site: Linked, seq: Seq, request: Request) -> None:
    ensure(request.seq == seq, f"{seq} is filed under another number")
    ensure(number_of(seq) < site.next_seq, f"{seq} was never given out")
    ensure(request.state is not State.ENDED, f"{seq} has ended and is still kept")
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


def _check_dates(site: Linked) -> None:
    watched = set(site.dates)
    for seq, request in site.requests.items():
        if request.state is State.WAITING:
            ensure((request.eligible, seq) in watched, f"{seq} waits for a date that is not watched")


def _check_dependants(site: Linked) -> None:
    expected: dict[Seq, set[Seq]] = {}
    for seq, request in site.requests.items():
        for other in request.awaits():
            ensure(number_of(other) < number_of(seq), f"{seq} depends on a later request")
            expected.setdefault(other, set()).add(seq)
    ensure(site.dependants == expected, "the index of dependants is wrong")


def _check_writers(site: Linked) -> None:
    expected: dict[str, dict[Seq, None]] = {}
    for seq, request in site.requests.items():
        for file in files(seq, request.spec, request.queue):
            expected.setdefault(file, {})[seq] = None
    ensure(site.writers == expected, "the index of output files is wrong")


def _check_reserved(site: Linked) -> None:
    kept = {r.seq for r in site.requests.values() if r.reservation is not None}
    ensure(kept == site.reserved.keys(), "the index of promised starts is wrong")
    queued = all(site.requests[seq].state is State.QUEUED for seq in kept)
    ensure(queued, "a start is promised to one that is not queued")


def _check_pes(site: Linked) -> None:
    expected: Holders = {}
    for request in site.started.values():
        if not request.pes_released:
            board.take(expected, request.seq, request.pes)
    kept = {pe: sorted(holders) for pe, holders in site.holders.items()}
    ensure(kept == {pe: sorted(holders) for pe, holders in expected.items()}, "the board is wrong")
    overfull = any(site.board(name).overfull() for name in site.domains()) if kept else False
    ensure(not overfull, "a PE was given too often")
    followed = all(site.board(name).is_like(site.board_anew(name)) for name in site.domains())
    ensure(followed, "a board was not kept up to date")


def _check_units(site: Linked) -> None:
    going = (request for request in site.started.values() if request.state is not State.EXITING)
    holders = [(request.seq, request.units, request.spec.ask.consumables) for request in going]
    wrong = next(consumables.wrong(holders, site.units, site.away), "")
    ensure(not wrong, wrong)
