"""The worker process in which passes and deciding exits run. It is forked with the daemon's site, applies the
same events to it, and answers one order after another until it is ended."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from traceback import format_exc
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from nqspy.core.draft import Draft
from nqspy.core.passes import run_pass
from nqspy.core.views import view_of
from nqspy.decider import messages, plans
from nqspy.decider.process import WorkerPipes
from nqspy.engine import lifecycle
from nqspy.engine.handlers.exits import digest_of
from nqspy.engine.look_ahead import LookAhead
from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.ports import PassView
from nqspy.store.rows import no_collector
from nqspy.system import urgency
from nqspy.userexit.call_stats import OwnerBackoff, SavedMemory, Skipped
from nqspy.userexit.loader import Source
from nqspy.userexit.site_exits import SiteExits

_memory = msgspec.msgpack.Decoder(SavedMemory)


LOOK_AHEAD = 0.042
"""Seconds of CPU time after which a look ahead ends between two of its passes; 0.05 s with the other work."""
FEW, LONGER = 100, 5
"""Where at most FEW requests and indices wait, a look ahead in nqsd may take LONGER times as long."""


def look_ahead_limit(site: Site) -> float:
    """Return the CPU time (s) that a look ahead in nqsd may take, by the number of waiting requests and
    indices."""
    return LOOK_AHEAD * (LONGER if sum(each.count.sum() for each in site.waiting.values()) <= FEW else 1)


def part_of(seconds: float) -> Callable[[], float]:
    """Return a function that returns the CPU time of this thread since now, as a fraction of ``seconds``."""
    began = time.thread_time()
    return lambda: (time.thread_time() - began) / seconds


def part_of_wait(seconds: float, wall: float) -> Callable[[], float]:
    """Return a function that returns the greater of two fractions used since now: of ``seconds`` of CPU time,
    and of ``wall`` real seconds."""
    worked, began = part_of(seconds), time.monotonic()
    return lambda: max(worked(), (time.monotonic() - began) / wall)


class WorkerTask(Struct, frozen=True):
    """Task of a new worker, run just after the fork. ``skips``, ``backoffs``: subjects and owners for which
    exits are not called, since earlier workers were lost; ``listing``: figures of the exits to count on from;
    ``memory``: state of an earlier worker, with its failures unless ``forgiving``; ``failures``: newer state,
    of failures alone."""

    folder: Path
    sources: tuple[Source, ...]
    site: Site
    skips: tuple[Skipped, ...] = ()
    backoffs: tuple[OwnerBackoff, ...] = ()
    listing: messages.Listing = ()  # type: ignore[assignment]
    memory: bytes = b""
    forgiving: bool = False
    failures: bytes = b""

    def __call__(self, pipes: WorkerPipes) -> None:
        """Load the exits and serve orders."""
        exits = SiteExits(self.folder, sources=self.sources, watch=pipes.heartbeat)
        exits.begin(self.site)
        exits.lost(self.skips, self.backoffs)
        exits.remember(self.listing)
        files = digests(self.sources)
        for state, same in ((self.failures, files), (self.memory, {} if self.failures else files)):
            with suppress(msgspec.DecodeError, ValueError):  # another version's state
                exits.recollect(_memory.decode(state), {} if self.forgiving else same)
        units = {name: dict(settings) for name, settings in exits.declared().items()}
        unfit = exits.unfit(self.site.settings.exits)
        state = msgspec.msgpack.encode(exits.memory(files, answers=False))
        pipes.answer(messages.ExitsLoaded(0, exits.problems, unfit, exits.listing(), units, state))
        Worker(self.site, exits, pipes, files).serve()


class SentRequest:
    """A request as exits see it, read only, made in the worker from fields that the daemon sent."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        lists = {name: tuple(fields[name]) for name in ("attributes", "arguments")}
        object.__setattr__(self, "_fields", dict(fields) | lists)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            known = ", ".join(self._fields)
            raise AttributeError(f"a request has no {name}; it has {known}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a request is read only")

    def __repr__(self) -> str:
        return f"<request {self.id} {self.name} of {self.owner}>"


class Worker:
    """Answers the daemon's orders in the worker process, with its copy of the site and the loaded exits."""

    def __init__(self, site: Site, exits: SiteExits, pipes: WorkerPipes, files: Mapping[str, str]) -> None:
        self._site, self._exits, self._pipes, self._files = site, exits, pipes, files
        self._stamp = exits.stamp

    def serve(self) -> None:
        """Answer orders until the process is ended."""
        while True:
            order = self._pipes.receive()
            if isinstance(order, messages.FollowEvents):
                for recorded in messages.events_in(order.rows):
                    lifecycle.apply(self._site, recorded)
                self._site.touched.clear()
                continue
            try:
                answer = self._answer(order)
            except BaseException:
                answer = messages.OrderFailed(order.id, format_exc())
            self._pipes.answer(answer)

    def _answer(self, order: messages.Order) -> messages.WorkerMessage:
        site, exits, id = self._site, self._exits, order.id
        if order.n != site.n:
            return messages.OutOfStep(id, f"it knows {site.n} events, not {order.n}")
        match order:
            case messages.AskPass():
                site.upcoming_stops, site.closings = order.upcoming_stops, order.closings
                plan = run_pass(site, order.now, exits, dict(order.samples))
                before, self._stamp, state = self._stamp, exits.stamp, b""
                if before != self._stamp:
                    state = msgspec.msgpack.encode(exits.memory(self._files, answers=False))
                return plans.plan_made(id, plan, exits.listing(), self._stamp, state)
            case messages.AskSubmit():
                answer = exits.submit(SentRequest(order.request), self._view(order.now))
                fields = None if answer is None else dict(answer.changes)
                refusal, who = (answer.refusal, answer.who) if answer is not None else (None, "")
                failures, listing = self._failed()
                return messages.SubmitAnswered(id, refusal, who, fields, failures, exits.stamp, listing)
            case messages.AskRoute():
                found = exits.route(SentRequest(order.request), order.destinations, self._view(order.now))
                failures, listing = self._failed()
                return messages.RouteAnswered(id, tuple(found), failures, exits.stamp, listing)
            case messages.AskShares():
                view = self._view(order.now, order.samples)
                with exits.rehearsal(order.now):
                    return messages.SharesAnswered(id, exits.shrpris(order.pairs, view))
            case messages.AskForecasts():
                spent, wanted = part_of(LOOK_AHEAD), order.seqs or ()
                with no_collector():
                    ahead = LookAhead(site, order.now, order.between, request=order.request, wanted=wanted)
                    return messages.forecasts_made(id, ahead.forecasts(order.seqs, exits, spent))
            case messages.AskStarts():
                starts = []
                for changes in ((), order.changes):
                    spent = part_of(LOOK_AHEAD)
                    with no_collector():
                        ahead = LookAhead(site, order.now, order.between, changes=changes)
                        starts.append(dict(ahead.starts(exits, spent)))
                return messages.StartsMade(id, *starts)
            case messages.AskTrace():
                return messages.TraceAnswered(id, messages.packed(exits.trace(order.seq)))
            case messages.AskState():
                return messages.StateAnswered(id, msgspec.msgpack.encode(exits.memory(self._files)))
        raise TypeError(f"no order for a worker that decides: {order}")

    def _view(self, now: Instant, samples: messages.Samples = ()) -> PassView:
        self._exits.begin(self._site)
        return view_of(Draft(self._site, now, self._exits, dict(samples)))

    def _failed(self) -> tuple[tuple[ExitFailure, ...], messages.Listing]:
        failures = self._exits.failures()
        return failures, self._exits.listing() if failures else []


# ---------------------------------------------------------------- notices


class NoticeTask(Struct, frozen=True):
    """Task of the notices' worker: it calls notice hooks; ``site`` is used for the exits' settings only."""

    folder: Path
    sources: tuple[Source, ...]
    site: Site

    def __call__(self, pipes: WorkerPipes) -> None:
        """Load the exits and call notice hooks."""
        urgency.ordinary()  # no caller waits for the result
        exits = SiteExits(self.folder, sources=self.sources, watch=pipes.heartbeat)
        exits.begin(self.site)
        # Failures are reported to the daemon, whose log has the traceback.
        logging.getLogger("nqspy.userexit").addFilter(lambda record: record.levelno < logging.ERROR)
        pipes.answer(messages.ExitsLoaded(0, exits.problems, [], exits.listing(), {}))
        while True:
            order = pipes.receive()
            if isinstance(order, messages.GiveNotice):
                arguments, failures = dict(order.arguments), list[ExitFailure]()
                if "request" in arguments:
                    arguments["request"] = SentRequest(arguments["request"])
                if "report" in arguments:
                    arguments["report"] = read_only(arguments["report"])
                with suppress(Exception):
                    failures = exits.notify(order.hook, **arguments)
                pipes.answer(messages.NoticeGiven(order.id, tuple(failures), exits.listing()))


def read_only(value: Any) -> Any:
    """Return the same data, unchangeable: mappings and tuples at all levels."""
    if isinstance(value, dict):
        return MappingProxyType({key: read_only(each) for key, each in value.items()})
    return tuple(map(read_only, value)) if isinstance(value, list | tuple) else value


def digests(sources: Iterable[Source]) -> dict[str, str]:
    """Return the content hash of each exit of these files, by name."""
    return {source.path.stem: digest_of(source.text) for source in sources}


def names(sources: Iterable[Source]) -> list[str]:
    """Return the names of the exits of these files."""
    return [source.path.stem for source in sources]
