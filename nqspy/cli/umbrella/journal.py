"""``nqspy events``: the journal page by page, as lines for people or of JSON."""

import json
from typing import Any

from nqspy.cli.umbrella.asking import answering, question, write
from nqspy.report.time_text import parse_since, zone_of
from nqspy.rpc.client import Client

PAGE = 1_000
"""Events in one answer."""


def print_events(since: str | None, follow: bool, as_json: bool, request: str | None = None) -> None:
    """Print events from ``since`` on (`parse_since`); ``follow``: new ones too; ``request``: only its own."""
    with answering(None if follow else 60.0) as client:
        page: dict[str, Any] = {"after": 0, "limit": PAGE, "wait": False}
        if request is not None:
            page["request"] = request
        if since is not None:
            page["since"] = _instant(client, since)
        result = question(client, "events", **page)
        while True:
            if as_json:
                lines = [json.dumps(e, ensure_ascii=False, separators=(",", ":")) for e in result["events"]]
            else:
                from nqspy.report.event_objects import event_line  # heavy: it knows all events

                lines = [event_line(each) for each in result["events"]]
            write("".join(f"{line}\n" for line in lines))
            if result["last"] == page["after"] and not follow:
                return
            page["after"] = result["last"]
            page["wait"] = follow
            result = client.call("events", repeat=True, **page)


def instants(since: str | None, until: str | None) -> dict[str, int]:
    """Return fields ``from`` and ``to`` (ms) for the texts that are given, by the daemon's clock."""
    with answering() as client:
        named = {"from": since, "to": until}
        return {name: _instant(client, text) for name, text in named.items() if text is not None}


def _instant(client: Client, since: str) -> int:
    clock = question(client, "now")
    return parse_since(since, zone_of(clock["zone"]), clock["now"])
