"""Requests that wait for others (``after``). A submission's dependencies are read and judged; each start or
end is applied to dependent requests in the same commit. A failure is mailed once to each person."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from nqspy.core.depend import BEGUN, DROPPED, WHO, Judgement, awaited, judge
from nqspy.engine.handlers.arrays import delete_indices, end_if_over
from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.request_mail import Consequences
from nqspy.engine.handlers.requests import drop
from nqspy.engine.handlers.spec import AFTER, ATTRIBUTES_MAX
from nqspy.engine.lifecycle import ages_when_eligible
from nqspy.model import indices
from nqspy.model.commands import Submission
from nqspy.model.errors import Refusal
from nqspy.model.events import Deleted, DependencyFailed, DependencyMet, Ended, Started
from nqspy.model.ids import Seq, array_key, array_of, index_of, is_array, number_of, request_named
from nqspy.model.indices import Runs
from nqspy.model.people import Caller
from nqspy.model.requests import (
    AFTER_WORDS,
    STARTED,
    AfterWord,
    Dependency,
    Prerequisite,
    Request,
    Spec,
    State,
)

AFTER_MAX = 1_000
"""Most requests that one request may wait for."""
_ENDED_WELL = "ended with exit status 0"


# ---------------------------------------------------------------- what a submission names


def read_after(tx: Transaction, spec: Spec, caller: Caller, more: int = 0) -> Spec:
    """Return the specification with its attributes ``after:ID:WORD`` made dependencies; ``more``: number of
    those on its own list, for the limit. Raises Refusal.

    A request can only name existing, that is earlier ones, and nothing is added to ``after`` later: so there
    is no cycle.
    """
    if not spec.attributes and not spec.after and more <= AFTER_MAX:
        return spec
    if len(spec.attributes) + len(spec.after) > AFTER_MAX + ATTRIBUTES_MAX:
        raise Refusal("too_many_awaited", most=AFTER_MAX)
    ours = [each.removeprefix(AFTER) for each in spec.attributes if each.startswith(AFTER)]
    after = tuple(dict.fromkeys((*spec.after, *(_read(tx, text) for text in ours))))
    if len(after) + more > AFTER_MAX:
        raise Refusal("so_many_awaited", most=AFTER_MAX, count=len(after) + more)
    if not after:
        return spec
    tx.look_up({key for each in after for key in (each.seq, array_key(each.seq))})
    after = tuple(_known(tx, spec, each, caller) for each in after)
    others = tuple(each for each in spec.attributes if not each.startswith(AFTER))
    return replace(spec, after=after, attributes=others)


def _known(tx: Transaction, spec: Spec, each: Dependency, caller: Caller) -> Dependency:
    """Return a dependency if its request is known; a bare number may mean an array. Raises Refusal."""
    seqs = (each.seq,) if each.seq != number_of(each.seq) else (each.seq, array_key(each.seq))
    found = next((seq for seq in seqs if tx.known(seq, caller)), None)
    if found is None and (array := array_of(each.seq)) is not None and tx.known(array, caller):
        found = each.seq if indices.has(_asked(tx, array), index_of(each.seq) or 0) else None
    if found is None:
        raise Refusal("unknown_prerequisite", id=tx.site.id_of(each.seq))
    if each.word == "each":
        _check_equal(spec, tx.site.id_of(found), _asked(tx, found) if is_array(found) else None)
    return replace(each, seq=found)


def _asked(tx: Transaction, array: Seq) -> Runs:
    """Return the indices of an array as submitted; empty: it is not known."""
    request, _ = tx.past(array)
    return () if request is None or request.spec.array is None else request.spec.array.indices


def _check_equal(spec: Spec, name: str, theirs: Runs | None) -> None:
    """Raise Refusal unless a specification is an array with the indices ``theirs`` (None: the other is no
    array)."""
    if theirs is None or spec.array is None:
        raise Refusal("each_of_arrays", id=name)
    own = spec.array.indices
    if indices.brief(indices.pieces(own, theirs)) or indices.brief(indices.pieces(theirs, own)):
        raise Refusal("unequal_indices", id=name, theirs=indices.brief(theirs), own=indices.brief(own))


def check_places(items: Sequence[Submission]) -> None:
    """Raise Refusal unless each request of a submission waits only for earlier ones of its list."""
    for place, item in enumerate(items):
        for other, _ in item.after:
            if not 0 <= other < place:
                line = place + 1 if item.line is None else item.line
                raise Refusal("in_line", line=line, reason=Refusal("bad_place", place=other))


def placed(spec: Spec, item: Submission, specs: Sequence[Spec], seqs: Sequence[Seq]) -> Spec:
    """Return a specification with dependencies on other requests of its submission. ``item``: as submitted;
    ``specs``, ``seqs``: of all its requests. Raises Refusal for waits index by index of unlike arrays."""
    if not item.after:
        return spec
    for place, word in item.after:
        array, name = specs[place].array, specs[place].name
        try:
            if word == "each":
                _check_equal(spec, name, None if array is None else array.indices)
        except Refusal as refusal:
            raise Refusal("in_line", line=item.line or len(seqs), reason=refusal) from None
    more = (Dependency(seqs[place], word) for place, word in item.after)
    return replace(spec, after=tuple(dict.fromkeys((*spec.after, *more))))


def _read(tx: Transaction, text: str) -> Dependency:
    name, colon, given = text.partition(":")
    word = next((each for each in AFTER_WORDS if each == (given if colon else "ok")), None)
    if not name or word is None:
        raise Refusal("bad_dependency", text=text[:80])
    seq = request_named(name, tx.site.names)
    if seq is not None:
        return Dependency(seq, word)
    if name[:1].isdigit():
        raise Refusal("unknown_prerequisite", id=name[:80])
    raise Refusal("bad_prerequisite", name=name[:80])


# ---------------------------------------------------------------- at submission


def judge_now(tx: Transaction, seqs: Iterable[Seq]) -> None:
    """Apply to new requests what has already happened to those that they wait for."""
    what, requests = Consequences(), tx.site.requests
    for seq, after in [(seq, after) for seq in seqs if (after := requests[seq].spec.after)]:
        for prerequisite in dict.fromkeys(each.seq for each in after):
            _notify(tx, prerequisite, _so_far(tx, prerequisite), (seq,), what)
        for awaited_array in [each.seq for each in after if each.word == "each"]:
            request, _ = tx.past(awaited_array)
            if request is not None and (state := request.array):
                lost = indices.plus(state.badly, state.dropped)
                unbegun = state.left if awaited_array not in requests else ()
                _notify_each(tx, awaited_array, state.well, True, _ENDED_WELL, (seq,), what)
                _notify_each(
                    tx, awaited_array, indices.plus(lost, unbegun), False, "did not end well", (seq,), what
                )
    what.send(tx)


def unmet_now(tx: Transaction, after: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Return the dependencies that are not met yet."""
    return tuple(each for each in after if each.word not in _so_far(tx, each.seq).met)


def _so_far(tx: Transaction, prerequisite: Seq) -> Judgement:
    request = tx.site.requests.get(prerequisite)
    if request is not None:
        return BEGUN if _has_begun(tx, request) else Judgement()
    request, end = tx.past(prerequisite)
    if end is not None:
        return judge(end, request)
    # It may be an index of an array that was deleted before it began.
    array, index = array_of(prerequisite), index_of(prerequisite)
    whole = None if array is None else tx.past(array)[0]
    if whole is None or whole.array is None or index is None:
        return Judgement()
    over = whole.array.left if array not in tx.site.requests else ()
    dropped = indices.has(whole.array.dropped, index) or indices.has(over, index)
    return DROPPED if dropped else Judgement()


def _has_begun(tx: Transaction, request: Request) -> bool:
    if request.array is None:
        return request.state in STARTED and not request.run.starting
    members = (tx.site.requests[seq] for seq in tx.site.members.get(request.seq, ()))
    return bool(request.array.well or request.array.badly) or any(_has_begun(tx, each) for each in members)


# ---------------------------------------------------------------- as things happen


_AWAITED = {Started, Ended, Deleted}


def settle(tx: Transaction) -> None:
    """Apply new starts and ends of this group to requests that wait for them. Events that follow from this (a
    deletion, say) are examined in turn: a long chain of dependants is a long loop, not a deep recursion."""
    group, events = tx.group, tx.group.batch.events
    if group.settled == len(events):
        return
    what, dependants = None, tx.site.dependants
    while group.settled < len(events):
        event: Any = events[group.settled].event
        group.settled += 1
        if type(event) in _AWAITED and (
            event.seq in dependants or array_of(event.seq) is not None or is_array(event.seq)
        ):
            what = what or Consequences()
            if event.seq in dependants and not (isinstance(event, Deleted) and event.indices):
                _notify_dependants(tx, event.seq, judge(event, tx.past(event.seq)[0]), what)
            if array_of(event.seq) is not None or is_array(event.seq):
                _settle_array(tx, event, what)
    if what is not None:
        what.send(tx)


def _notify_dependants(tx: Transaction, prerequisite: Seq, judgement: Judgement, what: Consequences) -> None:
    dependants = tx.site.dependants.get(prerequisite)
    if dependants:
        _notify(tx, prerequisite, judgement, sorted(dependants), what)


def _settle_array(tx: Transaction, event: Started | Ended | Deleted, what: Consequences) -> None:
    """Apply an event to requests that wait for indices of an array; end the array after its last index."""
    array = array_of(event.seq) or event.seq
    if isinstance(event, Started):
        _notify_dependants(tx, array, BEGUN, what)
        return
    index = index_of(event.seq)
    ended = tx.site.touched.ended.get(event.seq)
    never_begun = () if ended is None or ended[0].array is None else ended[0].array.left
    dropped = (event.indices if isinstance(event, Deleted) else ()) or never_begun
    if index is None and dropped:
        for seq in [seq for seq in tx.site.dependants if array_of(seq) == array]:
            if indices.has(dropped, index_of(seq) or 0):
                _notify_dependants(tx, seq, DROPPED, what)
    concerned = ((index, index, 1),) if index is not None else dropped
    if concerned and (dependants := tx.site.dependants.get(array)):
        judgement = judge(event)
        _notify_each(tx, array, concerned, "ok" in judgement.met, judgement.text, sorted(dependants), what)
    end_if_over(tx, array, event.who if isinstance(event, Deleted) else "")


def _notify_each(
    tx: Transaction, array: Seq, some: Runs, well: bool, text: str, seqs: Iterable[Seq], what: Consequences
) -> None:
    """Apply the end of indices of an array (``some``; ``well``: with exit status 0) to the arrays ``seqs``,
    which may wait for them index by index."""
    for seq in seqs:
        request = tx.site.requests.get(seq)
        awaiting = () if request is None or request.array is None else request.array.awaiting
        theirs = indices.both(dict(awaiting).get(array, ()), some)
        if not theirs or request is None:
            continue
        message = f"{tx.site.id_of(array).replace('[]', f'[{indices.brief(theirs)}]', 1)} {text}"
        policy = tx.site.settings.server.dependency_failed
        if well or policy == "run":
            message = message if well else f"{message}; it runs all the same"
            aging = request.state is not State.QUEUED and ages_when_eligible(tx.site, request.queue)
            tx.emit(DependencyMet((seq,), array, ("each",), message, aging, theirs))
            tx.dirty()
        elif policy == "delete":
            delete_indices(tx, request, theirs, WHO, message)
        else:
            first = not any(each.never for each in request.array.held) if request.array is not None else False
            if first:
                what.holds(request, array, message)
            message = f"can never start: {message}"
            tx.emit(DependencyFailed((seq,), array, ("each",), message, indices=theirs))


def _notify(
    tx: Transaction, prerequisite: Seq, judgement: Judgement, seqs: Iterable[Seq], what: Consequences
) -> None:
    text, became = f"{tx.site.id_of(prerequisite)} {judgement.text}", judgement.of(prerequisite)
    met = _awaiting(tx, prerequisite, judgement.met, seqs)
    if met:
        _emit_met(tx, became, judgement.met, text, met)
    words = judgement.never
    never = _awaiting(tx, prerequisite, words, seqs)
    policy = tx.site.settings.server.dependency_failed
    if never and policy == "run":
        _emit_met(tx, became, words, f"{text}; it runs all the same", never)
    elif never and policy == "delete":
        for request in map(tx.site.requests.__getitem__, never):
            asked = (Dependency(prerequisite, word) for word in words)
            missed = " or ".join(awaited(tx.site, each) for each in asked if each in request.unmet)
            what.deletes(request, prerequisite, text)
            drop(tx, request, WHO, f"{text}; it waited until {missed}", notify=False)
    elif never:
        for seq in never:
            what.holds(tx.site.requests[seq], prerequisite, text)
        tx.emit(DependencyFailed(never, prerequisite, words, f"can never start: {text}"))


def _emit_met(
    tx: Transaction, became: Prerequisite, words: tuple[AfterWord, ...], text: str, seqs: tuple[Seq, ...]
) -> None:
    """Emit that a dependency is met, in one event for each kind of ``age_from`` (``aging``): the journal must
    give dates without the settings of that time."""
    requests = tx.site.requests
    ages = {seq: ages_when_eligible(tx.site, requests[seq].queue) for seq in seqs}
    for aging in (True, False):
        concerned = tuple(seq for seq in seqs if ages[seq] is aging)
        if concerned:
            tx.emit(DependencyMet(concerned, became.seq, words, text, aging, what=became))
    tx.dirty()


def _awaiting(
    tx: Transaction, prerequisite: Seq, words: tuple[AfterWord, ...], seqs: Iterable[Seq]
) -> tuple[Seq, ...]:
    """Return the requests that wait for the prerequisite with one of these words."""
    wanted = {Dependency(prerequisite, word) for word in words}
    requests = tx.site.requests
    return tuple(seq for seq in seqs if seq in requests and not wanted.isdisjoint(requests[seq].unmet))
