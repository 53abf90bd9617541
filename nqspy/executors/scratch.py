"""The scratch folder of an attempt, its owner's: script, ``TMPDIR`` and the files of hosts
(``PBS_NODEFILE``). It is removed after the delivery by processes of the owner, because the job may have put
links to anywhere there. It stays if something is mounted in it. Standard library only."""

import contextlib
import errno
import os
import stat
from typing import Any

from nqspy.executors import proc

_HOSTS, _SLOTS, _TEMPORARY, _MARK = "hosts", "slots", "tmp", "entered"
_LONGEST = 200
_READ = {
    "PBS_NODEFILE": _HOSTS, "HYDRA_HOST_FILE": _HOSTS,
    "OMPI_MCA_orte_default_hostfile": _SLOTS, "PRTE_MCA_prte_default_hostfile": _SLOTS,
}  # fmt: skip
HOSTFILES = tuple(_READ)
"""Variables in which launchers look for a file of hosts: PBS, MPICH's Hydra, Open MPI to 4.1 and from 5 on. A
host that stands there once, without its slots, counts for as many processes as it has cores."""


def name(order: dict[str, Any]) -> str:
    """Return a new path for the scratch folder, one that no other user can guess."""
    base = os.environ.get("TMPDIR", "") if os.geteuid() else ""
    if not (base.startswith("/") and os.path.isdir(base)):
        base = "/tmp"  # noqa: S108 - the folder is new, its name a secret until then
    id = str(order["id"]).replace("[", "-").replace("]", "")  # no pattern of shells
    return f"{base.rstrip('/')}/nqspy.{id}.{os.urandom(6).hex()}"


def script(order: dict[str, Any]) -> str:
    """Return the path of the attempt's copy of the script: ``$0``, and what error messages begin with."""
    name: str = order["script_name"].replace("/", "_").replace("\0", "_")
    while len(os.fsencode(name)) > _LONGEST:
        name = name[:-1]
    if name in ("", ".", "..", _HOSTS, _SLOTS, _TEMPORARY, _MARK):
        name = f"script.{name}"
    return f"{order['scratch']}/{name}"


def mark(order: dict[str, Any]) -> str:
    """Return the path of the file that a login shell makes when it comes to the script."""
    return f"{order['scratch']}/{_MARK}"


def make(order: dict[str, Any]) -> None:
    """Make the scratch folder with ``tmp``, files of hosts and the script as submitted. Raises OSError."""
    path = order["scratch"]
    umask = os.umask(0o077)
    try:
        os.mkdir(path)
        os.mkdir(f"{path}/{_TEMPORARY}")
        host, ranks = order["hosts"]
        _write(f"{path}/{_HOSTS}", f"{host}\n" * ranks)
        _write(f"{path}/{_SLOTS}", f"{host} slots={ranks}\n")
        _write(script(order), order["script"], "latin-1")
    finally:
        os.umask(umask)


def _write(path: str, text: str, coding: str = "utf-8") -> None:
    with proc.Descriptor(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)) as fd:
        proc.write(fd, text.encode(coding))


def variables(order: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return variables about the scratch folder: those that the request may replace, and the others."""
    path = order["scratch"]
    return {"TMPDIR": f"{path}/{_TEMPORARY}"}, {key: f"{path}/{file}" for key, file in _READ.items()}


def removed(path: str) -> bool:
    """Remove the scratch folder unless it has folders with files, or mounts; return True if it is gone."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return not _ours(path)
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            return True
        try:
            os.rmdir(path)
            return True
        except OSError as error:
            if error.errno == errno.EBUSY:  # it is a mount point, however little is in it
                return False
        for file in os.listdir(folder):
            (os.rmdir if file == _TEMPORARY else os.unlink)(file, dir_fd=folder)
        os.rmdir(path)
    except OSError:
        return not _ours(path)
    finally:
        os.close(folder)
    return True


def _ours(path: str) -> bool:
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return False


def _has_mounts(path: str) -> bool:
    """True if something is mounted on a folder or below it: another device, or a bind mount of the same."""
    point = os.fsencode(os.path.realpath(path))
    for plain in b"\\", b" ", b"\t", b"\n":  # as the kernel writes them
        point = point.replace(plain, b"\\%03o" % ord(plain))
    with open("/proc/self/mountinfo", "rb") as mounts:
        return any((line.split(b" ")[4] + b"/").startswith(point + b"/") for line in mounts)


def remove(path: str) -> None:
    """Remove the scratch folder with its contents, as far as possible. It stays if it has mounts."""
    if removed(path) or _has_mounts(path):
        return
    import shutil  # few jobs leave anything

    shutil.rmtree(path, onerror=lambda call, at, _: _once_more(call, at, path))


_CLEAR = 'rm -rf -- "$1" 2>/dev/null || { chmod -R u+rwx -- "$1"; rm -rf -- "$1"; }'
_LONG = 60.0


def clear(path: str, uid: int) -> None:
    """Remove a folder that its shepherd could not remove, in a process of its owner: whatever is in its place
    then is the owner's. Do nothing if it does not exist, has mounts, is no folder, or is another user's."""
    try:
        found = os.lstat(path)
    except OSError:
        return
    ours = os.path.basename(path).startswith("nqspy.") and stat.S_ISDIR(found.st_mode) and found.st_uid == uid
    if not ours or os.geteuid() not in (0, uid) or _has_mounts(path):
        return
    import subprocess  # shepherds do without

    who: dict[str, Any] = {"user": uid, "group": found.st_gid, "extra_groups": []} if not os.geteuid() else {}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            ["/bin/sh", "-c", _CLEAR, "sh", path],
            check=False, timeout=_LONG, cwd="/", env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who,
        )  # fmt: skip


def _once_more(call: Any, path: str, top: str) -> None:
    """Give the owner rights to a folder without any, and call ``call`` again; never above ``top``."""
    with contextlib.suppress(OSError):
        for folder in (os.path.dirname(path), path) if path != top else (path,):
            if stat.S_ISDIR(os.lstat(folder).st_mode):
                os.chmod(folder, 0o700)
        if call in (os.unlink, os.rmdir):
            call(path)
        elif call is not os.lstat:
            import shutil

            shutil.rmtree(path, ignore_errors=True)
