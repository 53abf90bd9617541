"""Submissions: checked whole before anything is accepted, all of a list or none; a repeated key gives the
same answer."""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

import msgspec

from nqspy.core import limits_of_submission as rules
from nqspy.core.queueing.route import may_enter
from nqspy.engine.desk.context import Desk
from nqspy.engine.desk.people import group_of, need
from nqspy.model.commands import Submission, Submit
from nqspy.model.errors import Refusal
from nqspy.model.events import Routed, Submitted
from nqspy.model.ids import Seq
from nqspy.model.people import Caller
from nqspy.model.requests import Spec

NAME_MAX = 230
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Accepted:
    """One request that may be accepted: its specification, the queue it was handed to and the one it lands
    in."""

    spec: Spec
    item: Submission
    queue: str
    target: str


def submit(desk: Desk, command: Submit, caller: Caller) -> Any:
    """Answers ``{"ids": [...]}``; with ``dry_run`` what would become of each. Raises Refusal naming the
    line."""
    if not command.items:
        raise Refusal("the list holds no request", "empty_list")
    digest = sha256(_encode(command.items)).hexdigest()[:32] if command.key else ""
    owner = command.items[0].spec.owner if command.items[0].user else caller.user
    if command.key and not command.dry_run:
        before = _before(desk, owner, command.key, digest)
        if before is not None:
            return {"ids": [desk.site.id_of(seq) for seq in before], "repeated": True}
    accepted = [_accept(desk, item, caller) for item in command.items]
    if command.dry_run:
        return {"dry_run": [_would(desk, each) for each in accepted]}
    seqs = tuple(_take_in(desk, each, command.key, digest) for each in accepted)
    if command.key:
        desk.group.keys[owner, command.key] = (digest, seqs)
    desk.dirty()
    return {"ids": [desk.site.id_of(seq) for seq in seqs], "queues": [each.target for each in accepted]}


def _before(desk: Desk, owner: str, key: str, digest: str) -> tuple[Seq, ...] | None:
    found = desk.group.keys.get((owner, key)) or desk.journal.find_key(owner, key)
    if found is None:
        return None
    if found[0] != digest:
        raise Refusal(f"key {key} was used already for another submission", "key_reused")
    return found[1]


def _accept(desk: Desk, item: Submission, caller: Caller) -> Accepted:
    try:
        return _check(desk, item, caller)
    except Refusal as refusal:
        if item.line is None:
            raise
        raise Refusal(f"line {item.line}: {refusal}", refusal.code, refusal.status) from None


def _check(desk: Desk, item: Submission, caller: Caller) -> Accepted:
    settings = desk.site.settings
    spec = item.spec
    if item.user is not None and item.user != caller.user:
        need(settings, caller, "manager", f"submitting as {item.user}")
    else:
        spec = replace(spec, owner=caller.user, uid=caller.uid, gid=caller.gid)
    _check_words(spec)
    group, account = group_of(settings, caller, spec.owner, spec.account)
    spec = replace(spec, group=group, account=account)
    if desk.exits.has("submit"):
        spec = _ask_exits(desk, spec)
    name = _queue_named(desk, spec)
    queue = settings.queues[name]
    if not queue.enabled:
        raise Refusal(f"Queue is not enabled: {name}", "queue_disabled", 173)
    if not may_enter(queue, spec.owner, caller.groups):
        raise Refusal(f"Access to queue is denied: {name}", "no_access", 174)
    return Accepted(spec, item, name, _target(desk, spec, name, caller))


def _check_words(spec: Spec) -> None:
    name = spec.name
    if not name or len(name) > NAME_MAX or not name.isprintable() or "/" in name or " " in name:
        raise Refusal(
            f"{name[:40]!r} is no request name: up to {NAME_MAX} printable characters without blank or /",
            "bad_name",
        )
    if spec.ask.pes < 1:
        raise Refusal("a request needs at least 1 PE", "bad_value", 166)
    for path in (spec.workdir, spec.output.stdout, spec.output.stderr):
        if path is not None and ("\0" in path or "\n" in path or not path.startswith("/")):
            raise Refusal(f"{path[:80]!r} is no absolute path", "bad_value", 166)
    if any(attribute.startswith("after:") for attribute in spec.attributes):
        raise Refusal("dependencies (--after) are not offered yet", "not_offered")


def _queue_named(desk: Desk, spec: Spec) -> str:
    settings = desk.site.settings
    name = spec.queue or settings.default.queue
    known = ", ".join(settings.queues) or "none"
    if name is None:
        raise Refusal(
            f"no queue was named and there is no default queue; queues: {known}", "no_default_queue", 170
        )
    if name not in settings.queues:
        raise Refusal(f"Unknown queue {name}; queues: {known}", "unknown_queue", 170)
    return name


def _target(desk: Desk, spec: Spec, name: str, caller: Caller) -> str:
    queue = desk.site.settings.queues[name]
    if queue.kind == "batch":
        if queue.pipeonly:
            raise Refusal(f"queue {name} takes requests from pipe queues only", "pipe_only", 174)
        wrong = rules.violation(desk.site, spec, queue)
        if wrong is not None:
            raise Refusal(wrong, "above_limit", 188)
        return name
    target, objections = rules.destination(desk.site, spec, queue, desk.exits, caller.groups, desk.now)
    if target is None and objections and not any(each.later for each in objections):
        said = "; ".join(each.text for each in objections)
        raise Refusal(f"no destination of {name} takes it: {said}", "above_limit", 188)
    return target or name


def _ask_exits(desk: Desk, spec: Spec) -> Spec:
    answer = rules.ask_submit(desk.site, spec, desk.exits, desk.now)
    if answer is None:
        return spec
    if answer.refusal is not None:
        raise Refusal(f"{answer.refusal} (exit {answer.who})", "exit_refused")
    known = {"queue", "priority", "group", "name", "account", "shell"}
    return replace(spec, **{key: value for key, value in answer.changes.items() if key in known})


def _take_in(desk: Desk, accepted: Accepted, key: str, digest: str) -> Seq:
    seq = desk.site.next_seq
    spec = replace(
        accepted.spec,
        script=desk.keep(accepted.item.script.encode("latin-1", "replace")),
        environment=desk.keep(accepted.item.environment.encode("latin-1", "replace")),
        queue=accepted.queue,
    )
    desk.emit(Submitted(seq, spec, accepted.queue, _state(desk, spec), key, digest))
    if accepted.target != accepted.queue:
        desk.emit(Routed(seq, accepted.target, accepted.queue))
    return seq


def _state(desk: Desk, spec: Spec) -> Literal["waiting", "held", "queued"]:
    if spec.held:
        return "held"
    if spec.eligible is not None and spec.eligible > desk.now:
        return "waiting"
    return "queued"


def _would(desk: Desk, accepted: Accepted) -> dict[str, Any]:
    return {"name": accepted.spec.name, "queue": accepted.target, "group": accepted.spec.group}
