"""``queues.d`` at start: files that changed since they were last applied, in name order, as one
transaction."""

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nqspy.daemon.log import LOG
from nqspy.model.commands import ApplyFiles, Command, encode
from nqspy.model.errors import NqspyError
from nqspy.model.events import Alarm
from nqspy.qmgr.parser import ParseError, parse_text

if TYPE_CHECKING:
    from nqspy.daemon.main import Daemon


def folder(daemon: "Daemon") -> Path:
    """Where the site's configuration lies."""
    return Path(daemon.options.queues) if daemon.options.queues else daemon.home.path / "queues.d"


def read(path: Path) -> list[tuple[str, str, str]]:
    """(name, content hash, text) of each ``*.qmgr`` file, in name order."""
    found = []
    for file in sorted(path.glob("*.qmgr")):
        text = file.read_text()
        found.append((file.name, sha256(text.encode()).hexdigest()[:32], text))
    return found


def parse(name: str, text: str) -> tuple[dict[str, Any], ...]:
    """A file's commands in ``commands.encode`` form with their line. Raises ParseError."""
    return tuple(encode(each.command) | {"at": f", line {each.line}"} for each in parse_text(text, name)
                 if isinstance(each.command, Command))  # fmt: skip


def apply_changed(daemon: "Daemon") -> None:
    """Applies all files when any changed. An error leaves the old settings in force: an alarm; with no
    settings at all: raised."""
    files = read(folder(daemon))
    if dict(daemon.engine.site.files) == {name: digest for name, digest, _ in files}:
        return
    try:
        parsed = tuple((name, digest, parse(name, text)) for name, digest, text in files)
    except ParseError as error:
        _complain(daemon, f"{error}\n{error.caret()}")
        return
    reply = daemon.ask(ApplyFiles(parsed), daemon.owner)
    if reply.refusal is not None:
        _complain(daemon, str(reply.refusal))
        return
    LOG.info("applied %s", ", ".join(name for name, _, _ in files))


def _complain(daemon: "Daemon", text: str) -> None:
    if not daemon.engine.site.settings.queues:
        raise NqspyError(f"queues.d: {text}")
    LOG.error("queues.d was not applied, the former settings stay: %s", text)
    daemon.engine.note(
        Alarm("queues.d", f"not applied, the former settings stay: {text}"), daemon.clock.now()
    )
