"""What a submit exit makes of a submission: its changes, checked like what people ask for themselves."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from nqspy.engine.handlers.sizes import reshaped
from nqspy.engine.handlers.spec import check_spec
from nqspy.model.errors import Refusal, listed
from nqspy.model.people import DEFAULT_GROUP
from nqspy.model.requests import Output, Spec
from nqspy.model.site import Site
from nqspy.ports import CHANGEABLE, SubmitAnswer


def changed(site: Site, spec: Spec, answer: SubmitAnswer) -> Spec:
    """The submission as the exits want it. Raises Refusal, naming them, where they refuse it and where that
    makes no sense; queue, limits and access are looked at afterwards as for any submission."""
    if answer.refusal is not None:
        raise Refusal("exit_refused", said=answer.refusal, who=answer.who)
    changes = {CHANGEABLE[name].path: value for name, value in answer.changes.items() if name in CHANGEABLE}
    before, own = spec, dict[str, Any]()
    ask, output = dict[str, Any](), dict[str, Any]()
    for path, value in changes.items():
        head, _, rest = path.partition("/")
        part = {"ask": ask, "output": output}.get(head, own)
        part[rest or head] = value
    spec = replace(spec, **own, ask=replace(spec.ask, **ask), output=_output(spec, output))
    try:
        spec = reshaped(site, before, spec, changes)
        check_spec(site, spec)
        _check_group(site, spec, "group" in own)
    except Refusal as refusal:
        raise by_exit(refusal, answer.who) from None
    return spec


def by_exit(refusal: Refusal, who: str) -> Refusal:
    """A refusal of what nobody asked for like that: it names the exits that made it so."""
    return Refusal("by_exit", said=refusal, who=who)


def _output(spec: Spec, paths: Mapping[str, str]) -> Output:
    """A path that is named counts: the file is neither kept elsewhere nor joined with the other."""
    output = spec.output
    if "stdout" in paths:
        output = replace(output, stdout=_path(spec, paths["stdout"]), keep_stdout=False)
    if "stderr" in paths:
        output = replace(output, stderr=_path(spec, paths["stderr"]), keep_stderr=False, join=False)
    return output


def _path(spec: Spec, path: str) -> str:
    return path if path.startswith("/") else f"{spec.workdir.rstrip('/')}/{path}"


def _check_group(site: Site, spec: Spec, changed: bool) -> None:
    if changed and spec.group not in (*site.settings.groups, DEFAULT_GROUP):
        raise Refusal("group_of_exit", group=spec.group, known=listed(site.settings.groups))
