"""Tries a candidate file on an invented site in a worker without rights, for `exits check` and `doctor`."""

import logging
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from nqspy.core.draft import Draft
from nqspy.core.views import FIELDS, SUBMIT_FIELD, request_view, submit_view, view_of
from nqspy.decider import messages, sandbox
from nqspy.decider.client import LOAD
from nqspy.decider.process import WorkerPipes, WorkerProcess
from nqspy.decider.worker import SentRequest, read_only
from nqspy.engine.lifecycle import apply
from nqspy.model import events as ev
from nqspy.model.ids import HOUR, Instant
from nqspy.model.machine import Deciding
from nqspy.model.requests import Ask, Request, Spec, State
from nqspy.model.site import Site
from nqspy.report import night
from nqspy.userexit.inspection import inspect_module
from nqspy.userexit.loader import LoadError, Source, load_source, read_file
from nqspy.userexit.site_exits import SiteExits
from nqspy.userexit.specs import NOTICES

NOW = Instant(1_772_485_200_000)
"""An evening in March 2026."""
BOUNDS = night.Bounds(date(2026, 3, 2), Instant(NOW - 2 * HOUR), NOW, None)
OWNERS = ("anne", "anne", "ben", "ben")
SCRIPT = b"#QSUB -lT 600\n./model input.dat\n"


def made_up_site() -> tuple[Site, list[ev.Recorded]]:
    """Return an invented site (two queues, a pipe queue, a group; one request runs, two wait, one failed),
    and the events behind it."""
    made, history = Site(host="sample"), list[ev.Recorded]()
    batch = {"kind": "batch", "priority": 10, "enabled": True, "started": True}
    changes = (
        *(ev.Change("create", f"queue/{name}", batch) for name in ("night", "express")),
        ev.Change("create", "queue/batch", batch | {"kind": "pipe", "destinations": ["express", "night"]}),
        ev.Change("create", "group/d1", {"share": 60, "members": ["anne", "ben"]}),
    )
    happened = [
        ev.MachineFound((0, 1, 2, 3), 8 << 30, "sample"),
        ev.SettingsChanged(changes),
        *(ev.Submitted(seq, _spec(who), "night", "queued") for seq, who in enumerate(OWNERS, 1)),
        *(kind(seq, 1, (seq,)) for seq in (1, 4) for kind in (ev.Starting, ev.Started)),
        ev.Ended(4, 1, "exit", 1),
    ]
    for event in happened:
        history.append(ev.Recorded(made.n + 1, Instant(NOW - HOUR + made.n), event))
        apply(made, history[-1])
    return made, history


def _spec(owner: str) -> Spec:
    return Spec(
        owner=owner, uid=1000, name="model", queue="night", script="", environment="", workdir="/home/sample",
        gid=100, name_given=True, group="d1", args=("input.dat",),
        ask=Ask(cpu=600_000, memory=64 << 20, wall=1_200_000),
    )  # fmt: skip


def _run_hooks(source: Source) -> Iterator[str]:
    """Run all hooks of a file on the invented site; yield one line for each hook that fails."""
    exits, name = SiteExits(source.path.parent, sources=(source,)), source.path.stem
    made, history = made_up_site()
    for hook in exits.listing()[0]["hooks"]:
        exits.begin(made)
        draft = Draft(made, NOW, exits, {})
        view, waits = view_of(draft), request_view(made.requests[2], draft)
        match hook:
            case "jobselect":
                exits.jobselect(waits, view)
            case "elected":
                exits.elected(waits, view)
            case "shrpri":
                exits.shrpri("anne", "d1", view)
            case "route":
                exits.route(waits, ("express", "night"), view)
            case "submit":
                request = Request(made.next_seq, _spec("anne"), "batch", State.ARRIVING, NOW, NOW)
                exits.submit(submit_view(request, draft, SCRIPT), view)
        failed = [failure.text for failure in exits.failures()]
        if hook in NOTICES:
            failed = list(_give_notice(exits, made, history, hook))
        for text in failed:
            yield f"{Path(*source.path.parts[-2:])}: {text} ({hook} of {name} on a made-up request)"


def _give_notice(exits: SiteExits, made: Site, history: list[ev.Recorded], hook: str) -> Iterator[str]:
    """Call a notice hook; yield lines about failures, except attempts to use rights that it lacks here."""
    request = request_view(made.requests[1], Draft(made, NOW, exits, {}))
    arguments: dict[str, Any] = {
        "request": SentRequest({name: getattr(request, name) for name in FIELDS}),
        "old": "day", "new": "night",
    }  # fmt: skip
    if hook == "night_report":
        arguments["report"] = read_only(night.night_report(history, made, BOUNDS, NOW))
    for failure in exits.notify(hook, **arguments):
        text = failure.text.removeprefix(f"{hook}: ")
        if text.partition(":")[0] not in _RIGHTS:
            yield text


def _below(kind: type[OSError]) -> Iterator[str]:
    yield kind.__name__
    each: type[OSError]
    for each in kind.__subclasses__():
        yield from _below(each)


_RIGHTS = frozenset(_below(OSError))


def _try(source: Source, pipes: WorkerPipes) -> None:
    logging.getLogger("nqspy.userexit").setLevel(logging.CRITICAL)  # its line reports the failure
    pipes.answer(messages.ExitsLoaded(0, list(_problems(source)), [], [], {}))


def _problems(source: Source) -> Iterator[str]:
    """Yield a line for each problem of a file: in loading, in its code, in a run on the invented site."""
    module, problems = load_source(source)
    yield from problems
    if module is None:
        return
    faults = list(inspect_module(module, source.text, FIELDS, SUBMIT_FIELD))
    yield from (str(LoadError(source.path, line, text)) for line, text in faults)
    if not faults:
        yield from _run_hooks(source)


def problems_of(file: Path) -> list[str]:
    """Return the problems of an exit's file, one line each. Its code runs only in a worker, not as root."""
    try:
        work = partial(_try, read_file(file))
        box = sandbox.Sandbox(Deciding().memory, True, 64, sandbox.user())
        process = WorkerProcess("exits check", work, box, lambda process, what: None)
    except LoadError as error:
        return [str(error)]
    except OSError as error:
        return [f"{file}: it cannot be checked: {error}"]
    try:
        answer = process.loaded.result(LOAD)
    except TimeoutError:
        process.kill(f"it was not loaded within {LOAD:.0f} s")
        answer = process.loaded.result()
    if answer is None:
        return [f"{file}: loading failed: {process.how}"]
    process.kill("it has answered")
    return list(answer.problems)
