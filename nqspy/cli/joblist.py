"""``qsub --list FILE``: a department's ordered list, one request a line (interfaces.md 3)."""

from nqspy.cli.directives import LONGEST_LINE, read_script
from nqspy.cli.fast import Failure, Given, Parser
from nqspy.cli.words import AFTER_WORDS, LINE_AFTER, split
from nqspy.model.amounts import Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[str, list[str], list[Given]], dict[str, object]]

_NAME = "name:"


def read_list(file: str, parser: Parser, make: "Make") -> list[dict[str, object]]:
    """Return the items of all lines of a list, in order. ``make``: makes the item of a script, its arguments
    and options. Raises Failure naming the line."""
    lines: list[tuple[int, list[str]]] = []
    data = read_script(file, "list").encode("latin-1")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise Failure(f"{file} line {number}: the list is not UTF-8 text") from None
    try:
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > LONGEST_LINE:
                raise Failure("a line may have at most 1 MiB")
            if words := split(line):
                lines.append((number, words))
        reading = NamedLines(parser, make, lines)
        items: list[dict[str, object]] = []
        for number, words in lines:
            items.append({**reading.item(words), "line": number})
    except (Failure, Wrong) as problem:
        raise Failure(f"{file} line {number}: {problem}") from None
    if not items:
        raise Failure(f"{file}: the list is empty; write one request a line")
    return items


class NamedLines:
    """Maker of the items of a list's lines. ``name:X`` and ``after:X[:WORD]`` may begin a line: ``after``
    waits for all earlier lines of that name, or for a request."""

    def __init__(self, parser: Parser, make: "Make", lines: "list[tuple[int, list[str]]]") -> None:
        self._parser, self._make = parser, make
        self._places: dict[str, list[int]] = {}
        self._count = 0
        self._first: dict[str, int] = {}  # where each name was first used
        for number, words in lines:
            for word in _leading(words):
                if word.startswith(_NAME):
                    self._first.setdefault(word.removeprefix(_NAME), number)

    def item(self, words: list[str]) -> dict[str, object]:
        """Return the item of the next line. Raises Failure, Wrong."""
        leading = _leading(words)
        names = [word.removeprefix(_NAME) for word in leading if word.startswith(_NAME)]
        if len(names) > 1:
            raise Failure(f"{_NAME}{names[1]}: a line can have one name, and this one has {_NAME}{names[0]}")
        ours: list[str] = []
        earlier: list[tuple[int, str]] = []
        for word in leading:
            if word.startswith(LINE_AFTER):
                id, places = self._awaited(word)
                ours += ["--after", id] if id else []
                earlier += [each for each in places if each not in earlier]
        for name in names:
            if not name or ":" in name or "0" <= name[0] <= "9":
                raise Failure(f"{_NAME}{name}: a name must not begin with a digit or contain a colon")
            ours += ["-N", name]
            self._places.setdefault(name, []).append(self._count)
        given, _ = self._parser.parse(ours)
        for each in given:
            each.flag = LINE_AFTER if each.kind == "after" else each.flag
        options, operands = self._parser.parse(words[len(leading) :])
        if not operands:
            raise Failure("the line has no script")
        item = self._make(operands[0], operands[1:], given + options)
        self._count += 1
        return {**item, "after": earlier} if earlier else item

    def _awaited(self, word: str) -> "tuple[str, list[tuple[int, str]]]":
        """Return a request's dependency as in ``--after`` and no lines, or "" and the numbers of earlier
        lines of that name, each with the condition. Raises Failure."""
        named = word.removeprefix(LINE_AFTER)
        name, colon, when = named.partition(":")
        if not name or (colon and when not in AFTER_WORDS):
            raise Failure(f"{word} is not a dependency; write it like after:NAME:any or after:17:fail")
        if "0" <= name[0] <= "9":
            return named, []
        if name not in self._places:
            late = self._first.get(name)
            where = f"; move line {late} up" if late else ""
            raise Failure(f"{word}: no earlier line has the name {name}{where}")
        return "", [(place, when or "ok") for place in self._places[name]]


def _leading(words: list[str]) -> list[str]:
    """Return the words at the beginning of a line: its name and its dependencies."""
    count = 0
    while count < len(words) and words[count].startswith((_NAME, LINE_AFTER)):
        count += 1
    return words[:count]
