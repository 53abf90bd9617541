"""Examination of the waiting requests under a set of exits. For each, whatever is free: would its submission
be accepted now, and may it start? Then a simulation ahead: places, starts, reasons."""

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
"""An answer in a word or two, and its reason."""
Lists = dict[str, list[Seq]]
"""The queued requests of each queue, in the order in which a pass examines them."""

HALF = 0.5
"""Fraction of the time to use for submissions."""


class Examination(Struct):
    """Results by request. ``submissions``: answers to a submission; ``answers``: those of jobselect (both may
    be missing if time was short); ``places`` in its queue's order of offers; ``reasons``: why it does not
    start now, with the source; ``starts``: probable start (at the instant of the copy: now); ``until``: end
    of the simulated time, None: all have started."""

    submissions: dict[Seq, Answer] = field(default_factory=dict)
    answers: dict[Seq, Answer] = field(default_factory=dict)
    places: dict[Seq, int] = field(default_factory=dict)
    reasons: dict[Seq, tuple[str, str]] = field(default_factory=dict)
    starts: dict[Seq, int] = field(default_factory=dict)
    until: int | None = None


def queue_lists(copy: SiteCopy, site: Site, exits: Exits) -> Lists:
    """Return the list of each queue with queued requests, in the order in which a pass would examine it."""
    samples = dict(copy.between.samples)
    with exits.rehearsal(copy.now):
        return {
            queue: standing(site, queue, copy.now, exits, samples).line()
            for queue, columns in site.waiting.items()
            if len(columns) and queue in site.settings.queues
        }


def ask(into: Examination, copy: SiteCopy, site: Site, exits: Exits, lists: Lists, spent: Spent) -> None:
    """Ask these exits about each request until ``spent`` (part of the time used) is 1; fill ``into``."""
    for request in site.requests.values():
        if request.state not in STARTED and spent() < HALF:
            into.submissions[request.seq] = _submission_answer(copy, site, exits, request)
    exits.begin(site)
    draft = Draft(site, copy.now, exits, dict(copy.between.samples))
    for queue, line in lists.items():
        draft.asked = site.domain_of(queue).name
        for seq in line:
            if spent() >= 1:
                return
            shown = request_view(site.requests[seq], draft)
            answer = exits.jobselect(shown, view_of(draft))
            draft.offered[queue].append((shown, answer))
            reply = ("standard rules", "")
            if answer is not None:
                reply = (answer.verdict, f"{answer.text} ({answer.who})" if answer.text else answer.who)
            into.answers[seq] = reply
            if exits.failures():
                exits.begin(site)  # an exit that fails is still asked about the next request


def _submission_answer(copy: SiteCopy, site: Site, exits: Exits, request: Request) -> Answer:
    """Return the exits' answer if this request were submitted now: refused, or accepted with changes."""
    spec = request.spec
    answer = ask_submit(site, spec, exits, copy.now, copy.scripts.get(spec.script, b""))
    if answer is not None and answer.refusal is not None:
        return "refused", f"{answer.refusal} ({answer.who})"
    words = [] if answer is None else [f"{name}={value}" for name, value in answer.changes.items()]
    pipe = site.settings.queues.get(spec.queue)
    routed = pipe is not None and pipe.kind == "pipe" and exits.has("route")
    if pipe is not None and routed and (answer is None or "queue" not in answer.changes):
        queue, _ = destination(site, spec, pipe, exits, spec.unix_groups, copy.now)
        words.append(f"queue={queue or pipe.name}")
    if not words:
        return "accepted", ""
    return f"accepted with {', '.join(words)}", "" if answer is None else f"({answer.who})"


def simulate(into: Examination, copy: SiteCopy, site: Site, exits: Exits, lists: Lists, spent: Spent) -> None:
    """Simulate ahead on ``site``, which this changes: at least one pass, more while ``spent`` is below 1; add
    places, reasons and starts to ``into``."""
    into.places = {seq: place for line in lists.values() for place, seq in enumerate(line, 1)}
    waiting = {request.seq for request in site.requests.values() if request.state not in STARTED}
    run = AheadRun(site, probable_runs(copy.site, copy.now), copy.now, exits, replace(copy.between, due=True))
    reasons = reasons_of(run.engine, waiting - run.starts.keys())
    into.reasons = {seq: (reason.text, reason.who) for seq, reason in reasons.items()}
    cut = run.go_on_while(lambda: not waiting <= run.starts.keys() and spent() < 1)
    into.until = int(run.now) if cut and not waiting <= run.starts.keys() else None
    into.starts = {seq: int(at) for seq, at in run.starts.items() if seq in waiting}
