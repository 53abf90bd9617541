"""Requests as objects of the night report: identifier and name first, then why one failed or waits."""

import contextlib
import signal
from collections.abc import Callable, Mapping
from typing import Any

from nqspy.core import never
from nqspy.core.asked import too_wide
from nqspy.model import events as ev
from nqspy.model.endings import End
from nqspy.model.ids import Seq
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import State
from nqspy.model.site import Site
from nqspy.report import night_metrics
from nqspy.report.event_objects import requested, used_object
from nqspy.report.replay import RequestHistory
from nqspy.report.time_text import Zone

Why = Callable[[Seq, str], Reason | None]
"""Function that returns the reason why a request in a queue waits, as the last pass found; None: unknown."""

Journaled = Mapping[Seq, tuple[str, str, str]]
"""Reasons journaled with the night's decisions, the latest of each request: code, who, text."""

_WORDS = {
    "cpu_limit": "it reached its CPU limit",
    "wall_limit": "it reached its wall limit",
    "memory_limit": "it reached its memory limit",
    "file_limit": "a file reached its size limit",
    "contract": "it ran longer than its hole before a reservation",
    "process_limit": "it reached its process limit",
    "deleted": "it was deleted",
    "lost": "its end was not seen",
    "not_started": "it could not be started",
    "requeued": "it was ended to be queued again",
}


class RequestLabels:
    """Makes a site's requests into rows of the night report; instants become texts in ``zone``."""

    def __init__(self, site: Site, zone: Zone) -> None:
        self._site = site
        self._zone = zone

    def head(self, history: RequestHistory) -> dict[str, Any]:
        """Return the fields that a request has in all lists: identifier, name, owner, group, queue, ..."""
        spec = history.request.spec
        return {
            "id": self._site.id_of(history.request.seq),
            "name": spec.name,
            "owner": spec.owner,
            "group": spec.group,
            "queue": history.request.queue,
            "state": history.request.state.value,
            "submitted": self._zone.text(history.request.submitted),
            "requested": requested(spec),
        }

    def running(self, history: RequestHistory) -> dict[str, Any]:
        """Return the row of a running request: `head`, since when it runs, on how many PEs."""
        last = history.attempts[-1] if history.attempts else None
        since = self._zone.stamp(last.begin if last is not None else None)
        return self.head(history) | {"started": since, "pes": last.pes if last is not None else 0}

    def ended(self, history: RequestHistory) -> dict[str, Any]:
        """Return the row of a request that ended badly: how, why, and where its output lies."""
        ending = history.ending
        found = self.head(history) | {
            "ended": self._zone.stamp(history.ended),
            "end_reason": night_metrics.state_of(history),
        }
        if isinstance(ending, ev.Ended):
            sentence = _WORDS.get(ending.end_reason, ending.end_reason)
            if ending.exit_signal is not None and ending.end_reason in ("signal", "exit"):
                sentence = f"it ended by signal {ending.exit_signal}"
                with contextlib.suppress(ValueError):
                    sentence += f" ({signal.Signals(ending.exit_signal).name})"
            elif ending.end_reason == "exit":
                sentence = f"it ended with status {ending.exit_status}"
            why = f"{sentence}: {ending.text}" if ending.text and ending.text not in sentence else sentence
            return found | {
                "exit_status": End.of(ending).shown_status,
                "exit_signal": ending.exit_signal,
                "used": used_object(ending.used),
                "text": ending.text,
                "output": ending.stdout,
                "error": ending.stderr,
                "why": why,
            }
        text = "" if ending is None else ending.text or f"deleted by {ending.who}"
        nothing = dict.fromkeys(("exit_status", "exit_signal", "used"))
        why = f"it was deleted before it ran: {text}" if text else "it was deleted before it ran"
        return found | nothing | {"text": text, "output": None, "error": None, "why": why}

    def waiting(self, history: RequestHistory, journaled: Journaled, why: Why) -> dict[str, Any]:
        """Return the row of a waiting request with its reason; ``never``: true if it can never start. The
        present reason (from ``why``) is preferred to the journaled one."""
        request, hopeless = history.request, None
        queue = self._site.settings.queues.get(request.queue)
        if queue is not None and queue.kind == "batch" and request.state is State.QUEUED:
            # The limit under which it can never start, whatever the last pass examined.
            hopeless = too_wide(self._site, queue.name, request.spec.ask.pes) or never(self._site, request)
        live = hopeless or why(request.seq, request.queue)
        code, who, text = journaled.get(request.seq, ("LATER", "pass", "the last pass did not examine it"))
        if request.state is State.HELD:
            code, who, text = ReasonCode.HELD.value, "", request.hold_text or "it is held"
            if request.unmet and not request.holds:  # others may block it by now, or none
                others = ", ".join(f"{self._site.id_of(each.seq)} ({each.word})" for each in request.unmet)
                text = f"it waits for {others}" + (f": {request.never}" if request.never else "")
                code, who = ReasonCode.DEPENDENCY.value, "dependency"
                if live is not None and live.code is ReasonCode.DEPENDENCY:
                    who, text = live.who, live.text
        elif request.state is State.WAITING:
            code, who, text = ReasonCode.DATE.value, "owner", "its start date has not come yet"
        elif live is not None:
            code, who, text = live.code.value, live.who, live.text
        impossible = hopeless is not None or code == ReasonCode.NEVER or bool(request.never)
        return self.head(history) | {"reason": {"code": code, "who": who, "text": text}, "never": impossible}
