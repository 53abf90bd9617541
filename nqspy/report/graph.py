"""Who waits for whom, as a tree: what is awaited stands above and to the left of those that wait for it."""

from collections.abc import Iterator, Mapping, Sequence

from nqspy.model.ids import Seq

Edges = Mapping[Seq, Sequence[tuple[str, Seq]]]
"""Those that wait for a request, each with the word for which it does (`requests.Dependency`)."""

MOST = 10_000
"""Lines that are drawn; then it is said how many requests are left out."""


def tree(roots: Sequence[Seq], edges: Edges, labels: Mapping[Seq, str]) -> Iterator[str]:
    """The lines: ``17.ymp prepare  anne  running``, below it, by two blanks, ``ok: 18.ymp compute ...`` for
    each that waits until 17 has ended well. Who waits for several stands below each of them; what is below
    him only the first time."""
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
