"""Loads the exits into a new child: at the start what can be loaded, later all files or none."""

import queue

from nqspy.daemon.deciding import words
from nqspy.daemon.deciding.child import names
from nqspy.daemon.deciding.parent import LOAD, Parent
from nqspy.daemon.deciding.process import Gone, Process
from nqspy.model.errors import Refusal
from nqspy.userexit.loader import loaded, owner_of, read_folder
from nqspy.userexit.shadows import shadows


def load(parent: Parent) -> None:
    """At the start: loads what can be loaded; a file that ends the process it is loaded in is left out
    too."""
    sources, parent.problems = read_folder(parent.folder, owner_of(parent.folder))
    while sources:
        process = parent.fork(tuple(sources))
        said = _loaded(process, len(sources))
        if isinstance(said, words.Loaded):
            parent.problems = sorted([*parent.problems, *said.problems])
            parent.take_on(process, tuple(sources), said)
            return
        bad = said[0] if said[0] in names(sources) else sources[-1].path.stem
        parent.problems.append(f"{parent.folder.name}/{bad}.py: left out: {said[1]}")
        sources = [source for source in sources if source.path.stem != bad]


def reload(parent: Parent) -> str:
    """Loads the files again in a new child, all or none; a sentence for the person who asked. Raises
    Refusal with file and line; the child before stays in force then."""
    found, problems = read_folder(parent.folder, owner_of(parent.folder))
    sources = tuple(found)
    if not problems and sources:
        process = parent.fork(sources)
        said = _loaded(process, len(sources))
        if isinstance(said, words.Loaded) and not (said.problems or said.unfit):
            parent.strikes.forgive()
            parent.drop("the exits were loaded again")
            parent.take_on(process, sources, said)
            parent.problems = []
            return loaded(parent.roster.names, shadows(said.listing))
        process.kill("it is not wanted")
        if isinstance(said, tuple):
            problems = [f"{parent.folder.name}/{said[0]}.py: {said[1]}"]
        else:
            problems = said.problems or said.unfit
    if problems:
        more = f" (and {len(problems) - 1} more: nqspy exits check)" if len(problems) > 1 else ""
        raise Refusal(f"{problems[0]}{more}; the exits loaded before stay in force", code="bad_exit")
    parent.strikes.forgive()
    parent.forget()
    return loaded([])


def _loaded(process: Process, files: int) -> words.Loaded | tuple[str, str]:
    """What a new child says, or (file, how) when it is lost over a file."""
    try:
        said = process.mailbox.get(timeout=LOAD * files)
        if isinstance(said, words.Loaded):
            return said
    except queue.Empty:
        said = None
    call = process.page.read()
    process.kill(f"it was not loaded within {LOAD:.0f} s")
    how = said.how if isinstance(said, Gone) else process.why
    return (call.exit if call is not None else "", f"loading it ended its process: {how}")
