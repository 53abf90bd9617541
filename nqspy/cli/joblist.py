"""``qsub --list FILE``: a department's ordered list, one request a line (interfaces.md 3)."""

from nqspy.cli.directives import LONGEST_LINE, read_script
from nqspy.cli.fast import Failure, Given, Parser
from nqspy.cli.values import Wrong
from nqspy.cli.words import split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[str, list[str], list[Given]], dict[str, object]]


def read_list(file: str, parser: Parser, make: "Make") -> list[dict[str, object]]:
    """The items of all lines, in order; ``make`` writes one from script, arguments and options. Raises
    Failure naming the line: then nothing is submitted."""
    items: list[dict[str, object]] = []
    for number, line in enumerate(_text(file).split("\n"), 1):
        try:
            words = _words(line)
            if words:
                items.append({**_item(words, parser, make), "line": number})
        except (Failure, Wrong) as problem:
            raise Failure(f"{file} line {number}: {problem}") from None
    if not items:
        raise Failure(f"{file}: the list is empty")
    return items


def _item(words: list[str], parser: Parser, make: "Make") -> dict[str, object]:
    options, operands = parser.parse(words)
    if not operands:
        raise Failure("the line names no script")
    return make(operands[0], operands[1:], options)


def _words(line: str) -> list[str]:
    if len(line) > LONGEST_LINE:
        raise Failure("a line may have at most 1 MiB")
    return split(line)


def _text(file: str) -> str:
    data = read_script(file, "list").encode("latin-1")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise Failure(f"{file} line {number}: the list is no UTF-8 text") from None
