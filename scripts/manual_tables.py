"""Writes the manual's tables from the declarations: settings, qmgr commands, events, commands of the wire.

A table stands in ``nqspy/manual/*.md`` between ``<!-- table: NAME -->`` and ``<!-- end -->``; what is between
is replaced. With ``--check`` nothing is written and the exit status is 1 when a page is not up to date.
"""

import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nqspy.cli import slurm_options
from nqspy.cli.request_tables import QSUB_PBS, table_of
from nqspy.cli.spec import SUMMARIES, Table
from nqspy.model import registry
from nqspy.model.commands import COMMANDS, Query
from nqspy.model.events import KINDS
from nqspy.model.options import OPTIONS, Option
from nqspy.model.site import Settings
from nqspy.model.tree import Declared, declared, get
from nqspy.model.units import format_size, format_time
from nqspy.qmgr.grammar import FORMS, SHOWS, Form

ROOT = Path(__file__).resolve().parents[1]
MANUAL = ROOT / "nqspy" / "manual"
BLOCK = re.compile(r"(<!-- table: ([a-z_ ]+) -->\n).*?(<!-- end -->)", re.DOTALL)

WRITTEN = {
    "count": "number",
    "number": "number",
    "time": "time",
    "size": "size",
    "percent": "percent",
    "name": "word",
    "names": "list",
    "flag": "`on` or `off`",
    "text": "text",
    "crons": "list of cron times",
    "amounts": "list like (gpu=2)",
}


def settings_table(kind: type, node: Any = None) -> str:
    """The settings of one object: how each is written, its default, who may change it, what it means.

    ``node``: the object itself where there is only one, whose values at birth are the defaults.
    """
    rows = []
    for path, info in declared(kind).items():
        default = info.default if node is None else get(node, path)
        who = "owner" if info.guard else "operator" if info.operator else "manager"
        rows.append(
            (f"`{path.replace('/', ' ')}`", _written(path, info), _default(info, default), who, info.doc)
        )
    return table(("setting", "written as", "default", "who", "meaning"), rows)


def _written(path: str, info: Declared) -> str:
    if info.words:
        words = ", ".join(f"`{word}`" for word in info.words)
        return words if info.unit != "names" else f"`{info.nothing_written}`, or a list of {words}"
    text = "number" if "weight" in info.doc else WRITTEN[info.unit]
    if info.unit == "count" and info.can_be_none and "weight" not in info.doc:
        text += " or `unlimited`"
    if info.nothing:
        text += f" or `{info.nothing}`"
    if info.nothing_written == "auto":
        text = f"{text.removesuffix(' or `unlimited`')} or `auto`"
    if info.high is None or info.unit == "time":
        return text
    return f"{text}, {info.low or 0} to {info.high}"


def _default(info: Declared, value: Any) -> str:
    if value is None and info.nothing_written == "auto":
        return "auto"
    if value is None and info.unit == "names":
        return info.nothing_written
    if value is None and "weight" in info.doc:
        return "the site's"
    if value in (None, (), ""):
        return "unlimited" if info.unit in ("count", "time", "size") else "none"
    if info.unit == "flag":
        return "on" if value else "off"
    if info.unit == "time":
        return f"{value} ms" if value < 1000 else format_time(value) + (" s" if value < 60_000 else "")
    return format_size(value) if info.unit == "size" else str(value)


def events_table() -> str:
    """Every kind of event with its fields."""
    rows = [(f"`{kind}`", _fields(cls), _sentence(cls)) for kind, cls in KINDS.items()]
    return table(("kind", "fields", "what happened"), rows)


def wire_table() -> str:
    """Every command with its fields."""
    rows = [
        (f"`{cmd}`", _fields(cls), "asks" if issubclass(cls, Query) else "changes", _sentence(cls))
        for cmd, cls in COMMANDS.items()
    ]
    return table(("cmd", "fields", "kind", "meaning"), rows)


def _fields(cls: Any) -> str:
    """The fields that are given in order; those given by name alone are said once for all."""
    given = inspect.signature(cls).parameters.values()
    return " ".join(f"`{each.name}`" for each in given if each.kind is not each.KEYWORD_ONLY) or "none"


def _sentence(cls: type) -> str:
    text = " ".join((inspect.getdoc(cls) or "").replace("``", "`").split())
    return re.split(r"(?<=[.;])\s", text)[0].rstrip(".;")


def commands_table() -> str:
    """Every command of qmgr: the capitals suffice. What only differs in the list or setting it names shares
    a row."""
    rows: dict[tuple[str, ...], list[Form]] = {}
    for form in FORMS:
        if form.rule != "show":
            rows.setdefault(_alike(form), []).append(form)
    return table(("command", "then", "who", "meaning"), map(_command, rows.values()))


def _alike(form: Form) -> tuple[str, ...]:
    verb, _, noun = form.spelling.partition(" ")
    if ": " in form.doc or noun == "Managers":
        return (form.usage, noun.lower())
    return (form.usage, verb, form.who) if form.usage in ("=VALUE QUEUE", "=SIZE QUEUE") else (form.spelling,)


def _command(forms: list[Form]) -> tuple[str, ...]:
    first = forms[0]
    names = " ".join(f"`{form.spelling}`" for form in forms)
    if len(forms) == 1:
        return (names, _usage(first), first.who, first.doc)
    verbs = list(dict.fromkeys(form.spelling.partition(" ")[0] for form in forms))
    if len(verbs) > 1:
        return (names, _usage(first), first.who, first.doc.removeprefix("adds names to a list: "))
    return (names, _usage(first), first.who, "the setting of that name, see below")


def shows_table() -> str:
    """What ``show`` shows."""
    return table(("show", "meaning"), ((f"`{spelling}`", doc) for spelling, doc in SHOWS.items()))


def _usage(form: Form) -> str:
    return f"`{form.usage}`" if form.usage else ""


POSIX = {
    "qalter": "aAcehjklmMNoprSu", "qdel": "", "qhold": "h", "qmove": "", "qmsg": "EO", "qrerun": "",
    "qrls": "h",
    "qselect": "aAchlNpqrsu", "qsig": "s", "qstat": "fQB", "qsub": "aAcCehjklmMNopqrSuvVz",
}  # fmt: skip
"""The batch utilities of IEEE 1003.1 (2001 to 2017) and the letters of their options."""

OTHERS = {"OpenPBS": "fGIJPRWX", "Torque": "bdDntTwx"}
"""Letters of ``qsub`` that OpenPBS and Torque have added."""

STORED = ("note", "note_value", "checkpoint")
"""Kinds of options that are kept as attributes of the request, for which nothing else is done."""


def posix_table() -> str:
    """Each option of the batch utilities of POSIX, and what becomes of it, by the tables of the parser."""
    rows = []
    for command, letters in POSIX.items():
        known = QSUB_PBS if command == "qsub" else table_of(command) if command in SUMMARIES else None
        if not letters:
            rows.append((f"`{command}`", "", "supported" if known is not None else "not there", ""))
        rows += [(f"`{command}`", f"`-{letter}`", *_fate(known, f"-{letter}")) for letter in letters]
    return table(("utility", "option", "", "meaning here"), rows)


def pbs_table() -> str:
    """The letters of ``qsub`` beyond POSIX."""
    rows = [
        (f"`-{letter}`", origin, *_fate(QSUB_PBS, f"-{letter}"))
        for origin, letters in OTHERS.items()
        for letter in letters
    ]
    return table(("option of `qsub`", "of", "", "meaning here"), rows)


def _fate(known: Table | None, flag: str) -> tuple[str, str]:
    """What becomes of an option, and its sentence."""
    for flags, target, kind, metavar, text in known or ():
        if flag in flags:
            if kind.startswith("refused"):
                return "refused", f"{target} is not offered"
            value = f" (`{metavar}`)" if metavar else ""
            return "stored" if kind in STORED else "supported", f"{text}{value}"
    return ("refused", "unknown option") if known is not None else ("not there", "")


def slurm_table(refused: bool) -> str:
    """The options of sbatch's shape: those that are done, or those that are refused, and why."""
    rows = []
    for flags, target, kind, metavar, text in slurm_options.SLURM:
        if kind.startswith("slurm_refused") is not refused:
            continue
        named = " ".join(f"`{flag}`" for flag in flags)
        if refused:
            rows.append((named, slurm_options.REFUSED[target]))
        else:
            rows.append((f"{named} {metavar}".rstrip(), text))
    return table(("option", "why" if refused else "meaning"), rows)


def options_table() -> str:
    """The options of requests with their names in each room."""
    rows = []
    for option in OPTIONS:
        flags = [flag for given in option.flags.values() for flag in given]
        asked = [*flags, *(f"-l {name}" for name in option.resources)]
        modify = [option.modify.replace("/", " ")] if option.modify else []
        names = (asked, modify, *([name] if name else [] for name in _other_names(option)))
        if any(names):
            meaning = option.doc + ("; may be changed while it runs" if option.when == "running" else "")
            rows.append((meaning, *(" ".join(f"`{name}`" for name in each) for each in names)))
    rooms = ("qsub", "modify request", "Client.submit", "request", "changes()", "qstat --json", "qstat -f")
    return table(("option", *(f"`{room}`" for room in rooms)), rows)


def _other_names(option: Option) -> tuple[str, ...]:
    shown = (option.json.replace("/", "."), option.pbs.replace("/", "."))
    return (option.python, option.seen, option.changes, *shown)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [_row(head), _row(("---",) * len(head)), *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def tables() -> dict[str, str]:
    """All tables by name."""
    shipped = Settings()
    found = {
        f"settings {kind.head}": settings_table(kind.kind, None if kind.named else kind.one(shipped))
        for kind in registry.objects()
    }
    return found | {
        "events": events_table(),
        "options": options_table(),
        "posix": posix_table(),
        "wire": wire_table(),
        "commands": commands_table(),
        "shows": shows_table(),
        "pbs": pbs_table(),
        "slurm": slurm_table(refused=False),
        "slurm refused": slurm_table(refused=True),
    }


def filled(text: str, known: dict[str, str]) -> str:
    """A page with its tables as they should be. Raises KeyError for a table that does not exist."""
    return BLOCK.sub(lambda found: f"{found[1]}{known[found[2]]}{found[3]}", text)


def main() -> int:
    """Writes the pages, or checks them; 1 when a check failed."""
    known, check, status = tables(), "--check" in sys.argv[1:], 0
    for page in sorted(MANUAL.glob("*.md")):
        text = page.read_text()
        new = filled(text, known)
        if new == text:
            continue
        if check:
            print(f"{page.name}: a table is not up to date; run scripts/manual_tables.py", file=sys.stderr)
            status = 1
        else:
            page.write_text(new)
            print(f"{page.name}: written")
    return status


if __name__ == "__main__":
    sys.exit(main())
