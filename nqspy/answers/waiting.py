"""Those who wait for something to happen: the end of requests (``qsub --wait``), events to come, output to
come."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from nqspy.answers import listing, output
from nqspy.answers.named import seq_of, seqs_of
from nqspy.answers.serving import Serving
from nqspy.answers.visibility import Visibility
from nqspy.engine.handlers.people import need, need_owner
from nqspy.model.errors import Refusal
from nqspy.model.events import Ended
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import STARTED
from nqspy.report.event_objects import event_object
from nqspy.report.time_text import Zone
from nqspy.rpc import messages
from nqspy.rpc import server as rpc

PAGE = 1_000
"""Events in one answer."""
TAIL = 0.25
"""How often a file that somebody follows is looked at, real seconds; only while somebody does."""


Told = Callable[[rpc.Asked], AbstractContextManager[None]]
"""Tells whoever asked what is wrong in its block."""


@dataclass(slots=True)
class _Ends:
    """``left``: those of ``seqs`` that have not ended; ``any``: the first end suffices."""

    asked: rpc.Asked
    seqs: list[Seq]
    left: set[Seq] = field(default_factory=set)
    any: bool = False

    def due(self) -> bool:
        """Whether that has come for which it was waited."""
        return not self.left or (self.any and len(self.left) < len(set(self.seqs)))


class OpenQuestions:
    """Keeps open questions; `look` answers those whose time has come."""

    def __init__(self, serving: Serving, told: Told) -> None:
        self._serving, self._told = serving, told
        self._ends: list[_Ends] = []
        self._events: list[rpc.Asked] = []
        self._tails: list[rpc.Asked] = []
        self._commits = 0

    def patience(self) -> float | None:
        """How long may pass before the next look."""
        return TAIL if self._tails else None

    def look(self) -> None:
        """Answers whoever waited for what has happened."""
        if self._ends:
            self._look_at_ends()
        if self._events and self._serving.engine.commits != self._commits:
            waiting, self._events = self._events, []
            self._again(waiting, self.events)
        self._commits = self._serving.engine.commits
        if self._tails:
            tails, self._tails = self._tails, []
            self._again(tails, self.cat)

    def _again(self, waiting: list[rpc.Asked], answer: Callable[[rpc.Asked], Any]) -> None:
        for asked in waiting:
            if not asked.handle.gone:
                with self._told(asked):
                    self._send(asked, answer(asked))

    def _send(self, asked: rpc.Asked, data: Any) -> None:
        if isinstance(data, bytes):
            self._serving.server.reply(asked.handle, data)
        elif data is not None:
            self._serving.server.reply(asked.handle, messages.result_answer(asked.handle.id, data))

    # ------------------------------------------------------------ ends

    def wait(self, asked: rpc.Asked) -> bytes | None:
        """Answers once all of ``ids`` have ended (``any``: one of them): their objects, or by text form the
        last one's exit status (`wait`), or what went wrong with which (`qwait`)."""
        site = self._serving.engine.site
        seqs = seqs_of(self._serving, asked.message["ids"])
        left = {seq for seq in seqs if site.to_be(seq) is not None}
        ends = _Ends(asked, seqs, left, bool(asked.message.get("any")))
        Visibility(self._serving, asked.caller).need(*seqs)
        if ends.due():
            return self._ended(ends)
        self._ends.append(ends)
        return None

    def _look_at_ends(self) -> None:
        site = self._serving.engine.site
        for ends in tuple(self._ends):
            ends.left = {seq for seq in ends.left if seq in site.requests or site.to_be(seq) is not None}
            if ends.due() or ends.asked.handle.gone:
                self._ends.remove(ends)
                with self._told(ends.asked):
                    self._serving.server.reply(ends.asked.handle, self._ended(ends))

    def _ended(self, ends: _Ends) -> bytes:
        seqs = [seq for seq in ends.seqs if seq not in ends.left]
        rows = listing.ended_objects(self._serving, seqs, Visibility(self._serving, ends.asked.caller))
        id, form = ends.asked.handle.id, ends.asked.message.get("text")
        if form is None:
            return messages.result_answer(id, rows)
        if not rows:  # hidden meanwhile by another setting
            raise Refusal("hidden_since")
        if form == "qwait":
            return _told(id, rows, ends.any)
        return messages.text_answer(id, _status(rows[-1]))

    # ------------------------------------------------------------ events

    def events(self, asked: rpc.Asked) -> dict[str, Any] | None:
        """A page of the journal after number ``after`` (or from instant ``since`` on); ``wait``: not before
        there is one; ``request``: what concerns it, from its submission on."""
        message = asked.message
        after = int(message.get("after") or 0)
        limit = min(int(message.get("limit") or PAGE), PAGE)
        site, sight = self._serving.engine.site, Visibility(self._serving, asked.caller)
        seq, since = None, message.get("since")
        if message.get("request"):
            seq = seq_of(self._serving, str(message["request"]))
            sight.need(seq)
            since = self._submitted(seq) if not after else None
        found = list(self._serving.readers.live.events(after=after, since=since, limit=limit))
        if not found and message.get("wait"):
            self._events.append(asked)
            return None
        zone = Zone(site.timezone)
        shown = sight.events(found) if seq is None else sight.story(found, seq)
        objects = [event_object(each, site.name, zone) for each in shown]
        for wait in (each for row in objects for each in row.get("wait", ()) if not sight.all):
            wait["text"] = sight.masked(wait["text"])
        return {"events": objects, "last": found[-1].n if found else after}

    def _submitted(self, seq: Seq) -> Instant:
        request = self._serving.engine.site.requests.get(seq)
        if request is not None:
            return request.submitted
        [row] = self._serving.readers.live.ended(seqs=(seq,))
        return row["submitted"]

    # ------------------------------------------------------------ output

    def cat(self, asked: rpc.Asked) -> bytes | None:
        """Output of a started request from ``offset`` on; ``follow``: held back until there is more or it
        has ended."""
        site, message = self._serving.engine.site, asked.message
        seq = seq_of(self._serving, str(message["request"]))
        offset = int(message.get("offset") or 0)
        request = site.requests.get(seq)
        if request is None:
            return self._cat_ended(asked, seq, offset)
        Visibility(self._serving, asked.caller).need(seq)
        need_owner(site, asked.caller, request, "read")
        if request.state not in STARTED:
            raise Refusal("no_output_yet", id=site.id_of(seq))
        stream = "stderr" if message.get("stream") == "stderr" and not request.spec.output.join else "stdout"
        place = output.place(seq, request.attempts, stream)
        try:
            data = output.read(self._serving.home.spool, place, offset, request.spec.uid)
        except OSError:
            data = b""
        if not data and message.get("follow"):
            self._tails.append(asked)
            return None
        return _piece(asked, data, offset)

    def _cat_ended(self, asked: rpc.Asked, seq: Seq, offset: int) -> bytes:
        """Of one that has ended the place of its output: whoever asks reads it with his own rights."""
        site = self._serving.engine.site
        name = site.id_of(seq)
        rows = listing.ended_objects(self._serving, [seq], Visibility(self._serving, asked.caller))
        if not rows:
            raise Refusal("unknown_request", id=name)
        if rows[0]["owner"] != asked.caller.user:
            need(site.settings, asked.caller, "operator", f"reading the output of {name}")
        path = rows[0]["error" if asked.message.get("stream") == "stderr" else "output"]
        undelivered = self._undelivered(asked, seq, offset)
        if undelivered is not None:
            return _piece(asked, undelivered, offset)
        if path is None:
            raise Refusal("wrote_nothing", id=name)
        return messages.text_answer(asked.handle.id, 0, "", "", next=offset, done=True, path=path)

    def _undelivered(self, asked: rpc.Asked, seq: Seq, offset: int) -> bytes | None:
        """A piece of the output of an ended request that had to stay in the spool, which is closed to its
        owner where the daemon is root; None where it was delivered, or is not to be had."""
        [row] = self._serving.readers.live.ended(seqs=(seq,))
        ended, spec = row["ended"], row["spec"]
        if not isinstance(ended, Ended):
            return None
        errors = asked.message.get("stream") == "stderr"
        place = output.stayed(seq, ended.stderr if errors else ended.stdout)
        if not place and ended.end_reason == "lost":
            request = row.get("request")
            stream = "stderr" if errors and not spec.output.join else "stdout"
            place = output.place(seq, request.attempts if request is not None else 0, stream)
        try:
            return output.read(self._serving.home.spool, place, offset, spec.uid) if place else None
        except OSError:
            return None


def _piece(asked: rpc.Asked, data: bytes, offset: int) -> bytes:
    out = data.decode("latin-1")
    return messages.output_answer(asked.handle.id, out, next=offset + len(data), done=not data)


def _told(id: int, rows: listing.Objects, any: bool) -> bytes:
    """What somebody is told who has waited for requests: a line for each that did not end well; where he
    waited for any, its identifier besides. The exit status is 1 where there is a line."""
    bad = [row for row in rows if (row["end_reason"], row["exit_status"]) != ("exit", 0)]
    lines = [f"{row['id']} ended: {row['end_reason']}{_code(row)}\n" for row in bad]
    out = "".join(f"{row['id']}\n" for row in rows) if any else ""
    return messages.text_answer(id, 1 if bad else 0, out, "".join(lines))


def _code(row: dict[str, Any]) -> str:
    status = "" if row["exit_status"] is None else f", exit status {row['exit_status']}"
    return status + ("" if row["exit_signal"] is None else f", signal {row['exit_signal']}")


def _status(ended: dict[str, Any]) -> int:
    """The exit status that stands for how a request ended: its own, 128 + the signal; 3 when it was deleted
    before it ran (as `qsub -W block=true` of PBS), or ended with 0 as it was deleted."""
    status, number = ended["exit_status"], ended["exit_signal"]
    if ended["end_reason"] == "deleted" and not status and number is None:
        return 3
    return int(status) if status is not None else 128 + (number or 0)
