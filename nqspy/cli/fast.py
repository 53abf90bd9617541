"""Parser, connection and output: what every user command needs at start. Imports only modules that are loaded
already, and `_socket` and `_json` in C: `re`, `json`, `socket` or `argparse` cost more than a submission."""

import os
import sys
import time
from _json import encode_basestring_ascii, make_encoder, scanstring

from nqspy.cli.spec import SUMMARIES, TABLES, WITHOUT_VALUE
from nqspy.rpc.home import DaemonSocket, resolve_home, socket_path, speak_utf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from nqspy.cli.spec import Row, Table

    Body = Callable[[list[str]], int]
    About = Callable[[str, list[str]], int]

PATIENCE = 30.0
"""Seconds for which a message is repeated while no daemon answers."""

ANSWER_TIME = 60
"""Seconds after which a command gives up waiting for an answer, unless it is ``patient``."""

_ABOUT = (["--help"], ["--version"], ["--install-completion"], ["--show-completion"])
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Failure(Exception):
    """The command cannot be done: a line for stderr, and the exit status (2: the command line is wrong)."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class HelpWanted(Exception):
    """Raised for ``--help``, or if a shell asks for completions: `run` then lets `help` answer."""


# ------------------------------------------------------------------------------------------------ options


class Given:
    """An option as given: ``target``, ``kind`` of its row, ``flag`` as typed, value; ``place``: begin of its
    errors."""

    __slots__ = ("flag", "kind", "place", "target", "value")

    def __init__(self, row: "Row", flag: str, value: str = "") -> None:
        self.target, self.kind = row[1], row[2]
        self.flag = flag
        self.value = value
        self.place = ""


class Parser:
    """Reads options by a table of `spec`: exact flags, then values glued to a flag, then joined letters."""

    def __init__(self, table: "Table", *, interspersed: bool = True) -> None:
        self._rows = {flag: row for row in table for flag in row[0]}
        self._interspersed = interspersed

    def parse(
        self, words: "list[str]", special: "Callable[[str], Given | None] | None" = None
    ) -> "tuple[list[Given], list[str]]":
        """Return the options in order, and the operands. ``special``: returns the option that a word like
        ``-9`` is, or None. Raises Failure."""
        found: list[Given] = []
        operands: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--":
                return found, operands + words[at:]
            if word[:1] != "-" or word == "-":
                operands.append(word)
                if not self._interspersed:
                    return found, operands + words[at:]
                continue
            given, needs_value = self._options(word, special)
            found += given
            if needs_value or (found[-1].kind == "deletion" and os.path.isdir("".join(words[at : at + 1]))):
                if at >= len(words):
                    raise Failure(f"{found[-1].flag} needs a value", 2)
                found[-1].value = words[at]
                at += 1
        return found, operands

    def known(self, words: "list[str]") -> "list[str]":
        """Return the words that are a flag of this command, alone or with ``=VALUE``; not ``-lT600``."""
        return [word for word in words if word.partition("=")[0] in self._rows]

    def _options(
        self, word: str, special: "Callable[[str], Given | None] | None"
    ) -> "tuple[list[Given], bool]":
        """Return the options of one word, and True if the last takes the next word as its value."""
        row = self._rows.get(word)
        if row is not None:
            return [Given(row, word)], row[2] not in WITHOUT_VALUE
        if special is not None and (given := special(word)) is not None:
            return [given], False
        if word[:2] == "--":
            flag, equals, value = word.partition("=")
            row = self._rows.get(flag)
            if row is None or not equals:
                raise Failure(self._unknown(flag), 2)
            if row[2] in WITHOUT_VALUE and row[2][:6] != "slurm_":  # whose values are optional
                raise Failure(f"{flag} must not have a value", 2)
            return [Given(row, flag, value)], False
        # ``-lT600``, ``-oFILE``, ``-N=NAME``: the longest flag that takes a value and begins the word.
        # ``-lNAME=VALUE`` is the list of resources, whatever letter NAME begins with; ``-lX`` is not.
        resources = word[:2] == "-l" and "-l" in self._rows and word.find("=") > 3
        for end in range(2 if resources else len(word) - 1, 1, -1):
            row = self._rows.get(word[:end])
            if row is not None and row[2] not in WITHOUT_VALUE:
                value = word[end:]
                if row[2] == "resources" and "=" not in value:
                    raise Failure(self._unknown(word), 2)
                return [Given(row, word[:end], value[1:] if value[0] == "=" else value)], False
        found: list[Given] = []  # single letters behind one dash; the last may take a value
        for place, letter in enumerate(word[1:], 2):
            row = self._rows.get("-" + letter)
            if row is None:
                raise Failure(self._unknown(word), 2)
            found.append(Given(row, "-" + letter, word[place:]))
            if row[2] not in WITHOUT_VALUE:
                return found, place == len(word)
            found[-1].value = ""
        return found, False

    def _unknown(self, flag: str) -> str:
        import difflib  # only now: the command has failed, so time does not matter

        near = difflib.get_close_matches(flag, self._rows, 1)
        hint = f"; did you mean {near[0]}?" if near else "; --help lists the options"
        return f"unknown option {flag}{hint}"


def read_options(
    command: str, words: "list[str]", special: "Callable[[str], Given | None] | None" = None
) -> "tuple[dict[str, str], list[Given], list[str]]":
    """Return options by target (the last counts), all in order, and operands. Raises Failure, HelpWanted."""
    table = TABLES.get(command)
    if table is None:
        from nqspy.cli.request_tables import table_of

        table = table_of(command)
    found, operands = Parser(table).parse(words, special)
    given = {each.target: each.value or "yes" for each in found}
    if "help" in given:
        raise HelpWanted
    return given, found, operands


# ------------------------------------------------------------------------------------------------ messages


def _quoted(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Failure(f"{text!a} is not UTF-8 text; rename it") from None
    return encode_basestring_ascii(text)


def _no_json(value: object) -> "NoReturn":
    raise TypeError(f"no JSON for {value!r}")


_encoded = make_encoder(None, _no_json, _quoted, None, ":", ",", False, False, False)


def dump(value: object) -> str:
    """Return a value as JSON: dict, list, tuple, str, finite number, bool, None. Raises Failure."""
    return "".join(_encoded(value, 0))


class TextAnswer:
    """Answer in text form: exit status, texts for stdout and stderr, the raw rest of the line."""

    __slots__ = ("err", "out", "rest", "status")

    def __init__(self, line: str) -> None:
        at = line.find(',"exit":')
        if at < 0:  # an error of the server itself, from before it read that this client wants text
            at = line.find('"text":"')
            self.status, self.out, self.rest = 1, "", ""
            self.err = scanstring(line, at + 8, True)[0] if at >= 0 else f"unreadable answer: {line[:200]}"
            return
        end = line.find(",", at + 8)
        self.status = int(line[at + 8 : end])
        self.out, end = scanstring(line, end + 8, True)
        self.err, end = scanstring(line, end + 8, True)
        self.rest = line[end:]

    def text(self, name: str) -> str:
        """Return the text ``name`` behind stdout and stderr in the answer; empty if there is none."""
        at = self.rest.find(f'"{name}":"')
        return scanstring(self.rest, at + len(name) + 4, True)[0] if at >= 0 else ""

    def number(self, name: str, default: int) -> int:
        """Return the whole number ``name`` behind stdout and stderr; ``default`` if there is none."""
        at = self.rest.find(f'"{name}":')
        if at < 0:
            return default
        digits = self.rest[at + len(name) + 3 :]
        return int(digits[: min(digits.find(c) for c in ",}" if c in digits)])


_BUSY, _HEAD = '"code":"busy"', 300


class DaemonConnection:
    """Connection to the daemon of a home; ``pid``: its process at the last message, 0 if unknown here."""

    def __init__(self, home: "str | None" = None) -> None:
        self.home = resolve_home(home)
        self.pid = 0

    def call(
        self, message: "dict[str, object]", *,
        keyed: bool = False, repeat: bool = False, patient: bool = False,
    ) -> TextAnswer:  # fmt: skip
        """Return the answer in text form to one message, see `send`."""
        return TextAnswer(self.send(message, keyed, repeat, patient))

    def send(self, message: "dict[str, object]", keyed: bool, repeat: bool, patient: bool) -> str:
        """Send a message and return the answering line. ``keyed``: it has a key, and is repeated for up to 30
        s while the daemon is away; ``repeat``: repeated if the connection breaks (it changes nothing). A
        daemon that is busy, starting or stopping has done nothing: any message is repeated then; if it was
        stopped, the command fails at once. ``patient``: the answer may take any time. Raises Failure."""
        line = dump({"v": 1, "id": 1, **message}).encode() + b"\n"
        connection = DaemonSocket(self.home, None if patient else ANSWER_TIME)
        waited, pause, reached, notice = 0.0, _FIRST_PAUSE, False, ""
        while True:
            try:
                answer, reached = connection.exchange(line).decode(), True
                if _BUSY not in answer[:_HEAD] or waited >= PATIENCE:
                    return answer
            except TimeoutError:
                raise Failure(f"the nqsd in {self.home} did not answer within {ANSWER_TIME} s") from None
            except OSError as error:
                reached = reached or connection.connected
                absent = isinstance(error, (FileNotFoundError, ConnectionRefusedError))
                if not (absent or connection.connected):
                    raise Failure(f"cannot reach {socket_path(self.home)}: {error.strerror}") from None
                from nqspy.cli import no_daemon

                if why := no_daemon.verdict(self.home, keyed, repeat, patient, reached, waited >= PATIENCE):
                    raise Failure(why) from None
                if not notice and (notice := no_daemon.word(self.home, waited)):
                    complain(os.path.basename(sys.argv[0]), notice)
            finally:
                self.pid = connection.pid or self.pid
                connection.close()
            time.sleep(pause)
            waited += pause
            pause = min(2 * pause, _LONGEST_PAUSE)

    def ask(self, cmd: str, text: str, **fields: object) -> TextAnswer:
        """Send a question, which may be repeated without harm; return the answer in text form."""
        return self.call({"cmd": cmd, "text": text, **fields}, repeat=True)


# ------------------------------------------------------------------------------------------------ output


def write(descriptor: int, data: bytes) -> None:
    """Write all bytes to a file descriptor. A closed pipe is no error."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError:
        pass


def show(command: str, answer: TextAnswer) -> int:
    """Print an answer's texts on stdout and stderr; return its exit status."""
    if answer.out:
        write(1, answer.out.encode("utf-8", "replace"))
    if answer.err:
        complain(command, answer.err)
    return answer.status


def complain(command: str, text: str) -> None:
    """Write lines to stderr, each with the command's name in front."""
    start = command + ": "
    lines = [line if line.startswith(start) else start + line for line in plain(text).splitlines()]
    write(2, "".join(line + "\n" for line in lines).encode("utf-8", "backslashreplace"))


def plain(text: str) -> str:
    """Return the text with its control characters made visible."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join([c if c in "\n\t" or c.isprintable() else f"\\u{ord(c):04x}" for c in text])


def run(command: str, body: "Body", words: "list[str]", about: "About | None" = None) -> int:
    """Run a command; return its exit status. A Failure or OSError becomes a line on stderr; ``about``, else
    `help`, answers ``--help`` and ``--version``."""
    try:
        if f"_{command.upper()}_COMPLETE" in os.environ or words[:1] in _ABOUT:
            raise HelpWanted
        return body(words)
    except HelpWanted:
        from nqspy.cli.help import answer

        return (about or answer)(command, words)
    except Failure as failure:
        complain(command, failure.text.replace("\n", "\\n"))
        return failure.status
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        complain(command, f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "))
        return 1


class Program:
    """A command: ``body`` gets its words and returns the exit status."""

    def __init__(self, body: "Body", name: str = "") -> None:
        self.body = body
        self.name = name or body.__name__

    def __call__(self) -> "NoReturn":
        """Run the command and leave without the interpreter's cleanup, a fifth of a lean run."""
        speak_utf8()
        status = run(self.name, self.body, sys.argv[1:])
        try:
            for stream in filter(None, (sys.stdout, sys.stderr)):  # None: it was closed by who began us
                stream.flush()
        except (OSError, ValueError):
            status = status or 1
        os._exit(status)


def missing(what: str, command: str) -> Failure:
    """Return the failure of a command line without an operand or option that the command needs."""
    return Failure(f"no {what} given; {usage(command)}", 2)


def unknown(flag: str, value: str, right: str) -> Failure:
    """Return the failure of an option with a value that is none of the known words."""
    return Failure(f"{flag}: {value!r} is unknown; write {right}", 2)


def usage(command: str) -> str:
    """Return the usage line of a command for its errors."""
    return f"usage: {command} {SUMMARIES[command][0]}"
