"""Queues, the server and the node as PBS clients read them: ``qstat -Q``, ``-q``, ``-B``, ``pbsnodes``
(pbs-clients.md 8.5, 9)."""

from collections.abc import Callable, Mapping
from typing import Any

from nqspy.answers import queues
from nqspy.answers.choice import need_server, queue_of
from nqspy.answers.serving import Serving
from nqspy.answers.visibility import Visibility
from nqspy.model.errors import Refusal
from nqspy.model.queues import Queue
from nqspy.report import pbs_forms, pbs_objects, pbs_tables, summaries
from nqspy.report.pbs_attributes import Attributes
from nqspy.rpc import messages
from nqspy.rpc import server as rpc
from nqspy.rpc.version import version


def queue_list(serving: Serving, asked: rpc.Asked) -> bytes:
    """``qstat -Q``, with ``f`` among the letters ``-Q -f``."""
    site, counts = serving.engine.site, queues.counts(serving)
    chosen, wrong = _chosen(serving, asked)
    if not _is_full(asked):
        return _answer(asked, summaries.queues_posix(chosen, counts), wrong)
    shown = {q.name: pbs_objects.queue_attributes(site, q, counts.get(q.name, {})) for q in chosen}
    return _objects(serving, asked, shown, wrong, "Queue", "Queue: ")


def queue_limits(serving: Serving, asked: rpc.Asked) -> bytes:
    """``qstat -q``."""
    chosen, wrong = _chosen(serving, asked)
    text = pbs_tables.queue_limits(serving.engine.site.name, chosen, queues.counts(serving))
    return _answer(asked, text, wrong)


def server(serving: Serving, asked: rpc.Asked) -> bytes:
    """``qstat -B``, with ``f`` among the letters ``-B -f``."""
    site, wrong = serving.engine.site, list[Refusal]()
    named = [str(word) for word in asked.message.get("operands") or ()]
    right = [word for word in named if _told(wrong, need_server, site, word)]
    if named and not right:
        return _answer(asked, "", wrong)
    if not _is_full(asked):
        return _answer(asked, queues.server_text(serving), wrong)
    found = pbs_objects.server_attributes(site, queues.by_state(site), version(), queues.state_of(serving))
    return _objects(serving, asked, {site.name: found}, wrong, "Server", "Server: ")


def nodes(serving: Serving, asked: rpc.Asked) -> bytes:
    """``pbsnodes``: the one host that runs jobs; with ``l`` among the letters only where it is out of use,
    which it is not while its daemon answers."""
    site, wrong = serving.engine.site, list[Refusal]()
    node = pbs_objects.node_name(site)
    named = [str(word) for word in asked.message.get("operands") or ()]
    right = [word for word in named if _told(wrong, _need_node, (node, site.host, site.name), word)]
    if (named and not right) or "l" in str(asked.message.get("letters") or ""):
        return _answer(asked, "", wrong)
    found: dict[str, Any] = dict(
        pbs_objects.node_attributes(site, version(), Visibility(serving, asked.caller).sees)
    )
    if asked.message.get("format") == "json" and "jobs" in found:
        found["jobs"] = pbs_objects.jobs_of(found)
    return _objects(serving, asked, {node: found}, wrong, "nodes", "", "     ", "Name=")


def _need_node(names: tuple[str, ...], word: str) -> None:
    if word not in names:
        raise Refusal("unknown_node", node=word, name=names[0])


# ---------------------------------------------------------------- what they share


def _chosen(serving: Serving, asked: rpc.Asked) -> tuple[list[Queue], list[Refusal]]:
    """The queues that the operands name, all without; and what is wrong with operands."""
    site, wrong = serving.engine.site, list[Refusal]()
    named = [str(word) for word in asked.message.get("operands") or ()]
    found = [_told(wrong, queue_of, site, word) for word in named]
    if not named or "" in found:
        return list(site.settings.queues.values()), wrong
    return [site.settings.queues[name] for name in dict.fromkeys(found) if name], wrong


def _told(wrong: list[Refusal], look: Callable[..., Any], *words: Any) -> Any:
    """Return what looking gives, True where it gives nothing; None where it refuses, which is kept."""
    try:
        found = look(*words)
    except Refusal as refusal:
        wrong.append(refusal)
        return None
    return True if found is None else found


def _is_full(asked: rpc.Asked) -> bool:
    return "f" in str(asked.message.get("letters") or "") or bool(asked.message.get("format"))


def _objects(
    serving: Serving, asked: rpc.Asked, shown: Mapping[str, Attributes], wrong: list[Refusal], key: str,
    *layout_of: str,
) -> bytes:  # fmt: skip
    """Objects with all their attributes, in the form asked for. ``key`` in JSON; ``layout_of``: words before
    the name of one, how far its attributes are set in, words before it in DSV (`pbs_forms.layout`)."""
    layout = pbs_forms.layout(asked.message, *layout_of)
    parts = [pbs_forms.written(layout, name, found) for name, found in shown.items()]
    if layout.form != "json":
        return _answer(asked, "".join(parts), wrong)
    head = pbs_forms.json_head(serving.clock.now(), version(), serving.engine.site.name)
    members = f',"{key}":{{{",".join(parts)}}}' if parts else ""
    return _answer(asked, f"{head}{members}}}\n", wrong)


def _answer(asked: rpc.Asked, text: str, wrong: list[Refusal]) -> bytes:
    status = wrong[-1].status if wrong else 0
    return messages.text_answer(asked.handle.id, status, text, "".join(f"{each}\n" for each in wrong))
