"""Loads a candidate file in a child without rights: for `nqspy exits check` and `nqspy doctor`."""

import queue
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nqspy.daemon.deciding import rights, words
from nqspy.daemon.deciding.parent import LOAD
from nqspy.daemon.deciding.process import Ends, Gone, Process
from nqspy.model.machine import Deciding
from nqspy.userexit.loader import LoadError, Source, check_source, read_file


@dataclass(frozen=True, slots=True)
class _Trial:
    source: Source

    def __call__(self, ends: Ends) -> None:
        ends.answer(words.Loaded(0, check_source(self.source), [], [], {}))


def problems_of(file: Path) -> list[str]:
    """What is wrong with a candidate file, one line each; nothing: it can be put among the exits. None of its
    code runs in this process, nor as root."""
    said: queue.SimpleQueue[Any] = queue.SimpleQueue()
    try:
        work = _Trial(read_file(file))
        jail = rights.Jail(Deciding().memory, True, 64, rights.user())
        process = Process("exits check", work, jail, lambda _, what: said.put(what))
    except LoadError as error:
        return [str(error)]
    except OSError as error:
        return [f"{file}: it cannot be tried: {error}"]
    try:
        answer = said.get(timeout=LOAD)
    except queue.Empty:
        process.kill(f"it was not loaded within {LOAD:.0f} s")
        answer = said.get()
    if isinstance(answer, Gone):
        return [f"{file}: loading it ended its process: {answer.how}"]
    process.kill("it has answered")
    return list(answer.problems)
