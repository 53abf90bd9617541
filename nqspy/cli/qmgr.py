"""``qmgr``: sends commands to the daemon, which reads them; on a terminal it prompts for lines."""

import os
import stat
import sys

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PROMPT, MORE = "Qmgr: ", "    > "

_LEAVE = ("exit", "quit")
_WORDS = {"verify": "check", "plan": "plan", "apply": "atomic"}
"""Actions on a file other than running it, with their flags."""
NEVER = "no"
"""Value of ``--replay`` for no replay behind a plan."""


class Manager:
    """Options of one run of ``qmgr``, and the sending of its commands."""

    def __init__(self, words: list[str]) -> None:
        given, found, self.operands = fast.read_options("qmgr", words)
        self.commands = [one.value for one in found if one.target == "commands"]
        if self.commands or (self.operands and self.operands[-1] != "-"):
            in_file = not self.commands
        else:  # a file on standard input too: what is typed or piped is live
            status = os.fstat(0)
            in_file = stat.S_ISREG(status.st_mode) and status.st_nlink > 0
        self._flags: dict[str, object] = {
            "atomic": "atomic" in given, "check": "check" in given, "plan": False, "json": "json" in given,
            "file": in_file,
        }  # fmt: skip
        self.daemon = DaemonConnection(given.get("home"))
        word = self.operands.pop(0) if len(self.operands) == 2 and self.operands[0] in _WORDS else ""
        if word:
            self._flags[_WORDS[word]] = True
        if len(self.operands) == 1 and self.operands[0] in _WORDS and not os.path.exists(self.operands[0]):
            raise Failure(f"{self.operands[0]} needs a file; {fast.usage('qmgr')}", 2)
        if len(self.operands) > 1 or (self.operands and self.commands):
            raise Failure(f"give one file or -c commands; {fast.usage('qmgr')}", 2)
        self._word, self._since = word, given.get("replay", "")
        if self._since and (word not in ("verify", "plan") or self.operands == ["-"]):
            raise Failure("--replay needs verify FILE or plan FILE", 2)

    def replay(self) -> int:
        """Show what the file would have changed, if asked for or after ``plan``; return the exit status."""
        as_json = bool(self._flags["json"])
        closes = self._word == "plan" and not self._since and not as_json and self.operands != ["-"]
        if self._since in ("", NEVER) and not closes:
            return 0
        from nqspy.cli import past

        home, file = self.daemon.home, self.operands[0]
        if closes:
            return past.close_plan(home, file, past.LAST_NIGHT)
        return past.report(home, file, self._since, as_json)

    def send(self, source: str, script: str) -> int:
        """Run the commands in ``script`` (``source``: its name in errors), print answers, write files of
        ``snap``; return the exit status. Raises Failure."""
        if "modify" in (small := script.lower()) and "shell" in small:
            from nqspy.cli.paths import check_shell
            from nqspy.model.commands import ModifyRequest
            from nqspy.qmgr.lexer import ParseError
            from nqspy.qmgr.parser import parse_text

            try:
                commands = parse_text(script, source)
            except ParseError:
                commands = []  # the daemon reports the error
            for each in commands:  # a shell that cannot work is refused, as qsub does
                shell = each.command.values.get("shell") if isinstance(each.command, ModifyRequest) else None
                if isinstance(shell, str) and shell.startswith("/"):
                    check_shell(shell, f"{source}, line {each.line}: ")
        return _send("qmgr", self.daemon, source, script, self._flags)


def _send(command: str, daemon: DaemonConnection, source: str, script: str, flags: dict[str, object]) -> int:
    answer = daemon.call({"cmd": "qmgr", "text": "qmgr", "source": source, "script": script, **flags})
    status = fast.show(command, answer)
    if '"files":' not in answer.rest:
        return status
    import json

    for file in json.loads("{" + answer.rest.strip().lstrip(","))["files"]:
        if not any(file["name"] in line for line in script.splitlines()):  # it chooses no paths of ours
            raise Failure(f"the daemon asked to write {file['name']!r}, which no command named")
        with open(file["name"], "w", encoding="utf-8") as target:
            target.write(file["text"])
    return status


def body(words: list[str]) -> int:
    """Run ``qmgr``; return its exit status."""
    manager = Manager(words)
    if manager.commands:
        return manager.send("-c", "\n".join(manager.commands) + "\n")
    if manager.operands:
        status = manager.send(manager.operands[0], _read(manager.operands[0]))
        return status or manager.replay()
    if os.isatty(0):
        terminal = Terminal()
        status = converse(manager, terminal.ask)
        terminal.save_history()
        return status
    return manager.send("standard input", _read("-"))


def _read(file: str) -> str:
    """Return a file's text. Raises Failure naming a line that is no UTF-8, OSError."""
    if file == "-":
        data = sys.stdin.buffer.read()
    else:
        with open(file, "rb") as source:
            data = source.read()
    from nqspy.model.foreign_text import ForeignText, converted

    try:
        return converted(data)[0].decode()
    except ForeignText as error:
        raise Failure(f"{file}: {error}") from None
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise Failure(f"{file} line {number}: the file is not UTF-8 text") from None


def converse(manager: Manager, ask: "Callable[[str], str | None]") -> int:
    """Prompt for commands and send each, a block up to its ``end`` as one, until ``exit``, ``quit`` or end
    of input. Return the exit status of the last one sent."""
    from nqspy.qmgr.parser import opens_block

    lines: list[str] = []
    status = 0
    while (line := ask(MORE if lines else PROMPT)) is not None:
        if not lines and line.strip().lower() in _LEAVE:
            break
        if not lines and not line.strip():
            continue
        lines.append(line)
        # More belongs to it: a backslash ends the line, or a block waits for its ``end``.
        if line.rstrip().endswith("\\") or (opens_block(lines[0]) and line.strip().lower() != "end"):
            continue
        try:
            status = manager.send("terminal", "\n".join(lines) + "\n")
        except Failure as failure:
            fast.complain("qmgr", failure.text)
            status = failure.status
        lines = []
    return status


class Terminal:
    """The terminal with history and completion; the history is stored over sessions."""

    def __init__(self) -> None:
        import readline

        from nqspy.qmgr.parser import completions

        self._readline = readline
        self._completions = completions
        state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        self._history = os.path.join(state, "nqspy-qmgr-history")
        try:
            readline.read_history_file(self._history)
        except OSError:
            pass
        readline.set_history_length(1000)
        readline.set_completer(self._complete)
        readline.parse_and_bind("tab: complete")

    def ask(self, prompt: str) -> "str | None":
        """Return a line that was typed; None at the end of input, empty after Ctrl-C."""
        try:
            return input(prompt)
        except EOFError:
            fast.write(1, b"\n")
            return None
        except KeyboardInterrupt:
            fast.write(1, b"\n")
            return ""

    def save_history(self) -> None:
        """Save the typed lines for the next session."""
        try:
            os.makedirs(os.path.dirname(self._history), exist_ok=True)
            self._readline.write_history_file(self._history)
        except OSError:
            pass

    def _complete(self, text: str, state: int) -> "str | None":
        line = self._readline.get_line_buffer()[: self._readline.get_endidx()]
        found = [word for word in self._completions(line) if word.startswith(text.lower())]
        return found[state] + " " if state < len(found) else None


main = Program(body, "qmgr")


@Program
def gangparms(words: list[str]) -> int:
    """Show or set the scheduling parameters of job classes (the Gang Scheduler's tool, seed 000)."""
    given, _, operands = fast.read_options("gangparms", words)
    script = "show classes\nshow gang\n"
    if operands:
        name, *pairs = operands
        if "=" in name or not pairs or not all("=" in pair for pair in pairs):
            usage = fast.usage("gangparms")
            raise Failure(f"name a class (or gang), then parameters like wait=10:00; {usage}", 2)
        script = f"set {name if name == 'gang' else f'class {name}'} {' '.join(pairs)}\n"
    flags: dict[str, object] = dict.fromkeys(("atomic", "check", "plan", "file"), False)
    flags["json"] = "json" in given
    return _send("gangparms", DaemonConnection(given.get("home")), "gangparms", script, flags)
