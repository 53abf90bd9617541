"""Requests named by identifiers: a bare number may mean an array, and ``17[3-9]`` several indices."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from nqspy.answers.serving import Serving
from nqspy.answers.visibility import Visibility
from nqspy.model import indices
from nqspy.model.errors import BadValue, Refusal, listed
from nqspy.model.ids import Seq, array_key, index_of, is_array, member, number_of, parse_named
from nqspy.model.requests import State
from nqspy.model.site import Site

MOST = 10_000
"""Most indices that one identifier may name."""


def seq_of(serving: Serving, view: Visibility, text: str) -> Seq:
    """Return the one request that an identifier names. Raises Refusal, also if it names several indices."""
    seqs = seqs_of(serving, view, (text,))
    if len(seqs) != 1:
        raise Refusal("bad_id", text=text[:80])
    return seqs[0]


def seqs_of(
    serving: Serving, view: Visibility, texts: Iterable[str], wrong: list[Refusal] | None = None
) -> list[Seq]:
    """Return the requests that identifiers name, in order, known or not; a bare number means the array of
    that number if there is no such request. Bad ones are noted in ``wrong``; without it Refusal is raised."""
    names, found = serving.engine.site.names, list[Seq]()
    for text in texts:
        try:
            found += _named(names, text)
        except Refusal as refusal:
            if wrong is None:
                raise
            wrong.append(refusal)
    requests = serving.engine.site.requests
    bare = [seq for seq in found if seq == number_of(seq) and seq not in requests]
    known = ((seq, requests.get(array_key(seq))) for seq in bare)
    meant = {seq: each.seq for seq, each in known if each is not None and view.allows(each.spec)}
    ended = [seq for seq in bare if seq not in meant and seq < serving.engine.site.next_seq]
    if ended:
        # A number is a request's or an array's: of what has ended, nearly always a request's.
        own = {row["seq"] for row in serving.readers.live.ended(seqs=ended)}
        ended = [array_key(seq) for seq in ended if seq not in own]
    if ended:
        rows = serving.readers.live.ended(seqs=ended)
        arrays = (row["seq"] for row in rows if is_array(row["seq"]) and view.allows(row["spec"]))
        meant |= {number_of(seq): seq for seq in arrays}
    return [meant.get(seq, seq) for seq in found]


def with_indices(site: Site, seqs: Iterable[Seq]) -> Iterator[Seq]:
    """Yield these requests, and behind each array its indices that have not ended."""
    for seq in seqs:
        yield seq
        if is_array(seq):
            request = site.requests.get(seq)
            state = request.array if request is not None else None
            own = (index_of(each) or 0 for each in site.members.get(seq, ()))
            for index in indices.each(indices.plus(state.left if state else (), indices.of(own))):
                yield member(seq, index)


def state_named(word: Any) -> State | None:
    """Return the state with that name, in any case; None for no word. Raises Refusal."""
    if not word:
        return None
    try:
        return State(str(word).lower())
    except ValueError:
        raise Refusal("bad_state", word=word, known=listed(State)) from None


def _named(names: Collection[str], text: str) -> list[Seq]:
    named = parse_named(text, names)
    if named is None:
        if parse_named(text, None) is None:
            raise Refusal("bad_id", text=text[:80])
        raise Refusal("unknown_request", id=text[:80])
    seq, inside = named
    if not inside:
        return [seq]
    try:
        runs = indices.read(inside)
    except BadValue as error:
        raise Refusal("bad_indices", reason=error) from None
    if indices.count(runs) > MOST:
        raise Refusal("many_indices", text=text[:80], most=MOST, whole=f"{number_of(seq)}[]")
    return [member(seq, index) for index in indices.each(runs)]
