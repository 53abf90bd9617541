"""``qsub``: reads options, directives and script, and sends them. It knows no rule of the site."""

import os

from nqspy.cli import fast
from nqspy.cli.directives import Directive, foreign, overlooked, read_script, scan
from nqspy.cli.draft import SubmissionDraft, Surroundings
from nqspy.cli.fast import DaemonConnection, Failure, Given, HelpWanted, Parser, Program
from nqspy.cli.request_tables import QSUB, QSUB_NQS, QSUB_PBS
from nqspy.cli.words import LINE_AFTER

DIALECTS = ("nqs", "pbs", "slurm")

_OWN = ("home", "dialect", "list", "key", "dry_run", "wait", "json", "silent", "interactive", "help")
"""Targets of options for the command itself, not for the request."""

COMMAND = '#!/bin/sh\nexec "$@"\n'
"""Script of a request that runs a command."""


class QsubOptions:
    """Options and operands of qsub. ``own``: options for the command, by target; ``request``: options for
    each request; ``command``: True if the operands are a command; ``wraps``: True with ``--wrap``."""

    def __init__(self, words: list[str], program: str = "qsub", dialect: str = "") -> None:
        """``dialect``: the only one of this program; "": any, as in qsub. Raises Failure, HelpWanted."""
        self.program = program
        self.dialect = dialect or os.environ.get("NQSPY_DIALECT", "")
        self._parsers: dict[str, Parser] = {}
        # What a word behind --dialect stands for is known once the command line is read.
        hinted = "--dialect=slurm" in words or ("--dialect" in words and "slurm" in words)
        start = "slurm" if self.dialect == "slurm" or hinted else ""
        found, self.operands = self.parser_of(start).parse(words)
        named = [given.value for given in found if given.target == "dialect"]
        self.dialect = named[-1] if named else self.dialect
        if self.dialect not in ((dialect,) if dialect else ("", *DIALECTS)):
            raise fast.unknown("--dialect", self.dialect, dialect or ", ".join(DIALECTS))
        if self.dialect != start:
            found, self.operands = self.parser_of(self.dialect).parse(words)
        self.parser = self.parser_of(self.dialect)
        own = {given.target: given.value or "yes" for given in found if given.target in _OWN}
        if "help" in own:
            raise HelpWanted
        self.own = own
        self.request = [given for given in found if given.target not in _OWN]
        self.command = self._is_command(words, found)
        self.wraps = any(given.target == "wrap" for given in self.request)
        self.prefix = os.environ.get("PBS_DPREFIX", "#PBS")  # of directives, except NQS's
        chosen = [given.value for given in self.request if given.kind == "prefix_or_note"]
        if self.dialect == "slurm":
            self.prefix = "#SBATCH"
        elif chosen and (self.dialect == "pbs" or (not self.dialect and chosen[-1][:1] in ("#", ""))):
            self.prefix = chosen[-1]  # unless it can only be a compartment

    def parser_of(self, dialect: str) -> Parser:
        """Return the parser for options of this dialect; "" for those of NQS and PBS."""
        if dialect not in self._parsers:
            if dialect == "slurm":
                from nqspy.cli import slurm_options

                table = slurm_options.TABLE
            else:
                table = {"nqs": QSUB_NQS, "pbs": QSUB_PBS}.get(dialect, QSUB)
            self._parsers[dialect] = Parser(table, interspersed=False)
        return self._parsers[dialect]

    def _is_command(self, words: list[str], found: list[Given]) -> bool:
        """True if a command stands behind ``--`` (PBS); a file that cannot be executed is a script."""
        before = len(words) - len(self.operands) - 1
        if not self.operands or self.dialect == "nqs" or before < 0 or words[before] != "--":
            return False
        if found and found[-1].value == "--" and words[before - 1 : before] == [found[-1].flag]:
            return False
        file = self.operands[0]
        return bool(self.dialect) or not os.path.isfile(file) or os.access(file, os.X_OK)


class Writer:
    """Turns scripts with their options into items of one submit message. ``delete``: scripts to delete
    afterwards; ``block``: True to wait for the end; ``awaits``: option that named a prerequisite."""

    def __init__(self, options: QsubOptions, daemon: DaemonConnection) -> None:
        self._options = options
        self._daemon = daemon
        self._here = Surroundings()
        self._now: tuple[int, str] | None = None
        self._scripts: dict[str, tuple[str, str, list[Directive]]] = {}
        self.delete: list[str] = []
        self.block = False
        self.pbs = options.dialect == "pbs"
        self.warnings: dict[str, None] = {}
        self.remarks: dict[str, None] = {}
        self.awaits = "--after"
        self.listed: dict[str, object] = {}

    def command(self, word: str, args: list[str]) -> dict[str, object]:
        """Return the item of a command with its arguments, without a script."""
        self._scripts[word] = (COMMAND, self._options.dialect or "pbs", [])
        return self.item(word, [word, *args], [])

    def item(self, file: str, args: list[str], own: list[Given]) -> dict[str, object]:
        """Return the item of a script ("": stdin). Options of a list's line (``own``) override those on the
        command line, and these the script's."""
        source = "the script" if file in ("", "-") else file
        script, dialect, directives = self._script(file, source)
        nqs = self._options.dialect == "nqs"
        draft = SubmissionDraft(dialect, self._date, self._here.workdir, short_name=nqs)
        self.pbs = dialect == "pbs"
        draft.apply(self._directives(directives, source, dialect), "directive")
        draft.apply(self._options.request, "command")
        for given in own:
            if given.target in _OWN:
                raise Failure(f"{given.flag} belongs on the command line, not in the list")
        draft.apply(own, "line")
        if draft.delete_script and file not in ("", "-"):
            self.delete.append(file)
        self.block = self.block or draft.block
        script = script if draft.wrapped is None else f"#!/bin/sh\n{draft.wrapped}\n"
        item = draft.item(script, "" if file == "-" else file, args, self._here)
        self.remarks |= dict.fromkeys(draft.remarks)
        self.listed |= {name: each.by for name, each in draft.listed.items()}
        if draft.depends and not any(each.startswith("after:") for each in draft.notes):
            self.awaits = "--dependency" if dialect == "slurm" else "-W depend"
        elif any(given.kind == "after" and given.flag == LINE_AFTER for given in own):
            self.awaits = LINE_AFTER
        if self._here.terminal:
            self._warn(draft, file, args)
        return item

    def _warn(self, draft: SubmissionDraft, file: str, args: list[str]) -> None:
        """Add warnings on probable mistakes to ``warnings``."""
        ours = [] if self._options.command else self._options.parser.known(args)
        if ours:
            text = f"{', '.join(ours)} goes to the script; write options of qsub before {file}"
            self.warnings[text] = None
        self.warnings |= dict.fromkeys(draft.warnings)

    def _script(self, file: str, source: str) -> tuple[str, str, list[Directive]]:
        """Return text, dialect and directives of a script; a list may name the same one many times."""
        if file not in self._scripts:
            options, notes = self._options, list[str]()
            text = "" if options.wraps else read_script(file, notes=notes)
            self._scripts[file] = (text, *scan(text, source, options.dialect, options.prefix))
            notes += overlooked(text, source, options.dialect, options.prefix)
            self.remarks |= dict.fromkeys(notes)
            if self._here.terminal:
                self.warnings |= dict.fromkeys(foreign(text, source, self._options.dialect))
        return self._scripts[file]

    def _directives(self, directives: list[Directive], source: str, dialect: str) -> list[Given]:
        """Return the options of a script's directives. Raises Failure naming the line."""
        found: list[Given] = []
        parser = self._options.parser_of(dialect)
        allowed = ("silent", "wait", "dry_run") if self._options.dialect == "slurm" else ("silent",)
        for directive in directives:
            place = f"{source} line {directive.line}: "
            try:
                options, rest = parser.parse(directive.words)
                if rest:
                    raise Failure(f"{rest[0]!r} is not an option; options begin with a dash")
                for given in options:
                    if given.target in allowed:
                        self._options.own[given.target] = "yes"
                    elif given.target in _OWN:
                        raise Failure(f"{given.flag} belongs on the command line, not in the script")
            except Failure as failure:
                text = place + failure.text
                text = f"directive error: {' '.join(directive.words)} ({text})" if dialect == "pbs" else text
                raise Failure(text) from None
            for given in options:
                given.place = place
            found += [given for given in options if given.target not in _OWN]
        return found

    def _date(self, text: str) -> int:
        """Return the instant that a date means, by the daemon's clock and zone."""
        from nqspy.cli.rare import parse_date

        if self._now is None:
            self._now = ask_now(self._daemon)
        return parse_date(text, *self._now)


def ask_now(daemon: DaemonConnection) -> tuple[int, str]:
    """Return the daemon's time (ms) and the site's zone."""
    import json

    answer = json.loads(daemon.send({"cmd": "now"}, keyed=True, repeat=True, patient=False))
    if not answer["ok"]:
        raise Failure(answer["error"]["text"], answer["error"]["status"])
    return answer["result"]["now"], answer["result"]["zone"]


def body(words: list[str]) -> int:
    """Run ``qsub``; return its exit status."""
    return hand_in(QsubOptions(words))


def hand_in(options: QsubOptions) -> int:
    """Submit the requests of the options; return the exit status."""
    daemon = DaemonConnection(options.own.get("home"))
    writer = Writer(options, daemon)
    if "interactive" in options.own:
        return hold_session(options, daemon, writer)
    if "list" in options.own:
        from nqspy.cli.joblist import read_list

        if options.operands:
            raise Failure(f"{options.operands[0]}: with --list leave the script out", 2)
        items = read_list(options.own["list"], options.parser, writer.item)
    else:
        file, *args = options.operands or [""]
        if options.wraps and options.operands:
            raise Failure(f"{file}: with --wrap leave the script out", 2)
        items = [writer.command(file, args) if options.command else writer.item(file, args, [])]
    if writer.block:
        options.own["wait"] = "yes"
    return submit(options, daemon, items, writer)


def hold_session(options: QsubOptions, daemon: DaemonConnection, writer: Writer) -> int:
    """Run ``-I``, a session at this terminal, with only a script's directives; return the exit status."""
    from nqspy.cli import interactive
    from nqspy.cli.application import Door

    named = [given.value for given in options.request if given.kind == "user"]
    interactive.check(options.own, named[0] if named else None)
    words = options.operands if options.command else []
    file = "" if options.command or not options.operands else options.operands[0]
    item = writer.item(file, [], []) if file else writer.command("", [])
    if "silent" not in options.own:
        _warn(options.program, writer, None)
    with Door() as door:
        interactive.make(item, words, door.place)
        key = own_key(options)
        message = {"cmd": "submit", "text": "id", "items": [item], "key": key, "dry_run": False}
        answer = daemon.call(message, keyed=True, repeat=True)
        if answer.status:
            return refused(answer, options, writer)
        return interactive.Session(daemon, answer.out.strip(), door.listener).hold()


def own_key(options: QsubOptions) -> str:
    """Return the key (``--key``, else a new one) by which the daemon knows a repeated submission."""
    return options.own.get("key") or f"qsub-{os.getpid()}-{os.urandom(16).hex()}"


UNKNOWN_RESOURCE = 187
"""Status of the refusal of a consumable that the site does not have."""


def refused(answer: fast.TextAnswer, options: QsubOptions, writer: Writer) -> int:
    """Print the daemon's errors; return the exit status: PBS's own in its dialect, else 1."""
    typed = writer.awaits  # the option, or the word of a line
    if typed == LINE_AFTER:
        answer.err = answer.err.replace("--after ", typed, 1)
    answer.err = answer.err.replace("--after", typed.rstrip(":"), 1)
    if answer.status == UNKNOWN_RESOURCE:
        from nqspy.cli.posix import unknown

        answer.err = unknown(answer.err, writer.listed, writer.pbs, options.dialect == "slurm")
    if writer.pbs:
        from nqspy.cli.posix import MESSAGES

        message = MESSAGES.get(answer.status, "")
        if message not in answer.err:
            answer.err = f"{message}: {answer.err}"
    fast.show(options.program, answer)
    return answer.status if writer.pbs else 1


def submit(
    options: QsubOptions, daemon: DaemonConnection, items: list[dict[str, object]], writer: Writer
) -> int:
    """Send the items, print identifiers and warnings, delete scripts (``-d``), wait for the ends
    (``--wait``); return the exit status."""
    own = options.own
    key = own_key(options)
    form = "json" if "json" in own else "id"
    dry_run = "dry_run" in own
    message = {"cmd": "submit", "text": form, "items": items, "key": key, "dry_run": dry_run}
    answer = daemon.call(message, keyed=not dry_run, repeat=True)
    if "list" in own and answer.err.startswith("line "):
        answer.err = f"{own['list']} {answer.err}"
    if answer.status:
        return refused(answer, options, writer)
    if not ("silent" in own and writer.pbs):
        fast.show(options.program, answer)
    if "silent" not in own:
        terminal = os.isatty(2)
        _warn(options.program, writer, answer if terminal else None)
        if terminal and form == "id" and not dry_run:
            ids = answer.out.split()
            many = f"{len(ids)} requests submitted" if len(ids) != 1 else f"Request {ids[0]} submitted"
            fast.write(2, f"{many}. `qstat` shows where it stands.\n".encode())
    if dry_run:
        return 0
    for file in writer.delete:
        try:
            os.unlink(file)
        except OSError as error:
            fast.complain("qsub", f"-d: {file} is not deleted: {error.strerror}")
    if "wait" not in own:
        return 0
    ids = answer.out.split()
    if form == "json":
        import json

        reply = json.loads(answer.out)
        ids = [one["id"] for one in (reply if isinstance(reply, list) else [reply])]
    ended = daemon.call({"cmd": "wait", "text": "wait", "ids": ids}, keyed=True, repeat=True, patient=True)
    return fast.show("qsub", ended)


MOST_WARNINGS = 20
"""Most warnings of this command; the daemon limits its own."""


def _warn(program: str, writer: Writer, answer: fast.TextAnswer | None) -> None:
    """Print the remarks; with ``answer`` (on a terminal) also this command's warnings and the daemon's."""
    mine = [*writer.remarks, *(writer.warnings if answer else ())]
    more = [f"and {len(mine) - MOST_WARNINGS} more"] if len(mine) > MOST_WARNINGS else []
    theirs = answer.text("warnings").splitlines() if answer else []
    for each in (*mine[:MOST_WARNINGS], *more, *theirs):
        fast.complain(f"{program}: warning", each)


main = Program(body, "qsub")
