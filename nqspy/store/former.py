"""Rows of older formats: the column ``live`` of format 4 and earlier, in the table and in the files of the
history, which are never written again."""

from typing import Any

import msgspec

from nqspy.model.cause import cause_of
from nqspy.model.requests import EndOrder, Pause

_KEPT = ("date_in_queue", "holds", "hold_text", "rank", "unmet", "never", "redated", "losses")
_SAME = ("pes", "used", "charged", "rate", "charged_at", "resumed")
"""Fields that stand in the attempt now, under the same name."""
_RENAMED = {"let_go": "resumed_by_person", "gave_way": "preempted_times", "gave": "preempted_bytes"}


def live(body: str) -> str:
    """The column ``live`` as it is now: all about the present attempt in an object of its own. Raises
    msgspec.DecodeError."""
    if '"attempt":' not in body or '"attempts":' in body:
        return body
    flat: dict[str, Any] = msgspec.json.decode(body)
    made = {name: flat[name] for name in _KEPT if name in flat} | {"attempts": flat["attempt"]}
    if "started" in flat:
        made["attempt"] = _attempt(flat)
        if "suspended_by" in flat:
            made.pop("hold_text", None)  # it said why it was suspended
    return msgspec.json.encode(made).decode()


def attempts(body: str) -> int:
    """Return how many attempts there were, from a column ``live``. Raises msgspec.DecodeError."""
    return int(msgspec.json.decode(live(body)).get("attempts", 0))


def _attempt(flat: dict[str, Any]) -> dict[str, Any]:
    made = {name: flat[name] for name in _SAME if name in flat}
    made |= {new: flat[old] for old, new in _RENAMED.items() if old in flat}
    made |= {"number": flat["attempt"], "started": flat["started"], "pes": flat.get("pes", [])}
    made["starting"] = flat.get("starting", False)
    if "suspended_by" in flat:
        text, parked = flat.get("hold_text", ""), flat.get("parked", False)
        made["pause"] = Pause(cause_of(flat["suspended_by"]), flat.get("suspended", 0), text, parked)
    if "ending" in flat:
        what, _, rest = flat["ending"].partition(" by ")
        who, _, text = rest.partition(": ")
        made["ending"] = EndOrder(cause_of(who), what == "rerun", text)
    return made
