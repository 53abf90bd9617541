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

    ``dialect`` "nqs" or "pbs" has only those read, the others are comments then; ``prefix`` begins PBS
    directives (empty: none are read). Raises Failure naming ``source`` and line.
    """
    found: list[Directive] = []
    spoken = ""
    for number, line in _comment_block(script):
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


def _comment_block(script: str) -> "list[tuple[int, str]]":
    """The numbered lines up to the first that is neither blank nor comment. A trailing backslash joins a
    line with the next one."""
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
        elif start[:1] == "#":
            lines.append((number, line))
        elif start and not (number == 1 and start[0] == ":"):
            break
    return lines


def _kind(line: str, dialect: str, prefix: str) -> tuple[str, str]:
    """Which kind of directive a comment line is ("": none), and what follows its prefix."""
    if prefix and dialect != "nqs":
        first, _, rest = line.replace("\t", " ").partition(" ")
        if first == prefix:
            return "pbs", rest
    if dialect == "pbs":
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


def foreign(script: str, source: str) -> list[str]:
    """A warning for each kind of directives in a script that are not ours."""
    found: dict[str, str] = {}
    for number, line in _comment_block(script):
        word = line.partition(" ")[0].partition("\t")[0]
        if word in _FOREIGN and word not in found:
            system = f"{_FOREIGN[word]}'s directives"
            found[word] = (
                f"{source} line {number}: {word} lines are {system} and are not read; write #QSUB or #PBS"
            )
    return list(found.values())


def read_script(file: str, what: str = "script") -> str:
    """The bytes of a script (or of another file: ``what``) as Latin-1 text. Raises Failure when it cannot be
    read or is too long."""
    try:
        data = _read(0) if file in ("", "-") else _read_file(file)
    except OSError as error:
        raise Failure(f"{file or 'standard input'}: cannot read the {what}: {error.strerror}") from None
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
