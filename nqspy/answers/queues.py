"""Queues, server and node with their counts: NQS's ``qstat`` summaries, PBS's (pbs-clients.md 8.5, 9)."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from nqspy.answers.choice import need_server, queue_of
from nqspy.answers.serving import Serving
from nqspy.answers.visibility import Visibility
from nqspy.model.errors import Refusal
from nqspy.model.queues import Queue
from nqspy.model.requests import State
from nqspy.model.site import Site
from nqspy.report import pbs_forms, pbs_objects, pbs_tables, summaries
from nqspy.report.pbs_attributes import Attributes
from nqspy.rpc import messages
from nqspy.rpc import server as rpc
from nqspy.rpc.version import version

T = TypeVar("T")


def counts(serving: Serving) -> dict[str, dict[str, int]]:
    """Return the numbers of live requests, by queue (each is there) and word of their state."""
    found: dict[str, dict[str, int]] = {name: {} for name in serving.engine.site.settings.queues}
    for (queue, state), number in _tally(serving.engine.site).items():
        found.setdefault(queue, {})[state.value] = number
    return found


def _tally(site: Site) -> Counter[tuple[str, State]]:
    """Return the number of requests by queue and state; queued ones are not counted one by one."""
    tally = Counter((r.queue, r.state) for r in [r for r in site.requests.values() if r.slot < 0])
    for queue, columns in site.waiting.items():
        if columns:
            tally[queue, State.QUEUED] = len(columns)
    return tally


Summary = Callable[[Site, Mapping[str, Mapping[str, int]]], str]

FORMS: dict[str, Summary] = {
    "queues": summaries.nqs_batch_summary, "pipes": summaries.pipe_summary,
    "complexes": summaries.complexes, "limits": summaries.limits, "mpp": summaries.mpp,
}  # fmt: skip
"""Forms of NQS's ``qstat`` that list queues."""


def by_state(site: Site) -> dict[str, int]:
    """Return the numbers of live requests of the site, by word of their state."""
    tally = Counter[str]()
    for (_, state), number in _tally(site).items():
        tally[state.value] += number
    return tally


def state_of(serving: Serving) -> str:
    """Return this server's state in PBS's words: ``Active``; ``Terminating`` while the engine pauses."""
    return "Terminating" if serving.engine.paused else "Active"


def queue_list(serving: Serving, asked: rpc.Asked) -> bytes:
    """Answer ``qstat -Q``, or ``-Q -f`` with ``f`` among the letters."""
    site, counted = serving.engine.site, counts(serving)
    chosen, wrong = _chosen(serving, asked)
    if not _is_full(asked):
        return _answer(asked, summaries.queues_posix(chosen, counted), wrong)
    shown = {q.name: pbs_objects.queue_attributes(site, q, counted.get(q.name, {})) for q in chosen}
    return _objects(serving, asked, shown, wrong, "Queue", "Queue: ")


def queue_limits(serving: Serving, asked: rpc.Asked) -> bytes:
    """Answer ``qstat -q``: limits and counts of the queues."""
    chosen, wrong = _chosen(serving, asked)
    text = pbs_tables.queue_limits(serving.engine.site.name, chosen, counts(serving))
    return _answer(asked, text, wrong)


def server(serving: Serving, asked: rpc.Asked) -> bytes:
    """Answer ``qstat -B``, or ``-B -f`` with ``f`` among the letters."""
    site = serving.engine.site
    right, wrong = _named(asked, partial(need_server, site))
    if wrong and not right:
        return _answer(asked, "", wrong)
    if not _is_full(asked):
        row = (site.name, site.settings.global_.run_limit, len(site.requests), state_of(serving))
        return _answer(asked, summaries.server_posix(*row, by_state(site)), wrong)
    found = pbs_objects.server_attributes(site, by_state(site), version(), state_of(serving))
    return _objects(serving, asked, {site.name: found}, wrong, "Server", "Server: ")


def nodes(serving: Serving, asked: rpc.Asked) -> bytes:
    """Answer ``pbsnodes``: the one host; with ``l`` (hosts out of use) among the letters an empty list."""
    site = serving.engine.site
    node = pbs_objects.node_name(site)

    def need_node(word: str) -> None:
        if word not in (node, site.host, site.name):
            raise Refusal("unknown_node", node=word, name=node)

    right, wrong = _named(asked, need_node)
    if (wrong and not right) or "l" in str(asked.message.get("letters") or ""):
        return _answer(asked, "", wrong)
    allows = Visibility(serving, asked.caller).allows
    found: dict[str, Any] = dict(pbs_objects.node_attributes(site, version(), allows))
    if asked.message.get("format") == "json" and "jobs" in found:
        found["jobs"] = pbs_objects.jobs_of(found)
    return _objects(serving, asked, {node: found}, wrong, "nodes", "", "     ", "Name=")


def _chosen(serving: Serving, asked: rpc.Asked) -> tuple[list[Queue], list[Refusal]]:
    """Return the queues that the operands name (without operands all), and the refusals of bad operands."""
    site = serving.engine.site
    found, wrong = _named(asked, partial(queue_of, site))
    if "" in found or not (found or wrong):
        return list(site.settings.queues.values()), wrong
    return [site.settings.queues[name] for name in dict.fromkeys(found)], wrong


def _named(asked: rpc.Asked, find: Callable[[str], T]) -> tuple[list[T], list[Refusal]]:
    """Return what ``find`` returns for each operand, and the refusals of bad ones."""
    found, wrong = list[T](), list[Refusal]()
    for word in asked.message.get("operands") or ():
        try:
            found.append(find(str(word)))
        except Refusal as refusal:
            wrong.append(refusal)
    return found, wrong


def _is_full(asked: rpc.Asked) -> bool:
    return "f" in str(asked.message.get("letters") or "") or bool(asked.message.get("format"))


def _objects(
    serving: Serving, asked: rpc.Asked, shown: Mapping[str, Attributes], wrong: list[Refusal], key: str,
    *layout_of: str,
) -> bytes:  # fmt: skip
    """Answer with all attributes of objects. ``key``: their name in JSON; ``layout_of``: see
    `pbs_forms.layout`."""
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
