"""Errors that can be found in an exit's code without running it: unknown attributes, calls and answers that
fit no hook. For `nqspy exits check`.

Known names come from the code: annotations of requests, views and settings, signatures of functions that make
answers, checks of answers. The kinds of values (a request, the view, a setting) are followed through
assignments, loops and calls of the view; for an unknown kind nothing is reported.
"""

import ast
import contextlib
import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from nqspy.model.ids import Instant
from nqspy.model.machine import Machine
from nqspy.model.queues import Queue
from nqspy.model.site import Settings
from nqspy.ports import Answer, RequestView, Selection
from nqspy.userexit import answers, specs
from nqspy.userexit.loader import Module, meant
from nqspy.userexit.settings import Setting
from nqspy.userexit.view import View

Problem = tuple[int, str]
"""Line and error."""

_KINDS: Mapping[Any, str] = {
    RequestView: "a request", View: "the view", Setting: "a setting", Answer: "an answer",
    Selection: "a selection", Machine: "the machine", Settings: "settings", Queue: "a queue",
}  # fmt: skip
"""Names of kinds for people."""


class _Unknown:
    """Marks a value of unknown kind."""


def inspect_module(
    module: Module, source: bytes, fields: typing.Iterable[str], submit_field: str
) -> Iterator[Problem]:
    """Yield the errors in the code of a loaded module, by line. ``fields``: names of a request's fields;
    ``submit_field``: the one that only submit exits see."""
    tree, requests = ast.parse(source), tuple(fields)
    imported = [alias.name for node in tree.body if isinstance(node, ast.ImportFrom)
                for alias in node.names if alias.asname is None and alias.name.islower()]  # fmt: skip
    makers = {name: maker for name in imported if callable(maker := getattr(answers, name, None))}
    declared = {
        target.id
        for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets if isinstance(target, ast.Name)
        and isinstance(node.value.func, ast.Name) and node.value.func.id == "setting"
    }  # fmt: skip
    found: set[Problem] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            hook, kinds = "", dict[str, Any].fromkeys(declared, Setting)
            if node.name in module.hooks:
                hook, hints = node.name, typing.get_type_hints(getattr(specs, node.name))
                kinds |= {name: hints[name] for name in module.hooks[hook][1] if name != "report"}
            has = (*requests, submit_field) if hook == "submit" else requests
            found.update(_Body(node, hook, kinds, makers, has).problems())
    yield from sorted(found)


def _is_settings(kind: Any) -> bool:
    return inspect.isclass(kind) and kind.__module__.startswith("nqspy.model.")


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except (NameError, TypeError):
        return {}


class _Body(ast.NodeVisitor):
    """Inspection of one function, in the order of its lines."""

    def __init__(self, node: ast.FunctionDef, hook: str, kinds: dict[str, Any],
                 makers: Mapping[str, Any], of_request: tuple[str, ...]) -> None:  # fmt: skip
        self._node, self._hook, self._kinds, self._makers = node, hook, kinds, makers
        self._of_request = of_request
        self._found: list[Problem] = []
        if not hook:
            self._kinds = {k: v for k, v in kinds.items() if k not in {a.arg for a in node.args.args}}

    def problems(self) -> list[Problem]:
        """Return the errors in the function."""
        for each in self._node.body:
            self.visit(each)
        return self._found

    def _wrong(self, node: ast.AST, text: str) -> None:
        self._found.append((getattr(node, "lineno", 0), text))

    # ------------------------------------------------------------ names and their kinds

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Inspect a function inside another; the kinds of its arguments are unknown."""
        inner = {k: v for k, v in self._kinds.items() if k not in {a.arg for a in node.args.args}}
        self._found += _Body(node, "", inner, self._makers, self._of_request).problems()

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Inspect a lambda; the kinds of its arguments are unknown."""
        before = dict(self._kinds)
        for argument in node.args.args:
            self._kinds.pop(argument.arg, None)
        self.visit(node.body)
        self._kinds = before

    def visit_Assign(self, node: ast.Assign) -> None:
        """Give names the kind of the assigned value."""
        self.visit(node.value)
        for target in node.targets:
            self._bind(target, self._kind(node.value))

    def visit_For(self, node: ast.For) -> None:
        """Give the names of a loop the kind of the elements."""
        self.visit(node.iter)
        self._bind(node.target, _element(self._kind(node.iter)))
        for each in (*node.body, *node.orelse):
            self.visit(each)

    def _comprehension(self, node: Any) -> None:
        before = dict(self._kinds)
        for each in node.generators:
            self.visit(each.iter)
            self._bind(each.target, _element(self._kind(each.iter)))
            for condition in each.ifs:
                self.visit(condition)
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                self.visit(getattr(node, name))
        self._kinds = before

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension  # noqa: N815

    def _bind(self, target: ast.expr, kind: Any) -> None:
        if isinstance(target, ast.Name):
            self._kinds[target.id] = kind
        elif isinstance(target, ast.Tuple | ast.List):
            parts = typing.get_args(kind) if typing.get_origin(kind) is tuple else ()
            for place, each in enumerate(target.elts):
                self._bind(each, parts[place] if place < len(parts) else _Unknown)

    def _kind(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return self._kinds.get(node.id, _Unknown)
        if isinstance(node, ast.Attribute):
            kind = _plain(self._kind(node.value))
            known = kind in (View, RequestView) or _is_settings(kind)
            return _hints(kind).get(node.attr, _Unknown) if known else _Unknown
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if _plain(self._kind(node.func.value)) is View:
                return _hints(getattr(View, node.func.attr, None)).get("return", _Unknown)
        elif isinstance(node, ast.Subscript):
            return _element(self._kind(node.value))
        return _Unknown

    # ------------------------------------------------------------ what is inspected

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Report an attribute that its object does not have."""
        kind = _plain(self._kind(node.value))
        names = self._of_request if kind is RequestView else ()
        if kind in (View, Setting, Answer, Selection) or _is_settings(kind):
            names = tuple(name for name in {*dir(kind), *_hints(kind)} if not name.startswith("_"))
        if names and node.attr not in names:
            if kind in _KINDS and kind is not Settings:
                what, it = f"{_KINDS[kind]} has", "it has"
            else:
                what, it = f"{'limits' if kind.__name__.endswith('Limits') else 'settings'} have", "they have"
            shown = ", ".join(sorted(names))
            self._wrong(node, f"{what} no {node.attr}{meant(node.attr, names)}; {it} {shown}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Report a call of the view, or of a function that makes an answer, with wrong arguments."""
        function: Any = None
        bound: tuple[Any, ...] = ()
        if isinstance(node.func, ast.Attribute) and _plain(self._kind(node.func.value)) is View:
            function, bound = getattr(View, node.func.attr, None), (None,)
        elif isinstance(node.func, ast.Name) and node.func.id in self._makers:
            function = self._makers[node.func.id]
        if inspect.isfunction(function):
            self._try_call(node, function, bound)
        self.generic_visit(node)

    def _try_call(self, node: ast.Call, function: Any, bound: tuple[Any, ...]) -> None:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            return
        words = {k.arg: k.value for k in node.keywords if k.arg is not None}
        try:
            inspect.signature(function).bind(*bound, *node.args, **words)
        except TypeError as error:
            known = ", ".join(p for p in inspect.signature(function).parameters if p != "self")
            self._wrong(node, f"{function.__name__}(): {error}; arguments: {known}")
            return
        values = [*node.args, *words.values()]
        if not bound and all(isinstance(each, ast.Constant) for each in values):
            try:
                function(*(_constant(a) for a in node.args), **{w: _constant(v) for w, v in words.items()})
            except Exception as error:
                self._wrong(node, f"{function.__name__}(): {error}")

    def visit_Return(self, node: ast.Return) -> None:
        """Report an answer that the hook does not know."""
        if node.value is not None:
            self.visit(node.value)
            check = answers.CHECKS.get(self._hook)
            sample = _sample(node.value, self._makers)
            if check is not None and sample is not _Unknown:
                try:
                    check(sample, _ARGUMENTS.get(self._hook, ()))
                except answers.Nonsense as error:
                    self._wrong(node, str(error))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Skip an async function: the kinds of its values are unknown."""


# ---------------------------------------------------------------- kinds


def _plain(kind: Any) -> Any:
    """Return the kind (a type) X for ``X | None``; `_Unknown` for another union, else the kind itself."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        others = [each for each in typing.get_args(kind) if each is not type(None)]
        return others[0] if len(others) == 1 else _Unknown
    return kind


def _element(kind: Any) -> Any:
    kind = _plain(kind)
    if kind is Selection:
        return RequestView
    arguments = typing.get_args(kind)
    return arguments[0] if len(arguments) == 1 else _Unknown


# ---------------------------------------------------------------- answers

_ARGUMENTS: Mapping[str, tuple[Any, ...]] = {
    "elected": (types.SimpleNamespace(seq=0), None, Instant(1)),
    "route": (None, (), None, None),
}
"""Arguments of the checks in addition to the answer."""


def _constant(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def _sample(node: ast.expr, makers: Mapping[str, Any]) -> Any:
    """Return an example of the answer that an expression gives; _Unknown: that cannot be found out."""
    with contextlib.suppress(ValueError):
        return ast.literal_eval(node)
    if isinstance(node, ast.JoinedStr):
        return "text"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in makers:
        maker = makers[node.func.id]
        if node.func.id == "redate":
            return maker(types.SimpleNamespace(seq=1), Instant(0))
        required = [
            p for p in inspect.signature(maker).parameters.values()
            if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        ]  # fmt: skip
        try:
            return maker(*("text" for _ in required))
        except Exception:
            return _Unknown
    if isinstance(node, ast.List | ast.Tuple):
        found = [_sample(each, makers) for each in node.elts]
        return _Unknown if _Unknown in found else found
    return {} if isinstance(node, ast.Dict) else _Unknown
