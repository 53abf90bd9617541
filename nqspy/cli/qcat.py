"""``qcat``: shows the output of a request so far, and what is added while it runs."""

from _json import scanstring

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
        if done and follow:
            return answer.status or _rest(answer, offset)
        if answer.status or done or (offset == begun and not follow):
            return answer.status


def _rest(answer: fast.TextAnswer, offset: int) -> int:
    """What was written between the last answer and the end lies where the output was delivered; it is read
    with the rights of whoever asked."""
    at = answer.rest.find('"path":"')
    if at < 0:
        return 0
    with open(scanstring(answer.rest, at + 8, True)[0], "rb") as file:
        file.seek(offset)
        while piece := file.read(1 << 16):
            fast.write(1, piece)
    return 0


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qcat", body)
