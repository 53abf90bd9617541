"""Answers that take longer than the engine may be kept: an iterator of steps in its thread, between two looks
at the inbox (None after a slice, at last the answer or work), or work that makes it in the reports' thread.
What reads the journal works on a snapshot there. Lists and scripts are made in slices: a script changes the
site, and a copy of all requests for each list would keep the engine longer than any slice."""

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
"""Slow answers to one user that are under way; beyond, nothing more of his is taken."""
OURS = -2
"""Stands for the daemon among those whose reports are made."""
LOOK_AGAIN = 0.1
"""When a client that did not read is looked at again, real seconds."""

LOG = logging.getLogger("nqspy.answers")

Work = Callable[[], Any]
"""Makes an answer, or its object, in the reports' thread; reads nothing that the engine writes."""
Steps = Iterator[bytes | Work | None]


@dataclass(slots=True)
class SlowAnswer:
    """An answer that is made in steps. ``key`` of a long list: such are made one at a time, and the same
    question, while the list is not begun, is one of the ``others``."""

    asked: rpc.Asked
    steps: Steps
    key: tuple[Any, ...] | None = None
    begun: bool = False
    others: list[rpc.Asked] = field(default_factory=list)

    @property
    def lasting(self) -> bool:
        """True if it is made to its end whoever waits: a script or a command carries something out."""
        name = self.asked.message["cmd"]
        return bool(name == "qmgr" or COMMANDS.get(name) in EACH_ALONE)

    def gone(self) -> bool:
        """True if no client waits for it any more."""
        return all(asked.handle.gone for asked in (self.asked, *self.others))


class SlowAnswers:
    """Slow answers, in the engine's thread. ``told``: tells what is wrong in it; ``again``: asks anew."""

    def __init__(
        self, serving: Serving, told: Callable[[rpc.Asked], AbstractContextManager[None]],
        again: Callable[[rpc.Asked], None],
    ) -> None:  # fmt: skip
        self._serving, self._told, self._again = serving, told, again
        self._answers: list[SlowAnswer] = []
        self._served: dict[tuple[int, bool], int] = {}  # by person, and whether it was a short one
        self._steps = 0
        self._works: Turns[Work] = Turns()
        self._worker = ThreadPoolExecutor(1, "reports")

    def close(self) -> None:
        """Ends the reports' thread; what is not begun is not made."""
        self._worker.shutdown(wait=True, cancel_futures=True)

    def work(self, work: Work) -> None:
        """Has something done by the reports' thread."""
        self._do(OURS, work)

    def _do(self, who: int, work: Work) -> None:
        self._works.add(who, work)
        self._worker.submit(self._next_work)

    def _next_work(self) -> None:
        """Do the next work of the user in turn, in the reports' thread."""
        found = self._works.next()
        if found is not None:
            found[1]()

    def take(self, asked: rpc.Asked, answer: Work | Steps) -> None:
        """Has an answer made and given."""
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
        """In the reports' thread."""
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
        """Step the first long one, then each other, of each user in turn, until it is ``enough``."""
        turn = self._in_turn()
        for slow in [slow for slow in turn if slow.key is not None][:1]:
            self._step(slow)
        for slow in [slow for slow in turn if slow.key is None]:
            if not (self._step(slow) or slow.lasting):
                self._step(slow)  # a few requests are one slice: their answer does not wait another turn
            if enough():
                break

    def crowded(self) -> set[int]:
        """Users with so many under way that no more of theirs is taken: it waits where it is counted."""
        turns = Counter(person(slow.asked.caller) for slow in self._answers if not slow.asked.handle.stuck)
        return {who for who, count in turns.items() if count >= MOST}

    def carrying(self) -> set[object]:
        """Connections with a script or command that is being carried out: what they ask next waits."""
        return {slow.asked.handle.place for slow in self._answers if slow.lasting}

    def _in_turn(self) -> list[SlowAnswer]:
        """Answers made now, a few of each user, those served last come last; of long ones the begun one."""
        turns: dict[int, int] = {}
        found: list[tuple[bool, int, int, SlowAnswer]] = []
        for slow in self._answers:
            who = person(slow.asked.caller)
            if slow.asked.handle.stuck and not (slow.gone() or slow.lasting):
                continue
            turns[who] = turns.get(who, 0) + (slow.key is None)
            if turns[who] <= AT_ONCE:
                waits = slow.key is not None and not slow.begun
                place = turns[who] if slow.key is None else 0
                found.append((waits, place, self._served.get((who, slow.key is None), 0), slow))
        return [slow for *_, slow in sorted(found, key=lambda each: each[:3])]

    def _step(self, slow: SlowAnswer) -> bool:
        """Makes a step; True when it was the last."""
        made: bytes | Work | None = b""
        slow.begun = True
        self._steps += 1
        self._served[person(slow.asked.caller), slow.key is None] = self._steps
        with self._told(slow.asked):
            if slow.lasting or not slow.gone():
                made = next(slow.steps)
        if made is None:
            return False
        self._answers = [each for each in self._answers if each is not slow]
        if not self._answers:
            self._served.clear()
        if isinstance(made, bytes) and made:
            self._serving.sent(len(made))
            self._serving.server.reply(slow.asked.handle, made)
            if slow.others:
                self._serving.server.reply_alike([asked.handle for asked in slow.others], made)
            return True
        if not isinstance(made, bytes):
            self.take(slow.asked, made)
        for asked in slow.others:  # what was wrong with the first is told to each
            self._again(asked)
        return True

    def patience(self) -> float | None:
        """Longest time to wait for the inbox: none while an answer is half made, None: for ever."""
        if not self._answers:
            return None
        return 0.0 if self._in_turn() else LOOK_AGAIN


def key_of(asked: rpc.Asked) -> tuple[Any, ...] | None:
    """Key that two questions share if they get the same answer; None: it is about single requests."""
    message = asked.message
    if message.get("operands") or message.get("ids") or message.get("request"):
        return None
    read = ("cmd", "text", *fields.FIELDS.get(message["cmd"], ()))  # what nobody reads may be nested deeply
    return asked.caller, *((name, repr(message.get(name))) for name in read)
