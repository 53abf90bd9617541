"""What a submit exit makes of a submission: its changes, checked like what people ask for themselves."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from nqspy.engine.handlers.sizes import reshaped
from nqspy.engine.handlers.spec import check_spec
from nqspy.model.errors import Refusal, listed
from nqspy.model.people import DEFAULT_GROUP
from nqspy.model.requests import Ask, Output, Spec
from nqspy.model.site import Site
from nqspy.ports import CHANGEABLE, SubmitAnswer

_OWN = frozenset(("queue", "priority", "group", "account", "name", "shell", "attributes"))
_ASK = frozenset(("cpu", "memory", "wall", "pes"))


def changed(site: Site, spec: Spec, answer: SubmitAnswer) -> Spec:
    """The submission as the exits want it. Raises Refusal, naming them, where they refuse it and where that
    makes no sense; queue, limits and access are looked at afterwards as for any submission."""
    if answer.refusal is not None:
        raise Refusal("exit_refused", said=answer.refusal, who=answer.who)
    changes = {name: value for name, value in answer.changes.items() if name in CHANGEABLE}
    before, own = spec, {name: value for name, value in changes.items() if name in _OWN}
    spec = replace(spec, **own, ask=_ask(spec.ask, changes), output=_output(spec, changes))
    spec = replace(spec, eligible=changes.get("date", spec.eligible), held=changes.get("hold", spec.held))
    try:
        spec = reshaped(site, before, spec, {f"ask/{name}": value for name, value in changes.items()})
        check_spec(site, spec)
        _check_group(site, spec, "group" in changes)
    except Refusal as refusal:
        raise by_exit(refusal, answer.who) from None
    return spec


def by_exit(refusal: Refusal, who: str) -> Refusal:
    """A refusal of what nobody asked for like that: it names the exits that made it so."""
    return Refusal("by_exit", said=refusal, who=who)


def _ask(ask: Ask, changes: Mapping[str, Any]) -> Ask:
    wanted = {name: value for name, value in changes.items() if name in _ASK}
    return replace(ask, **wanted) if wanted else ask


def _output(spec: Spec, changes: Mapping[str, Any]) -> Output:
    """A path that is named counts: the file is neither kept elsewhere nor joined with the other."""
    output = spec.output
    if "output" in changes:
        path = _path(spec, changes["output"])
        output = replace(output, stdout=path, keep_stdout=False)
    if "error" in changes:
        output = replace(output, stderr=_path(spec, changes["error"]), keep_stderr=False, join=False)
    return output


def _path(spec: Spec, path: str) -> str:
    return path if path.startswith("/") else f"{spec.workdir.rstrip('/')}/{path}"


def _check_group(site: Site, spec: Spec, changed: bool) -> None:
    if changed and spec.group not in (*site.settings.groups, DEFAULT_GROUP):
        raise Refusal("group_of_exit", group=spec.group, known=listed(site.settings.groups))
