"""Submissions: checked as a whole, then all accepted or none; a repeated key repeats the answer."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import zip_longest
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from nqspy.core.classes import CLASSES
from nqspy.core.consumables import resolved
from nqspy.core.route import ask_submit
from nqspy.engine.handlers import depend, shifts
from nqspy.engine.handlers.advice import advice
from nqspy.engine.handlers.context import LateValue, Transaction
from nqspy.engine.handlers.exits import report_failures
from nqspy.engine.handlers.people import group_of, may_see, need, need_entry
from nqspy.engine.handlers.queue_quota import QueueQuota
from nqspy.engine.handlers.sizes import shaped
from nqspy.engine.handlers.spec import (
    by_exit,
    changed,
    check_application,
    check_class,
    check_limits,
    check_spec,
    check_start,
    local_queue,
    routed,
    tidy_array,
)
from nqspy.engine.zones import local
from nqspy.model.actions import ExitFailure
from nqspy.model.arrays import counted
from nqspy.model.commands import Submission, Submit
from nqspy.model.configure import copy_of
from nqspy.model.errors import Refusal, listed
from nqspy.model.events import Ranked, Routed, Submitted
from nqspy.model.ids import Instant, Seq, array_key, array_of, full_id, request_named
from nqspy.model.machine import SCRIPT_MAX
from nqspy.model.people import Caller
from nqspy.model.requests import PRIME, Request, Spec
from nqspy.model.site import RequestCounts
from nqspy.model.specs import Shared
from nqspy.model.transitions import submitted
from nqspy.model.units import format_size

ENVIRONMENT_MAX = 1 << 20
KEY_MAX = 256
WAITED_FOR_MAX = 1_000
"""Most requests of a user that have not ended and for which a command waits (`mpprun`, ``qsub -I``)."""
NAMED_MAX = 200_000
"""Most dependencies and attributes of all requests of one submission together."""
_encode = msgspec.json.Encoder().encode


class Accepted(msgspec.Struct):
    """A request that may be accepted. ``queue``: as it names it; ``target``: where it ends up."""

    spec: Spec
    queue: str
    target: str
    script: bytes
    environment: bytes


@dataclass(slots=True)
class SubmissionFailures:
    """Failures of exits in a submission, reported at its end: only then the numbers of its requests are
    known. ``each``: for each of its requests, in order, the failures on it."""

    each: list[list[tuple[ExitFailure, ...]]] = field(default_factory=list)

    def collect(self, tx: Transaction) -> None:
        """Keep the failures of exits since the last call as those of the last request in ``each``, until
        `report`."""
        failures = tx.exits.failures()
        if failures:
            self.each[-1].append(failures)

    def report(self, tx: Transaction, seqs: Iterable[Seq | None] = ()) -> None:
        """Report the failures; ``seqs``: numbers of the requests (empty: they were not accepted)."""
        for seq, asked in zip_longest(seqs, self.each):
            for failures in asked or ():
                report_failures(tx, tuple(replace(each, seq=seq) for each in failures), decided=False)
        self.each.clear()


def submit(tx: Transaction, command: Submit, caller: Caller) -> Any:
    """Submit requests: return ``{"ids": [...], "queues": [...]}``, with ``dry_run`` what would happen to each
    (for a single one a `LateValue`), and ``"warnings": [...]`` if any. Raises Refusal with the line."""
    if not command.items:
        raise Refusal("empty_list")
    if len(command.key) > KEY_MAX or not (command.key or "k").isprintable():
        raise Refusal("bad_key", most=KEY_MAX)
    if sum(len(item.spec.attributes) + len(item.after) for item in command.items) > NAMED_MAX:
        raise Refusal("too_many_named", most=NAMED_MAX)
    others = {item.user for item in command.items if item.user is not None} - {caller.user}
    if others:  # only a manager submits for others, and only root for root
        need(tx.site.settings, caller, "manager", f"submitting as {min(others)}")
    if caller.uid != 0 and any(item.user in others and item.spec.uid == 0 for item in command.items):
        raise Refusal("submit_as_root")
    owners = dict.fromkeys(item.user or caller.user for item in command.items)
    digest = sha256(_encode(command.items)).hexdigest()[:32] if command.key else ""
    if command.key and not command.dry_run:
        before = _before(tx, owners, command.key, digest)
        if before is not None:
            queues = {row["seq"]: row["queue"] for row in tx.journal.ended(before)}
            queues |= {seq: tx.site.requests[seq].queue for seq in before if seq in tx.site.requests}
            ids = [tx.site.id_of(seq) for seq in before]
            return {"ids": ids, "queues": [queues.get(seq, "") for seq in before], "repeated": True}
    if tx.journal.low():
        raise Refusal("no_room")
    depend.check_places(command.items)
    room, failed = QueueQuota(tx), SubmissionFailures()
    try:
        accepted = [_accept(tx, item, caller, room, failed) for item in command.items]
        keys = tuple(_key(each.spec, tx.site.next_seq + place) for place, each in enumerate(accepted))
        specs = [each.spec for each in accepted]
        for item, each in zip(command.items, accepted, strict=True):
            each.spec = depend.placed(each.spec, item, specs, keys)
    except Refusal:
        failed.report(tx)
        raise
    if command.dry_run:
        failed.report(tx)
        return _tried(tx, accepted, caller, _warned(tx, accepted, keys, caller))
    shared = Shared() if len(accepted) > 1 else None
    seqs = tuple(_store(tx, each, command.key, digest, shared) for each in accepted)
    room.accept()
    failed.report(tx, seqs)
    if command.key:
        requests = tx.site.requests
        for owner in {requests[seq].owner for seq in seqs}:
            mine = tuple(seq for seq in seqs if requests[seq].owner == owner)
            tx.group.keys[owner, command.key] = (digest, mine)
    depend.judge_now(tx, seqs)
    tx.dirty()
    done = {"ids": [tx.site.id_of(seq) for seq in seqs], "queues": [each.target for each in accepted]}
    return done | _warned(tx, accepted, seqs, caller)


def _warned(
    tx: Transaction, accepted: list[Accepted], seqs: tuple[Seq, ...], caller: Caller
) -> dict[str, Any]:
    """Return ``{"warnings": [...]}`` about accepted requests; empty: there are none."""
    rows = [(seq, each.spec, each.target) for seq, each in zip(seqs, accepted, strict=True)]
    lines = advice(tx, rows, caller)
    return {"warnings": lines} if lines else {}


def _before(tx: Transaction, owners: Iterable[str], key: str, digest: str) -> tuple[Seq, ...] | None:
    """Return the requests that these owners submitted under this key before, or None. Raises Refusal if their
    content had another digest."""
    seqs: list[Seq] = []
    for owner in owners:
        found = tx.group.keys.get((owner, key)) or tx.journal.find_key(owner, key)
        if found is None:
            return None
        if found[0] != digest:
            raise Refusal("key_reused", key=key)
        seqs += found[1]
    return tuple(sorted(seqs))


def _accept(
    tx: Transaction, item: Submission, caller: Caller, room: QueueQuota, failed: SubmissionFailures
) -> Accepted:
    failed.each.append([])
    try:
        found = _check(tx, item, caller, room.coming, failed)
        room.add(found.spec.owner, (found.queue, found.target), counted(found.spec.array))
        spec = found.spec
        room.add_blobs(spec, ((spec.script, found.script), (spec.environment, found.environment)))
        return found
    except Refusal as refusal:
        if item.line is None:
            raise
        raise Refusal("in_line", line=item.line, reason=refusal) from None


def _check(
    tx: Transaction, item: Submission, caller: Caller, coming: RequestCounts, failed: SubmissionFailures
) -> Accepted:
    site, spec = tx.site, item.spec
    limit = site.settings.server.script_limit
    script = _bytes(item.script, "script", SCRIPT_MAX if limit is None else limit)
    environment = _bytes(item.environment, "environment", ENVIRONMENT_MAX)
    if caller.nameless:
        raise Refusal("nameless", uid=caller.uid)
    check_start(spec.args, environment)
    other = item.user is not None and item.user != caller.user
    owner = spec.owner if other else caller.user
    within = request_named(spec.within, site.names) if spec.within and spec.account is None else None
    around = site.requests.get(within) if within is not None else None
    if around is not None and around.owner == owner:  # an application: its request's owner may charge them
        group, account = around.group, around.spec.account
    else:
        group, account = group_of(site.settings, caller, owner, spec.account)
    uid, gid = (spec.uid, spec.gid) if other else (caller.uid, caller.gid)
    named = local_queue(site, spec.queue)
    if not named:
        default = site.settings.default
        if spec.caller is not None and default.mpprun_queue is None:
            raise Refusal("no_mpprun_queue")
        named = (default.queue if spec.caller is None else default.mpprun_queue) or ""
    spec = replace(
        spec, owner=owner, uid=uid, gid=gid, group=group, account=account, queue=named,
        script=_digest(script), environment=_digest(environment), unix_groups=(),
        listed=item.line is not None, array=tidy_array(spec.array), ask=resolved(site, spec.ask),
    )  # fmt: skip
    if spec.caller is not None and not spec.job_class:
        usual = "production" if spec.within else "interactive"  # by where the application was called
        spec = replace(spec, job_class=usual if usual in CLASSES.all(site.settings) else "")
    spec = shaped(site, spec)
    check_spec(site, spec)
    check_class(site, spec, () if other else caller.groups)
    spec = depend.read_after(tx, spec, caller, len(item.after))
    who = ""
    if tx.exits.has("submit"):
        answer, before = ask_submit(site, spec, tx.exits, tx.now, script), spec
        failed.collect(tx)
        spec = before if answer is None else changed(site, before, answer)
        if answer is not None and (spec.queue, spec.ask) != (before.queue, before.ask):
            who = answer.who
    try:
        spec, queue, target = _find_room(tx, spec, () if other else caller.groups, coming)
    except Refusal as refusal:
        raise (by_exit(refusal, who) if who else refusal) from None
    finally:
        failed.collect(tx)  # a route exit's
    return Accepted(spec, queue, target, script, environment)


def _find_room(
    tx: Transaction, spec: Spec, groups: tuple[str, ...], coming: RequestCounts
) -> tuple[Spec, str, str]:
    """Return the specification, the queue that it names, and the one that takes it now. ``coming``: requests
    of its list accepted so far, for quotas. Raises Refusal."""
    queues = tx.site.settings.queues
    queue = queues.get(spec.queue)
    if queue is None:
        known = listed(queues)
        if not spec.queue:
            raise Refusal("no_default_queue", known=known)
        raise Refusal("no_such_queue", queue=spec.queue, known=known)
    need_entry(tx.site, queue, spec.owner, groups)
    if queue.kind == "batch":
        if queue.pipeonly:
            raise Refusal("pipe_only", queue=queue.name)
        check_limits(tx.site, spec, queue)
        target = queue.name
    else:
        target = routed(tx.site, spec, queue, tx.exits, groups, tx.now, coming)
    if _is_waited_for(spec):  # each takes a descriptor
        have, requests = coming.owners.get(spec.owner, 0), tx.site.requests
        if have + tx.site.tally.owners.get(spec.owner, 0) >= WAITED_FOR_MAX:
            have += sum(r.owner == spec.owner and _is_waited_for(r.spec) for r in requests.values())
        if have >= WAITED_FOR_MAX:
            raise Refusal("many_waited_for", user=spec.owner, most=WAITED_FOR_MAX)
    if spec.caller is not None:
        check_application(tx.site, spec, target)
    if target == queue.name and queue.kind == "pipe":
        spec = replace(spec, unix_groups=groups)  # it is routed later, without its caller
    return spec, queue.name, target


def _is_waited_for(spec: Spec) -> bool:
    """True if a command waits for the request: it is an application or a session."""
    return spec.caller is not None or spec.session is not None


def _bytes(text: str, what: str, most: int) -> bytes:
    if len(text) > most:
        if what == "environment":
            raise Refusal("environment_too_large", most=most >> 20)
        raise Refusal("script_too_large", most=format_size(most))
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise Refusal("not_latin", what=what) from None


def _digest(body: bytes) -> str:
    return sha256(body).hexdigest()[:32]


def _store(tx: Transaction, accepted: Accepted, key: str, digest: str, shared: Shared | None) -> Seq:
    spec, queue = accepted.spec, accepted.queue
    seq = _key(spec, tx.site.next_seq)
    if shared is not None:
        spec, queue = shared.spec(spec), shared.one(queue)
    tx.store(spec.script, accepted.script)
    tx.store(spec.environment, accepted.environment)
    tx.emit(Submitted(seq, spec, queue, _state(tx, spec), key, digest))
    if accepted.target != accepted.queue:
        tx.emit(Routed(seq, accepted.target, accepted.queue))
    around = request_named(spec.within, tx.site.names) if spec.within else None
    if around is not None and around in tx.site.requests and tx.site.requests[around].rank == PRIME:
        tx.emit(Ranked(seq, PRIME, "system"))
    return seq


def _key(spec: Spec, number: int) -> Seq:
    return number if spec.array is None else array_key(number)


def _state(tx: Transaction, spec: Spec) -> Literal["waiting", "held", "queued"]:
    if spec.held or (spec.after and any(each.word != "each" for each in spec.after)):
        return "held"
    if spec.eligible is not None and spec.eligible > tx.now:
        return "waiting"
    return "queued"


def _tried(
    tx: Transaction, accepted: Sequence[Accepted], caller: Caller, warned: dict[str, Any]
) -> dict[str, Any] | LateValue:
    """Return what would happen to each request (``dry_run``); the start of a single one is estimated."""
    rows: list[dict[str, Any]] = [
        {"name": each.spec.name, "queue": each.target, "group": each.spec.group} for each in accepted
    ]
    if len(accepted) > 1:
        return {"dry_run": rows} | warned
    [row], [each], site = rows, accepted, tx.site
    unmet = depend.unmet_now(tx, each.spec.after)
    event = Submitted(_key(each.spec, site.next_seq), replace(each.spec, after=unmet), each.target, "queued")
    event = replace(event, state=_state(tx, event.spec))
    row["depends_on"] = [site.id_of(other.seq) for other in unmet]
    ahead = _estimated(tx, submitted(event, tx.now), caller)
    return LateValue(lambda seconds: {"dry_run": [row | ahead(seconds)]} | warned)


def _estimated(tx: Transaction, request: Request, caller: Caller) -> Callable[[float], dict[str, Any]]:
    """Return a function, for any thread, that returns ``estimate`` of a request's start and ``note`` on
    shifts. Its argument is the real seconds that it may take."""
    settings, zone, now = copy_of(tx.site.settings), tx.site.timezone, tx.now
    ahead = tx.decider.forecast(tx.site, request, tx.now, tx.samples)
    note = shifts.note(tx, request, settings)
    specs, host = {seq: each.spec for seq, each in tx.site.requests.items()}, tx.site.name

    def named(seqs: Sequence[Seq]) -> str:
        found = [specs.get(seq) or specs.get(array_of(seq) or Seq(0)) for seq in seqs]
        if not all(each is not None and may_see(settings, caller, each) for each in found):
            return "others"  # no names if the caller may not see one of them
        return ", ".join(full_id(seq, host) for seq in seqs)

    def written(at: Instant) -> str:
        return local(at, zone).isoformat(timespec="milliseconds")

    def late(seconds: float) -> dict[str, Any]:
        forecast = ahead(seconds)
        return {"estimate": forecast.as_dict(written, named, now), "note": note(forecast.probably.start)}

    return late
