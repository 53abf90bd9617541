"""``qcat``: shows the output of a request so far, and what is added while it runs."""

import os
import stat

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, Program


def body(words: list[str]) -> int:
    """Run ``qcat``; return its exit status."""
    given, _, ids = fast.read_options("qcat", words)
    if len(ids) != 1:
        raise Failure(f"name exactly one request; {fast.usage('qcat')}", 2)
    if "stdout" in given and "stderr" in given:
        raise Failure("conflicting options: -o and -e", 2)
    stream, follow = ("stderr" if "stderr" in given else "stdout"), "follow" in given
    attempt = given.get("attempt", "")
    if "attempt" in given and not (attempt.isascii() and attempt.isdecimal() and 0 < int(attempt) < 1 << 31):
        raise Failure(f"--attempt: {attempt!r} is not a whole number from 1 upward", 2)
    question: dict[str, object] = {"cmd": "cat", "text": "cat", "request": ids[0], "stream": stream,
                                   "follow": follow}  # fmt: skip
    if attempt:
        question["attempt"] = int(attempt)
    daemon, offset = DaemonConnection(given.get("home")), 0
    while True:  # piece by piece; following, the daemon holds its answer until there is more
        question["offset"] = offset
        answer = daemon.call(question, repeat=True, patient=follow)
        fast.write(1, answer.out.encode("latin-1", "replace"))
        if answer.err:
            fast.complain("qcat", answer.err)
        begun, offset = offset, answer.number("next", offset)
        done = '"done":true' in answer.rest
        if done:
            return answer.status or _rest(ids[0], answer, offset, "attempt" in question)
        if answer.status or (offset == begun and not follow):
            return answer.status


def _rest(id: str, answer: fast.TextAnswer, offset: int, one_attempt: bool) -> int:
    """Show the rest of delivered output from its file, with the caller's own rights; return the exit status.
    ``offset``: bytes already shown; ``one_attempt``: only the part of the answer's attempt."""
    path = answer.text("path")
    if not path:
        return 0
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Failure(f"Job has finished {id}; its output {path}: {error.strerror}", 35) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise Failure(f"its output went to {path}, which is not a file")
    begin, end = 0, None
    mark = answer.text("mark")
    if mark and (offset or one_attempt):
        attempt, line_of, at = answer.number("attempt", 0), mark.encode(), 0
        head, _, tail = line_of.partition(b" %d " % attempt)
        with open(file, "rb", closefd=False) as lines:
            for line in lines:  # from below the attempt's mark, or from the beginning, to the next mark
                at += len(line)
                text = line.rstrip(b"\n")
                if text == line_of:
                    begin, end = at, None
                elif end is None and text.startswith(head) and text.endswith(tail):
                    end = at - len(line)
        if (begin, end) == (0, None) and answer.number("later", 0) and os.fstat(file).st_size:
            raise Failure(f"{path} has only the output of a later attempt of {id}", 35)
    os.lseek(file, begin + offset, os.SEEK_SET)
    remaining = (1 << 62) if end is None else end - begin - offset
    while remaining > 0 and (piece := os.read(file, min(remaining, 1 << 16))):
        fast.write(1, piece)
        remaining -= len(piece)
    return 0


main = Program(body, "qcat")
