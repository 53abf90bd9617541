"""Questions that wait: for ends of requests (``qsub --wait``), for events, for output."""

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from nqspy.answers import listing, output
from nqspy.answers.named import seq_of, seqs_of
from nqspy.answers.serving import Serving
from nqspy.answers.turns import Enough, Turns, never
from nqspy.answers.visibility import Visibility
from nqspy.engine.handlers.people import need, need_owner
from nqspy.model.endings import End
from nqspy.model.errors import Refusal
from nqspy.model.events import Ended
from nqspy.model.ids import Instant, Seq, is_array, number_of
from nqspy.model.output_paths import attempt_mark
from nqspy.model.requests import STARTED, Request
from nqspy.model.site import Site
from nqspy.report.event_objects import event_object
from nqspy.report.time_text import Zone
from nqspy.rpc import messages
from nqspy.rpc import server as rpc
from nqspy.rpc.limits import person

PAGE = 1_000
"""Most events in one answer."""
SLICE = 100
"""Events of one slice."""
TAIL = 0.25
"""Real seconds between checks of a followed file; only while a client follows it."""

Errors = Callable[[rpc.Asked], AbstractContextManager[None]]
"""Block whose errors are sent to the client that asked."""


@dataclass(slots=True)
class _Ends:
    """Ends that a question waits for. ``open``: those of ``seqs`` that have not ended; ``any``: one end
    suffices; ``wrong``: refused identifiers."""

    asked: rpc.Asked
    seqs: list[Seq]
    open: set[Seq] = field(default_factory=set)
    any: bool = False
    wrong: list[Refusal] = field(default_factory=list)

    def check(self, site: Site) -> None:
        """Remove ended requests from ``open``; if all must end, stop at the first that has not."""
        while not self.any and self.open:
            seq = self.open.pop()
            if site.to_be(seq) is not None:
                self.open.add(seq)
                return
        self.open = {seq for seq in self.open if seq in site.requests or site.to_be(seq) is not None}

    def due(self) -> bool:
        """True if the question can be answered."""
        return not self.open or (self.any and len(self.open) < len(set(self.seqs)))


class OpenQuestions:
    """Store of questions that wait for something to happen; `check` answers those that are due."""

    def __init__(self, serving: Serving, answer: Callable[[rpc.Asked], None], errors: Errors) -> None:
        """``answer``: answers a question, perhaps by storing it here again."""
        self._serving, self._answer, self._errors = serving, answer, errors
        self._ends: list[_Ends] = []
        self._events: list[rpc.Asked] = []
        self._tails: list[rpc.Asked] = []
        self._due: Turns[rpc.Asked] = Turns()
        self._commits = -1
        self._checked = 0
        self._tailed = time.monotonic()

    def patience(self) -> float | None:
        """Return the most real seconds until the next check; None: not before the next commit."""
        if self._due.count:
            return 0.0
        return TAIL if self._tails else None

    def check(self, enough: Enough = never) -> None:
        """Answer due questions, users in turn, until ``enough`` is true: ends and events after commits
        only."""
        now, commits = time.monotonic(), self._serving.engine.commits
        if commits != self._commits or len(self._ends) > 2 * self._checked:
            self._check_ends()
            self._checked = len(self._ends)
        if commits != self._commits:
            self._events = self._again(self._events)
        self._commits = commits
        if now - self._tailed >= TAIL:
            self._tails, self._tailed = self._again(self._tails), now
        while (found := self._due.next()) is not None:
            if not found[1].handle.closed:
                self._answer(found[1])
            if enough():
                break

    def _again(self, waiting: list[rpc.Asked]) -> list[rpc.Asked]:
        for asked in waiting:
            self._due.add(person(asked.caller), asked)
        return []

    # ------------------------------------------------------------ ends

    def wait(self, asked: rpc.Asked) -> bytes | None:
        """Answer once all of ``ids`` have ended (``any``: one of them): with their objects, or in text form
        with the last one's exit status (`wait`), or with a line for each bad end (`qwait`)."""
        site = self._serving.engine.site
        view = Visibility(self._serving, asked.caller)
        wrong = list[Refusal]()
        seqs = seqs_of(self._serving, view, asked.message["ids"], wrong)
        known = view.known(seqs)
        wrong += [Refusal("unknown_request", id=site.id_of(seq)) for seq in seqs if seq not in known]
        if wrong and not (known and asked.message.get("text") == "qwait"):
            raise wrong[0]
        seqs = [seq for seq in seqs if seq in known]
        open_seqs = {seq for seq in seqs if site.to_be(seq) is not None}
        ends = _Ends(asked, seqs, open_seqs, bool(asked.message.get("any")), wrong)
        if ends.due():
            return self._ended(ends)
        self._ends.append(ends)
        return None

    def _check_ends(self) -> None:
        site = self._serving.engine.site
        waiting, self._ends = self._ends, []
        for ends in waiting:
            ends.check(site)
            if not ends.due() and not ends.asked.handle.closed:
                self._ends.append(ends)
            elif not ends.asked.handle.closed:
                with self._errors(ends.asked):
                    self._serving.server.reply(ends.asked.handle, self._ended(ends))

    def _ended(self, ends: _Ends) -> bytes:
        seqs = [seq for seq in ends.seqs if seq not in ends.open]
        rows = listing.ended_objects(self._serving, seqs, Visibility(self._serving, ends.asked.caller))
        id, form = ends.asked.handle.id, ends.asked.message.get("text")
        if form is None:
            return messages.result_answer(id, rows)
        if not rows:  # hidden meanwhile by another setting
            raise Refusal("hidden_since")
        if form != "qwait":
            return messages.text_answer(id, End.of_object(rows[-1]).code)
        # With ``any`` the identifiers are printed too.
        found = [(row["id"], End.of_object(row)) for row in rows]
        lines = [f"{name} ended: {end.words}\n" for name, end in found if not end.ok]
        out = "".join(f"{name}\n" for name, _ in found) if ends.any else ""
        status = ends.wrong[-1].status if ends.wrong else 1 if lines else 0
        err = "".join([*lines, *(f"{each}\n" for each in ends.wrong)])
        return messages.text_answer(id, status, out, err)

    # ------------------------------------------------------------ events

    def events(self, asked: rpc.Asked) -> Iterator[bytes | None] | dict[str, Any] | None:
        """Answer with a page of the journal after number ``after`` (or from instant ``since`` on); ``wait``:
        once there is an event; ``request``: only its events, from its submission on."""
        message = asked.message
        after = int(message.get("after") or 0)
        limit = min(int(message.get("limit") or PAGE), PAGE)
        view = Visibility(self._serving, asked.caller)
        seq, since = None, message.get("since")
        if message.get("request"):
            seq = seq_of(self._serving, view, str(message["request"]))
            view.need(seq)
            request = self._serving.engine.site.requests.get(seq)
            if after:
                since = None
            elif request is not None:
                since = request.submitted
            else:
                [row] = self._serving.readers.live.ended(seqs=(seq,))
                since = row["submitted"]
        page = _Page(self._serving, view, seq, since, after)
        page.read(min(limit, SLICE))
        if page.last == after and message.get("wait"):
            self._events.append(asked)
            return None
        return page.whole() if page.count < min(limit, SLICE) or limit <= SLICE else page.rest(asked, limit)

    # ------------------------------------------------------------ output

    def cat(self, asked: rpc.Asked) -> bytes | None:
        """Answer with output from byte ``offset`` on, of ``attempt`` or the latest; None with ``follow``
        while there is no more: it is asked again every `TAIL` seconds."""
        site, message = self._serving.engine.site, asked.message
        view = Visibility(self._serving, asked.caller)
        seq = seq_of(self._serving, view, str(message["request"]))
        offset = int(message.get("offset") or 0)
        if is_array(seq):
            view.need(seq)
            raise Refusal("output_of_indices", id=site.id_of(seq), number=number_of(seq))
        request = site.requests.get(seq)
        if request is None:
            return self._cat_ended(asked, seq, offset)
        view.need(seq)
        need_owner(site, asked.caller, request, "read")
        wanted = message.get("attempt")
        if request.state not in STARTED or (wanted is not None and wanted != request.attempts):
            if not request.former and wanted is None:
                raise Refusal("no_output_yet", id=site.id_of(seq))
            return self._cat_former(asked, request, offset)
        stream = "stderr" if message.get("stream") == "stderr" and not request.spec.output.join else "stdout"
        place = output.place(seq, request.attempts, stream)
        data = self._read(place, offset, request)
        if not data and message.get("follow"):
            self._tails.append(asked)
            return None
        return _piece(asked, data, offset)

    def _read(self, place: str, offset: int, request: Request) -> bytes:
        with contextlib.suppress(OSError):
            return output.read(self._serving.home.spool, place, offset, request.spec.uid)
        return b""

    def _cat_ended(self, asked: rpc.Asked, seq: Seq, offset: int) -> bytes:
        """Answer with the path of an ended request's output, or a piece that stayed in the spool."""
        site, message = self._serving.engine.site, asked.message
        name = site.id_of(seq)
        rows = listing.ended_objects(self._serving, [seq], Visibility(self._serving, asked.caller))
        if not rows:
            raise Refusal("unknown_request", id=name)
        if rows[0]["owner"] != asked.caller.user:
            need(site.settings, asked.caller, "operator", f"reading the output of {name}")
        [row] = self._serving.readers.live.ended(seqs=(seq,))
        request, ended, wanted = row["request"], row["ended"], message.get("attempt")
        errors = message.get("stream") == "stderr"
        path = rows[0]["error" if errors else "output"]
        if wanted is not None and wanted != request.attempts:
            return self._cat_former(asked, request, offset, last=path)
        place = ""
        if isinstance(ended, Ended):
            place = output.stayed(seq, ended.stderr if errors else ended.stdout)
            if not place and ended.end_reason == "lost":
                stream = "stderr" if errors and not request.spec.output.join else "stdout"
                place = output.place(seq, request.attempts, stream)
        if place:
            with contextlib.suppress(OSError):
                data = output.read(self._serving.home.spool, place, offset, request.spec.uid)
                return _piece(asked, data, offset)
        if path is None:
            raise Refusal("wrote_nothing", id=name)
        return self._delivered(asked, request, request.attempts, path, offset)

    def _delivered(
        self, asked: rpc.Asked, request: Request, attempt: int, path: str, offset: int, later: bool = False
    ) -> bytes:
        """Answer with the path of the file that has an attempt's output, and the line that marks its
        beginning there. ``later``: True if a later attempt wrote the same file."""
        more: dict[str, Any] = {"later": 1} if later else {}
        if request.former:
            mark = attempt_mark(self._serving.engine.site.id_of(request.seq), attempt)
            more |= {"mark": mark, "attempt": attempt}
        return messages.text_answer(asked.handle.id, 0, next=offset, done=True, path=path, **more)

    def _cat_former(self, asked: rpc.Asked, request: Request, offset: int, last: str | None = None) -> bytes:
        """Answer with an earlier attempt's output: from the spool, or its file. ``last``: the latest
        attempt's file."""
        name, wanted = self._serving.engine.site.id_of(request.seq), asked.message.get("attempt")
        known = {each.attempt: each for each in request.former}
        former = known.get(wanted if wanted is not None else max(known, default=0))
        if former is None:
            numbers = ", ".join(map(str, sorted({*known, request.attempts} - {0}))) or "none"
            raise Refusal("no_such_attempt", id=name, attempt=wanted, known=f"its attempts: {numbers}")
        errors = asked.message.get("stream") == "stderr" and not request.spec.output.join
        paths = {each.attempt: each.stderr if errors else each.stdout for each in request.former}
        path = paths[former.attempt]
        place = output.stayed(request.seq, path)
        if place:
            return _piece(asked, self._read(place, offset, request), offset)
        if not path:
            raise Refusal("no_such_attempt", id=name, attempt=former.attempt, known="it wrote none")
        later = [last, *(paths[n] for n in paths if n > former.attempt)]
        return self._delivered(asked, request, former.attempt, path, offset, later=path in later)


class _Page:
    """Events as objects, in slices. ``seq``: only of that request; ``last``: number of the last one read."""

    def __init__(
        self, serving: Serving, view: Visibility, seq: Seq | None, since: Instant | None, after: int
    ) -> None:
        self._serving, self._view, self._seq, self._since = serving, view, seq, since
        self.last, self.count = after, 0
        self._objects: list[dict[str, Any]] = []

    def read(self, limit: int) -> bool:
        """Read ``limit`` more events; return True if there were as many."""
        view, site = self._view, self._serving.engine.site
        reader = self._serving.readers.live
        found = list(reader.events(after=self.last, since=self._since, limit=limit))
        zone = Zone(site.timezone)
        objects = [event_object(each, site.name, zone) for each in view.events(found, self._seq)]
        for wait in (each for row in objects for each in row.get("wait", ()) if not view.all):
            wait["text"] = view.masked(wait["text"])
        self._objects += objects
        self.count += len(found)
        self.last = found[-1].n if found else self.last
        return len(found) == limit

    def whole(self) -> dict[str, Any]:
        """Return the whole page of events as the answer's data."""
        return {"events": self._objects, "last": self.last}

    def rest(self, asked: rpc.Asked, limit: int) -> Iterator[bytes | None]:
        """Yield None after each further slice up to ``limit`` events, then the answer."""
        yield None
        while self.count < limit and self.read(min(limit - self.count, SLICE)):
            yield None
        yield messages.result_answer(asked.handle.id, self.whole())


def _piece(asked: rpc.Asked, data: bytes, offset: int) -> bytes:
    out = data.decode("latin-1")
    return messages.output_answer(asked.handle.id, out, next=offset + len(data), done=not data)
