"""A look at the requests that wait under a set of exits. It asks about each, whatever is free: would a
submission of it be accepted now, and might it start? Then it lets time pass: places, starts, reasons."""

from msgspec import Struct, field
from msgspec.structs import replace

from nqspy.core import standing
from nqspy.core.draft import Draft
from nqspy.core.route import ask_submit, destination
from nqspy.core.views import request_view, view_of
from nqspy.engine.explain import reasons_of
from nqspy.engine.look_ahead import Spent, probable_runs
from nqspy.engine.virtual.ahead import AheadRun
from nqspy.model.ids import Seq
from nqspy.model.requests import STARTED, Request
from nqspy.model.site import Site
from nqspy.ports import Exits
from nqspy.sim.trying.copied import SiteCopy

Answer = tuple[str, str]
"""An answer in a word or two, and the reason that it gives."""
Lines = dict[str, list[Seq]]
"""The queued requests of each queue, in the order in which a pass looks at them."""

HALF = 0.5
"""The part of its time that asking about submissions may take."""


class Examination(Struct):
    """Findings by request. ``submissions``: what a submission would be answered; ``answers``: what jobselect
    says (of neither there is one where time was short); ``places`` in its queue's order of offers;
    ``reasons`` why it does not start now, with the source; ``starts``: when it would, probably (at the
    instant of the copy: now); ``until``: how far was looked, None: to the end."""

    submissions: dict[Seq, Answer] = field(default_factory=dict)
    answers: dict[Seq, Answer] = field(default_factory=dict)
    places: dict[Seq, int] = field(default_factory=dict)
    reasons: dict[Seq, tuple[str, str]] = field(default_factory=dict)
    starts: dict[Seq, int] = field(default_factory=dict)
    until: int | None = None


def lines_of(copy: SiteCopy, twin: Site, exits: Exits) -> Lines:
    """Return the lines of all queues that have any."""
    samples = dict(copy.between.samples)
    with exits.rehearsal(copy.now):
        return {
            queue: standing(twin, queue, copy.now, exits, samples).line()
            for queue, columns in twin.waiting.items()
            if len(columns) and queue in twin.settings.queues
        }


def ask(look: Examination, copy: SiteCopy, twin: Site, exits: Exits, lines: Lines, spent: Spent) -> None:
    """Ask these exits about each request, as long as there is time."""
    for request in twin.requests.values():
        if request.state not in STARTED and spent() < HALF:
            look.submissions[request.seq] = _submitted(copy, twin, exits, request)
    exits.begin(twin)
    draft = Draft(twin, copy.now, exits, dict(copy.between.samples))
    for queue, line in lines.items():
        draft.asked = twin.domain_of(queue).name
        for seq in line:
            if spent() >= 1:
                return
            shown = request_view(twin.requests[seq], draft)
            answer = exits.jobselect(shown, view_of(draft))
            draft.offered[queue].append((shown, answer))
            said = ("standard rules", "")
            if answer is not None:
                said = (answer.verdict, f"{answer.text} ({answer.who})" if answer.text else answer.who)
            look.answers[seq] = said
            if exits.failures():
                exits.begin(twin)  # one that fails is asked about the next one all the same


def _submitted(copy: SiteCopy, twin: Site, exits: Exits, request: Request) -> Answer:
    """Return the answer to a submission like this."""
    spec = request.spec
    answer = ask_submit(twin, spec, exits, copy.now, copy.scripts.get(spec.script, b""))
    if answer is not None and answer.refusal is not None:
        return "refused", f"{answer.refusal} ({answer.who})"
    words = [] if answer is None else [f"{name}={value}" for name, value in answer.changes.items()]
    pipe = twin.settings.queues.get(spec.queue)
    routed = pipe is not None and pipe.kind == "pipe" and exits.has("route")
    if pipe is not None and routed and (answer is None or "queue" not in answer.changes):
        queue, _ = destination(twin, spec, pipe, exits, spec.unix_groups, copy.now)
        words.append(f"queue={queue or pipe.name}")
    if not words:
        return "accepted", ""
    return f"accepted with {', '.join(words)}", "" if answer is None else f"({answer.who})"


def foresee(look: Examination, copy: SiteCopy, twin: Site, exits: Exits, lines: Lines, spent: Spent) -> None:
    """Let time pass on ``twin``, which is used up: one pass at least, and more as long as there is time."""
    look.places = {seq: place for line in lines.values() for place, seq in enumerate(line, 1)}
    left = {each.seq for each in twin.requests.values() if each.state not in STARTED}
    run = AheadRun(twin, probable_runs(copy.site, copy.now), copy.now, exits, replace(copy.between, due=True))
    told = reasons_of(run.engine, left - run.starts.keys())
    look.reasons = {seq: (reason.text, reason.who) for seq, reason in told.items()}
    cut = run.go_on_while(lambda: not left <= run.starts.keys() and spent() < 1)
    look.until = int(run.now) if cut and not left <= run.starts.keys() else None
    look.starts = {seq: int(at) for seq, at in run.starts.items() if seq in left}
