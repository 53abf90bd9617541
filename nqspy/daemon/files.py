"""``queues.d`` at start and by ``reload queues``: changed files, in name order, as one transaction."""

import re
from pathlib import Path
from typing import Any

from nqspy.daemon.inbox import Host
from nqspy.daemon.log import LOG
from nqspy.model.commands import ApplyFiles, Command, encode
from nqspy.model.errors import NqspyError
from nqspy.model.events import Alarm
from nqspy.model.queues import without_effect
from nqspy.qmgr.parser import ParseError, parse_text
from nqspy.system import queue_files

_NOT_APPLIED = "queues.d was not applied, the former settings stay: "


def read(path: Path, owner: int) -> list[tuple[str, str, str]]:
    """Return (name, content hash, text) of each ``*.qmgr`` file, in name order; only ``owner`` (uid of the
    home's owner) may write them. Raises NqspyError naming the file, also one that others may write."""
    queue_files.check_folder(path, owner)
    return [queue_files.read(file, owner) for file in queue_files.files_of(path)]


def parse(name: str, text: str) -> tuple[dict[str, Any], ...]:
    """Return a file's commands with their lines, in the form of ``commands.encode``. Raises ParseError."""
    return tuple(encode(each.command) | {"at": f", line {each.line}"} for each in parse_text(text, name)
                 if isinstance(each.command, Command))  # fmt: skip


class QueueFiles:
    """Applies the files of the site's configuration in ``folder``; in the engine's thread. ``trouble``: why
    they could not be applied the last time, "" if they could."""

    def __init__(self, host: Host, folder: Path) -> None:
        self._host, self.folder, self.trouble = host, folder, ""

    def current(self) -> list[tuple[str, str, str]]:
        """Return the files as they are now, as `read` does."""
        return read(self.folder, self._host.home.path.stat().st_uid)

    def apply_changed(self) -> None:
        """Apply the files that changed; after an error the old settings stay, and an alarm is raised. Raises
        NqspyError if there is no queue yet."""
        try:
            self._apply()
        except NqspyError as error:
            if not self._host.engine.site.settings.queues:
                raise NqspyError(f"queues.d: {error}") from None
            self.trouble = f"{_NOT_APPLIED}{error}"
            self._host.note(Alarm("queues.d", self.trouble))

    def reload(self) -> str:
        """Apply changed files; return what was applied. Raises NqspyError with file and line."""
        try:
            return self._apply()
        except NqspyError as error:
            self.trouble = _NOT_APPLIED + str(error).partition("\n")[0]
            raise

    def _apply(self) -> str:
        """Apply the files that changed; the others stay as they are, with what operators have set since."""
        known = self._host.engine.site.files
        files = self.current()
        changed = [name for name, digest, _ in files if known.get(name) != digest]
        if known == {name: digest for name, digest, _ in files}:
            self.trouble = ""
            return "no file has changed"
        try:
            # Files that did not change keep their place and bring no commands.
            parsed = tuple(
                (name, digest, parse(name, text) if name in changed else ()) for name, digest, text in files
            )
        except ParseError as error:
            raise NqspyError(f"{error}\n{error.caret()}") from None
        reply = self._host.ask(ApplyFiles(parsed), self._host.owner)
        if reply.refusal is not None:
            raise NqspyError(_with_caret(self.folder, str(reply.refusal)))
        text = f"applied {', '.join(changed) or 'nothing: files were removed'}"
        self.trouble = ""
        LOG.info("%s", text)
        for line in without_effect(self._host.engine.site.settings.queues.values()):
            LOG.warning("queues.d: %s", line)
        return text


def _with_caret(path: Path, text: str) -> str:
    """Return a refusal with file and line, that line's text, and a mark under its first word."""
    found = re.match(r"(?P<file>.+?\.qmgr), line (?P<line>\d+): ", text)
    if found is None:
        return text
    row = (path / found["file"]).read_text().splitlines()[int(found["line"]) - 1]
    return f"{text}\n{row}\n{' ' * (len(row) - len(row.lstrip()))}^"
