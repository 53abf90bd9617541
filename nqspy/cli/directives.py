"""Scripts as they are read: their bytes, and the directives in their first comment block: ``#QSUB``,
``# QSUB``, ``#@$`` (nqs.md 2.4) and ``#PBS`` (pbs-clients.md 3)."""

import os

from nqspy.cli.fast import Failure
from nqspy.cli.values import Wrong
from nqspy.cli.words import split

LONGEST_LINE = 1 << 20
"""Bytes of the longest directive or list line that is read."""

LONGEST_SCRIPT = 64 << 20
"""Bytes of the longest script."""

_BLANKS = " \t"


class Directive:
    """The words of one directive line, and its number in the script."""

    __slots__ = ("line", "words")

    def __init__(self, words: list[str], line: int) -> None:
        self.words = words
        self.line = line


def scan(script: str, source: str, dialect: str, prefix: str) -> tuple[str, list[Directive]]:
    """The dialect a script speaks ("" when it has no directives and ``dialect`` is "") and its directives.

    ``dialect`` "nqs", "pbs" or "slurm" has only those read, the others are comments then; ``prefix`` begins
    directives of PBS or Slurm (empty: none are read). Raises Failure naming ``source`` and line.
    """
    found: list[Directive] = []
    spoken = ""
    for number, line in _comment_block(script, prefix):
        kind, text = _kind(line, dialect, prefix)
        if not kind:
            continue
        if spoken and kind != spoken:
            raise Failure(f"{source} line {number}: NQS and PBS directives in one script; keep one kind")
        spoken = kind
        words = _words(text, f"{source} line {number}")
        if not words and kind == "nqs":
            break
        found.append(Directive(words, number))
    return spoken or dialect, found


def _comment_block(script: str, prefix: str = "") -> "list[tuple[int, str]]":
    """The numbered lines up to the first that is neither blank nor comment nor begins with ``prefix``. A
    trailing backslash joins a line with the next one."""
    lines: list[tuple[int, str]] = []
    at, number, length = 0, 0, len(script)
    while at < length:
        end = script.find("\n", at)
        end = length if end < 0 else end
        line = script[at : min(end, at + LONGEST_LINE + 1)].rstrip("\r")
        at, number = end + 1, number + 1
        start = line.lstrip(_BLANKS)
        if lines and lines[-1][1].endswith("\\"):
            lines[-1] = (lines[-1][0], lines[-1][1][:-1] + " " + line)
        elif start[:1] == "#" or (prefix and line.split(None, 1)[:1] == [prefix]):
            lines.append((number, line))
        elif start and not (number == 1 and start[0] == ":"):
            break
    return lines


def _kind(line: str, dialect: str, prefix: str) -> tuple[str, str]:
    """Which kind of directive a comment line is ("": none), and what follows its prefix."""
    if prefix and dialect != "nqs":
        first, _, rest = line.replace("\t", " ").partition(" ")
        if first == prefix:
            return dialect or "pbs", rest
    if dialect in ("pbs", "slurm"):
        return "", ""
    text = line.lstrip(_BLANKS)[1:].lstrip(_BLANKS)
    for start in ("QSUB", "@$"):
        if text.startswith(start):
            rest = text[len(start) :]
            if not rest or rest[0] in _BLANKS + "-#":
                return "nqs", rest
    return "", ""


def _words(text: str, place: str) -> list[str]:
    if len(text) > LONGEST_LINE:
        raise Failure(f"{place}: a directive line may have at most 1 MiB")
    try:
        return split(text)
    except Wrong as error:
        raise Failure(f"{place}: {error}") from None


_FOREIGN = {"#SBATCH": "Slurm", "#BSUB": "LSF", "#$": "Grid Engine", "#COBALT": "Cobalt"}
"""First words of directives that other systems read."""

_OURS = {"#PBS": "PBS", "#QSUB": "NQS", "#@$": "NQS"}


def foreign(script: str, source: str, dialect: str) -> list[str]:
    """A warning for each kind of directives in a script that are not read; Slurm's with what they mean."""
    known = {**_FOREIGN, **_OURS} if dialect == "slurm" else _FOREIGN
    read = "#SBATCH" if dialect == "slurm" else ""
    found: dict[str, tuple[int, list[str]]] = {}
    for number, line in _comment_block(script):
        word, _, rest = line.replace("\t", " ").partition(" ")
        if word in known and word != read:
            found.setdefault(word, (number, []))[1].append(rest)
    said = []
    for word, (number, lines) in found.items():
        what = f"{word} lines are {known[word]}'s directives and are not read"
        said.append(f"{source} line {number}: {what}{_way(word, lines)}")
    return said


def _way(word: str, lines: list[str]) -> str:
    if word in _OURS:
        return "; qsub reads them"
    if word != "#SBATCH":
        return "; write #QSUB or #PBS"
    from nqspy.cli.slurm_words import meaning

    said = meaning(lines)
    return f"{f' ({said})' if said else ''}; qsub --dialect slurm reads them, or write #QSUB or #PBS"


def read_script(file: str, what: str = "script") -> str:
    """The bytes of a script (or of another file: ``what``) as Latin-1 text. Raises Failure when it cannot be
    read or is too long."""
    try:
        data = _read(0) if file in ("", "-") else _read_file(file)
    except OSError as error:
        raise Failure(f"{file or 'standard input'}: cannot read the {what}: {error.strerror}") from None
    except ValueError:  # a NUL character, out of a list
        raise Failure(f"{file!r} is no file's name: cannot read the {what}") from None
    if len(data) > LONGEST_SCRIPT:
        raise Failure(f"{file or 'standard input'}: a {what} may have at most 64 MiB")
    return data.decode("latin-1")


def _read_file(file: str) -> bytes:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _read(descriptor)
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size <= LONGEST_SCRIPT and (piece := os.read(descriptor, 1 << 20)):
        parts.append(piece)
        size += len(piece)
    return b"".join(parts)
