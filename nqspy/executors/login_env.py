"""The environment of a login shell, stored for each user and shell until it is old. Standard library only."""

import binascii
import contextlib
import json
import os
import time

from nqspy.executors import proc
from nqspy.executors.person import Person

BOURNE = ("sh", "bash", "dash", "ash", "ksh", "ksh93", "mksh", "zsh")
CSH = ("csh", "tcsh")
_FAMILIES = {**dict.fromkeys(BOURNE, "sh"), **dict.fromkeys(CSH, "csh"), "fish": "fish"}
FOLDER = "logins"
LARGEST = 1 << 20
"""Most bytes of an environment."""
CHANGED = 2.0
"""Real seconds that a job waits for a new login; after that it uses the former one."""
NO_ROOM = "there is no room in /tmp"
"""Reason of a failed login that the next attempt tries again, without a fault of the job."""
RETRY = 60.0
"""Real seconds after which a failed login is tried again."""
UMASK = 0o076
"""Umask set before a login shell starts. No profile sets this one: if it is still there, none has set any."""
_ENV = next((path for path in ("/usr/bin/env", "/bin/env") if os.path.exists(path)), "env")
_PRINT = {
    "sh": f'umask >|"$1"; exec {_ENV} -0 >>"$1"',
    "csh": f"umask >! $argv[1]:q; exec {_ENV} -0 >> $argv[1]:q",
    "fish": f"umask > $argv[1]; exec {_ENV} -0 >> $argv[1]",
}
_ENTER = {
    "sh": ': >|"$1"; shift; exec "$@"',
    "csh": "echo -n >! $argv[1]:q; shift; exec $argv:q",
    "fish": "echo -n > $argv[1]; set -e argv[1]; exec $argv",
}
_OF_THE_SHELL = (b"_", b"SHLVL", b"PWD", b"OLDPWD", b"A__z")
_ANYWHERE = ("/etc/environment", "/etc/login.defs")
_PROFILES = {
    "sh": ("/etc/profile", "/etc/bash.bashrc", "/etc/bashrc", "~/.profile", "~/.bash_profile",
           "~/.bash_login", "~/.bashrc", "~/.kshrc", "~/.mkshrc"),
    "zsh": tuple(f"{place}{name}" for name in ("zshenv", "zprofile", "zshrc", "zlogin")
                 for place in ("/etc/", "/etc/zsh/", "~/.")),
    "csh": ("/etc/csh.cshrc", "/etc/csh.login", "/etc/.login", "~/.cshrc", "~/.tcshrc", "~/.login"),
    "fish": ("/etc/fish/config.fish", "~/.config/fish/config.fish"),
}  # fmt: skip
_FOLDERS = {"fish": ("/etc/fish/conf.d", "~/.config/fish/conf.d")}


def clock() -> float:
    """Return the seconds since the epoch: stored logins outlive processes."""
    return time.time()  # noqa: TID251 - compared with a time in a file


def family(shell: str) -> str:
    """Return the family of a shell (sh, csh ...); "" for a program that accepts no commands."""
    return _FAMILIES.get(os.path.basename(shell), "")


def print_command(shell: str, path: str) -> list[str]:
    """Return the arguments for a login shell to write its umask and environment into a file."""
    return _arguments(_PRINT[family(shell)], shell, [path])


def enter_command(shell: str, mark: str, words: list[str]) -> list[str]:
    """Return the arguments for a login shell to make the file ``mark`` and become the program ``words``."""
    return _arguments(_ENTER[family(shell)], shell, [mark, *words])


def read_command(mark: str, script: str, args: list[str]) -> list[str]:
    """Return the arguments for a Bourne shell to make the file ``mark``, then read a script itself."""
    return ["-c", ': >|"$1"; shift; . "$0"', script, mark, *args]


def _arguments(command: str, shell: str, words: list[str]) -> list[str]:
    return ["-c", command, *(["sh"] if family(shell) == "sh" else []), *words]


def profiles(shell: str, home: str) -> str:
    """Return a text that changes with any known file that a login of this shell may read."""
    kind = "zsh" if os.path.basename(shell) == "zsh" else family(shell)
    paths, found = list[str](), []
    for folder in _FOLDERS.get(kind, ("/etc/profile.d",)):
        folder = folder.replace("~", home, 1)
        with contextlib.suppress(OSError):
            paths += [f"{folder}/{name}" for name in sorted(os.listdir(folder))]
    paths += [path.replace("~", home, 1) for path in (*_PROFILES.get(kind, ()), *_ANYWHERE, shell)]
    for path in paths:
        try:
            file = os.stat(path)
            found.append(f"{file.st_mtime_ns}.{file.st_ino}.{file.st_size}")
        except OSError:
            found.append("-")
    return " ".join(found)


class StoredLogin:
    """A login's environment and umask, or why it ``failed``; ``at``: its time in seconds since the epoch;
    ``seen``: `profiles` at that time."""

    __slots__ = ("at", "failed", "seen", "umask", "variables")

    def __init__(
        self, seen: str, *, at: float = 0.0, failed: str = "", umask: int | None = None, data: bytes = b""
    ) -> None:
        self.seen, self.at, self.failed, self.umask = seen, at, failed, umask
        pairs = (item.partition(b"=") for item in data.split(b"\0"))
        self.variables = {name: value for name, sign, value in pairs if name and sign}

    def age(self, most: float) -> str:
        """Return "fresh" or, after half of ``most`` seconds, "renew", and after ``most`` "old". A failed
        login is old after 60 s at the latest."""
        most = min(most, RETRY) if self.failed else most
        age = clock() - self.at
        if not 0 <= age < most:
            return "old"
        return "fresh" if age < most / 2 else "renew"

    def encoded(self) -> bytes:
        """Return the login as bytes for `decode`."""
        head = {"seen": self.seen, "at": self.at, "failed": self.failed, "umask": self.umask}
        variables = b"\0".join(b"%b=%b" % each for each in self.variables.items())
        return json.dumps(head).encode() + b"\n" + variables


def decode(data: bytes) -> StoredLogin | None:
    """Return the login that bytes hold; None if they hold none."""
    head, _, rest = data.partition(b"\n")
    try:
        found = json.loads(head)
        umask = None if found["umask"] is None else int(found["umask"])
        return StoredLogin(
            str(found["seen"]), at=float(found["at"]), failed=str(found["failed"]), umask=umask, data=rest
        )
    except (ValueError, KeyError, TypeError):
        return None


def printed(seen: str, data: bytes) -> StoredLogin | None:
    """Return the login that a shell wrote by `print_command`; None if incomplete. ``seen``: `profiles`."""
    umask, _, rest = data.partition(b"\n")
    try:
        mask = int(umask, 8) & 0o777
    except ValueError:
        return None
    if not rest.endswith(b"\0"):
        return None
    found = StoredLogin(seen, umask=None if mask == UMASK else mask, data=rest)
    for name in _OF_THE_SHELL:
        found.variables.pop(name, None)
    return found


def path_of(spool: str, who: Person, shell: str) -> str:
    """Return the path of the file in ``spool`` for the `StoredLogin` of a user with a shell."""
    words = "\0".join((str(who.uid), who.name, shell, who.home))
    return f"{spool}/{FOLDER}/{who.uid}.{binascii.crc32(os.fsencode(words)):08x}"


def read(path: str) -> StoredLogin | None:
    """Return the login stored at a path; None if none can be read."""
    try:
        return decode(proc.contents(path))
    except OSError:
        return None


def write(path: str, stored: StoredLogin) -> None:
    """Store the login at a path, in place of an earlier one. Raises OSError."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    proc.replace(path, stored.encoded())
