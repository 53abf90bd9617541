"""Dispatcher of the daemon: messages become commands of the engine, or questions about the state."""

import contextlib
import logging
import pwd
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nqspy.answers import choosing, fields, graph, language, listing, many, pbs_select, queries, queues, texts
from nqspy.answers.serving import Serving
from nqspy.answers.slow import SlowAnswers, key_of
from nqspy.answers.turns import Enough, never
from nqspy.answers.waiting import OpenQuestions
from nqspy.decider.client import MAX_WAIT
from nqspy.engine.handlers.context import LateValue, Reply
from nqspy.engine.inputs import CommandAsked
from nqspy.model import commands as cm
from nqspy.model.errors import NqspyError, Refusal
from nqspy.rpc import messages
from nqspy.rpc import server as rpc

DIRECT = {
    "submit", "configure", "delete", "hold", "release", "move", "modify", "rerun", "suspend", "schedule",
    "signal", "message", "exchange", "abort_queue", "purge_queue", "correct_usage", "switch_shift",
    "automatic_shift", "reload_exits",
}  # fmt: skip
"""Messages that are commands of the engine."""
_DEFERRED = {"submit", "configure", "move", "modify", "reload_exits", "reload_queues", "qmgr"}
"""Messages that wait while the exits of the start are not loaded yet."""

LOG = logging.getLogger("nqspy.answers")


class Pending(Struct, frozen=True):
    """A message that became a command, and waits for the engine's reply."""

    asked: rpc.Asked

    def answer(self, reply: Reply) -> bytes:
        """Return the answer with this reply, in the form that was asked for."""
        return texts.reply(self.asked.handle.id, self.asked.message.get("text"), reply)

    def late(self, value: LateValue) -> bytes:
        """Return the answer with a late value; the reports' thread calls this, as it may take seconds."""
        return self.answer(Reply(value.make(MAX_WAIT)))


class Dispatcher:
    """Turns messages into the engine's commands, or into questions that it stores and answers."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.waiting: OpenQuestions = OpenQuestions(serving, self.answer, self.errors)
        self.slow = SlowAnswers(serving, self.errors, self.answer)
        self._questions: list[rpc.Asked] = []
        self._deferred: list[rpc.Asked] | None = None

    def close(self) -> None:
        """End the slow answers, then close their readers."""
        self.slow.close()
        self.serving.readers.close()

    def accept(self, asked: rpc.Asked) -> CommandAsked | None:
        """Return the engine's input for a command. None if the engine gets nothing now: a question is stored
        for `answer_questions`, a reload or a long command goes on by itself, or the message was refused."""
        wanted: list[CommandAsked | None] = [None]
        with self.errors(asked):
            wanted = [self._accept(asked)]
        return wanted[0]

    def _accept(self, asked: rpc.Asked) -> CommandAsked | None:
        name = asked.message["cmd"]
        if self._deferred is not None and name in _DEFERRED:
            self._deferred.append(asked)
            return None
        form = asked.message.get("text")
        if form is not None and not isinstance(form, str):
            asked.message.pop("text")
            raise Refusal("bad_text")
        try:
            if name not in DIRECT:
                fields.check(asked.message)
                self._questions.append(asked)
                return None
            fields.check_list(asked.message)
            command = _decode(asked.message)
            if isinstance(command, cm.Submit) and any(item.user for item in command.items):
                command = replace(command, items=tuple(map(_with_user, command.items)))
            elif isinstance(command, cm.Configure):
                fields.check_changes(command.changes)
            command = language.dated(self.serving, command)
            if isinstance(command, cm.ReloadExits) and self.serving.reloads.allowed(asked.caller):
                self.serving.reloads.before(partial(self._reload, asked, command))
                return None
            if many.is_long(command):
                answer = Pending(asked).answer
                self.slow.add(asked, many.carried_out(self.serving, command, asked.caller, answer))
                return None
        except (msgspec.ValidationError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise fields.bad_message(name, error) from None
        return CommandAsked(command, asked.caller, Pending(asked))

    def hold_back(self) -> None:
        """Store, until `let_go`, all commands that need the exits: these are not loaded yet."""
        self._deferred = []

    def let_go(self) -> list[CommandAsked]:
        """Return the engine's inputs for the stored commands, and accept such commands again."""
        held, self._deferred = self._deferred or [], None
        return [command for asked in held if (command := self.accept(asked)) is not None]

    def _reload(self, asked: rpc.Asked, command: cm.ReloadExits) -> bool:
        with self.errors(asked):
            reply = self.serving.ask(command, asked.caller)
            self.reply([(Pending(asked), reply)])
        return False

    def _qmgr(self, asked: rpc.Asked) -> bool:
        data: Any = None

        def to_its_end(slices: Iterator[Any]) -> Iterator[Any]:
            try:
                yield from slices
            finally:
                self.serving.reloads.over()

        with self.errors(asked):
            data = language.answer(self.serving, asked)
            self._give(asked, to_its_end(data) if isinstance(data, Iterator) else data)
        return isinstance(data, Iterator)

    def qmgr(self, asked: rpc.Asked) -> Any:
        """Answer a script of qmgr; None if it reloads exits: it runs later, once their files are loaded."""
        reloads = self.serving.reloads
        if reloads.wanted(str(asked.message["script"]), asked.caller):
            reloads.before(partial(self._qmgr, asked))
            return None
        return language.answer(self.serving, asked)

    def answer_questions(self, enough: Enough = never) -> list[rpc.Asked]:
        """Answer the stored questions, equal ones of qstat together. As soon as ``enough``, called after each
        answer, is true, return those not yet answered."""
        questions, self._questions = self._questions, []
        alike: dict[Any, list[rpc.Asked]] = {}
        for asked in questions:
            with self.errors(asked):
                key = key_of(asked) if asked.message["cmd"] == "qstat" else None
                alike.setdefault(key or id(asked), []).append(asked)
        groups = list(alike.values())
        while groups:
            first, *others = groups.pop(0)
            self.answer(first, others)
            if enough():
                break
        remaining = {id(asked) for group in groups for asked in group}
        return [asked for asked in questions if id(asked) in remaining]

    def answer(self, asked: rpc.Asked, others: Sequence[rpc.Asked] = ()) -> None:
        """Answer a question now, in slices, or when it is due; ``others``: equal questions of other
        clients."""
        cmd = asked.message["cmd"]
        with self.errors(asked):
            if cmd not in QUESTIONS:
                raise Refusal("unknown_command", cmd=cmd[:40])
            data = _OPEN[cmd](self, asked) if cmd in _OPEN else _OF_STATE[cmd](self.serving, asked)
            if others and isinstance(data, bytes):
                self.serving.server.reply_alike([each.handle for each in (asked, *others)], data)
                return
            self._give(asked, data)
        for each in others:
            self.answer(each)

    @contextlib.contextmanager
    def errors(self, asked: rpc.Asked) -> Iterator[None]:
        """Send any error of the block to the client that asked: no message ends the daemon."""
        try:
            yield
        except NqspyError as error:
            self._refuse(asked, error)
        except Exception:
            LOG.exception("a message of %s could not be answered", asked.caller.user)
            self._refuse(asked, Refusal("internal"))

    def _give(self, asked: rpc.Asked, data: Any) -> None:
        if data is None:
            return
        if isinstance(data, bytes):
            self.serving.server.reply(asked.handle, data)
        elif isinstance(data, Iterator) or callable(data):
            self.slow.add(asked, data)
        else:
            self.serving.server.reply(asked.handle, messages.result_answer(asked.handle.id, data))

    def _refuse(self, asked: rpc.Asked, error: NqspyError) -> None:
        refusal = texts.refusal(asked.handle.id, asked.message.get("text"), error)
        self.serving.server.reply(asked.handle, refusal)

    def reply(self, replies: Sequence[tuple[Any, Reply]]) -> None:
        """Send the engine's replies of one commit, each with its `Pending`; late values follow when
        computed."""
        ready = []
        for to, reply in replies:
            if isinstance(to, Pending) and isinstance(reply.value, LateValue):
                self.slow.add(to.asked, partial(to.late, reply.value))
            elif isinstance(to, Pending):
                ready.append((to.asked.handle, to.answer(reply)))
        if ready:
            self.serving.server.reply_many(ready)

    def after_turn(self, part: Callable[[], Enough] = lambda: never) -> None:
        """Continue slow answers, then answer open questions that are due. ``part`` is called for each of the
        two and returns the function that ends it in time."""
        self.slow.go_on(part())
        self.waiting.check(part())

    def patience(self) -> float | None:
        """Return the most real seconds that the engine may wait for its inbox; None: without bound."""
        times = (self.slow.patience(), self.waiting.patience())
        return min((each for each in times if each is not None), default=None)


def _decode(message: dict[str, Any]) -> cm.Command:
    kind = cm.COMMANDS[message["cmd"]]
    values = {k: v for k, v in message.items() if k in kind.__struct_fields__}
    items = values.get("items")
    if isinstance(items, msgspec.Raw):
        submit = msgspec.convert(values | {"items": ()}, cm.Submit)
        return replace(submit, items=fields.items_of(items))
    command: cm.Command = msgspec.convert(values, kind)
    return command


def _with_user(item: cm.Submission) -> cm.Submission:
    """Return the submission with ``-u OTHER`` or ``-u USER@HOST`` as owner; the engine checks permission."""
    if not item.user:
        return item
    for name in (item.user, item.user.partition("@")[0]):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            break
    else:
        raise Refusal("unknown_user", user=item.user)
    spec = replace(item.spec, owner=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)
    return replace(item, spec=spec, user=entry.pw_name)


_OF_STATE: dict[str, Callable[[Serving, rpc.Asked], Any]] = {
    "shutdown": language.shutdown,
    "reload_queues": lambda serving, asked: {"text": language.reload_queues(serving, asked.caller)},
    "qstat": listing.qstat,
    "qselect": pbs_select.qselect,
    "pbsnodes": queues.nodes,
    "list_requests": listing.list_requests,
    "choose": choosing.choose,
    "graph": graph.answer,
    **queries.QUESTIONS,
}
_OPEN: dict[str, Callable[["Dispatcher", rpc.Asked], Any]] = {
    "qmgr": lambda dispatcher, asked: dispatcher.qmgr(asked),
    "wait": lambda dispatcher, asked: dispatcher.waiting.wait(asked),
    "events": lambda dispatcher, asked: dispatcher.waiting.events(asked),
    "cat": lambda dispatcher, asked: dispatcher.waiting.cat(asked),
}
QUESTIONS = (*_OF_STATE, *_OPEN)
"""Messages that are answered from the state, the store or the files."""
