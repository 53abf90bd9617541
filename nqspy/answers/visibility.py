"""Visibility of others' requests (``set privacy``): a hidden request is like an unknown one."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from nqspy.answers.serving import Serving
from nqspy.engine.handlers.people import may_see, sees_all
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.ids import Seq, array_key, full_id, number_of
from nqspy.model.people import Caller
from nqspy.model.requests import Reservation, Spec


class Visibility:
    """View of the requests that a caller may see. ``all``: True if nothing is hidden."""

    def __init__(self, serving: Serving, caller: Caller) -> None:
        self._serving, self._caller = serving, caller
        self._settings = serving.engine.site.settings
        self.all = sees_all(self._settings, caller)
        host = "|".join(map(re.escape, serving.engine.site.names))
        self._id = re.compile(rf"\b([0-9]{{1,12}}\[[0-9,:-]*\]|[0-9]{{1,18}})\.(?:{host})\b")

    def allows(self, spec: Spec) -> bool:
        """True if a request with this specification is visible."""
        return self.all or may_see(self._settings, self._caller, spec)

    def shows(self, seq: Seq) -> bool:
        """True if a live request is visible."""
        request = self._serving.engine.site.to_be(seq)
        return request is not None and self.allows(request.spec)

    def known(self, seqs: Iterable[Seq]) -> set[Seq]:
        """Return those of these requests, ended or not, that the caller may see."""
        site = self._serving.engine.site
        requests, wanted = site.requests, set(seqs)
        found = {seq for seq in wanted if seq in requests and self.allows(requests[seq].spec)}
        rest = sorted(seq for seq in wanted if seq not in requests and number_of(seq) < site.next_seq)
        rows = self._serving.readers.live.ended(seqs=rest) if rest else ()
        return found | {row["seq"] for row in rows if self.allows(row["spec"])}

    def namer(self) -> Callable[[Sequence[Seq]], str]:
        """Return a function, for any thread, that lists requests' identifiers: "others" if one is hidden."""
        site = self._serving.engine.site
        known = None if self.all else self.known(site.requests)
        named = partial(full_id, host=site.name)
        return lambda seqs: (
            ", ".join(map(named, seqs)) if known is None or known.issuperset(seqs) else "others"
        )

    def need(self, *seqs: Seq) -> None:
        """Raise Refusal unless the caller may see all of these: for a hidden one as for an unknown one."""
        known = self.known(seqs)
        for seq in seqs:
            if seq not in known:
                raise Refusal("unknown_request", id=self._serving.engine.site.id_of(seq))

    def masked(self, text: str) -> str:
        """Return the text with "another request" in place of identifiers of hidden requests."""
        if self.all:
            return text
        known = self.known(_whole(found) for found in self._id.findall(text)[:100])
        return self._id.sub(lambda hit: hit[0] if _whole(hit[1]) in known else "another request", text)

    def mask(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return an object of ``qstat --json`` with hidden requests removed from its reason."""
        if not self.all and row["reason"]:
            row["reason"]["text"] = self.masked(row["reason"]["text"])
        return row

    def events(self, happened: Sequence[ev.Recorded], seq: Seq | None = None) -> list[ev.Recorded]:
        """Return the events that the caller may see, narrowed to visible requests; alarms are for operators.
        ``seq``: only events of one visible request, narrowed to it and the cause of its new date."""
        if self.all and seq is None:
            return list(happened)
        mine = [recorded for recorded in happened if seq is None or seq in _named(recorded.event)]
        about = [set(_named(each.event)) if seq is None else {seq, *_causes(each.event)} for each in mine]
        known, found = self.known(set().union(*about)), []
        for each, some in zip(mine, about, strict=True):
            event = _narrowed(each.event, known if seq is None else known & some)
            found += [] if event is None else [replace(each, event=event)]
        return found

    def groups(self) -> set[str]:
        """Return the names of the departments that have the caller as a member."""
        named = self._settings.groups.values()
        return {group.name for group in named if self._caller.user in group.members}

    def users(self) -> set[str] | None:
        """Return the users with visible figures: the caller; with privacy ``group`` fellows; None: all."""
        if self.all:
            return None
        fellows: set[str] = {self._caller.user}
        if self._settings.server.privacy == "group":
            for name in self.groups():
                fellows.update(self._settings.groups[name].members)
        return fellows

    def night(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the part of a night's report on the caller's departments. Raises Refusal without any."""
        if self.all:
            return data
        groups = self.groups()
        if not groups:
            raise Refusal("night_of_others")
        user, fellows = self._caller.user, self._settings.server.privacy == "group"
        shown = {"groups": [each for each in data["groups"] if each["name"] in groups]}
        for part in ("failed", "waiting", "running"):
            rows = [row for row in data[part] if row["owner"] == user or (fellows and row["group"] in groups)]
            shown[part] = [self.mask(row) if "reason" in row else row for row in rows]
        outlook = data["outlook"]
        outlook = outlook | {"departments": [e for e in outlook["departments"] if e["name"] in groups]}
        nothing: dict[str, Any] = {key: [] for key in ("overtaken", "incidents", "story", "exits")}
        return data | shown | nothing | {"outlook": outlook}

    def usage(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the usage report without hidden users: only the caller's rows stay, with privacy ``group``
        fellows' too."""
        if self.all:
            return data
        fellows = self.groups() if self._settings.server.privacy == "group" else set()
        for group in data["groups"]:
            users = [each for each in group["users"] if each["name"] == self._caller.user]
            group["users"] = group["users"] if group["name"] in fellows else users
        return data


def _whole(name: str) -> Seq:
    """Return the request that a name without host means; for an array and its indices the array."""
    number, bracket, _ = name.partition("[")
    return array_key(int(number)) if bracket else int(number)


def _named(event: Any) -> Iterable[Seq]:
    """Return the requests that an event is about."""
    if isinstance(event, ev.Decided):
        yield from (seq for seq, _ in event.samples)
        yield from (seq for seq, *_ in event.wait)
        yield from (failure.seq for failure in event.failures if failure.seq is not None)
    if hasattr(event, "seq"):
        yield event.seq
    yield from getattr(event, "seqs", ())
    yield from _causes(event)


def _causes(event: ev.Event) -> Iterable[Seq]:
    return (event.cause,) if isinstance(event, ev.Redated) and event.cause is not None else ()


def _narrowed(event: Any, known: set[Seq]) -> ev.Event | None:
    """Return an event narrowed to these requests, the only ones a person may see; None if nothing remains."""
    if isinstance(event, ev.Decided):
        return replace(
            event,
            samples=tuple(each for each in event.samples if each[0] in known),
            wait=tuple(each for each in event.wait if each[0] in known),
            failures=tuple(failure for failure in event.failures if failure.seq in known),
        )
    if isinstance(event, ev.Reserved):
        starts = {
            seq: start and promise_for(start, known) for seq, start in event.starts.items() if seq in known
        }
        causes = {seq: text for seq, text in event.causes.items() if seq in known}
        return replace(event, starts=starts, causes=causes) if starts else None
    if isinstance(event, ev.Alarm) or (hasattr(event, "seq") and event.seq not in known):
        return None
    if hasattr(event, "seqs"):
        seqs = tuple(seq for seq in event.seqs if seq in known)
        event = replace(event, seqs=seqs) if seqs else None
    if isinstance(event, ev.Redated) and event.cause not in known:
        event = replace(event, cause=None)
    found: ev.Event | None = event
    return found


def promise_for(start: Reservation, known: set[Seq]) -> Reservation:
    """Return a reservation as a caller is shown it that may see only the requests ``known``."""
    if known.issuperset(start.by):
        return start
    by = tuple(seq for seq in start.by if seq in known)
    return replace(start, by=by, late="others are in its way" if start.late else "")
