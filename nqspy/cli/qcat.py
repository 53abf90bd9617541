"""``qcat``: shows the output of a request so far, and what is added while it runs."""

import os
import stat

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, HelpWanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, _, ids = fast.read_options("qcat", words)
    if "help" in given:
        raise HelpWanted
    if len(ids) != 1:
        raise Failure(f"exactly one request is needed; {fast.usage('qcat')}", 2)
    if "stdout" in given and "stderr" in given:
        raise Failure("-o and -e: choose one stream")
    stream, follow = ("stderr" if "stderr" in given else "stdout"), "follow" in given
    return _copy(DaemonConnection(given.get("home")), ids[0], stream, follow)


def _copy(daemon: DaemonConnection, id: str, stream: str, follow: bool) -> int:
    """Copies the stream piece by piece; following, the daemon holds its answer until there is more."""
    offset = 0
    while True:
        question = {
            "cmd": "cat",
            "text": "cat",
            "request": id,
            "stream": stream,
            "offset": offset,
            "follow": follow,
        }
        answer = daemon.call(question, repeat=True, patient=follow)
        fast.write(1, answer.out.encode("latin-1", "replace"))
        if answer.err:
            fast.complain("qcat", answer.err)
        begun, offset = offset, answer.number("next", offset)
        done = '"done":true' in answer.rest
        if done:
            return answer.status or _rest(id, answer, offset)
        if answer.status or (offset == begun and not follow):
            return answer.status


def _rest(id: str, answer: fast.TextAnswer, offset: int) -> int:
    """What was not read in the spool lies where the output was delivered; it is read with the rights of
    whoever asked, and only where it is a file."""
    path = answer.text("path")
    if not path:
        return 0
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Failure(f"Job has finished {id}; its output {path}: {error.strerror}", 35) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise Failure(f"its output went to {path}, which is no file")
    os.lseek(file, offset, os.SEEK_SET)
    while piece := os.read(file, 1 << 16):
        fast.write(1, piece)
    return 0


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qcat", body)
