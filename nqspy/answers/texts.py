"""The engine's replies on the wire: data for programs, ready text for the lean commands."""

from collections.abc import Callable
from typing import Any

import msgspec

from nqspy.engine.handlers.context import Reply
from nqspy.model.errors import NqspyError, as_refusal
from nqspy.report.why import both
from nqspy.rpc import messages
from nqspy.rpc import server as rpc


def refusal(id: int, form: str | None, error: NqspyError) -> bytes:
    """Return a refusal: text for stderr, or an error object if ``form`` is None or the client must retry."""
    refusal = as_refusal(error)
    if form is None or refusal.code == "busy":
        return messages.answer_of_error(id, refusal)
    return messages.text_answer(id, refusal.status, "", f"{refusal}\n")


def with_text(data: dict[str, Any], text_of: Callable[[dict[str, Any]], str]) -> dict[str, Any]:
    """Return data for programs, with a text for people added."""
    return {"text": text_of(data), **data}


def either(asked: rpc.Asked, data: dict[str, Any], text: str) -> bytes:
    """Return data for programs, or the text if the client asked for text."""
    if asked.message.get("text") is None:
        return messages.result_answer(asked.handle.id, data)
    return messages.text_answer(asked.handle.id, 0, text)


def reply(id: int, form: str | None, reply: Reply) -> bytes:
    """Return the encoded answer to a command: data, or text if ``form`` is given (``json``: JSON as text)."""
    if reply.refusal is not None:
        return refusal(id, form, reply.refusal)
    if form is None:
        return messages.result_answer(id, reply.value)
    value: Any = reply.value
    lines = value.get("warnings")  # lines behind the text form: the command shows them on a terminal only
    warned = {"warnings": "".join(f"{each}\n" for each in lines)} if lines else {}
    if "ids" in value:
        ids = value["ids"]
        pairs = list(zip(ids, value.get("queues", [""] * len(ids)), strict=False))
        text = "".join(f"{name}\n" for name in ids)
        if form == "json":
            words = ((name, f'"{queue}"' if queue else "null") for name, queue in pairs)
            rows = [f'{{"id":"{name}","queue":{word}}}' for name, word in words]
            text = (rows[0] if len(rows) == 1 else "[" + ",".join(rows) + "]") + "\n"
        report = "".join(f"Request {name} submitted to queue: {queue or '-'}.\n" for name, queue in pairs)
        return messages.text_answer(id, 0, text, "", **warned, said=report)
    if "dry_run" in value:
        rows, lines = value["dry_run"], list[str]()
        if form == "json":
            lines = [msgspec.json.encode(rows[0] if len(rows) == 1 else rows).decode()]
        for row in rows if form != "json" else ():
            line = f"{row['name']}: would be accepted into queue {row['queue']}, group {row['group']}"
            if row.get("estimate"):
                line += "".join(f"; {word}: {text}" for word, text in both(row["estimate"]))
                line += f"; {row['note']}" if row.get("note") else ""
            lines.append(line)
        return messages.text_answer(id, 0, "".join(f"{line}\n" for line in lines), **warned)
    failed = value.get("failed", [])
    err = "".join(f"{each['text']}\n" for each in failed)
    status = next((each["status"] for each in reversed(failed) if each["status"]), 0)
    return messages.text_answer(id, status, "", err)
