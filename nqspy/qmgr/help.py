"""Help texts of the language, made from its tables."""

from collections.abc import Sequence

from nqspy.qmgr.attributes import BRANCHES, MODIFY, SYNONYMS, keywords_of, settings_of
from nqspy.qmgr.cursor import resolve
from nqspy.qmgr.grammar import FORMS, TREE, VERBS
from nqspy.qmgr.values import what

_WHO = {
    "owner": "root and the home's owner",
    "manager": "managers",
    "operator": "operators and managers",
    "submitter": "the request's owner, operators and managers",
    "any": "all users",
}
_WITH_ATTRIBUTES = ("create", "set_object", "set_single", "set_mail")


def help_text(words: Sequence[str] = ()) -> str:
    """Return the help on commands that begin with ``words``, perhaps abbreviated; without words, on verbs."""
    full = _in_full(words)
    forms = [form for form in FORMS if form.words[: len(full)] == full]
    if not words:
        head = "Commands (type the capitals, or any unique beginning); help COMMAND explains one:"
        return "\n".join([head, *(f"  {spelling:<10} {doc}" for spelling, doc in VERBS.values())])
    if not forms:
        return f"there is no command {' '.join(words)}; help lists all commands"
    lines = [f"{forms[0].words[0]}: {VERBS[forms[0].words[0]][1]}", ""]
    for form in forms:
        lines += [f"  {form.spelling} {form.usage}".rstrip(), f"      {form.doc} ({_WHO[form.who]})"]
    if len(forms) == 1:
        form, rows = forms[0], list[tuple[str, str, str]]()
        if form.rule == "modify":
            rows = [(name, what(one.info), one.info.doc) for name, one in MODIFY.items()]
        elif form.rule == "set_branch":
            rows = attribute_rows(form.kind, form.option)
        elif form.rule == "set_factors" or (form.rule in _WITH_ATTRIBUTES and form.kind):
            rows = attribute_rows(form.kind)
        lines += ["", "Attributes:"] if rows else []
        lines += [f"  {name:<18} {doc} ({value})" for name, value, doc in rows]
    return "\n".join(lines)


def _in_full(words: Sequence[str]) -> tuple[str, ...]:
    node = TREE
    found: list[str] = []
    for word in words:
        candidates = resolve(word, node.keywords.values())
        if len(candidates) != 1:
            return (*found, word.lower()) if node.keywords else tuple(found)
        found.append(candidates[0].means)
        node = node.below[candidates[0].means]
    return tuple(found)


def attribute_rows(kind: str, branch: str = "") -> list[tuple[str, str, str]]:
    """Return name, value and sentence of each attribute of an object, or of one of its branches."""
    known = settings_of(kind, branch)
    words = (name for name in keywords_of(kind, branch) if name not in SYNONYMS)
    return [
        (name, what(known[name]), known[name].doc) if name in known else (name, "...", BRANCHES[name])
        for name in words
    ]
