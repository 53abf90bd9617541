"""``qsub``: reads options, directives and script, and sends them. It knows no rule of the site."""

import os

from nqspy.cli import fast
from nqspy.cli.directives import Directive, foreign, read_script, scan
from nqspy.cli.draft import SubmissionDraft, Surroundings
from nqspy.cli.fast import DaemonConnection, Failure, Given, HelpWanted, Parser
from nqspy.cli.spec import QSUB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_OWN = ("home", "dialect", "list", "key", "dry_run", "wait", "json", "silent", "help")
"""Targets that concern the command and not the request."""


class QsubOptions:
    """The command line, sorted: what concerns the command, and what concerns each request."""

    def __init__(self, words: list[str]) -> None:
        self.dialect = os.environ.get("NQSPY_DIALECT", "")
        self.parser = Parser(QSUB, interspersed=False)
        found, self.operands = self.parser.parse(words)
        own = {given.target: given.value or "yes" for given in found if given.target in _OWN}
        if "help" in own:
            raise HelpWanted
        self.own = own
        self.request = [given for given in found if given.target not in _OWN]
        self.dialect = own.get("dialect", self.dialect)
        if self.dialect not in ("", "nqs", "pbs"):
            raise Failure(f"--dialect: {self.dialect!r} is neither nqs nor pbs")
        self.prefix = self._prefix()

    def _prefix(self) -> str:
        """What PBS directives begin with."""
        chosen = [given.value for given in self.request if given.kind == "prefix_or_note"]
        if chosen and self.dialect == "pbs":
            return chosen[-1]
        return os.environ.get("PBS_DPREFIX", "#PBS")


class Writer:
    """Turns scripts with their options into items of one submit message."""

    def __init__(self, options: QsubOptions, daemon: DaemonConnection) -> None:
        self._options = options
        self._daemon = daemon
        self._here = Surroundings()
        self._now: tuple[int, str] | None = None
        self._scripts: dict[str, tuple[str, str, list[Directive]]] = {}
        self.delete: list[str] = []
        self.warnings: dict[str, None] = {}

    def item(self, file: str, args: list[str], own: list[Given]) -> dict[str, object]:
        """The item of one script (file "" or ``-``: standard input) with the options of its line, which
        override those of the command line, which override the script's."""
        source = "the script" if file in ("", "-") else file
        script, dialect, directives = self._script(file, source)
        draft = SubmissionDraft(dialect, self._date, self._here.workdir)
        draft.apply(self._directives(directives, source), "directive")
        draft.apply(self._options.request, "command")
        for given in own:
            if given.target in _OWN:
                raise Failure(f"{given.flag} belongs on the command line, not into the list")
        draft.apply(own, "line")
        if draft.delete_script and file not in ("", "-"):
            self.delete.append(file)
        item = draft.item(script, "" if file == "-" else file, args, self._here)
        if self._here.terminal:
            self._warn(draft, file, args)
        return item

    def _warn(self, draft: SubmissionDraft, file: str, args: list[str]) -> None:
        """Notes what is probably not meant."""
        ours = self._options.parser.known(args)
        if ours:
            said = f"{', '.join(ours)} after the script {file} goes to the script; options stand before it"
            self.warnings[said] = None
        self.warnings |= dict.fromkeys(draft.warnings)

    def _script(self, file: str, source: str) -> tuple[str, str, list[Directive]]:
        """Text, dialect and directives of a script; a list may name the same one many times."""
        if file not in self._scripts:
            text = read_script(file)
            self._scripts[file] = (text, *scan(text, source, self._options.dialect, self._options.prefix))
            if self._here.terminal:
                self.warnings |= dict.fromkeys(foreign(text, source))
        return self._scripts[file]

    def _directives(self, directives: list[Directive], source: str) -> list[Given]:
        """The options of a script's directives. Raises Failure naming the line."""
        found: list[Given] = []
        for directive in directives:
            place = f"{source} line {directive.line}: "
            try:
                options, rest = self._options.parser.parse(directive.words)
            except Failure as failure:
                raise Failure(place + failure.text, failure.status) from None
            if rest:
                raise Failure(f"{place}{rest[0]!r} is no option; options begin with a dash")
            for given in options:
                given.place = place
                if given.target == "silent":
                    self._options.own["silent"] = "yes"
            found += [given for given in options if given.target not in _OWN]
        return found

    def _date(self, text: str) -> int:
        """The instant ``-a`` means, by the daemon's clock and zone."""
        from nqspy.cli.dates import parse_date

        if self._now is None:
            self._now = ask_now(self._daemon)
        return parse_date(text, *self._now)


def ask_now(daemon: DaemonConnection) -> tuple[int, str]:
    """The daemon's time (ms) and the site's zone."""
    import json

    answer = json.loads(daemon.send({"cmd": "now"}, keyed=True, repeat=True, patient=False))
    if not answer["ok"]:
        raise Failure(answer["error"]["text"], answer["error"]["status"])
    return answer["result"]["now"], answer["result"]["zone"]


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    options = QsubOptions(words)
    daemon = DaemonConnection(options.own.get("home"))
    writer = Writer(options, daemon)
    if "list" in options.own:
        from nqspy.cli.joblist import read_list

        if options.operands:
            raise Failure(f"{options.operands[0]}: --list names the scripts; give none besides")
        items = read_list(options.own["list"], options.parser, writer.item)
    else:
        file, *args = options.operands or [""]
        items = [writer.item(file, args, [])]
    return submit(options, daemon, items, writer)


def submit(
    options: QsubOptions, daemon: DaemonConnection, items: list[dict[str, object]], writer: Writer
) -> int:
    """Sends the submission, prints the identifiers, and does what is left to do."""
    own = options.own
    key = own.get("key") or f"qsub-{os.getpid()}-{os.urandom(16).hex()}"
    form = "json" if "json" in own else "id"
    dry_run = "dry_run" in own
    message = {"cmd": "submit", "text": form, "items": items, "key": key, "dry_run": dry_run}
    answer = daemon.call(message, keyed=not dry_run, repeat=True)
    if "list" in own and answer.err.startswith("line "):
        answer.err = f"{own['list']} {answer.err}"
    if not ("silent" in own and options.dialect == "pbs" and not answer.status):
        fast.show("qsub", answer)
    if answer.status:
        return 1
    if "silent" not in own and os.isatty(2):
        _warn(writer, answer)
        if form == "id" and not dry_run:
            _say(answer.out.split())
    if dry_run:
        return 0
    _delete(writer.delete)
    return wait(daemon, answer, form) if "wait" in own else 0


def _delete(files: list[str]) -> None:
    for file in files:
        try:
            os.unlink(file)
        except OSError as error:
            fast.complain("qsub", f"-d: {file} is not deleted: {error.strerror}")


MOST_WARNINGS = 20
"""Of what this command finds by itself; the daemon counts its own."""


def _warn(writer: Writer, answer: fast.TextAnswer) -> None:
    """Warnings on a terminal: programs that hand in hear nothing of them."""
    mine = list(writer.warnings)
    more = [f"and {len(mine) - MOST_WARNINGS} more"] if len(mine) > MOST_WARNINGS else []
    for each in (*mine[:MOST_WARNINGS], *more, *answer.text("warnings").splitlines()):
        fast.complain("qsub: warning", each)


def _say(ids: list[str]) -> None:
    """The sentence on a terminal."""
    many = f"{len(ids)} requests submitted" if len(ids) != 1 else f"Request {ids[0]} submitted"
    fast.write(2, f"{many}. `qstat` shows where it stands.\n".encode())


def wait(daemon: DaemonConnection, answer: fast.TextAnswer, form: str) -> int:
    """Returns when all requests have ended, with the exit status the daemon makes of theirs."""
    if form == "json":
        import json

        told = json.loads(answer.out)
        ids = [one["id"] for one in (told if isinstance(told, list) else [told])]
    else:
        ids = answer.out.split()
    ended = daemon.call({"cmd": "wait", "text": "wait", "ids": ids}, keyed=True, repeat=True, patient=True)
    return fast.show("qsub", ended)


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qsub", body)
