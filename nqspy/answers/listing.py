"""qstat: requests as objects, and why they wait; made in slices so that a long list never stalls the
engine. Its tables and PBS forms: `pbs_jobs`."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from msgspec.structs import replace

from nqspy.answers import pbs_jobs, pbs_views, queues
from nqspy.answers.named import Limit, seqs_of, state_named, with_indices
from nqspy.answers.serving import Serving
from nqspy.answers.slow import Work
from nqspy.answers.visibility import Visibility, promise_for
from nqspy.core import guarantees_times, runtime
from nqspy.core.classes import class_in
from nqspy.decider.estimates import PATIENCE, outlooks
from nqspy.engine.explain import Places, causes, chain, reasons_of
from nqspy.model import indices
from nqspy.model.endings import End
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant, Seq, index_of, rank_of, request_named
from nqspy.model.machine import torus_of
from nqspy.model.people import Caller
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request, State
from nqspy.report import eta, json_objects, why
from nqspy.report.event_objects import used_object
from nqspy.report.time_text import Zone
from nqspy.rpc import messages
from nqspy.rpc import server as rpc

SLICE = 1_000
"""Requests looked at between two looks at the inbox."""
A_FEW = 5
"""Requests of which it is told why they wait, between two looks at the inbox."""

NEVER = 1 << 62
"""For who starts nobody knows when."""

Objects = list[dict[str, Any]]
T = TypeVar("T")


def in_slices(things: Iterator[T], size: int) -> Iterator[list[T]]:
    """Split what comes into lists of that size."""
    while some := list(islice(things, size)):
        yield some


class Lister:
    """Makes request objects as of one instant."""

    def __init__(self, serving: Serving, sight: Visibility) -> None:
        self._engine, self._run_times = serving.engine, serving.run_times
        self._sight = sight
        site = serving.engine.site
        now = serving.clock.now()
        torus, domains = torus_of(site.settings.machine), site.domains_by_queue()
        self.place = json_objects.AnswerContext(site.name, Zone(site.timezone), now, domains, torus)
        self._places = Places(serving.engine, now)

    def objects(self, requests: Sequence[Request]) -> Objects:
        """Requests that have not ended, as `qstat --json` shows them."""
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
        return self._sight.mask(made)


def ended_objects(serving: Serving, seqs: Sequence[Seq], sight: Visibility) -> Objects:
    """Objects of ended requests, in the order of ``seqs``; hidden ones are left out."""
    place = Lister(serving, sight).place
    found = serving.readers.live.ended(seqs=seqs)
    return [sight.mask(json_objects.ended_object(row, place)) for row in found if sight.sees(row["spec"])]


# ---------------------------------------------------------------- choosing


class RequestChoice:
    """Which requests an answer is about. Raises Refusal for a state or an operand that says nothing."""

    def __init__(self, serving: Serving, message: dict[str, Any], caller: Caller) -> None:
        self.site = serving.engine.site
        self.sight = Visibility(serving, caller)
        operands = [str(word) for word in message.get("operands") or message.get("ids") or ()]
        self.seqs = seqs_of(serving, self.sight, [word for word in operands if word[:1].isdigit()])
        named = [word for word in operands if not word[:1].isdigit()]
        self.queues = {*named, *([message["queue"]] if message.get("queue") else ())}
        unknown = sorted(self.queues - set(self.site.settings.queues))
        if unknown:
            raise Refusal("unknown_queue", queue=unknown[0])
        self.user = message.get("user")
        self.state = state_named(message.get("state"))
        self.ended = bool(message.get("ended")) or self.state is State.ENDED
        self.history = bool(message.get("history"))
        self.since = Instant(message["since"]) if message.get("since") else None
        self._limit = Limit(message)
        self.expand = bool(message.get("expand"))
        self.whole = message.get("text") != "json" and not self.expand
        self.unknown: list[Refusal] = []

    def fits(self, request: Request) -> bool:
        """True if a request is asked for."""
        return (
            self.sight.sees(request.spec)
            and (not self.queues or request.queue in self.queues)
            and (self.user is None or request.owner == self.user)
            and (self.state is None or request.shown_state is self.state)
        )

    def slices(self) -> Iterator[list[Request]]:
        """The requests asked for that have not ended, a slice at a time."""
        if self.ended and not self.seqs:
            return
        seqs = self.seqs or self._all()
        for some in in_slices(with_indices(self.site, seqs) if self.expand else iter(seqs), SLICE):
            found = (self.site.to_be(seq) for seq in some)
            yield [request for request in found if request is not None and self.fits(request)]

    def _all(self) -> list[Seq]:
        """All that have not ended, by number; indices of arrays only where arrays are not told as a whole."""
        if not self.site.members:
            return list(self.site.requests)
        found = (seq for seq in self.site.requests if not (self.whole and index_of(seq) is not None))
        return sorted(found, key=rank_of)

    def gone(self, serving: Serving) -> Iterator[Any]:
        """Rows of the ended requests asked for, None now and then; what is to be said of identifiers of no
        request is kept in ``unknown``."""
        reader = serving.readers.live
        if self.seqs:
            missing = [seq for seq in self.seqs if not self.sight.shows(seq)]
            ended = reader.ended(seqs=missing) if missing else ()
            found = [row for row in ended if self.sight.sees(row["spec"])]
            unknown = sorted(set(missing) - {row["seq"] for row in found})
            self.unknown = [Refusal("unknown_request", id=self.site.id_of(seq)) for seq in unknown]
            yield from found
        elif self.ended or self.history:
            for number, row in enumerate(reader.newest(self.user, self.since), 1):
                hidden = self.whole and index_of(row["seq"]) is not None
                fits = not self.queues or row["queue"] in self.queues
                if fits and not hidden and self.sight.sees(row["spec"]):
                    if self._limit.is_reached():
                        return
                    yield row
                if number % SLICE == 0:
                    yield None

    def complaint(self) -> str:
        """A line for each identifier that names no request."""
        return "".join(f"{each}\n" for each in self.unknown) + self._limit.note()

    def status(self) -> int:
        """The exit status of a command that shows what was found."""
        return self.unknown[-1].status if self.unknown else 0


# ---------------------------------------------------------------- answering


def _pieces(
    serving: Serving, choice: RequestChoice, into: list[bytes], write: Callable[[Objects], bytes]
) -> Iterator[None]:
    """Fills ``into`` with objects as they are written, pausing after each slice: objects of ten thousand
    requests would take ten times that memory. Those of named requests are written in their order."""
    if choice.seqs:
        found: Objects = []
        yield from _objects(serving, choice, found)
        into += [write(found)] if found else []
        return
    gone: list[bytes] = []
    rows: Objects = []
    place = Lister(serving, choice.sight).place
    for row in choice.gone(serving):
        if row is None:
            gone += [write(rows)] if rows else []
            rows = []
            yield None
        else:
            rows.append(choice.sight.mask(json_objects.ended_object(row, place)))
    gone += [write(rows)] if rows else []
    lister = Lister(serving, choice.sight)
    for requests in choice.slices():
        into += [write(lister.objects(requests))] if requests else []
        yield None
    into += gone


def _written(objects: Objects) -> bytes:
    """Elements of a JSON array without its brackets."""
    return json_objects.encode(objects)[1:-1]


def _objects(serving: Serving, choice: RequestChoice, into: Objects) -> Iterator[None]:
    """Fills ``into``, pausing after each slice."""
    gone: Objects = []
    sight, place = choice.sight, Lister(serving, choice.sight).place
    for row in choice.gone(serving):
        if row is None:
            yield None
        else:
            gone.append(sight.mask(json_objects.ended_object(row, place)))
    lister = Lister(serving, sight)
    for requests in choice.slices():
        into += lister.objects(requests)
        yield None
    into += gone
    if choice.seqs:
        order = {seq: number for number, seq in enumerate(choice.seqs)}
        into.sort(key=lambda each: order[_key(serving, each)])


def list_requests(serving: Serving, asked: rpc.Asked) -> Iterator[bytes | None]:
    """The objects, for programs. Raises Refusal when an identifier names no request."""
    found: list[bytes] = []
    choice = RequestChoice(serving, asked.message, asked.caller)
    yield from _pieces(serving, choice, found, _written)
    if choice.unknown:
        raise choice.unknown[0]
    yield messages.list_answer(asked.handle.id, found)


def qstat(serving: Serving, asked: rpc.Asked) -> Any:
    """The answer in the form that ``text`` names."""
    form = str(asked.message.get("text") or "table")
    if asked.message.get("posix"):
        form = "posix"
    summary = queues.form_of(asked.message, form)
    if summary is not None:
        return messages.text_answer(asked.handle.id, 0, summary(serving, asked.message))
    if form in _FORETOLD:
        return _FORETOLD[form](serving, asked)
    if form == "json":
        return _json(serving, asked)
    made = _PBS.get(form)
    if made is None:
        raise Refusal("bad_form", form=form)
    return made(serving, asked)


_PBS: dict[str, Callable[[Serving, rpc.Asked], Any]] = {
    "table": pbs_jobs.table,
    "alternate": pbs_jobs.alternate,
    "full": pbs_jobs.full,
    "posix": pbs_views.queue_list,
    "queue_limits": pbs_views.queue_limits,
    "server": pbs_views.server,
}
"""PBS's forms of ``qstat``."""


def _key(serving: Serving, made: dict[str, Any]) -> Seq:
    """The request of an object."""
    return request_named(made["id"], serving.engine.site.names) or 0


def _json(serving: Serving, asked: rpc.Asked) -> Iterator[bytes | None]:
    found: list[bytes] = []
    choice = RequestChoice(serving, asked.message, asked.caller)
    yield from _pieces(serving, choice, found, lambda some: messages.escaped(_written(some).decode()))
    pieces = (b"[", *(part for each in found for part in (each, b",")))
    if found:
        pieces = pieces[:-1]
    yield messages.pieces_answer(asked.handle.id, choice.status(), (*pieces, b"]\\n"), choice.complaint())


def _why(serving: Serving, asked: rpc.Asked) -> Iterator[Work | None]:
    """The estimates may come late: what else there is to say is gathered now, of a few requests at a time."""
    message = asked.message
    operands = message.get("operands") or message.get("ids") or [message.get("request")]
    found: Objects = []
    choice = RequestChoice(serving, {"operands": [str(word) for word in operands]}, asked.caller)
    yield from _objects(serving, choice, found)
    for some in in_slices(iter(found), A_FEW):
        for each in some:
            seq = _key(serving, each)
            each["chain"] = _chain(serving, seq, choice.sight)
            each |= _more(serving, seq, choice.sight)
            each["hint"] = _hint(serving, each) or None
        if not message.get("json"):
            _add_needed(serving, some)
        if some[-1] is not found[-1]:
            yield None
    zone, keys = Zone(serving.engine.site.timezone), [_key(serving, each) for each in found]
    now = serving.clock.now()
    ahead = outlooks(serving.decider, now, serving.engine.between, tuple(keys))
    named = choice.sight.namer()

    def work() -> bytes:
        told = ahead(PATIENCE)
        for each, key in zip(found, keys, strict=True):
            each["estimate"] = told[key].told(zone.text, named, now) if key in told else None
        if message.get("json"):
            text = json_objects.encode(found).decode() + "\n"
        else:
            text = "".join(why.why_text(each, zone.text(now)) for each in found)
        return messages.text_answer(asked.handle.id, choice.status(), text, choice.complaint())

    yield work


def _eta(serving: Serving, asked: rpc.Asked) -> Iterator[Work | None]:
    """Answer when requests that wait would start, in that order; those that never may come last."""
    message, found = asked.message, list[dict[str, Any]]()
    choice = RequestChoice(serving, message, asked.caller)
    yield from _objects(serving, choice, found)
    keys = [_key(serving, each) for each in found]
    wanted = tuple(keys) if choice.seqs else None
    now = serving.clock.now()
    ahead = outlooks(serving.decider, now, serving.engine.between, wanted)
    zone, named = Zone(serving.engine.site.timezone), choice.sight.namer()

    def work() -> bytes:
        told = ahead(PATIENCE)
        rows = [each for each, key in zip(found, keys, strict=True) if key in told]
        starts = {each["id"]: told[key] for each, key in zip(found, keys, strict=True) if key in told}
        for each in rows:
            each["estimate"] = starts[each["id"]].told(zone.text, named, now)
        rows.sort(key=lambda each: starts[each["id"]].start or NEVER)
        none = not found and bool(choice.unknown)  # nobody asked about anything that is there
        told_text = "" if none else eta.eta_text(rows)
        text = json_objects.encode(rows).decode() + "\n" if message.get("json") else told_text
        return messages.text_answer(asked.handle.id, choice.status(), text, choice.complaint())

    yield work


_FORETOLD: dict[str, Callable[[Serving, rpc.Asked], Iterator[Work | None]]] = {"why": _why, "eta": _eta}
"""Forms that look ahead."""


def _hint(serving: Serving, each: dict[str, Any]) -> str:
    """Return what owners are told of their wall limits; "" where there is nothing to say, and of a request
    that did not end well."""
    asked = each["requested"]
    if each["state"] == "ended" and not End.of_object(each).ok:
        return ""
    limit = None if asked["wall_s"] is None else round(asked["wall_s"] * 1000)
    site, key = serving.engine.site, (each["owner"], each["name"], asked["pes"])
    return runtime.hint_on_wall(site.settings, site.lifetimes, key, limit)


def _add_needed(serving: Serving, found: Objects) -> None:
    """Notes what must happen to each that waits (programs are told the code), and who goes by class."""
    keys = [_key(serving, each) for each in found]
    reasons = reasons_of(serving.engine, keys)
    for each, key in zip(found, keys, strict=True):
        each["needed"] = reasons[key].needed if key in reasons else None
        each["by_class"] = class_in(serving.engine.site, each["queue"], each.get("class", ""))


def _chain(serving: Serving, seq: Seq, sight: Visibility) -> Objects:
    """Follow what a request waits for, and what that waits for: prerequisites with their own reasons."""
    links = chain(serving.engine, seq)
    lister, site = Lister(serving, sight), serving.engine.site
    there = [site.requests[link.seq] for link in links if link.seq in site.requests]
    live = lister.objects([request for request in there if sight.sees(request.spec)])
    gone = ended_objects(serving, [link.seq for link in links if link.seq not in site.requests], sight)
    objects = {_key(serving, each): each for each in (*live, *gone)}
    kept = ("id", "state", "queue", "reason", "depends_on", "end_reason", "exit_status", "exit_signal", "ok")
    return [
        {"needed_by": site.id_of(link.needed_by), "word": link.word} | {key: each[key] for key in kept}
        for link in links
        if (each := objects.get(link.seq)) is not None
    ]


def _more(serving: Serving, seq: Seq, sight: Visibility) -> dict[str, Any]:
    """Return what is told of one that waits: ``redated``, ``causes`` of the indices of an array where there
    are several, ``reservation``."""
    site, zone = serving.engine.site, Zone(serving.engine.site.timezone)
    found = causes(serving.engine, seq)
    made = [(indices.show(runs), json_objects.reason_object(reason, zone)) for runs, reason in found]
    told = [sight.mask({"indices": shown, "reason": reason}) for shown, reason in made if len(made) > 1]
    more: dict[str, Any] = {"redated": None, "causes": told, "reservation": None}
    request = site.requests.get(seq)
    if request is None:
        return more
    place = Lister(serving, sight).place
    if request.redated is not None:
        cause = request.redated.cause
        hidden = cause is not None and cause not in sight.known((cause,))
        more["redated"] = json_objects.redating_object(request, place)
        more["redated"] |= {"cause": None} if hidden else {}
    if request.reservation is not None:
        going = tuple(seq for seq in request.reservation.by if seq in site.started)
        kept = promise_for(replace(request.reservation, by=going), set(sight.known(going)))
        sure = guarantees_times(site, request.queue)
        more["reservation"] = json_objects.reservation_object(kept, sure, place)
    return more
