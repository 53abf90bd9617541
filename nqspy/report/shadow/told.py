"""What the shadow found, as JSON-able data, and in sentences for people."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nqspy.model.ids import Seq
from nqspy.model.site import Site
from nqspy.report.shadow.judge import Verdict
from nqspy.report.shadow.look import ShadowDifference
from nqspy.report.time_text import Zone, short

MOST = 1_000
"""Differences told at most; ``count`` says how many there are."""
NAMED = 20
"""Of these, in sentences."""


def shadow_object(
    verdict: Verdict, site: Site, zone: Zone, group_of: Callable[[Seq], str | None]
) -> dict[str, Any]:
    """``passes`` and ``pauses`` that were looked at, ``whole``: how many of both could be judged as a whole,
    ``partly``: why not the others, most often first; ``count`` of the differences, and these."""

    def told(each: ShadowDifference) -> dict[str, Any]:
        return {
            "at": zone.text(each.at),
            "pass": each.n,
            "request": site.id_of(each.seq),
            "before": None if each.before is None else site.id_of(each.before),
            "group": group_of(each.seq),
            "text": each.text,
        }

    return {
        "passes": verdict.passes,
        "pauses": verdict.pauses,
        "whole": verdict.whole,
        "partly": [{"why": why, "count": count} for why, count in verdict.partly.most_common()],
        "count": len(verdict.differences),
        "differences": [told(each) for each in verdict.differences[:MOST]],
    }


def sentences(shadow: Mapping[str, Any]) -> Iterable[str]:
    """It in sentences: how many passes, how many differences, what could not be judged; then each."""
    count, pauses = shadow["count"], shadow["pauses"]
    beside = f" and {pauses} pauses" if pauses else ""
    said = f"shadow: {shadow['passes']} passes{beside}, {count} difference{'s' * (count != 1)}"
    left = shadow["passes"] + pauses - shadow["whole"]
    why = "; ".join(f"{each['count']}: {each['why']}" for each in shadow["partly"])
    yield (
        f"{said}; {left} could not be judged as a whole ({why})"
        if left
        else f"{said}, each judged as a whole"
    )
    yield from map(sentence, shadow["differences"][:NAMED])


def sentence(difference: Mapping[str, Any]) -> str:
    """One difference."""
    other = f" ({difference['before']})" if difference["before"] else ""
    return (
        f"difference at {short(difference['at'])}, pass {difference['pass']}: "
        f"{difference['request']}: {difference['text']}{other}"
    )


def alarm(shadow: Mapping[str, Any] | None, day: str) -> str:
    """What the managers are told where there are differences; empty where there are none."""
    if not shadow or not shadow["count"]:
        return ""
    named = "; ".join(map(sentence, shadow["differences"][:3]))
    more = f"; and {shadow['count'] - 3} more: nqspy report night --date {day}" if shadow["count"] > 3 else ""
    return f"in the night of {day} passes did otherwise than the rules say: {named}{more}"
