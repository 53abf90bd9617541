"""Lists of ``qstat``: requests as objects, why they wait; in slices. Tables and PBS forms: `pbs_jobs`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from nqspy.answers import pbs_jobs, queues
from nqspy.answers.choice import Listing, RequestChoice
from nqspy.answers.serving import Serving
from nqspy.answers.slow import Work
from nqspy.answers.visibility import Visibility, promise_for
from nqspy.core import guarantees_times, runtime
from nqspy.core.classes import class_in
from nqspy.decider.client import MAX_WAIT
from nqspy.engine.explain import Places, causes, chain, reasons_of
from nqspy.model import indices
from nqspy.model.endings import End
from nqspy.model.errors import Refusal
from nqspy.model.ids import Seq, request_named
from nqspy.model.machine import torus_of
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request
from nqspy.ports import EndedRow
from nqspy.report import json_objects, why
from nqspy.report.event_objects import used_object
from nqspy.report.time_text import Zone
from nqspy.rpc import messages
from nqspy.rpc import server as rpc

SLICE = 1_000
"""Requests examined in one slice."""
A_FEW = 5
"""Requests of ``qstat --why`` that are explained in one slice."""

NEVER = 1 << 62
"""Estimate of a request whose start is unknown."""

Objects = list[dict[str, Any]]


class Lister:
    """Maker of requests' JSON objects, as of the instant at which it was made, for the caller of ``view``."""

    def __init__(self, serving: Serving, view: Visibility) -> None:
        self._engine, self._run_times = serving.engine, serving.run_times
        self._view = view
        site = serving.engine.site
        now = serving.clock.now()
        torus, domains = torus_of(site.settings.machine), site.domains_by_queue()
        self.place = json_objects.AnswerContext(site.name, Zone(site.timezone), now, domains, torus)
        self._places = Places(serving.engine, now)

    def objects(self, requests: Sequence[Request]) -> Objects:
        """Return the objects of live requests, as `qstat --json` shows them."""
        reasons = reasons_of(self._engine, [request.seq for request in requests])
        return [self._object(request, reasons.get(request.seq)) for request in requests]

    def _object(self, request: Request, reason: Reason | None) -> dict[str, Any]:
        made = json_objects.request_object(request, self.place, self._places.of(request), reason)
        if request.array is not None:
            site = self._engine.site
            members = [site.requests[seq] for seq in site.members.get(request.seq, ())]
            made["array"] = json_objects.array_object(request, members)
        if request.started is not None:
            sample = self._engine.samples.get(request.seq)
            now = self._run_times.unset(request.seq, self.place.at)
            made["used"] = used_object(request.used_until(now, sample))
        return self._view.mask(made)

    def ended(self, rows: Iterable[EndedRow]) -> Objects:
        """Return the objects of ended requests, as `qstat --json` shows them."""
        return [self._view.mask(json_objects.ended_object(row, self.place)) for row in rows]


def ended_objects(serving: Serving, seqs: Sequence[Seq], view: Visibility) -> Objects:
    """Return the objects of ended requests, in the order of ``seqs``; hidden ones are left out."""
    found = serving.readers.live.ended(seqs=seqs)
    return Lister(serving, view).ended(row for row in found if view.allows(row["spec"]))


def _listing(serving: Serving, asked: rpc.Asked, message: Mapping[str, Any] | None = None) -> Listing:
    choice = RequestChoice(serving, message or asked.message, asked.caller, strict=True)
    lister = Lister(serving, choice.view)
    return Listing(asked.handle.id, choice, lister.objects, lister.ended)


def _elements(listing: Listing, objects: Objects) -> list[bytes]:
    """Return elements of a JSON array: one each if they are to be sorted, else some joined together."""
    if listing.choice.seqs:
        return [json_objects.encode(each) for each in objects]
    return [json_objects.encode(objects)[1:-1]] if objects else []


def list_requests(serving: Serving, asked: rpc.Asked) -> Iterator[bytes | None]:
    """Yield None after slices, then the objects for programs. Raises Refusal if an identifier is unknown."""
    listing, found = _listing(serving, asked), list[bytes]()
    yield from listing.collected(found, lambda some: _elements(listing, some))
    if listing.choice.wrong:
        raise listing.choice.wrong[0]
    yield messages.list_answer(asked.handle.id, found)


def qstat(serving: Serving, asked: rpc.Asked) -> Any:
    """Answer ``qstat`` in the form that ``text`` names (`_FORMS`). Raises Refusal for an unknown form."""
    form = str(asked.message.get("text") or "table")
    if asked.message.get("posix"):
        form = "posix"
    summary = queues.FORMS.get("mpp" if asked.message.get("mpp") else form)
    if summary is not None:
        text = summary(serving.engine.site, queues.counts(serving))
        return messages.text_answer(asked.handle.id, 0, text)
    if form not in _FORMS:
        raise Refusal("bad_form", form=form)
    return _FORMS[form](serving, asked)


def _key(serving: Serving, made: dict[str, Any]) -> Seq:
    """Return the number of the request that an object shows."""
    return request_named(made["id"], serving.engine.site.names) or 0


def _json(serving: Serving, asked: rpc.Asked) -> Iterator[bytes | None]:
    def write(some: Objects) -> list[bytes]:
        return [messages.escaped(part.decode()) for part in _elements(listing, some)]

    listing, found = _listing(serving, asked), list[bytes]()
    yield from listing.collected(found, write)
    choice, end = listing.choice, b"]\\n" if found else b"[]\\n"
    pieces = [part for each in found for part in (b",", each)]
    pieces[:1] = [b"["] * bool(found)
    yield messages.pieces_answer(asked.handle.id, choice.status(), [*pieces, end], choice.complaint())


def _why(serving: Serving, asked: rpc.Asked) -> Iterator[Work | None]:
    """Answer ``qstat --why`` in slices of a few requests; estimates of starts come last, as late work."""
    message = asked.message
    operands = message.get("operands") or message.get("ids") or [message.get("request")]
    listing, found = _listing(serving, asked, {"operands": [str(word) for word in operands]}), Objects()
    choice, site = listing.choice, serving.engine.site
    yield from listing.collected(found, list)
    for start in range(0, len(found), A_FEW):
        some = found[start : start + A_FEW]
        for each in some:
            seq = _key(serving, each)
            each["chain"] = _chain(serving, seq, choice.view)
            each |= _more(serving, seq, choice.view)
            asked_for, hint = each["requested"], ""
            # Advice to owners about their wall limits.
            if each["state"] != "ended" or End.of_object(each).ok:
                limit = None if asked_for["wall_s"] is None else round(asked_for["wall_s"] * 1000)
                key = each["owner"], each["name"], asked_for["pes"]
                hint = runtime.hint_on_wall(site.settings, site.lifetimes, key, limit)
            each["hint"] = hint or None
        if not message.get("json"):
            reasons = reasons_of(serving.engine, [_key(serving, each) for each in some])
            for each in some:  # programs get the code
                reason = reasons.get(_key(serving, each))
                each["needed"] = reason.needed if reason is not None else None
                each["by_class"] = class_in(site, each["queue"], each.get("class", ""))
        if some[-1] is not found[-1]:
            yield None
    zone, keys = Zone(site.timezone), [_key(serving, each) for each in found]
    now = serving.clock.now()
    ahead = serving.decider.forecasts(now, serving.engine.between, tuple(keys))
    named = choice.view.namer()

    def work() -> bytes:
        runs = ahead(MAX_WAIT)
        for each, key in zip(found, keys, strict=True):
            each["estimate"] = runs[key].as_dict(zone.text, named, now) if key in runs else None
        if message.get("json"):
            text = json_objects.encode(found).decode() + "\n"
        else:
            text = "".join(why.why_text(each, zone.text(now)) for each in found)
        return listing.answer(text)

    yield work


def _eta(serving: Serving, asked: rpc.Asked) -> Iterator[Work | None]:
    """Answer ``qstat --eta``: waiting requests by estimated start; those with an unknown start come last."""
    listing, found = _listing(serving, asked), Objects()
    choice = listing.choice
    yield from listing.collected(found, list)
    keys = [_key(serving, each) for each in found]
    wanted = tuple(keys) if choice.seqs else None
    now = serving.clock.now()
    ahead = serving.decider.forecasts(now, serving.engine.between, wanted)
    zone, named = Zone(serving.engine.site.timezone), choice.view.namer()

    def work() -> bytes:
        runs = ahead(MAX_WAIT)
        rows = [each for each, key in zip(found, keys, strict=True) if key in runs]
        starts = {each["id"]: runs[key] for each, key in zip(found, keys, strict=True) if key in runs}
        for each in rows:
            each["estimate"] = starts[each["id"]].as_dict(zone.text, named, now)
        rows.sort(key=lambda each: starts[each["id"]].start or NEVER)
        none = not found and bool(choice.wrong)  # no operand names a request
        eta = "" if none else why.eta_text(rows)
        text = json_objects.encode(rows).decode() + "\n" if asked.message.get("json") else eta
        return listing.answer(text)

    yield work


_FORMS: dict[str, Callable[[Serving, rpc.Asked], Any]] = {
    "json": _json, "why": _why, "eta": _eta, "table": pbs_jobs.table, "alternate": pbs_jobs.alternate,
    "full": pbs_jobs.full, "posix": queues.queue_list, "queue_limits": queues.queue_limits,
    "server": queues.server,
}  # fmt: skip
"""Forms of ``qstat`` that list requests, and PBS's."""


def _chain(serving: Serving, seq: Seq, view: Visibility) -> Objects:
    """Return the objects of all requests that ``seq`` waits for, directly or not, with their reasons."""
    links = chain(serving.engine, seq)
    lister, site = Lister(serving, view), serving.engine.site
    there = [site.requests[link.seq] for link in links if link.seq in site.requests]
    live = lister.objects([request for request in there if view.allows(request.spec)])
    past = ended_objects(serving, [link.seq for link in links if link.seq not in site.requests], view)
    objects = {_key(serving, each): each for each in (*live, *past)}
    names = ("id", "state", "queue", "reason", "depends_on", "end_reason", "exit_status", "exit_signal", "ok")
    return [
        {"needed_by": site.id_of(link.needed_by), "word": link.word} | {key: each[key] for key in names}
        for link in links
        if (each := objects.get(link.seq)) is not None
    ]


def _more(serving: Serving, seq: Seq, view: Visibility) -> dict[str, Any]:
    """Return ``redated``, ``reservation``, and ``causes`` if indices of an array wait for several reasons."""
    site, zone = serving.engine.site, Zone(serving.engine.site.timezone)
    found = causes(serving.engine, seq)
    made = [(indices.show(runs), json_objects.reason_object(reason, zone)) for runs, reason in found]
    many = [view.mask({"indices": shown, "reason": reason}) for shown, reason in made if len(made) > 1]
    more: dict[str, Any] = {"redated": None, "causes": many, "reservation": None}
    request = site.requests.get(seq)
    if request is None:
        return more
    place = Lister(serving, view).place
    if request.redated is not None:
        cause = request.redated.cause
        hidden = cause is not None and cause not in view.known((cause,))
        more["redated"] = json_objects.redating_object(request, place)
        more["redated"] |= {"cause": None} if hidden else {}
    reservation, queue = request.reservation, site.settings.queues.get(request.queue)
    # Nothing is kept for a request of a stopped queue.
    if reservation is not None and (reservation.late or (queue is not None and queue.started)):
        going = tuple(seq for seq in reservation.by if seq in site.started)
        shown = promise_for(replace(reservation, by=going), set(view.known(going)))
        sure = guarantees_times(site, request.queue)
        more["reservation"] = json_objects.reservation_object(shown, sure, place)
    return more
