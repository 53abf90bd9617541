"""Scripts as qsub reads them: their bytes, and directives in their first comment block: ``#QSUB``, ``#
QSUB``, ``#@$`` (nqs.md 2.4) and ``#PBS`` (pbs-clients.md 3). Directives are UTF-8 text."""

import os

from nqspy.cli.fast import Failure
from nqspy.cli.words import split
from nqspy.model.amounts import Wrong

LONGEST_LINE = 1 << 20
"""Bytes of the longest directive or list line that is read."""

LONGEST_SCRIPT = 64 << 20
"""Bytes of the longest script."""

_BLANKS = " \t"
_SHOWN = 40
"""Most characters of a line that a warning shows."""


class Directive:
    """The words of one directive line, and its number in the script."""

    __slots__ = ("line", "words")

    def __init__(self, words: list[str], line: int) -> None:
        self.words = words
        self.line = line


def scan(script: str, source: str, dialect: str, prefix: str) -> tuple[str, list[Directive]]:
    """Return the dialect of a script ("": undecided, without directives) and its directives. ``dialect``:
    "nqs", "pbs" or "slurm", to read only those; ``prefix``: begin of PBS's or Slurm's directives (empty:
    none). Raises Failure naming ``source`` and line."""
    found: list[Directive] = []
    spoken = ""
    for number, line in _comment_block(script, prefix)[0]:
        kind, text = _kind(line, dialect, prefix)
        if not kind:
            continue
        if spoken and kind != spoken:
            raise Failure(f"{source} line {number}: NQS and PBS directives in one script; keep one kind")
        spoken = kind
        if len(text) > LONGEST_LINE:
            raise Failure(f"{source} line {number}: a directive line may have at most 1 MiB")
        try:
            words = split(text)
        except Wrong as error:
            raise Failure(f"{source} line {number}: {error}") from None
        if not words and kind == "nqs":
            break
        found.append(Directive(words, number))
    return spoken or dialect, found


def _comment_block(script: str, prefix: str = "") -> "tuple[list[tuple[int, str]], int]":
    """Return the numbered lines of the first comment block, or those with ``prefix``, and where the block
    ends."""
    lines: list[tuple[int, str]] = []
    at, number, length = 0, 0, len(script)
    while at < length:
        begin, end = at, script.find("\n", at)
        end = length if end < 0 else end
        line = script[at : min(end, at + LONGEST_LINE + 1)].rstrip("\r")
        if not line.isascii():  # UTF-8; other bytes stay what they are
            line = line.encode("latin-1").decode("utf-8", "surrogateescape")
        at, number = end + 1, number + 1
        start = line.lstrip(_BLANKS)
        if lines and lines[-1][1].endswith("\\"):
            lines[-1] = (lines[-1][0], lines[-1][1][:-1] + " " + line)
        elif start[:1] == "#" or (prefix and line.split(None, 1)[:1] == [prefix]):
            lines.append((number, line))
        elif start and not (number == 1 and start[0] == ":"):
            return lines, begin
    return lines, length


def _kind(line: str, dialect: str, prefix: str) -> tuple[str, str]:
    """Return the kind of directive that a comment line is ("": none), and the text behind its prefix."""
    line = line.replace("\t", " ").lstrip()
    if prefix and dialect != "nqs":
        first, _, rest = line.partition(" ")
        if first == prefix:
            return dialect or "pbs", rest
    if dialect in ("pbs", "slurm"):
        return "", ""
    text = line[1:].lstrip()
    for start in ("QSUB", "@$"):
        if text.startswith(start):
            rest = text[len(start) :]
            if not rest or rest[0] in " -#":
                return "nqs", rest
    return "", ""


_FOREIGN = {"#SBATCH": "Slurm", "#BSUB": "LSF", "#$": "Grid Engine", "#COBALT": "Cobalt"}
"""First words of directives that other systems read."""

_OURS = {"#PBS": "PBS", "#QSUB": "NQS", "#@$": "NQS"}


def foreign(script: str, source: str, dialect: str) -> list[str]:
    """Return a warning for each kind of other systems' directives (not read); Slurm's with their meaning."""
    known = {**_FOREIGN, **_OURS} if dialect == "slurm" else _FOREIGN
    read = "#SBATCH" if dialect == "slurm" else ""
    found: dict[str, tuple[int, list[str]]] = {}
    for number, line in _comment_block(script)[0]:
        word, _, rest = line.replace("\t", " ").lstrip().partition(" ")
        if word in known and word != read:
            found.setdefault(word, (number, []))[1].append(rest)
    texts = []
    for word, (number, lines) in found.items():
        way = "; qsub reads them" if word in _OURS else "; write #QSUB or #PBS"
        if word == "#SBATCH":
            from nqspy.cli.slurm import meaning

            means = f" ({meant})" if (meant := meaning(lines)) else ""
            way = f"{means}; qsub --dialect slurm reads them, or write #QSUB or #PBS"
        what = f"{word} lines are directives of {known[word]}"
        texts.append(f"{source} line {number}: {what} and are ignored{way}")
    return texts


def overlooked(script: str, source: str, dialect: str, prefix: str) -> list[str]:
    """Return warnings for lines that are no directives: misspelt, or after the first command."""
    lines, end = _comment_block(script, prefix)
    texts = []
    for number, line in lines:
        text = line.lstrip(_BLANKS)
        # `foreign` reports Slurm's.
        read = _kind(line, dialect, prefix)[0] or text[:8].rstrip(_BLANKS) == "#SBATCH"
        if not read and (right := _meant(text, dialect, prefix)):
            shown = "".join(ascii(c)[1:-1] if c.isspace() else c for c in text[:_SHOWN])
            texts.append(f"{source} line {number}: {shown} is ignored, not a directive; write {right}")
    starts = {"nqs": ("#QSUB", "#@$")}.get(dialect, (prefix,) if dialect else (prefix, "#QSUB", "#@$"))
    for start in filter(None, starts):
        at = script.find(f"\n{start} -", max(end - 1, 0))
        if at >= 0 and script.find("<<", end, at) < 0:  # else it may belong to a text that the script writes
            number = script.count("\n", 0, at + 1) + 1
            texts.append(f"{source} line {number}: {start} is ignored after the first command; move it up")
    return texts


def _meant(line: str, dialect: str, prefix: str) -> str:
    """Return the directive that a comment nearly is; "" for any other comment."""
    word = line[1:].lstrip()
    kinds = {"nqs": ("#QSUB",)}.get(dialect, (prefix,) if dialect else (prefix, "#QSUB", "#SBATCH"))
    for kind in kinds:
        name, rest = kind[1:].upper(), word[len(kind) - 1 :].lstrip()
        if name and kind[0] == line[:1] == "#" and word.upper().startswith(name) and rest[:1] == "-":
            foreign = kind == "#SBATCH" and not dialect
            return f"{kind} {rest[:_SHOWN]}{' and submit with --dialect slurm' * foreign}"
    return ""


def read_script(file: str, what: str = "script", notes: "list[str] | None" = None) -> str:
    """Return a file's text as Latin-1 ("" or "-": standard input); ``what``: its kind, for errors; ``notes``
    gets a line for each conversion of foreign text. Raises Failure."""
    named = file if file not in ("", "-") else "standard input"
    try:
        if file in ("", "-"):
            data = _read(0)
        else:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = _read(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise Failure(f"{named}: cannot read the {what}: {error.strerror}") from None
    except ValueError:  # a NUL character, out of a list
        raise Failure(f"{file!r} is not a file name: cannot read the {what}") from None
    if len(data) > LONGEST_SCRIPT:
        raise Failure(f"{named}: a {what} may have at most 64 MiB")
    if b"\r" in data or data[:1] in (b"\xef", b"\xff", b"\xfe") or b"\0" in data[:4]:
        from nqspy.model.foreign_text import ForeignText, converted

        try:
            data, texts = converted(data)
        except ForeignText as error:
            raise Failure(f"{named}: cannot read the {what}: {error}") from None
        if notes is not None:
            notes += [f"{named}: {text}" for text in texts]
    return data.decode("latin-1")


def _read(descriptor: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size <= LONGEST_SCRIPT and (piece := os.read(descriptor, 1 << 20)):
        parts.append(piece)
        size += len(piece)
    return b"".join(parts)
