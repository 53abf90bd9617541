"""A request under construction: options and directives become one item of the submit message."""

import os

from nqspy.cli.fast import Failure, Given
from nqspy.cli.resources import LAYOUT, UNITS, parse_array, read_list, read_needs, resolve, target
from nqspy.cli.sheet import RequestSheet
from nqspy.cli.words import split_variables
from nqspy.model import amounts
from nqspy.model.amounts import Wrong
from nqspy.model.options import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LONGEST_ENVIRONMENT = 1 << 20
"""Most bytes of environment that a request may have."""

_OF_ASK = frozenset(each.path.removeprefix("ask/") for each in OPTIONS if each.path.startswith("ask/"))
_LONGEST_R_NAME, _LONGEST_N_NAME, _DEFAULT_NAME = 15, 230, 7
_LOGS = {"m": "merged", "y": "own", "n": ""}
_NOTES = {
    "note": "{target}", "note_value": "{target}:{value}", "attribute": "{value}",
    "tapes": "tapes:{letter}:{value}",
}  # fmt: skip
"""Name of the request's attribute, by the kind of option that is stored as one."""
_READ = {"time": amounts.parse_time, "size": amounts.parse_size, "count": amounts.parse_count}


class SubmissionDraft(RequestSheet):
    """A request under construction. Options are applied in order: later ones override, but lists add up.
    ``dialect``: "nqs", "pbs", "slurm" or "" (the value's form decides); ``date``: function that reads dates;
    ``short_name``: True if default names are NQS's (7 letters)."""

    def __init__(
        self, dialect: str, date: "Callable[[str], int]", workdir: str, short_name: bool = False
    ) -> None:
        super().__init__(dialect, workdir, date)
        self.short_name = short_name
        self._variables_from: object = None
        self._shell: Given | None = None

    def apply(self, options: list[Given], origin: str) -> None:
        """Apply options from ``origin``: ``command``, ``directive``, ``line`` of a list. Raises Failure."""
        for given in options:
            try:
                self._apply(given, origin)
            except Wrong as error:
                raise self._failure(given, error) from None

    def _failure(self, given: Given, error: Wrong) -> Failure:
        """Return the failure for a wrong option, in the words of the dialect."""
        if self.dialect == "pbs":
            from nqspy.cli.posix import failure

            return failure(given, error)
        return Failure(f"{given.place}{given.flag}: {error}", 1 if given.place else 2)

    def _apply(self, given: Given, origin: str) -> None:
        kind, target, value = given.kind, given.target, given.value
        if kind in ("on", "off"):
            self._put(target, kind == "on")
        elif kind in _READ:
            self._limit(given)
        elif kind in _NOTES:
            self.notes.append(_NOTES[kind].format(target=target, value=value, letter=given.flag[-1]))
        elif kind == "text":
            self._put(target, value)
        elif kind == "number":
            [option] = [each for each in OPTIONS if each.path.removeprefix("ask/") == target]
            self._put(target, amounts.parse_number(value, option.low or 0, option.high or amounts.GREATEST))
        elif kind == "names":
            self._put(target, [word for word in value.replace("+", ",").split(",") if word])
        elif kind == "path":
            self.output[target] = self._path(value)
        elif kind == "variables":
            if origin != self._variables_from:  # of several origins the latest counts
                self.variables.clear()
                self._variables_from = origin
            self.variables += split_variables(value)
        elif kind == "shell":
            path = value.partition(",")[0].partition("@")[0]
            if path[:1] != "/":
                raise Wrong(amounts.NO_SHELL.format(shell=path))
            self.spec["shell"] = path
            self._shell = given
        elif kind == "date":
            self.spec["eligible"] = self.date(value)
        elif kind == "name":
            self._name(value, _LONGEST_N_NAME)
        elif kind == "array" or (kind == "array_or_joblog" and value not in _LOGS):
            self.spec["array"] = parse_array(value)
        elif kind == "array_or_joblog":
            self.output["log"] = _LOGS[value]
        elif kind == "export":
            self.exports = True
        elif kind == "user":
            self.user = value.partition(",")[0]
        elif kind == "resources":
            self._add_resources(given, origin)
        elif kind[:5] == "slurm":
            from nqspy.cli.slurm import add as add_slurm

            add_slurm(self, given)
        elif kind == "name_or_rerun":
            self._add_name_or_rerun(value)
        elif kind == "join_or_joblog":
            self._add_join_or_joblog(value)
        else:
            from nqspy.cli.rare import add as add_rare

            add_rare(self, given)

    def _put(self, target: str, value: object) -> None:
        place, dot, name = target.rpartition(".")
        if dot:
            (self.output if place == "output" else self.mail)[name] = value
        elif target == "delete_script":
            self.delete_script = True
        else:
            self._place(target)[target] = value

    def _place(self, target: str) -> "dict[str, Any]":
        """Return the dictionary that has this field of the request."""
        if "/" in target:
            return self.others
        return self.ask if target in _OF_ASK else self.spec

    def _limit(self, given: Given) -> None:
        """Set a limit, and behind a comma the value to warn at; drop ``-l`` resources for that limit."""
        what = given.target
        text, comma, warning = given.value.strip("()").partition(",")
        number = _READ[given.kind](text.strip())
        if what == "pes" and number < 1:
            raise Wrong("a request needs at least 1 PE")
        if what[: len(UNITS)] == UNITS and (comma or number < 0):
            raise Wrong(f"{given.value!r} is not a whole number from 0 upward")
        if what[: len(UNITS)] == UNITS:
            self.consumables[what[len(UNITS) :]] = number
        else:
            self._place(what)[what] = number
            also = ("select", "nodes") if what == "pes" else ()
            for name in [n for n, each in self.listed.items() if target(each) == what or n in also]:
                del self.listed[name]
        if comma:
            at = _READ[given.kind](warning.strip())
            if 0 <= number < at:
                raise amounts.late_warning(warning.strip(), text.strip())
            self.notes.append(f"warning:{given.flag}:{at}")

    def _add_resources(self, given: Given, origin: str) -> None:
        """Add each resource of a list: among PBS directives its first value counts, else the last."""
        first = self.dialect == "pbs" and origin == "directive"
        for each in read_list(given.value, given):
            if each.name == "needs":
                self.needs += [name for name in read_needs(each) if name not in self.needs]
            elif each.name == "wd":
                self.spec["start_in"] = self.workdir
            elif not (first and each.name in self.listed):
                what = target(each)
                (self.others if "/" in what else self.ask).pop(what, None)
                self.listed.pop(each.name, None)
                self.listed[each.name] = each

    def _resolve(self) -> None:
        """Process all resources of ``-l`` together. Raises Failure."""
        try:
            found = resolve(self.listed)
            if any(name in self.listed for name in LAYOUT):
                from nqspy.cli.chunks import lay_out

                lay_out(self.listed, found)
        except Wrong as error:
            by = getattr(error, "by", None)
            assert isinstance(by, Given)
            raise self._failure(by, error) from None
        for what, number in found.asked.items():
            (self.others if "/" in what else self.ask)[what] = number
        self.consumables = {**found.consumables, **self.consumables}
        self.notes += found.notes
        if found.layout:
            self.spec["layout"] = found.layout
        if found.mold:
            self.spec["mold"] = found.mold
        for each, what in found.dropped:
            self.warnings.append(f"-l {each.whole}: {what} is only noted: there is no such resource here")

    def _add_name_or_rerun(self, value: str) -> None:
        """Apply ``-r``: in PBS y or n; in NQS a name; if undecided, the value's form decides."""
        if self.dialect != "nqs" and value in ("y", "n"):
            self.spec["rerunnable"] = value == "y"
        elif self.dialect == "pbs":
            raise Wrong(f"{value!r} must be y or n")
        elif value[:1].isdigit():
            self._name("R" + value, _LONGEST_R_NAME, " with the R added before a digit")
        else:
            self._name(value, _LONGEST_R_NAME)

    def _name(self, value: str, longest: int, how: str = "") -> None:
        bytes = longest == _LONGEST_N_NAME  # as many as a file's name has room for
        size = len(value.encode("utf-8", "surrogateescape")) if bytes else len(value)
        if not value or size > longest:
            unit = "bytes" if bytes and size != len(value) else "characters"
            raise Wrong(f"a name must have 1 to {longest} {unit}, {value!r} has {size}{how}")
        if "/" in value or " " in value or not value.isprintable():
            odd = any("\udc80" <= char <= "\udcff" for char in value)
            why = "it is not UTF-8 text" if odd else "leave out blanks, slashes and control characters"
            raise Wrong(f"{value!r} is not a name: {why}")
        self.spec["name"], self.spec["name_given"] = value, True

    def _path(self, value: str) -> str:
        """Return the absolute path of ``[host:]path``; a final slash (a folder) stays."""
        host, colon, path = value.partition(":")
        folder = self.workdir
        if colon and "/" not in host:
            self.notes.append(f"output_host:{host}")
            value = path
            if self.dialect == "pbs":
                folder = os.environ.get("HOME", folder)
        from nqspy.cli.paths import output_path

        return output_path(folder, value)

    def _add_join_or_joblog(self, value: str) -> None:
        if self.dialect != "nqs" and value in ("oe", "eo", "n", "o", "e"):
            self.output["join"] = value != "n"
            if value[0] == "e":
                self.notes.append("join:eo")
        elif self.dialect == "pbs":
            raise Wrong(f"{value!r} must be oe, eo or n")
        else:
            self.output["log_path"] = self._path(value)
            self.output.setdefault("log", "own")

    # ---- the whole

    def item(self, script: str, file: str, args: list[str], here: "Surroundings") -> dict[str, object]:
        """Return the request as an item of the submit message. ``script``: its text, ``file``: its path;
        ``args``: its arguments. Raises Failure."""
        if self.dialect == "slurm":
            from nqspy.cli.slurm import finish

            finish(self)
        if self.listed:
            self._resolve()
        spec = {"owner": "", "uid": 0, "queue": "", "script": "", "environment": "", "workdir": here.workdir,
                "host": here.host, "umask": here.umask, **self.spec}  # fmt: skip
        if file:
            spec["script_name"] = default_name(file, short=False)
        if "name" not in spec:
            spec["name"] = default_name(file, self.short_name)
        if self.dialect in ("pbs", "slurm"):
            spec["dialect"] = self.dialect
        if self.dialect == "pbs":
            self.mail.setdefault("abort", True)
        ask: dict[str, object] = {**self.ask}
        if units := [each for each in self.consumables.items() if each[1]]:
            ask["consumables"] = units
        if self.others:
            ask["others"] = list(self.others.items())
        if self.needs:
            ask["needs"] = self.needs
        if self.array_limit is not None:
            array = spec.get("array")
            if not isinstance(array, dict):
                raise Failure("-W max_run_subjobs: this is not an array; give its indices with -J", 2)
            spec["array"] = array | {"limit": self.array_limit or None}
        notes = self.notes + self.depends
        parts = {"ask": ask, "args": args, "output": self.output, "mail": self.mail, "attributes": notes}
        spec.update({name: part for name, part in parts.items() if part})
        item: dict[str, object] = {"spec": spec, "script": script}
        queue = str(spec["queue"]).partition("@")[0]
        item["environment"] = here.environment(self.exports, self.variables, queue, self.remarks)
        if self.user:
            item["user"] = self.user
        else:
            self._check_paths(here.terminal)
        return item

    def _check_paths(self, terminal: bool) -> None:
        """Refuse a shell that cannot work; warn of output that cannot be written at present."""
        if self._shell is not None:
            from nqspy.cli.paths import check_shell

            check_shell(str(self.spec["shell"]), f"{self._shell.place}{self._shell.flag}: ")
        for flag, name in (("-o", "stdout"), ("-e", "stderr")):
            path = self.output.get(name)
            if terminal and path and not self.output.get(f"keep_{name}"):
                from nqspy.cli.paths import objection

                text = objection(str(path))
                if text:
                    self.warnings.append(f"{flag}: {text}")


def default_name(file: str, short: bool) -> str:
    """Return the default name of a request, from its script's path; ``short``: 7 letters, as in NQS."""
    base = os.path.basename(file)
    if not base:
        return "STDIN"
    name = "".join([char if char.isprintable() and char != " " else "_" for char in base])
    if not short:
        return name.encode("utf-8", "replace")[:_LONGEST_N_NAME].decode("utf-8", "ignore")
    return ("R" + name if name[0].isdigit() else name)[:_DEFAULT_NAME]


class Surroundings:
    """Folder, host, umask of the submitting process; ``terminal``: True if its errors go to a terminal."""

    def __init__(self) -> None:
        try:
            self.workdir = os.getcwd()
        except OSError as error:
            raise Failure(f"the current folder cannot be used: {error.strerror}") from None
        named = os.environ.get("PWD", "")  # the name that its user gave it, if that is true
        try:
            if named[:1] == "/" and os.path.samefile(named, self.workdir):
                self.workdir = named
        except OSError:
            pass
        self.terminal = os.isatty(2)
        system = os.uname()
        self.host, self._system = system.nodename, system.sysname
        self.umask = os.umask(0)
        os.umask(self.umask)

    def environment(self, whole: bool, variables: list[str], queue: str, remarks: list[str]) -> str:
        """Return the job's variables as Latin-1 text, separated by NUL: those of ``-v`` (``variables``), with
        ``whole`` all of this process. One that is not set adds a line to ``remarks``. Raises Failure for too
        many bytes."""
        env = os.environb
        found: dict[bytes, bytes] = own_variables() if whole else {}
        for text in variables:
            name, equals, value = text.encode("utf-8", "surrogateescape").partition(b"=")
            if equals:
                found[name] = value
            elif name in env:
                found[name] = env[name]
            else:
                remarks.append(f"variable {text} is not set; the job starts without it")
        for name in (b"HOME", b"LOGNAME", b"MAIL", b"PATH", b"SHELL", b"TZ"):  # where the request comes from
            if name in env:
                found[b"QSUB_" + name] = found[b"PBS_O_" + name] = env[name]
        user = env.get(b"USER") or env.get(b"LOGNAME")
        if user:
            found[b"QSUB_USER"] = user
        if b"LANG" in env:
            found[b"PBS_O_LANG"] = env[b"LANG"]
        found[b"QSUB_WORKDIR"] = found[b"PBS_O_WORKDIR"] = os.fsencode(self.workdir)
        found[b"QSUB_HOST"] = found[b"PBS_O_HOST"] = os.fsencode(self.host)
        found[b"PBS_O_SYSTEM"] = os.fsencode(self._system)
        if queue:
            found[b"PBS_O_QUEUE"] = os.fsencode(queue)
        joined = b"\0".join([b"%b=%b" % pair for pair in found.items()])
        if len(joined) > LONGEST_ENVIRONMENT:
            raise Failure(
                f"the environment has {len(joined)} bytes, at most {LONGEST_ENVIRONMENT} are allowed; use -v"
            )
        return joined.decode("latin-1")


def own_variables(stays: str = "") -> dict[bytes, bytes]:
    """Return this process's variables without those of an enclosing job, except the variable ``stays``."""
    if b"NQSPY_ATTEMPT" not in os.environb:
        return dict(os.environb)
    from nqspy.model.job_variables import leave_behind

    own = leave_behind(os.environ, stays=stays)
    return {os.fsencode(name): os.fsencode(value) for name, value in own.items()}
