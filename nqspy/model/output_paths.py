"""Output paths of a request (interfaces.md 11): default, named, with gaps filled; shared by requests."""

import re
from collections.abc import Iterator

from nqspy.model import indices
from nqspy.model.ids import Seq, full_id, index_of, is_array, member, number_of
from nqspy.model.requests import Request, Spec

_GAP = re.compile(
    r"%(?P<letter>[jsxuqar%])|(?P<j>\$PBS_JOBID|\$\{PBS_JOBID\})"
    r"|(?P<index>\$PBS_ARRAY_INDEX|\$\{PBS_ARRAY_INDEX\}|\^array_index\^)"
)


def fill(path: str, seq: Seq, spec: Spec, queue: str, host: str, attempt: int = 1) -> str:
    """Return a path with its gaps filled: ``%j`` (or ``$PBS_JOBID``) the identifier, ``%s`` its number,
    ``%x`` the name, ``%u`` the owner, ``%q`` the queue, ``%r`` the attempt, ``%a`` array index or attempt,
    ``%%`` a percent sign. ``$PBS_ARRAY_INDEX``: the index or empty (of an array ``^array_index^``)."""
    if "%" not in path and "$" not in path and "^" not in path:
        return path
    letters = {
        "j": full_id(seq, host), "s": str(number_of(seq)), "x": spec.name, "u": spec.owner, "q": queue,
        "a": _index(seq) or str(attempt), "r": str(attempt), "index": _index(seq), "%": "%",
    }  # fmt: skip
    return _GAP.sub(lambda gap: letters[gap["letter"] or str(gap.lastgroup)], path)


def attempt_mark(id: str, attempt: int) -> str:
    """Return the line above the output of a further attempt that is appended to a former one."""
    return f"---- nqspy: attempt {attempt} of {id} ----"


def suffix(seq: Seq) -> str:
    """Return the end of a default name: ``17``, of an index ``17.3``, of an array ``17.^array_index^``."""
    index = _index(seq)
    return f"{number_of(seq)}.{index}" if index else str(number_of(seq))


def _index(seq: Seq) -> str:
    index = index_of(seq)
    return "^array_index^" * is_array(seq) if index is None else str(index)


def default_name(seq: Seq, spec: Spec, letter: str) -> str:
    """Return the file name of an output without a path: ``NAME.o17``, ``NAME.e17``, ``NAME.l17`` (log)."""
    return f"{spec.name.replace('/', '_')}.{letter}{suffix(seq)}"


def default_path(seq: Seq, spec: Spec, letter: str, keep: bool) -> str:
    """Return the default path of an output (o, e, l): in the folder of submission, or (``keep``) at home."""
    return f"{f'~{spec.owner}' if keep else spec.workdir}/{default_name(seq, spec, letter)}"


def shown_paths(
    request: Request, host: str, stdout: str | None = None, stderr: str | None = None
) -> tuple[str, str]:
    """Return the paths of stdout and stderr of the latest attempt: ``stdout`` and ``stderr`` if given, else
    the owner's with gaps filled, else the default ones."""
    seq, spec, attempt = request.seq, request.spec, max(1, request.attempts)
    wish = spec.output
    named = {option: fill(path, seq, spec, request.queue, host, attempt) for option, path in streams(spec)}
    output = stdout or named.get("-o") or default_path(seq, spec, "o", wish.keep_stdout)
    joined = output if wish.join else None
    error = stderr or joined or named.get("-e") or default_path(seq, spec, "e", wish.keep_stderr)
    return output, error


def in_folder(seq: Seq, spec: Spec, host: str, letter: str) -> str:
    """Return the name of an output file in a folder that its owner named: of PBS ``17.ymp.OU`` or ``.ER``."""
    if spec.dialect != "pbs":
        return default_name(seq, spec, letter)
    return f"{full_id(seq, host)}.{'OU' if letter == 'o' else 'ER'}"


def streams(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield (option, path as written) for each output with a path named by the owner: ``("-o", "out/%j")``.
    Outputs that stay in the home, and a joined stderr, are left out."""
    output = spec.output
    if output.stdout is not None and not output.keep_stdout:
        yield "-o", output.stdout
    if output.stderr is not None and not output.keep_stderr and not output.join:
        yield "-e", output.stderr


def files(seq: Seq, spec: Spec, queue: str, host: str = "") -> list[str]:
    """Return the files that the owner named, each by its `plain` path and once. Folders and devices are left
    out, since several requests may write there."""
    if (spec.output.stdout is None and spec.output.stderr is None) or is_array(seq):
        return []
    named = (plain(fill(path, seq, spec, queue, host)) for _, path in streams(spec))
    return list(dict.fromkeys(p for p in named if not p.endswith("/") and not p.startswith("/dev/")))


def of_all_indices(seq: Seq, spec: Spec, queue: str) -> set[str]:
    """Return the named files that every index of an array writes (no gap for the index in their paths).
    ``seq``: of the array or of one of its indices."""
    if spec.array is None or indices.count(spec.array.indices) < 2:
        return set()
    one = index_of(seq) or 0
    some = (member(number_of(seq), index) for index in (one, one + 1))
    return set.intersection(*({*files(each, spec, queue)} for each in some))


def plain(path: str) -> str:
    """Return a path without ``//``, ``.`` and ``..``, so that equal files have equal paths; one that can only
    be a folder ends with a slash. Symbolic links are not followed."""
    if "//" not in path and "/." not in path and path[:1] != ".":
        return path
    names = path.split("/")
    folder = names[-1] in ("", ".", "..")
    parts: list[str] = []
    for name in names:
        if name == "..":
            del parts[-1:]
        elif name not in ("", "."):
            parts.append(name)
    return "/" * path.startswith("/") + "/".join(parts) + "/" * (folder and bool(parts))
