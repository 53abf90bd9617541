"""Scripts of qmgr: parsed completely first, then run command by command, or as one transaction."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any, cast

from msgspec.structs import replace

from nqspy.answers import shows
from nqspy.answers.serving import Serving
from nqspy.answers.slow import Steps, Work
from nqspy.answers.turns import after
from nqspy.engine.handlers.people import need
from nqspy.model import commands as cm
from nqspy.model.errors import NqspyError, Refusal
from nqspy.model.people import Caller
from nqspy.qmgr.dates import settled
from nqspy.qmgr.help import help_text
from nqspy.qmgr.parser import ClientWord, Parsed, ParseError, read_text
from nqspy.report.counters import counters_text
from nqspy.rpc import messages
from nqspy.rpc import server as rpc

MOST_SHOWN = 1_000
"""Most ``show`` and ``snap`` commands of one script: each reads the whole site while the engine waits."""

SLICE = 0.03
"""Real seconds of the longest slice of a script, parsed or run, before other clients are answered."""
FEWEST_TOGETHER, MOST_TOGETHER = 24, 96
"""Settings of a long script committed together: a sync of the disk may take as long as a slice."""


@dataclass(slots=True)
class _Log:
    source: str
    out: list[str | Callable[[], str]] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    files: list[dict[str, str]] = field(default_factory=list)
    counting: Callable[[], dict[str, Any]] | None = None

    def place(self, line: int) -> str:
        """Return the place of a command as errors name it: ``FILE, line 7``."""
        return f"{self.source}, line {line}" if self.source else f"line {line}"


def answer(serving: Serving, asked: rpc.Asked) -> bytes | Work | Steps:
    """Return the answer to the qmgr commands in ``script``, or the steps or work that make it. ``atomic``:
    all settings or none; ``check``, ``plan``: change nothing."""
    slices = _slices(serving, asked)
    first = next(slices)
    return chain((first,), slices) if first is None else first


def _slices(serving: Serving, asked: rpc.Asked) -> Steps:
    """Parse and run a script; yield None after each slice, then the answer or the work that makes it."""
    message, parsed = asked.message, []
    source = str(message.get("source") or "")
    log, clock = _Log(source), after(SLICE)
    try:
        for each in read_text(str(message["script"]), source):
            if isinstance(each.command, cm.Configure):  # advice is not shown
                live = not message.get("file")
                each = replace(each, command=replace(each.command, live=live, advise=False))
            parsed.append(each)
            if clock():
                yield None
                clock = after(SLICE)
    except ParseError as error:
        log.err.append(f"{error}\n{error.caret()}")
    shown = sum(isinstance(each.command, cm.ShowObject) for each in parsed)
    if not log.err and shown > MOST_SHOWN:
        log.err.append(f"one script shows at most {MOST_SHOWN:,} things, not {shown:,}; nothing was done")
    tried = bool(message.get("check") or message.get("plan"))
    as_one = tried or bool(message.get("atomic"))
    if not log.err and message.get("atomic") and (mixed := _no_setting(parsed, log)) is not None:
        log.err.append(mixed)
    if not log.err and as_one and (wrong := _first_wrong(serving, parsed, asked.caller, log)) is not None:
        log.err.append(wrong)
    if not log.err:
        parsed = _merged(parsed, tried) if as_one else parsed
        yield from _run_all(serving, asked, parsed, log)
    if message.get("plan") and not log.err:
        log.out.append(shows.plan(serving, parsed))

    def work() -> bytes:
        texts = [str(text() if callable(text) else text) for text in log.out]
        out = "".join(text if text.endswith("\n") else text + "\n" for text in texts if text)
        err = "".join(f"{text}\n" for text in log.err)
        if message.get("text") is not None:
            more: dict[str, Any] = {"files": log.files} if log.files else {}
            return messages.text_answer(asked.handle.id, 1 if err else 0, out, err, **more)
        if err:
            return messages.error_answer(asked.handle.id, err.strip(), "bad_command")
        return messages.result_answer(asked.handle.id, {"out": out})

    yield work if any(callable(text) for text in log.out) else work()


def _run_all(serving: Serving, asked: rpc.Asked, parsed: list[Parsed], log: _Log) -> Iterator[None]:
    """Run the commands, and yield after slices; settings are committed some at a time."""
    as_json, atomic = bool(asked.message.get("json")), bool(asked.message.get("atomic"))
    clock, some, done = after(SLICE), 1, 0
    while done < len(parsed):
        sets = sum(1 for _ in takewhile(_only_sets, parsed[done : done + some]))
        now, part = parsed[done : done + max(1, sets)], after(SLICE)
        done += len(now)
        if len(now) > 1:
            replies = serving.ask_all([cast(cm.Command, each.command) for each in now], asked.caller)
            wrong = ((each, reply.refusal) for each, reply in zip(now, replies, strict=True) if reply.refusal)
            log.err += [f"{log.place(each.line)}: {refusal}" for each, refusal in wrong]
        elif not _run(serving, now[0], asked.caller, log, as_json) and atomic:
            return
        some = max(FEWEST_TOGETHER, some // 2) if part() else min(MOST_TOGETHER, 2 * some)
        if clock():
            yield None
            clock = after(SLICE)


def _only_sets(each: Parsed) -> bool:
    """True for settings that cannot change the shift: such commands may be committed together."""
    moving = ("shift", "calendar", "server")
    return isinstance(each.command, cm.Configure) and all(
        change.path.partition("/")[0] not in moving for change in each.command.changes
    )


def _no_setting(parsed: list[Parsed], log: _Log) -> str | None:
    """Return an error for the first command that is no setting, None without one: it cannot be undone, as
    ``--atomic`` needs. A script of only one such command is allowed."""
    telling = (cm.ShowObject, ClientWord)
    doing = [each for each in parsed if not isinstance(each.command, telling)]
    other = next((each for each in doing if not isinstance(each.command, cm.Configure)), None)
    if other is None or len(doing) == 1:
        return None
    words = " ".join(other.text.split()[:2])
    text = f"{words!r} is not a setting and cannot be undone; run it separately, or without --atomic"
    return f"{log.place(other.line)}: {text}; nothing was done"


def _first_wrong(serving: Serving, parsed: list[Parsed], caller: Caller, log: _Log) -> str | None:
    """Check all settings of a script together, and return their error with the line that causes it, found by
    halving; None: they are possible. Nothing is changed; ``log`` names the line."""
    settings = [each for each in parsed if isinstance(each.command, cm.Configure)]
    if not settings or (whole := _wrong(serving, settings, caller)) is None:
        return None
    good, bad = 0, len(settings)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if _wrong(serving, settings[:middle], caller) == whole else (middle, bad)
    return f"{log.place(settings[bad - 1].line)}: {whole}"


def _wrong(serving: Serving, settings: list[Parsed], caller: Caller) -> str | None:
    [merged] = _merged(settings, check=True)
    reply = serving.ask(cast(cm.Command, merged.command), caller)
    return None if reply.refusal is None else str(reply.refusal)


def _merged(parsed: list[Parsed], check: bool) -> list[Parsed]:
    """Return the script with all settings as one command in front; ``check``: with this command only."""
    settings = [(each, each.command) for each in parsed if isinstance(each.command, cm.Configure)]
    others = [] if check else [each for each in parsed if not isinstance(each.command, cm.Configure)]
    if not settings:
        return others
    changes = tuple(change for _, command in settings for change in command.changes)
    first, command = settings[0]
    merged = replace(command, changes=changes, check_only=check)
    return [Parsed(merged, first.line, first.text), *others]


def _run(serving: Serving, each: Parsed, caller: Caller, log: _Log, as_json: bool) -> bool:
    try:
        text = _carry_out(serving, each.command, caller, as_json, log)
    except NqspyError as error:
        log.err.append(f"{log.place(each.line)}: {error}")
        return False
    command = each.command
    if isinstance(command, cm.ShowObject) and command.what == "snap" and "file" in (command.options or {}):
        # The client writes the file, with the rights of the person who asks.
        log.files.append({"name": (command.options or {})["file"], "text": str(text)})
    elif text:
        log.out.append(text)
    return True


def _carry_out(
    serving: Serving, command: Any, caller: Caller, as_json: bool, log: _Log
) -> str | Callable[[], str]:
    if isinstance(command, cm.ShowObject):
        if command.what == "counters":
            made = log.counting = log.counting or shows.counting(serving)
            return lambda: shows.as_json(made()) if as_json else counters_text(made())
        if command.what == "shares":
            return shows.show_shares(serving, as_json)
        if command.what == "snap":
            need(serving.engine.site.settings, caller, "manager", "snap")
        return shows.show(serving, command, as_json)
    if isinstance(command, ClientWord):
        return help_text(command.args) if command.verb == "help" else ""
    if isinstance(command, cm.ReloadQueues):
        return reload_queues(serving, caller)
    if isinstance(command, cm.Shutdown):
        shut_down(serving, caller, command.mode)
        return ""
    reply = serving.ask(dated(serving, command), caller)
    if reply.refusal is not None:
        raise reply.refusal
    if isinstance(reply.value, dict) and reply.value.get("failed"):
        raise Refusal("refused", reason="; ".join(each["text"] for each in reply.value["failed"]))
    if isinstance(reply.value, dict) and "text" in reply.value:
        return str(reply.value["text"])
    return ""


def shut_down(serving: Serving, caller: Caller, mode: str) -> None:
    """Order the daemon to stop (``mode``: see `Serving.stop`). Raises Refusal if the caller is no operator or
    manager, and for an unknown mode."""
    need(serving.engine.site.settings, caller, "operator", "shutdown")
    if mode not in ("leave", "drain", "requeue"):
        raise Refusal("bad_mode", mode=mode)
    serving.stop(mode)


def shutdown(serving: Serving, asked: rpc.Asked) -> dict[str, str]:
    """Answer the message ``shutdown``."""
    mode = str(asked.message.get("mode", "leave"))
    shut_down(serving, asked.caller, mode)
    return {"stopping": mode}


def reload_queues(serving: Serving, caller: Caller) -> str:
    """Apply the changed files of ``queues.d``; return a sentence on what changed. Raises NqspyError."""
    need(serving.engine.site.settings, caller, "manager", "reload queues")
    return serving.reload_queues()


def dated(serving: Serving, command: cm.Command) -> cm.Command:
    """Return the command; a ModifyRequest gets its date as an instant of the site. Raises BadValue."""
    if not isinstance(command, cm.ModifyRequest):
        return command
    now, zone = serving.clock.now(), serving.engine.site.timezone
    return replace(command, values=settled(command.values, now, zone))
