"""``qstat`` of requests as PBS clients read it: tables and full form; text, JSON, DSV (pbs-clients.md 8)."""

import math
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial

from msgspec import structs

from nqspy.answers.choice import SLICE, Listing, RequestChoice
from nqspy.answers.serving import Serving
from nqspy.answers.slow import Steps
from nqspy.decider.client import MAX_WAIT
from nqspy.engine.explain import reasons_of
from nqspy.engine.handlers.advice import shared
from nqspy.engine.handlers.people import role_of
from nqspy.model.errors import Refusal
from nqspy.model.events import Ended
from nqspy.model.machine import torus_of
from nqspy.model.people import Caller
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request, Spec, State, Used
from nqspy.ports import EndedRow
from nqspy.report import pbs_attributes, pbs_forms, pbs_tables
from nqspy.report.pbs_attributes import PbsContext, Subject
from nqspy.report.pbs_objects import node_name
from nqspy.report.pbs_values import VariableList
from nqspy.report.time_text import Zone
from nqspy.rpc import messages
from nqspy.rpc import server as rpc
from nqspy.rpc.version import version

_MOST_TEXTS = 1_000
MOST_BYTES = 192 << 20
"""Most bytes of one answer: more is refused, before it fills the memory."""


class Subjects:
    """Maker of `Subject`s of requests. ``full``: with the variables that ``caller`` may see; ``comments``:
    with the reason why each waits."""

    def __init__(
        self, serving: Serving, choice: RequestChoice, caller: Caller, *, full: bool, comments: bool
    ) -> None:
        self._serving, self._choice, self._full, self._comments = serving, choice, full, comments
        site = serving.engine.site
        domains = site.domains_by_queue() if site.is_divided() else {}
        self.now = serving.clock.now()
        torus = torus_of(site.settings.machine)
        self.context = PbsContext(site.name, node_name(site), Zone(site.timezone), domains, torus)
        self._texts: dict[Reason, str] = {}
        self._variables: dict[tuple[str, str, str], VariableList | None] = {}
        self._all, self._user = role_of(site.settings, caller) != "user", caller.user

    def live(self, requests: list[Request]) -> list[Subject]:
        """Return the subjects of live requests."""
        reasons = reasons_of(self._serving.engine, [r.seq for r in requests]) if self._comments else {}
        if self._full:
            self._read_variables([request.spec for request in requests])
        return [self._live(each, reasons.get(each.seq)) for each in requests]

    def _live(self, request: Request, reason: Reason | None) -> Subject:
        used: Used | None = None
        allows = self._choice.view.allows
        members: tuple[Request, ...] = ()
        if request.array is not None:
            site = self._serving.engine.site
            used = pbs_attributes.used_by_indices(request.array)
            members = tuple(site.requests[seq] for seq in site.members.get(request.seq, ()))
        elif request.attempt is not None:
            now = self._serving.run_times.unset(request.seq, self.now)
            used = request.used_until(now, self._serving.engine.samples.get(request.seq))
        return Subject(
            request,
            used,
            self._comment(request, reason) if self._comments else "",
            self._variables_of(request.spec) if self._full else None,
            shared_output=shared(self._serving.engine.site, request, allows) if self._full else "",
            members=members,
        )

    def ended(self, rows: list[EndedRow]) -> list[Subject]:
        """Return the subjects of ended requests."""
        if self._full:
            self._read_variables([row["spec"] for row in rows])
        return [
            Subject(
                row["request"],
                row["ended"].used if isinstance(row["ended"], Ended) else None,
                self._choice.view.masked(pbs_attributes.comment_of(row["ended"])),
                self._variables_of(row["spec"]) if self._full else None,
                row["ended"],
                row["at"],
            )
            for row in rows
        ]

    def _comment(self, request: Request, reason: Reason | None) -> str:
        if reason is None:
            return request.hold_text if request.state is State.HELD else ""
        text = self._texts.get(reason)
        if text is None:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            alone = structs.replace(reason, ahead=0)  # a number that agrees with its place is in --why
            never = "can never start: " if reason.code is ReasonCode.NEVER else ""
            text = self._texts[reason] = never + self._choice.view.masked(alone.text)
        return text

    def _variables_of(self, spec: Spec) -> VariableList | None:
        key = (spec.environment, spec.workdir, spec.queue)
        return self._variables.get(key) if self._may_read(spec) else None

    def _may_read(self, spec: Spec) -> bool:
        """True if the caller may see a request's variables (they hold passwords), as owner or operator."""
        return self._all or spec.owner == self._user

    def _read_variables(self, specs: Iterable[Spec]) -> None:
        keys = {(spec.environment, spec.workdir, spec.queue) for spec in specs if self._may_read(spec)}
        new = keys - self._variables.keys()
        if not new:
            return
        if len(self._variables) > SLICE:
            self._variables.clear()
            new = keys
        bodies = self._serving.readers.live.blobs({digest for digest, _, _ in new})
        for digest, workdir, queue in new:
            body = bodies.get(digest)
            self._variables[digest, workdir, queue] = (
                None if body is None else VariableList.of(body, workdir, queue)
            )


def listing_of(
    serving: Serving, asked: rpc.Asked, *, full: bool = False, comments: bool = False
) -> tuple[Listing, Subjects]:
    """Return the list of requests that a message asks for, and the maker of its subjects."""
    choice = RequestChoice(serving, asked.message, asked.caller)
    subjects = Subjects(serving, choice, asked.caller, full=full, comments=comments)
    return Listing(asked.handle.id, choice, subjects.live, subjects.ended), subjects


def _letters(asked: rpc.Asked) -> str:
    return str(asked.message.get("letters") or "")


def table(serving: Serving, asked: rpc.Asked) -> Steps:
    """Yield None after slices, then the default table; ``letters``: ``w`` for wide, ``p`` for ``% done``."""
    letters, server = _letters(asked), serving.engine.site.name
    shape = pbs_tables.shape(server, wide="w" in letters, done="p" in letters)

    def write(subjects: list[Subject]) -> list[str]:
        return [pbs_tables.line(subject, shape) for subject in subjects]

    (listing, _), lines = listing_of(serving, asked), list[str]()
    yield from listing.collected(lines, write)
    yield listing.answer("".join([shape.head, *lines] if lines else ()))


def alternate(serving: Serving, asked: rpc.Asked) -> Steps:
    """Yield None after slices, then the alternate table. With ``T`` in ``letters`` it has expected starts: it
    is yielded as work, because simulating them takes long."""
    letters = _letters(asked)
    (listing, _), lines = listing_of(serving, asked, comments="s" in letters), list[str]()
    if "T" not in letters:
        row, head = _alternate(serving, letters, None)
        yield from listing.collected(lines, lambda subjects: [row(each) for each in subjects])
        yield listing.answer("".join([head, *lines] if lines else ()))
        return
    ahead = serving.decider.starts(serving.clock.now(), serving.engine.between, ())
    written, subjects = partial(_alternate, serving, letters), list[Subject]()
    # Another thread may read copies.
    yield from listing.collected(
        subjects, lambda some: [structs.replace(each, request=copy(each.request)) for each in some]
    )

    def work() -> bytes:
        starts, _ = ahead(MAX_WAIT)
        row, head = written(starts)

        def order(subject: Subject) -> tuple[bool, float]:
            # Running ones by their starts; then those with an expected start; last the others.
            begun = subject.request.started
            return begun is None, starts.get(subject.request.seq, math.inf) if begun is None else begun

        lines = [row(each) for each in sorted(subjects, key=order)]
        return listing.answer("".join([head, *lines] if lines else ()))

    yield work


def _alternate(
    serving: Serving, letters: str, starts: Mapping[int, int] | None
) -> tuple[Callable[[Subject], str], str]:
    """Return the function that writes a row, and the table's head; ``starts``: as in `pbs_tables.Style`."""
    site = serving.engine.site
    style = pbs_tables.Style(
        wide="w" in letters, megawords="M" in letters, gigabytes="G" in letters, hosts="n" in letters,
        comments="s" in letters, one_line="1" in letters, starts=starts,
    )  # fmt: skip
    at = pbs_tables.Where(site.name, node_name(site), Zone(site.timezone), serving.clock.now())
    return partial(pbs_tables.alternate_row, style=style, at=at), pbs_tables.alternate_head(site.name, style)


def full(serving: Serving, asked: rpc.Asked) -> Steps:
    """Yield None after slices, then all data of each job in the form ``format`` (`pbs_forms.FORMS`)."""
    (listing, subjects), parts = listing_of(serving, asked, full=True, comments=True), list[bytes]()
    layout = pbs_forms.layout(asked.message, "Job Id: ")
    reference = messages.reference if asked.message.get("shared") else None
    writer = pbs_forms.JobWriter(layout, subjects.context, messages.escaped, reference, serving.written)

    def write(subjects: list[Subject]) -> list[bytes]:
        made = [writer.write(each) for each in subjects]
        if writer.size > MOST_BYTES:
            raise Refusal("answer_too_large", most=MOST_BYTES >> 20)
        return made

    yield from listing.collected(parts, write)
    if layout.form == "json":
        head = pbs_forms.json_head(subjects.now, version(), serving.engine.site.name)
        begin, end = messages.escaped(f'{head},"Jobs":{{'), messages.escaped("}}\n")
        members = [piece for part in parts for piece in (b",", part)]
        whole = [begin, *members[1:], end]
        parts = whole if parts else [messages.escaped(head + "}\n")]
    shared = writer.shared if reference else None
    choice = listing.choice
    yield messages.pieces_answer(listing.id, choice.status(), parts, choice.complaint(), shared)
