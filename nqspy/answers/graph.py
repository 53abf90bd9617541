"""``qstat --graph``: which requests wait for which, as far as the caller may see them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nqspy.answers.listing import SLICE
from nqspy.answers.named import seqs_of
from nqspy.answers.serving import Serving
from nqspy.answers.texts import either
from nqspy.answers.visibility import Visibility
from nqspy.model.ids import Seq, rank_of
from nqspy.model.requests import Request
from nqspy.rpc import server as rpc

Edges = Mapping[Seq, Sequence[tuple[str, Seq]]]
"""For each request the requests that wait for it, each behind its condition (`requests.Dependency`)."""

MOST = 10_000
"""Most lines that are drawn; a last line has the number of omitted requests."""


def answer(serving: Serving, asked: rpc.Asked) -> Iterator[Any]:
    """Yield None after slices, then the answer: the trees of ``ids`` and of requests connected with these,
    or, without ``ids``, all trees."""
    site, view = serving.engine.site, Visibility(serving, asked.caller)
    asked_for = seqs_of(serving, view, asked.message.get("ids") or ())
    view.need(*asked_for)
    wanted = set() if asked_for else set(site.dependants)
    pending = [seq for seq in asked_for if seq in site.requests]
    while pending:  # and all requests connected with them by waiting
        seq = pending.pop()
        if seq not in wanted:
            wanted.add(seq)
            awaited = site.requests[seq].awaits()
            pending += [each for each in (*awaited, *site.dependants.get(seq, ())) if each in site.requests]
    edges: dict[Seq, list[tuple[str, Seq]]] = {}
    behind: set[Seq] = set()
    for number, seq in enumerate(sorted(wanted, key=rank_of), 1):
        below: list[tuple[str, Request]] = []
        for waiting in sorted(site.dependants.get(seq, ()), key=rank_of):
            request = site.requests.get(waiting)
            if request is not None and view.allows(request.spec):
                words = [one.word for one in request.unmet if one.seq == seq]
                below.append((" and ".join(words) or "each", request))
        first = site.requests.get(seq)
        if first is not None and view.allows(first.spec):
            edges[seq] = [(word, each.seq) for word, each in below]
            behind.update(each.seq for _, each in below)
        if number % SLICE == 0:
            yield None
    requests = [site.requests[seq] for seq in sorted(wanted | behind, key=rank_of) if seq in site.requests]
    labels = {}
    for each in requests:
        if view.allows(each.spec):
            never = "  (can never start)" if each.never else ""
            state = each.shown_state.value
            labels[each.seq] = f"{site.id_of(each.seq)} {each.name}  {each.owner}  {state}{never}"
    below_them = {seq: [each for each in some if each[1] in labels] for seq, some in edges.items()}
    roots = [seq for seq in labels if seq not in behind]
    ended = [f"{site.id_of(seq)}  ended" for seq in asked_for if seq not in site.requests]
    text = "".join(f"{line}\n" for line in (*ended, *tree(roots, below_them, labels)))
    yield either(asked, {"text": text}, text)


def tree(roots: Sequence[Seq], edges: Edges, labels: Mapping[Seq, str]) -> Iterator[str]:
    """Yield the lines of the trees: ``17.ymp prepare anne running`` and, indented by two spaces, ``ok: 18.ymp
    compute ...`` that waits for it. A request that waits for several is below each; its own tree is drawn
    only once."""
    drawn: set[Seq] = set()
    stack = [(root, 0, "") for root in reversed(roots)]
    count = 0
    while stack:
        seq, depth, word = stack.pop()
        if count == MOST:
            yield f"... and {len(labels.keys() - drawn)} more"
            return
        count += 1
        again = seq in drawn
        below = edges.get(seq, ())
        drawn.add(seq)
        head = f"{'  ' * depth}{f'{word}: ' if word else ''}{labels[seq]}"
        yield f"{head}  (see above)" if again and below else head
        if not again:
            stack += [(each, depth + 1, word) for word, each in reversed(below)]
