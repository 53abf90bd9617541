"""``qalter``: changes what requests ask for; of running ones, what still has an effect."""

from nqspy.cli import fast, request_commands
from nqspy.cli.draft import SubmissionDraft, Surroundings
from nqspy.cli.fast import DaemonConnection, Failure, Given, Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    Values = dict[str, object]

_OWN = ("home", "help", "holds", "owner")
_LAYOUTS = ("select", "nodes")
"""Resources whose value is a whole selection: parts that it does not name are no longer asked for."""


def values_of(found: list[Given], home: "str | None") -> "Values":
    """Return the new values that options mean, by path below a request's `Spec`. Raises Failure."""
    here = Surroundings()

    def date(text: str) -> int:
        from nqspy.cli.qsub import ask_now
        from nqspy.cli.rare import parse_date

        return parse_date(text, *ask_now(DaemonConnection(home)))

    draft = SubmissionDraft("pbs", date, here.workdir)
    options = [given for given in found if given.target not in _OWN]
    if any(given.kind == "keep" for given in options):
        draft.output.update(dict.fromkeys(("keep_stdout", "keep_stderr"), False))
    draft.apply(options, "command")
    limit, draft.array_limit = draft.array_limit, None
    asked = {"output": dict(draft.output), "mail": dict(draft.mail)}  # before defaults are filled in
    spec = draft.item("", "", [], here)["spec"]
    assert isinstance(spec, dict)
    values: Values = {name: spec[name] for name in draft.spec if name != "name_given"}
    ask = dict(spec.get("ask", {}))
    ask.pop("consumables", None)
    others = ask.pop("others", ())
    values |= {f"ask/{name}": value for name, value in (*ask.items(), *others)}
    for part, fields in asked.items():
        values |= {f"{part}/{name}": value for name, value in fields.items()}
    notes: dict[str, list[object]] = {}
    for note in spec.get("attributes", ()):
        name, colon, value = note.partition(":")
        notes.setdefault(name, []).append(value if colon else True)
    values |= {f"attributes/{name}": noted for name, noted in notes.items()}
    listed = ",".join(given.value for given in options if given.kind == "resources").split(",")
    if any(piece.strip().partition("=")[0] in _LAYOUTS for piece in listed):
        values.setdefault("ask/memory", None)
        values["ask/consumables"] = [each for each in draft.consumables.items() if each[1]] or None
    else:
        values |= {f"units/{name}": count for name, count in draft.consumables.items()}
        if "ask/pes" in values or "mold" in values:
            values.setdefault("layout", None)
    if limit is not None:
        values["array/limit"] = limit
    if draft.depends or draft.block:
        raise Failure("-W: of a submitted request only umask= and max_run_subjobs= change", 2)
    for given in found:
        if given.target in ("holds", "owner"):
            values[given.target] = given.value
    return values


def body(words: list[str]) -> int:
    """Run ``qalter``; return its exit status."""
    given, found, ids = request_commands.read("qalter", words)
    values = values_of(found, given.get("home"))
    if not values:
        raise fast.missing("change", "qalter")
    return request_commands.send("qalter", "modify", given.get("home"), ids=ids, values=values)


main = Program(body, "qalter")
