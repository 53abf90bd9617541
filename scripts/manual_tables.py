"""Writes the manual's tables from the declarations: settings, qmgr commands, events, commands of the wire.

A table stands in ``nqspy/manual/*.md`` between ``<!-- table: NAME -->`` and ``<!-- end -->``; what is between
is replaced. Wide ones are lists of entries, wrapped at WIDTH columns.

With ``--check`` nothing is written and the exit status is 1 when a page is not up to date.
"""

import inspect
import re
import sys
import textwrap
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
from nqspy.model.queues import Queue
from nqspy.model.site import Settings
from nqspy.model.tree import Declared, declared, get
from nqspy.model.units import format_size, format_time
from nqspy.qmgr.grammar import FORMS, SHOWS, Form

ROOT = Path(__file__).resolve().parents[1]
MANUAL = ROOT / "nqspy" / "manual"
BLOCK = re.compile(r"(<!-- table: ([a-z_ ]+) -->\n).*?(<!-- end -->)", re.DOTALL)

WIDTH = 110
"""Columns of a line."""

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
    """Return the table of an object's settings; those that are like a queue's share an entry."""
    rows = _settings(kind, node)
    known = {} if kind is Queue else _settings(Queue)
    same = [name for name, meaning in rows.items() if known.get(name) == meaning]
    shared = [(" ".join(same), "as those of a queue")] if same else []
    return entries([*((name, rows[name]) for name in rows if name not in same), *shared])


def _settings(kind: type, node: Any = None) -> dict[str, str]:
    """Return what each setting of an object means, how it is written, its default, and who may change it
    unless managers may. ``node``: the only object of its kind, whose first values are the defaults."""
    rows = {}
    for path, info in declared(kind).items():
        default = info.default if node is None else get(node, path)
        who = "owner" if info.guard else "operator" if info.operator else ""
        shown = _default(info, default)
        written = _written(path, info).replace(f" or `{shown}`", "")
        details = (written, f"default {shown}", who)
        rows[f"`{path.replace('/', ' ')}`"] = f"{info.doc} ({'; '.join(filter(None, details))})"
    return rows


def _written(path: str, info: Declared) -> str:
    if info.words and all(f"{word} (" in info.doc for word in info.words) and info.unit != "names":
        return ""  # the sentence explains each word
    if info.words:
        words = ", ".join(f"`{word}`" for word in info.words)
        return words if info.unit != "names" else f"`{info.nothing_written}`, or a list of {words}"
    text = "number" if "weight" in info.doc else WRITTEN[info.unit]
    if info.unit == "count" and info.can_be_none and not info.nothing and "weight" not in info.doc:
        text += " or `unlimited`"
    if info.nothing_written == "auto":
        text = f"{text.removesuffix(' or `unlimited`')} or `auto`"
    elif info.nothing:
        text += f" or `{info.nothing}`"
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
        return info.nothing_written
    if info.unit == "flag":
        return "on" if value else "off"
    if info.unit == "time":
        return f"{value} ms" if value < 1000 else format_time(value) + (" s" if value < 60_000 else "")
    return format_size(value) if info.unit == "size" else str(value)


def events_table() -> str:
    """Return the table of events with their fields."""
    return entries((f"`{kind}` ({_fields(cls)})", _sentence(cls)) for kind, cls in KINDS.items())


def wire_table() -> str:
    """Return the table of wire commands with their fields; a question is marked."""
    return entries(
        (f"`{cmd}` ({_fields(cls)}{'; asks' * issubclass(cls, Query)})", _sentence(cls))
        for cmd, cls in COMMANDS.items()
    )


def _fields(cls: Any) -> str:
    """Return the fields of a class given in order; those given by name only are described once for all."""
    given = inspect.signature(cls).parameters.values()
    return " ".join(f"`{each.name}`" for each in given if each.kind is not each.KEYWORD_ONLY) or "no fields"


def _sentence(cls: type) -> str:
    text = " ".join((inspect.getdoc(cls) or "").replace("``", "`").split())
    return re.split(r"(?<=[.;])\s", text)[0].rstrip(".;")


def commands_table() -> str:
    """Return the table of qmgr commands: the capitals suffice. Commands that only differ in their list or
    setting share an entry."""
    rows: dict[tuple[str, ...], list[Form]] = {}
    for form in FORMS:
        if form.rule != "show":
            rows.setdefault(_alike(form), []).append(form)
    return entries(map(_command, rows.values()))


def _alike(form: Form) -> tuple[str, ...]:
    verb, _, noun = form.spelling.partition(" ")
    if form.rule == "set_one":
        return (form.rule, form.kind)
    if form.rule in ("change_list", "managers"):
        return (form.usage, noun.lower())
    return (form.usage, verb, form.who) if form.usage in ("=VALUE QUEUE", "=SIZE QUEUE") else (form.spelling,)


def _command(forms: list[Form]) -> tuple[str, str]:
    first = forms[0]
    who = f" ({first.who})" if first.who != "manager" else ""
    usage = f" `{first.usage}`" if first.usage else ""
    if first.rule == "set_one":
        return (
            ", ".join(f"`{form.spelling}` `{form.usage}`" for form in forms),
            f"see the settings of `{first.kind}`",
        )
    if len(forms) == 1:
        return (f"`{first.spelling}`{usage}", first.doc + who)
    names = " ".join(f"`{form.spelling}`" for form in forms)
    verbs = {form.spelling.partition(" ")[0] for form in forms}
    doc = first.doc.removeprefix("adds names to a list: ") if len(verbs) > 1 else "see the setting"
    return (names + usage, doc + who)


def shows_table() -> str:
    """Return the table of what ``show`` shows."""
    return entries((f"`{spelling}`", doc) for spelling, doc in SHOWS.items())


POSIX = {
    "qalter": "aAcehjklmMNoprSu", "qdel": "", "qhold": "h", "qmove": "", "qmsg": "EO", "qrerun": "",
    "qrls": "h",
    "qselect": "aAchlNpqrsu", "qsig": "s", "qstat": "fQB", "qsub": "aAcCehjklmMNopqrSuvVz",
}  # fmt: skip
"""The batch utilities of IEEE 1003.1 (2001 to 2017) and the letters of their options."""

OTHERS = {"OpenPBS": "fGIJPRWX", "Torque": "bdDntTwx"}
"""Letters of ``qsub`` that OpenPBS and Torque have added."""

STORED = ("note", "note_value", "checkpoint")
"""Kinds of options that are stored as attributes of the request and have no other effect."""


def posix_table() -> str:
    """Return the table of POSIX's options of the batch utilities, and their effects by the parser's
    tables."""
    rows = []
    for command, letters in POSIX.items():
        known = QSUB_PBS if command == "qsub" else table_of(command) if command in SUMMARIES else None
        if not letters:
            rows.append((f"`{command}`", "", "supported" if known is not None else "not there", ""))
        rows += [(f"`{command}`", f"`-{letter}`", *_fate(known, f"-{letter}")) for letter in letters]
    return table(("utility", "option", "", "meaning here"), rows)


def pbs_table() -> str:
    """Return the table of the letters of ``qsub`` beyond POSIX."""
    rows = [
        (f"`-{letter}`", origin, *_fate(QSUB_PBS, f"-{letter}"))
        for origin, letters in OTHERS.items()
        for letter in letters
    ]
    return table(("option of `qsub`", "of", "", "meaning here"), rows)


def _fate(known: Table | None, flag: str) -> tuple[str, str]:
    """Return the effect of an option, and its sentence."""
    for flags, target, kind, metavar, text in known or ():
        if flag in flags:
            if kind.startswith("refused"):
                return "refused", f"{target} is not offered"
            value = f" (`{metavar}`)" if metavar else ""
            return "stored" if kind in STORED else "supported", f"{text}{value}"
    return ("refused", "unknown option") if known is not None else ("not there", "")


def slurm_table(refused: bool) -> str:
    """Return the table of options like sbatch's: the accepted ones, or the refused ones with reasons."""
    rows = []
    for flags, target, kind, metavar, text in slurm_options.SLURM:
        if kind.startswith("slurm_refused") is not refused:
            continue
        named = " ".join(f"`{flag}`" for flag in flags)
        if refused:
            rows.append((named, slurm_options.REFUSED[target]))
        else:
            rows.append((f"{named} {metavar}".rstrip(), text))
    return entries(rows)


ROOMS = ("`qsub`", "modify", "submit", "request", "changes", "json", "`-f`")
"""Rooms in which an option of a request has a name."""


def options_table() -> str:
    """Return the table of requests' options with their names in each room; rooms with the same name share
    it."""
    rows = []
    for option in OPTIONS:
        flags = [flag for given in option.flags.values() for flag in given]
        asked = [*flags, *(f"-l {name}" for name in option.resources)]
        modify = option.modify.replace("/", " ")
        names = (
            " ".join(f"`{flag}`" for flag in asked),
            *(f"`{name}`" if name else "" for name in (modify, *_other_names(option))),
        )
        rooms: dict[str, list[str]] = {}
        for room, name in zip(ROOMS, names, strict=True):
            rooms.setdefault(name, []).append(room)
        rooms.pop("", None)
        if rooms:
            meaning = option.doc + "*" * (option.when == "running")
            rows.append((meaning, "; ".join(f"{', '.join(where)} {name}" for name, where in rooms.items())))
    return entries(rows)


def _other_names(option: Option) -> tuple[str, ...]:
    shown = (option.json.replace("/", "."), option.pbs.replace("/", "."))
    return (option.python, option.shown, option.changes, *shown)


def entries(rows: Iterable[tuple[str, str]]) -> str:
    """Return a Markdown list of names and their meanings, wrapped; a code span stays on a line if it fits."""
    return "".join(_entry(f"{name}: {meaning}") for name, meaning in rows)


def _entry(text: str) -> str:
    spans = re.sub(
        r"`[^`]*`", lambda span: span[0].replace(" ", KEPT) if len(span[0]) < WIDTH - 10 else span[0], text
    )
    lines = textwrap.wrap(
        spans, WIDTH, initial_indent="- ", subsequent_indent="  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines).replace(KEPT, " ") + "\n"


KEPT = "\0"
"""Character that stands for a space at which no line is wrapped."""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [_row(head), _row(("---",) * len(head)), *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def tables() -> dict[str, str]:
    """Return all tables by name."""
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
    """Return the text of a page with its tables replaced by those of ``known``. Raises KeyError for an
    unknown one."""
    return BLOCK.sub(lambda found: f"{found[1]}{known[found[2]]}{found[3]}", text)


def main() -> int:
    """Write the pages, or check them; return 1 if a check failed."""
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
