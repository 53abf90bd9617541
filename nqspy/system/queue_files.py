"""Reading of the files ``*.qmgr`` of a folder such as ``queues.d``."""

from hashlib import sha256
from pathlib import Path

from nqspy.model.errors import NqspyError
from nqspy.model.foreign_text import ForeignText, converted
from nqspy.system.private_files import Unsafe, read_own, writable_by_others


def check_folder(folder: Path, owner: int) -> None:
    """Raise NqspyError if it is no folder, or if others than ``owner`` (uid) and root may write it."""
    if not folder.is_dir():
        raise NqspyError(f"{folder} is not a folder")
    if (why := writable_by_others(folder.stat(), owner)) is not None:
        raise NqspyError(f"{folder.name}: the folder {why}; nothing of it was read")


def files_of(folder: Path) -> list[Path]:
    """Return the files ``*.qmgr`` of a folder, in name order."""
    return sorted(folder.glob("*.qmgr"))


def read(file: Path, owner: int | None) -> tuple[str, str, str]:
    """Return name, content hash and text of a file that only ``owner`` (uid; None: whoever owns it) and root
    may write. Raises NqspyError naming the file."""
    name = file.name
    if not name.isprintable():
        raise NqspyError(f"{name!a} was not read: write its name with printable characters")
    try:
        data = read_own(file, owner)
        return name, sha256(data).hexdigest()[:32], converted(data)[0].decode()
    except Unsafe as error:
        raise NqspyError(f"{name} was not read: it {error}") from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise NqspyError(f"{name}, line {line}: the file is not UTF-8 text") from None
    except ForeignText as error:
        raise NqspyError(f"{name} cannot be read: {error}") from None
    except OSError as error:
        raise NqspyError(f"{name} cannot be read: {error.strerror}") from None
