"""Which requests identifiers name: a bare number may mean an array, and ``17[3-9]`` several indices."""

from collections.abc import Iterable

from nqspy.answers.serving import Serving
from nqspy.model import indices
from nqspy.model.errors import BadValue, Refusal
from nqspy.model.ids import Seq, array_key, is_array, member, number_of, parse_named

MOST = 10_000
"""Indices that one identifier may name."""


def seq_of(serving: Serving, text: str) -> Seq:
    """The one request that an identifier names. Raises Refusal."""
    seqs = seqs_of(serving, (text,))
    if len(seqs) != 1:
        raise Refusal("bad_id", text=text[:80])
    return seqs[0]


def seqs_of(serving: Serving, texts: Iterable[str]) -> list[Seq]:
    """The requests that identifiers name, in their order. Raises Refusal."""
    host = serving.engine.site.name
    found = [seq for text in texts for seq in _named(host, text)]
    arrays = _arrays(serving, found)
    return [arrays.get(seq, seq) for seq in found]


def _named(host: str, text: str) -> list[Seq]:
    named = parse_named(text, host)
    if named is None:
        raise Refusal("bad_id", text=text[:80])
    ref, inside = named
    if not inside:
        return [ref.key]
    try:
        runs = indices.read(inside)
    except BadValue as error:
        raise Refusal("bad_indices", said=error) from None
    if indices.count(runs) > MOST:
        raise Refusal("many_indices", text=text[:80], most=MOST, whole=f"{ref.seq}[]")
    return [member(ref.seq, index) for index in indices.each(runs)]


def _arrays(serving: Serving, seqs: Iterable[Seq]) -> dict[Seq, Seq]:
    """The arrays that bare numbers mean: those of no request that are an array's."""
    requests = serving.engine.site.requests
    bare = [seq for seq in seqs if seq == number_of(seq) and seq not in requests]
    found = {seq: array_key(seq) for seq in bare if array_key(seq) in requests}
    gone = [array_key(seq) for seq in bare if seq not in found]
    if gone:
        rows = serving.readers.live.ended(seqs=gone)
        found |= {number_of(row["seq"]): row["seq"] for row in rows if is_array(row["seq"])}
    return found
