"""Commands that name many requests: carried out in slices, so that others are answered in between."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from nqspy.answers.serving import Serving
from nqspy.answers.slow import Steps
from nqspy.answers.turns import PART, after
from nqspy.engine.handlers.context import Reply
from nqspy.model import commands as cm
from nqspy.model.ids import request_named
from nqspy.model.people import Caller

AT_ONCE = 1_000
"""Most identifiers of a command that is one step of the engine."""
INDICES = 10
"""Number of requests as which an identifier counts that names indices of an array."""
LEAST = 100
"""Least number of identifiers in a slice: each slice is a commit."""


def is_long(command: cm.Command) -> bool:
    """True if a command names more requests than one step of the engine takes."""
    if not isinstance(command, cm.EACH_ALONE) or getattr(command, "source", None) is not None:
        return False
    return len(command.ids) + (INDICES - 1) * sum("[" in text for text in command.ids) > AT_ONCE


def carried_out(serving: Serving, command: Any, caller: Caller, answer: Callable[[Reply], bytes]) -> Steps:
    """Carry a command out in slices, each a commit; yield None after some, then one ``answer`` for all."""
    site, done = serving.engine.site, list[str]()
    failed: list[dict[str, Any]] = []
    least = LEAST // INDICES if any("[" in text for text in command.ids) else LEAST
    place, some, slice_over = 0, least, after(PART)
    while place < len(command.ids):
        ids, part_over = command.ids[place : place + some], after(PART)
        reply = serving.ask(replace(command, ids=ids), caller)
        if reply.refusal is not None and not place:
            yield answer(reply)
            return
        place += some
        if reply.refusal is not None:
            failed += [{"id": text} | reply.refusal.as_message() for text in ids]
        else:
            # An earlier slice may have deleted it with another (``cascade``).
            deleted = set(done) if getattr(command, "cascade", False) and reply.value["failed"] else ()
            for each in reply.value["failed"]:
                seq = request_named(each["id"], site.names)
                failed += [each] if seq is None or site.id_of(seq) not in deleted else []
            done += reply.value["done"]
            if getattr(command, "mails", None) is not None:  # a deletion sends at most so many mails in all
                command = replace(command, mails=max(0, command.mails - len(reply.value["done"])))
        some = max(least, some // 2) if part_over() else min(AT_ONCE, 2 * some)
        if slice_over():
            yield None
            slice_over = after(PART)
    yield answer(Reply({"done": done, "failed": failed}))
