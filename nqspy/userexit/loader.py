"""Loading of exit files, each anew, and their verification: one file is one exit module."""

import ast
import difflib
import functools
import inspect
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pluggy
from msgspec import Struct

from nqspy.model.errors import BadValue, NqspyError
from nqspy.model.machine import ExitSettings
from nqspy.system.private_files import Unsafe, read_own, writable_by_others
from nqspy.userexit import specs
from nqspy.userexit.call_stats import UNWATCHED, CallWatch
from nqspy.userexit.errors import describe
from nqspy.userexit.guard import Guard, is_ctrl_c
from nqspy.userexit.settings import Setting, read

IMPORT_BUDGET = 5_000
"""Budget of CPU time (ms) for the top level of a file when it is loaded."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class LoadError(NqspyError):
    """A file cannot be an exit; one line with file, line and error."""

    def __init__(self, path: Path, line: int | None, text: str) -> None:
        file = str(Path(*path.parts[-2:]))
        where = (file if file.isprintable() else ascii(file)) + (f", line {line}" if line else "")
        super().__init__(f"{where}: {text}")


@dataclass(slots=True)
class Module:
    """An exit file that was loaded and verified. ``hooks``: by name, the function and the arguments that it
    takes; ``doc``: first line of its docstring; ``forces``: its jobselect may answer force()."""

    name: str
    path: Path
    doc: str
    hooks: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = field(default_factory=dict)
    settings: dict[str, Setting[Any]] = field(default_factory=dict)
    forces: bool = False
    text: bytes = b""


class Source(Struct, frozen=True):
    """A file of the folder of exits that was read, but not run."""

    path: Path
    text: bytes


def read_folder(folder: Path) -> tuple[list[Source], list[str]]:
    """Return the files of a folder in name order, and one line for each that may not be an exit; none is run.
    Dot files and names that begin with ``_`` are skipped. A file that others than the owner of the home (the
    folder's parent) and root may write is no exit."""
    sources, problems = [], []
    if not folder.is_dir():
        return [], []
    owner = os.stat(folder.resolve().parent).st_uid
    if (why := writable_by_others(os.stat(folder), owner)) is not None:
        return [], [f"{folder.name}: the folder {why}; no exit was loaded"]
    for path in sorted(folder.glob("*.py")):
        if path.name[0] not in "._":
            try:
                sources.append(Source(path, _read(path, owner)))
            except LoadError as error:
                problems.append(str(error))
    return sources, problems


def load_sources(
    sources: Iterable[Source], printed: Callable[[str, str], None], watch: CallWatch = UNWATCHED
) -> tuple[list[Module], list[str]]:
    """Return the exits in files that were read, and one line for each file that is none. ``printed(exit,
    text)``: gets what exits print; ``watch``: is told which exit's code runs."""
    modules, problems = [], []
    for source in sources:
        watch.enter(source.path.stem, "load", None)
        try:
            modules.append(_load(source, printed))
        except LoadError as error:
            problems.append(str(error))
        finally:
            watch.leave()
    return modules, problems


def read_file(path: Path) -> Source:
    """Read a file that may become an exit, with any owner, without running it. Raises LoadError."""
    return Source(path, _read(path, None))


def load_source(source: Source) -> tuple[Module | None, list[str]]:
    """Return the module of such a file, after running it; else None, and what is wrong, one line each."""
    try:
        return _load(source, lambda _exit, _text: None), []
    except LoadError as error:
        return None, [str(error)]


def _load(source: Source, printed: Callable[[str, str], None]) -> Module:
    path = source.path
    if not _NAME.fullmatch(path.stem):
        raise LoadError(path, None, "write an exit's name with letters, digits, - and _ only, a letter first")
    # Tracebacks show the loaded lines, even if the file cannot be read or has changed since.
    text = source.text.decode("utf-8", "replace")
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    parsed = _parsed(path, source.text)
    # Never a name that something else could import: an exit may be called as a module of Python.
    module = ModuleType(f"nqspy_exit_{path.stem}", parsed.doc)
    module.__file__ = str(path)
    module.__dict__["print"] = functools.partial(_print, path.stem, printed)
    guard = Guard()
    sys.modules[module.__name__] = module  # while it runs only: dataclasses look their module up there
    try:
        with guard:
            guard.call(exec, (parsed.code, module.__dict__), IMPORT_BUDGET)
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        raise LoadError(path, lines[-1] if lines else None, describe(error)) from None
    finally:
        sys.modules.pop(module.__name__, None)
    found = _verified(path, parsed.nodes, module)
    found.text = source.text
    return found


def _read(path: Path, owner: int | None) -> bytes:
    try:
        return read_own(path, owner)
    except Unsafe as error:
        raise LoadError(path, None, f"not loaded: it {error}") from None
    except OSError as error:
        raise LoadError(path, None, f"it cannot be read: {error.strerror}") from None


class _Parsed(NamedTuple):
    """Contents of a file before it is run: all nodes, docstring, code."""

    nodes: Sequence[ast.AST]
    doc: str | None
    code: CodeType


@functools.lru_cache(16)  # many simulated sites have the same exits
def _parsed(path: Path, source: bytes) -> _Parsed:
    try:
        tree = ast.parse(source, str(path))
        code = compile(tree, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise LoadError(path, error.lineno, f"syntax error: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise LoadError(path, None, f"it is not Python: {error}") from None
    nodes, seen = tuple(ast.walk(tree)), dict[str, int]()
    for node in nodes:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for name in names:
            if name.split(".")[0] == "nqspy" and name != "nqspy.userexit":
                text = f"it imports {name}; import from nqspy.userexit only"
                raise LoadError(path, node.lineno, text)
    for each in tree.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if each.name in seen:
                raise LoadError(path, each.lineno, f"{each.name} is defined twice (line {seen[each.name]})")
            seen[each.name] = each.lineno
    return _Parsed(nodes, ast.get_docstring(tree), code)


def _print(name: str, printed: Callable[[str, str], None], *words: Any, sep: str | None = None,
           file: Any = None, **_: Any) -> None:  # fmt: skip
    """Print function of an exit: gives the text to ``printed`` (for the log) instead of the daemon's output,
    or writes it to ``file``."""
    text = (" " if sep is None else sep).join(map(str, words))
    if file is None:
        printed(name, text)
    else:
        file.write(text + "\n")


def _verified(path: Path, nodes: Sequence[ast.AST], module: ModuleType) -> Module:
    found = Module(path.stem, path, (module.__doc__ or "").strip().split("\n")[0])
    for name, value in list(module.__dict__.items()):
        if isinstance(value, Setting):
            if value.name in found.settings:
                raise LoadError(path, value.line, f"setting {value.name} is declared twice")
            found.settings[value.name] = value
        elif callable(value) and hasattr(value, specs.MARK):
            if (wrong := _wrong(name, value)) is not None:
                raise LoadError(path, _line_of(nodes, getattr(value, "__name__", name)), wrong)
        elif name in specs.ARGUMENTS and isinstance(value, FunctionType):
            raise LoadError(path, _line_of(nodes, name), f"{name} has no mark; write @userexit above it")
    _register(path, module, found)
    if not found.hooks:
        raise LoadError(path, None, "it has no exit; mark a function with @userexit")
    select = found.hooks["jobselect"][0] if "jobselect" in found.hooks else None
    forces = getattr(select, specs.FORCES, None)
    found.forces = _imports_force(nodes) if forces is None else forces
    return found


def _imports_force(nodes: Iterable[ast.AST]) -> bool:
    """True if the file (all its nodes) imports ``force``, or everything, or the package as a whole."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            of_exits = node.module == "nqspy.userexit"
            if node.module == "nqspy" or (of_exits and any(a.name in ("force", "*") for a in node.names)):
                return True
        elif isinstance(node, ast.Import) and any(alias.name == "nqspy.userexit" for alias in node.names):
            return True
    return False


def _line_of(nodes: Iterable[ast.AST], name: str) -> int | None:
    functions = (n for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return {each.name: each.lineno for each in functions}.get(name)


def _register(path: Path, module: ModuleType, found: Module) -> None:
    """Verify the functions of a module by pluggy, and store the arguments that each takes."""
    registry = specs.REGISTRY
    try:
        registry.register(module, path.stem)
        registry.check_pending()
        for caller in registry.get_hookcallers(module) or ():
            for implementation in caller.get_hookimpls():
                found.hooks[caller.name] = (implementation.function, tuple(implementation.argnames))
    except pluggy.PluginValidationError as error:
        raise LoadError(path, None, describe(error)) from None
    finally:
        if registry.has_plugin(path.stem):
            registry.unregister(name=path.stem)


def _wrong(name: str, function: Any) -> str | None:
    """Return what is wrong with a function marked as the exit ``name``; None: nothing."""
    wanted = specs.ARGUMENTS.get(name)
    if wanted is None:
        return f"{name} is not an exit{meant(name, specs.ARGUMENTS)}; exits are {', '.join(specs.ARGUMENTS)}"
    if not isinstance(function, FunctionType):
        return f"{name} is not a plain function"
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        return f"{name} is async or a generator; write a plain function that returns its answer"
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or parameter.default is not parameter.empty:
            return f"argument {parameter.name} of {name}: write plain arguments without defaults"
        if parameter.name not in wanted:
            return (
                f"{name} has no argument {parameter.name}{meant(parameter.name, wanted)}; "
                f"its arguments are {', '.join(wanted)}"
            )
    return None


def meant(word: str, words: Iterable[str]) -> str:
    """Return `` (did you mean WORD?)`` for the most similar of ``words``; empty: none is similar."""
    near = difflib.get_close_matches(word, list(words), 1)
    return f" (did you mean {near[0]}?)" if near else ""


def loaded(names: Sequence[str], notes: Sequence[str] = ()) -> str:
    """Return text for people that names the loaded exits; ``notes``: further lines."""
    if not names:
        return "no exits loaded; only the standard rules decide"
    text = f"{len(names)} {'exit' if len(names) == 1 else 'exits'} loaded: {', '.join(names)}"
    return "\n".join([text, *notes])


def misfits(modules: list[Module], known: Mapping[str, ExitSettings]) -> list[str]:
    """Return a line for each value of an exit's setting, set by qmgr, that the new files do not accept."""
    problems = []
    for module in modules:
        for name, text in (known[module.name].values if module.name in known else {}).items():
            if name in module.settings:
                try:
                    read(module.settings[name].unit, text)
                except BadValue as error:
                    path = module.path
                    problems.append(f"{path.parent.name}/{path.name}: the value of setting {name}: {error}")
    return problems
