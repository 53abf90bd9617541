"""Tries a candidate file in a worker without rights: for `nqspy exits check` and `nqspy doctor`."""

import logging
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from nqspy.core.sight import FIELDS, HANDED
from nqspy.decider import made_up_site, messages, sandbox
from nqspy.decider.client import LOAD
from nqspy.decider.process import WorkerPipes, WorkerProcess
from nqspy.model.machine import Deciding
from nqspy.userexit.inspection import inspect_module
from nqspy.userexit.loader import LoadError, Source, load_source, read_file


class _Trial(Struct, frozen=True):
    source: Source

    def __call__(self, pipes: WorkerPipes) -> None:
        logging.getLogger("nqspy.userexit").setLevel(logging.CRITICAL)  # what failed is told by its line
        pipes.answer(messages.ExitsLoaded(0, list(_problems(self.source)), [], [], {}))


def _problems(source: Source) -> Iterator[str]:
    """What is wrong with a file: first whether it can be loaded, then what its code says, then what it does
    on a made-up request."""
    module, problems = load_source(source)
    yield from problems
    if module is None:
        return
    seen = list(inspect_module(module, source.text, FIELDS, HANDED))
    yield from (str(LoadError(source.path, line, text)) for line, text in seen)
    if not seen:
        yield from made_up_site.run(source)


def problems_of(file: Path) -> list[str]:
    """What is wrong with a candidate file, one line each; nothing: it can be put among the exits. None of its
    code runs in this process, nor as root."""
    try:
        work = _Trial(read_file(file))
        box = sandbox.Sandbox(Deciding().memory, True, 64, sandbox.user())
        process = WorkerProcess("exits check", work, box, lambda process, what: None)
    except LoadError as error:
        return [str(error)]
    except OSError as error:
        return [f"{file}: it cannot be tried: {error}"]
    try:
        answer = process.loaded.result(LOAD)
    except TimeoutError:
        process.kill(f"it was not loaded within {LOAD:.0f} s")
        answer = process.loaded.result()
    if answer is None:
        return [f"{file}: loading it ended its process: {process.how}"]
    process.kill("it has answered")
    return list(answer.problems)
