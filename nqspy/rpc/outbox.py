"""Answers that a client has not read yet. An answer that many get is kept once: a list of requests for
hundreds of clients would else be copied for each."""

from collections import deque
from collections.abc import Iterable

PIECE = 128 << 10
"""Bytes handed to the transport at a time: it copies what the socket does not take at once."""


class Outbox:
    """Answers in their order, given out piece by piece as the client reads."""

    def __init__(self) -> None:
        self._answers: deque[memoryview] = deque()
        self.size = 0

    def add(self, answer: bytes | memoryview) -> None:
        """Add an answer, or a part of one."""
        if answer:
            self._answers.append(memoryview(answer))
            self.size += len(answer)

    def take(self) -> bytes | memoryview:
        """The next piece: small answers together, of a long one as much as is sensible at a time."""
        first = self._answers.popleft()
        if len(first) > PIECE:
            self._answers.appendleft(first[PIECE:])
            first = first[:PIECE]
        self.size -= len(first)
        small = [first]
        room = PIECE - len(first)
        while self._answers and len(self._answers[0]) <= room:
            small.append(self._answers.popleft())
            room -= len(small[-1])
            self.size -= len(small[-1])
        return first if len(small) == 1 else b"".join(small)

    def clear(self) -> None:
        """Drop all answers: no client will read them."""
        self._answers.clear()
        self.size = 0

    def kept(self) -> Iterable[tuple[int, int]]:
        """Memory that it keeps: of each answer an identity, and the bytes of all of it."""
        for answer in self._answers:
            with memoryview(answer.obj) as whole:
                yield id(answer.obj), len(whole)
