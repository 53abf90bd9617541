"""Requests that wait for others: what a submission names is read and judged, and whoever awaited a start or
an end is told of it in the same commit."""

from collections.abc import Iterable
from dataclasses import replace

from nqspy.core.queueing.depend import BEGUN, WHO, Judgement, awaited, judge
from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.requests import drop
from nqspy.model.actions import Notify
from nqspy.model.errors import Refusal
from nqspy.model.events import Deleted, DependencyFailed, DependencyMet, Ended, Started
from nqspy.model.ids import Seq, request_named
from nqspy.model.lifecycle import ages_when_eligible
from nqspy.model.people import Caller
from nqspy.model.requests import AFTER_WORDS, STARTED, AfterWord, Dependency, Spec

AFTER_MAX = 1_000
"""Requests that one request may wait for."""
NAMED = 20
"""Requests that a mail names; the others are counted."""
ATTRIBUTES_MAX = 100
"""Other attributes that a request may have."""
_PREFIX = "after:"


def read_after(tx: Transaction, spec: Spec, caller: Caller) -> Spec:
    """The spec with what its attributes ``after:ID:WORD`` say in ``after``. Raises Refusal.

    A request can name only what has an identifier already, that is, earlier ones, and nothing adds to
    ``after`` later: there can be no cycle.
    """
    if len(spec.attributes) + len(spec.after) > AFTER_MAX + ATTRIBUTES_MAX:
        raise Refusal("too_many_awaited", most=AFTER_MAX)
    ours = [each.removeprefix(_PREFIX) for each in spec.attributes if each.startswith(_PREFIX)]
    after = tuple(dict.fromkeys((*spec.after, *(_read(tx, text) for text in ours))))
    if not after:
        return spec
    if len(after) > AFTER_MAX:
        raise Refusal("so_many_awaited", most=AFTER_MAX, count=len(after))
    named = {each.seq for each in after}
    tx.look_up(named)
    for seq in named:
        if not tx.known(seq, caller):
            raise Refusal("unknown_prerequisite", id=tx.site.id_of(seq))
    others = tuple(each for each in spec.attributes if not each.startswith(_PREFIX))
    return replace(spec, after=after, attributes=others)


def _read(tx: Transaction, text: str) -> Dependency:
    name, colon, said = text.partition(":")
    word = next((each for each in AFTER_WORDS if each == (said if colon else "ok")), None)
    if not name or word is None:
        raise Refusal("bad_dependency", text=text[:80])
    seq = request_named(name, tx.site.name)
    if seq is not None:
        return Dependency(seq, word)
    if name[:1].isdigit():
        raise Refusal("unknown_prerequisite", id=name[:80])
    raise Refusal("bad_prerequisite", name=name[:80])


# ---------------------------------------------------------------- at submission


def judge_now(tx: Transaction, seq: Seq, after: Iterable[Dependency]) -> None:
    """Tells a new request what has become already of those it names: the same as if it happened now."""
    for prerequisite in dict.fromkeys(each.seq for each in after):
        _tell(tx, prerequisite, _so_far(tx, prerequisite), (seq,))


def unmet_now(tx: Transaction, after: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Those of these dependencies that are not met yet."""
    return tuple(each for each in after if each.word not in _so_far(tx, each.seq).met)


def _so_far(tx: Transaction, prerequisite: Seq) -> Judgement:
    request = tx.site.requests.get(prerequisite)
    if request is not None:
        return BEGUN if request.state in STARTED and not request.run.starting else Judgement()
    end = tx.end_of(prerequisite)
    return judge(end) if end is not None else Judgement()


# ---------------------------------------------------------------- as things happen


def settle(tx: Transaction) -> None:
    """Looks at the events of this group that were not looked at yet, and tells whoever awaited them.

    What that brings about (a deletion, say) is an event again and looked at in its turn: a long chain of
    dependants is a long loop and no deep recursion.
    """
    group, events = tx.group, tx.group.batch.events
    while group.settled < len(events):
        event = events[group.settled].event
        group.settled += 1
        if isinstance(event, Started | Ended | Deleted):
            dependants = tx.site.dependants.get(event.seq)
            if dependants:
                _tell(tx, event.seq, judge(event), sorted(dependants))


def _tell(tx: Transaction, prerequisite: Seq, said: Judgement, seqs: Iterable[Seq]) -> None:
    text = f"{tx.site.id_of(prerequisite)} {said.text}"
    met = _awaiting(tx, prerequisite, said.met, seqs)
    if met:
        _tell_met(tx, prerequisite, said.met, text, met)
    never = _awaiting(tx, prerequisite, said.never, seqs)
    if never:
        _tell_never(tx, prerequisite, said.never, text, never)


def _tell_met(
    tx: Transaction, prerequisite: Seq, words: tuple[AfterWord, ...], text: str, seqs: tuple[Seq, ...]
) -> None:
    """One event, or two where the queues of some say that age counts from now on and others' do not: so
    the journal tells the dates without the settings of that time."""
    requests = tx.site.requests
    ages = {seq: ages_when_eligible(tx.site, requests[seq].queue) for seq in seqs}
    for aging in (True, False):
        concerned = tuple(seq for seq in seqs if ages[seq] is aging)
        if concerned:
            tx.emit(DependencyMet(concerned, prerequisite, words, text, aging))
    tx.dirty()


def _awaiting(
    tx: Transaction, prerequisite: Seq, words: tuple[AfterWord, ...], seqs: Iterable[Seq]
) -> tuple[Seq, ...]:
    """Those of these requests that await one of these words of the prerequisite."""
    wanted = {Dependency(prerequisite, word) for word in words}
    requests = tx.site.requests
    return tuple(seq for seq in seqs if seq in requests and not wanted.isdisjoint(requests[seq].unmet))


def _tell_never(
    tx: Transaction, prerequisite: Seq, words: tuple[AfterWord, ...], text: str, seqs: tuple[Seq, ...]
) -> None:
    """What can never be met any more, by ``set dependency_failed``: held, deleted, or run all the same."""
    missed = " or ".join(awaited(tx.site, Dependency(prerequisite, word)) for word in words)
    match tx.site.settings.server.dependency_failed:
        case "run":
            _tell_met(tx, prerequisite, words, f"{text}; it runs all the same", seqs)
        case "delete":
            for seq in seqs:
                drop(tx, tx.site.requests[seq], WHO, f"{text}; it waited until {missed}")
        case _:
            text = f"{text}: what it waits for can never come about"
            tx.emit(DependencyFailed(seqs, prerequisite, words, text))
            _mail_held(tx, seqs, text)


def _mail_held(tx: Transaction, seqs: tuple[Seq, ...], text: str) -> None:
    """One mail for each person, however many of theirs are held."""
    people: dict[str, list[Seq]] = {}
    for seq in seqs:
        request = tx.site.requests[seq]
        people.setdefault(request.spec.mail.to or request.owner, []).append(seq)
    for to, theirs in people.items():
        names = [f"{tx.site.id_of(seq)} ({tx.site.requests[seq].name})" for seq in theirs[:NAMED]]
        more = f" and {len(theirs) - NAMED} more" if len(theirs) > NAMED else ""
        listed = ", ".join(names) + more
        said = f"{text}. It stays held: {listed}. An operator can release it, its owner delete it."
        subject = (
            f"nqspy: {tx.site.id_of(theirs[0])} is held" if len(theirs) == 1 else "nqspy: requests are held"
        )
        tx.act(Notify(to, subject, said, theirs[0]))
