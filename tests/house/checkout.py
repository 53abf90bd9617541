"""What the rules of the house look at: the checkout's files and their syntax trees."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "nqspy"
IGNORED = {"build", "dist", "__pycache__"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tracked() -> tuple[Path, ...]:
    """Files that belong to the repository: what git tracks or would track; without git all but caches."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
    )
    if listed.returncode == 0:
        names = listed.stdout.decode().split("\0")
        return tuple(path for name in names if name and (path := ROOT / name).is_file())
    return tuple(path for path in ROOT.rglob("*") if path.is_file() and not _is_cache(path.relative_to(ROOT)))


def _is_cache(path: Path) -> bool:
    folders = path.parts[:-1]
    return any(name in IGNORED or (name.startswith(".") and name != ".ci") for name in folders)


def sources(*folders: str) -> list[Path]:
    """Python files below these folders of the checkout."""
    tops = [ROOT / folder for folder in folders]
    return sorted(p for p in tracked() if p.suffix == ".py" and any(p.is_relative_to(top) for top in tops))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(), str(path))


@cache
def functions(path: Path) -> tuple[Function, ...]:
    """All functions of a file, inner ones too."""
    left: list[ast.AST] = [parsed(path)]
    found: list[Function] = []
    for node in left:
        if isinstance(node, Function):
            found.append(node)
        left += [each for each in ast.iter_child_nodes(node) if isinstance(each, _WITH_STATEMENTS)]
    return tuple(found)


_WITH_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def place(path: Path, node: ast.AST | None = None) -> str:
    """``nqspy/core/draft.py:17``, as messages name places."""
    line = f":{node.lineno}" if isinstance(node, ast.expr | ast.stmt) else ""
    return f"{path.relative_to(ROOT)}{line}"
