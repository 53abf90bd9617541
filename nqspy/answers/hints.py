"""What owners are told of their wall limits where somebody asks about a request."""

from collections.abc import Iterable
from typing import Any

from nqspy.core import runtime
from nqspy.model.endings import End
from nqspy.model.site import Site


def add_hints(site: Site, found: Iterable[dict[str, Any]]) -> None:
    """Notes a ``hint`` with each object of ``qstat --json``: null where there is nothing to say, and of one
    that did not end well."""
    for each in found:
        each["hint"] = _hint(site, each) or None


def _hint(site: Site, each: dict[str, Any]) -> str:
    asked, ended = each["requested"], each["state"] == "ended"
    if ended and not End.of_object(each).ok:
        return ""
    limit = None if asked["wall_s"] is None else round(asked["wall_s"] * 1000)
    key = each["owner"], each["name"], asked["pes"]
    return runtime.hint_on_wall(site.settings, site.lifetimes, key, limit)
