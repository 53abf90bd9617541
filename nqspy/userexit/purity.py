"""What can be told of an exit's file by reading it: whether it may force, and whether its answers can rest on
nothing but what it was shown.

Pure is a file that imports only modules without clocks, disks, chance or memory, opens nothing, writes to no
global, and holds nothing at its top level that can change. All others are fine too, they are merely asked
again at each pass.
"""

import ast
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from nqspy.userexit.settings import Setting

_QUIET = """
__future__ bisect collections dataclasses decimal enum fnmatch fractions functools heapq itertools math
nqspy.userexit operator re statistics string textwrap typing
"""
QUIET = frozenset(_QUIET.split())
"""Modules whose functions give the same for the same."""

_MEMORIES = frozenset(("cache", "lru_cache", "cached_property", "singledispatch"))
_LOOSE = "open input exec eval compile globals locals vars setattr delattr id hash __import__"
_LOUD = _MEMORIES | frozenset(_LOOSE.split(" "))
_PLAIN = (str, bytes, int, float, complex, bool, type(None), frozenset)
_STILL = (*_PLAIN, FunctionType, ModuleType, type, Setting)


def imports_force(nodes: Iterable[ast.AST]) -> bool:
    """Whether the file (all its nodes) imports ``force``, or everything, or the package as a whole."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "nqspy.userexit":
            if any(alias.name in ("force", "*") for alias in node.names):
                return True
        elif (isinstance(node, ast.Import) and any(a.name == "nqspy.userexit" for a in node.names)) or (
            isinstance(node, ast.ImportFrom) and node.module == "nqspy"
        ):
            return True
    return False


def is_pure(nodes: Iterable[ast.AST], module: Mapping[str, Any]) -> bool:
    """Whether what the functions of a file (all its nodes) answer can rest on nothing but their arguments and
    its settings."""
    return not any(type(node) in _TELLING and _is_loud(node) for node in nodes) and all(
        _is_still(value) for name, value in module.items() if not name.startswith("__") and name != "print"
    )


_TELLING = frozenset(
    (
        ast.Import,
        ast.ImportFrom,
        ast.Global,
        ast.Nonlocal,
        ast.ClassDef,
        ast.Name,
        ast.Attribute,
        ast.arguments,
    )
)
"""Kinds of nodes that `_is_loud` has something to say of."""


def _is_loud(node: ast.AST) -> bool:
    """Whether this may remember something, or look elsewhere."""
    if isinstance(node, ast.Name):
        return node.id in _LOUD
    if isinstance(node, ast.Attribute):
        return (
            isinstance(node.ctx, (ast.Store, ast.Del)) or node.attr.startswith("__") or node.attr in _MEMORIES
        )
    if isinstance(node, ast.arguments):
        defaults = [*node.defaults, *(each for each in node.kw_defaults if each is not None)]
        return not all(isinstance(each, ast.Constant) for each in defaults)
    if isinstance(node, ast.Import):
        return not all(alias.name in QUIET for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "") not in QUIET
    return True


def _is_still(value: Any) -> bool:
    """Whether a value at the top level can never change."""
    if isinstance(value, tuple):
        return all(map(_is_still, value))
    if isinstance(value, FunctionType):
        return not value.__closure__ and not value.__dict__.keys() - {"nqspy_impl", "nqspy_forces"}
    return isinstance(value, _STILL) or type(value).__module__ in ("typing", "types", "re")
