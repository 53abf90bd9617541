"""Answers too slow for one step of the engine: an iterator of steps in its thread, one at each turn (None
after a slice, at last the answer or work), or work in the reports' thread. Reports from the journal use a
snapshot there. Lists and scripts are made in slices: a script changes the site, and a copy of all requests
for each list would block the engine longer than any slice."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from nqspy.answers import fields, texts
from nqspy.answers.serving import Serving
from nqspy.answers.turns import Enough, Turns, never
from nqspy.model.commands import COMMANDS, EACH_ALONE
from nqspy.model.errors import NqspyError, Refusal
from nqspy.rpc import messages
from nqspy.rpc import server as rpc
from nqspy.rpc.limits import person

AT_ONCE = 4
"""Slow answers to one user that are made at a time."""
MOST = 64
"""Slow answers to one user that may be under way; then the user's other questions wait."""
DAEMON = -2
"""Number that stands for the daemon as a user of the reports' thread."""
RETRY = 0.1
"""Real seconds between checks of a client that does not read."""

LOG = logging.getLogger("nqspy.answers")

Work = Callable[[], Any]
"""Function that makes an answer, or its object, in the reports' thread; it reads no engine data."""
Steps = Iterator[bytes | Work | None]


@dataclass(slots=True)
class SlowAnswer:
    """Answer that is made in steps. ``key``: equal for equal long lists, None: it is none. Long lists are
    made one at a time; ``others``: equal questions that came before its first step."""

    asked: rpc.Asked
    steps: Steps
    key: tuple[Any, ...] | None = None
    begun: bool = False
    others: list[rpc.Asked] = field(default_factory=list)

    @property
    def lasting(self) -> bool:
        """True if it is made even if no client waits any more: a script or a command changes something."""
        name = self.asked.message["cmd"]
        return bool(name == "qmgr" or COMMANDS.get(name) in EACH_ALONE)

    def abandoned(self) -> bool:
        """True if no client waits for the answer any more."""
        return all(asked.handle.closed for asked in (self.asked, *self.others))


class SlowAnswers:
    """Slow answers, in the engine's thread. ``errors``: block that sends its errors to the client; ``again``:
    answers a question anew."""

    def __init__(
        self, serving: Serving, errors: Callable[[rpc.Asked], AbstractContextManager[None]],
        again: Callable[[rpc.Asked], None],
    ) -> None:  # fmt: skip
        self._serving, self._errors, self._again = serving, errors, again
        self._answers: list[SlowAnswer] = []
        self._served: dict[tuple[int, bool], int] = {}  # by user, and True for a short one
        self._steps = 0
        self._works: Turns[Work] = Turns()
        self._worker = ThreadPoolExecutor(1, "reports")

    def close(self) -> None:
        """Wait for work under way in the reports' thread, and end the thread; drop other work."""
        self._worker.shutdown(wait=True, cancel_futures=True)

    def work(self, work: Work) -> None:
        """Run a function in the reports' thread."""
        self._do(DAEMON, work)

    def _do(self, who: int, work: Work) -> None:
        self._works.add(who, work)
        self._worker.submit(self._next_work)

    def _next_work(self) -> None:
        """Start the next work of the user in turn, in the reports' thread."""
        found = self._works.next()
        if found is not None:
            found[1]()

    def add(self, asked: rpc.Asked, answer: Work | Steps) -> None:
        """Add an answer that is made in steps or by work in the reports' thread."""
        if not isinstance(answer, Iterator):
            self._do(person(asked.caller), partial(self._finish, asked, answer))
            return
        key = None if asked.message["cmd"] in ("qmgr", "events") else key_of(asked)
        for slow in self._answers:
            if key is not None and slow.key == key and not slow.begun:
                slow.others.append(asked)
                return
        self._answers.append(SlowAnswer(asked, answer, key))

    def _finish(self, asked: rpc.Asked, work: Work) -> None:
        """Run the work and send its answer, or the refusal if it fails. Runs in the reports' thread."""
        try:
            made = work()
            answer = made if isinstance(made, bytes) else messages.result_answer(asked.handle.id, made)
        except NqspyError as error:
            answer = texts.refusal(asked.handle.id, asked.message.get("text"), error)
        except Exception as error:
            LOG.error("answering %s failed", asked.message.get("cmd"), exc_info=True)
            refusal = Refusal("internal_error", error=error)
            answer = texts.refusal(asked.handle.id, asked.message.get("text"), refusal)
        self._serving.server.reply(asked.handle, answer)

    def go_on(self, enough: Enough = never) -> None:
        """Make a step of one long list, then of each other answer, users in turn, until ``enough`` is
        true."""
        turn = self._in_turn()
        for slow in [slow for slow in turn if slow.key is not None][:1]:
            self._step(slow)
        for slow in [slow for slow in turn if slow.key is None]:
            if not (self._step(slow) or slow.lasting):
                self._step(slow)  # a few requests are one slice: their answer does not wait another turn
            if enough():
                break

    def crowded(self) -> set[int]:
        """Return users (`person`) with `MOST` answers under way: their other questions wait in the inbox."""
        turns = Counter(person(slow.asked.caller) for slow in self._answers if not slow.asked.handle.stuck)
        return {who for who, count in turns.items() if count >= MOST}

    def carrying(self) -> set[object]:
        """Return connections with a script or command under way: their next questions wait."""
        return {slow.asked.handle.place for slow in self._answers if slow.lasting}

    def _in_turn(self) -> list[SlowAnswer]:
        """Return the answers in turn: a few of each user, last served last; of long ones the one begun."""
        turns: dict[int, int] = {}
        found: list[tuple[bool, int, int, SlowAnswer]] = []
        for slow in self._answers:
            who = person(slow.asked.caller)
            if slow.asked.handle.stuck and not (slow.abandoned() or slow.lasting):
                continue
            turns[who] = turns.get(who, 0) + (slow.key is None)
            if turns[who] <= AT_ONCE:
                waits = slow.key is not None and not slow.begun
                place = turns[who] if slow.key is None else 0
                found.append((waits, place, self._served.get((who, slow.key is None), 0), slow))
        return [slow for *_, slow in sorted(found, key=lambda each: each[:3])]

    def _step(self, slow: SlowAnswer) -> bool:
        """Make a step of an answer; return True if it was the last."""
        made: bytes | Work | None = b""
        slow.begun = True
        self._steps += 1
        self._served[person(slow.asked.caller), slow.key is None] = self._steps
        with self._errors(slow.asked):
            if slow.lasting or not slow.abandoned():
                made = next(slow.steps)
        if made is None:
            return False
        self._answers = [answer for answer in self._answers if answer is not slow]
        if not self._answers:
            self._served.clear()
        if isinstance(made, bytes) and made:
            self._serving.sent(len(made))
            self._serving.server.reply(slow.asked.handle, made)
            if slow.others:
                self._serving.server.reply_alike([asked.handle for asked in slow.others], made)
            return True
        if not isinstance(made, bytes):
            self.add(slow.asked, made)
        for asked in slow.others:  # each gets its own error
            self._again(asked)
        return True

    def patience(self) -> float | None:
        """Return the most real seconds to wait for the inbox: 0 while a step is possible, None: any time."""
        if not self._answers:
            return None
        return 0.0 if self._in_turn() else RETRY


def key_of(asked: rpc.Asked) -> tuple[Any, ...] | None:
    """Return a key that is equal for questions with equal answers; None if a question names requests."""
    message = asked.message
    if message.get("operands") or message.get("ids") or message.get("request"):
        return None
    read = ("cmd", "text", *fields.FIELDS.get(message["cmd"], ()))  # other fields may be nested deeply
    return asked.caller, *((name, repr(message.get(name))) for name in read)
