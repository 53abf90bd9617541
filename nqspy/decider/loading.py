"""Loads exits into a new worker while the former one works: at a start what can be loaded, later all or
none."""

import time
from collections.abc import Callable
from typing import Any

from nqspy.decider import messages
from nqspy.decider.client import LOAD, DeciderClient
from nqspy.decider.process import WorkerEnded, WorkerProcess
from nqspy.decider.worker import names
from nqspy.model.errors import Refusal
from nqspy.userexit.errors import unloadable
from nqspy.userexit.hooks import shadows
from nqspy.userexit.loader import loaded, read_folder


class Loading:
    """Load of the exits' files into a second worker, until it is in force (`DeciderClient.loading`); in the
    engine's thread. ``done``: True if it has succeeded or failed; then `refusal` says why it failed, and
    `adopt` puts it in force.

    ``strict``: all files must load, and the present settings must fit; else files that cannot be loaded are
    left out, with a line in ``problems`` for each."""

    def __init__(self, client: DeciderClient, strict: bool) -> None:
        self.client, self.strict = client, strict
        self.process: WorkerProcess | None = None
        self.done = False
        self._over: Callable[[], None] = lambda: None
        self._loaded: messages.ExitsLoaded | None = None
        found, self.problems = read_folder(client.folder)
        self.sources = tuple(found)
        if strict and not client.folder.is_dir():  # removed by mistake, perhaps: the rules stay in force
            self.problems.append(f"{client.folder} is not a folder")
        client.loading = self
        self._begin()

    def when_over(self, over: Callable[[], None]) -> None:
        """Set a function to be called when the load is done; call it at once if it is."""
        self._over = over
        if self.done:
            over()

    def _begin(self) -> None:
        if not self.sources or (self.strict and self.problems):
            self._end()
            return
        self.client.later_events.clear()
        try:
            self.process = self.client.fork(self.sources, forgiving=self.strict)
        except OSError as error:
            self.problems.append(f"no process can be started for the exits: {error}")
            self._end()

    def _end(self) -> None:
        self.done = True
        self._over()

    # ------------------------------------------------------------ what comes of it

    def hear(self, process: WorkerProcess, what: Any) -> None:
        """Handle a message of the loading process, or its end. If it ends and the load is not ``strict``,
        leave out the file that it was loading and begin again."""
        if self.done or process is not self.process:
            return
        if isinstance(what, messages.ExitsLoaded):
            self._loaded = what
            self.problems = sorted([*self.problems, *what.problems])
            self._end()
        elif isinstance(what, WorkerEnded):
            call, known, self.process = process.heartbeat.read(), names(self.sources), None
            bad = call.exit if call is not None and call.exit in known else known[-1]
            prefix, how = "" if self.strict else "left out: ", process.why or what.how
            text = f"{self.client.folder.name}/{bad}.py: {prefix}loading failed: {how}"
            self.problems.append(text)
            if self.strict:
                self._end()
            else:
                self.sources = tuple(source for source in self.sources if source.path.stem != bad)
                self._begin()

    def check(self) -> None:
        """Kill the process if it hangs while loading a file."""
        process = self.process
        if process is None or self.done:
            return
        call, age = process.heartbeat.read(), time.monotonic() - process.began
        if (call is not None and call.age() > LOAD) or age > LOAD * (1 + len(self.sources)):
            process.kill(f"it was not loaded within {LOAD:.0f} s")

    def again(self) -> None:
        """Begin again, because the site was read again from the database: the process was forked from one
        that is void."""
        if self.process is not None:
            process, self.process, self._loaded, self.done = self.process, None, None, False
            process.kill("the site was read again")
            self._begin()

    def wait(self, seconds: float) -> bool:
        """Wait at most so many real seconds; return True if the load is done."""
        end = time.monotonic() + seconds
        while not self.done and (process := self.process) is not None:
            try:
                message = process.loaded.result(max(0.0, min(0.1, end - time.monotonic())))
            except TimeoutError:
                if time.monotonic() >= end:
                    break
                self.check()
            else:
                self.hear(process, message if message is not None else WorkerEnded(process.how))
        return self.done

    def drop(self) -> None:
        """Give up the load, and end its process."""
        if self.client.loading is self:
            self.client.loading = None
        self.done = True
        if self.process is not None:
            self.process.kill("it is not wanted")

    def adopt(self) -> None:
        """Put the loaded exits in force; if no process has loaded any, there are none from now on."""
        process, message = self.process, self._loaded
        self.client.loading = None
        if process is None or message is None:
            self.client.forget()
        else:
            self.client.drop("the exits were loaded again")
            self.client.adopt(process, self.sources, message)
            if process.dead:  # ended after its last message
                self.client.drop("it has gone")

    def refusal(self) -> Refusal | None:
        """Return the refusal, with the first problem, if the load has failed; else None."""
        problems = self.problems or (self._loaded.unfit if self._loaded is not None else [])
        return unloadable(problems) if problems else None


def load(client: DeciderClient) -> None:
    """Load the exits at a start and wait. A file that cannot be loaded, or ends the process, is left out."""
    loading = Loading(client, strict=False)
    loading.wait(float("inf"))
    settle(loading)


def settle(loading: Loading) -> None:
    """Use the exits that a start has loaded, and record the problems of the others."""
    loading.adopt()
    loading.client.problems = loading.problems


def reload(client: DeciderClient) -> str:
    """Put the files in force that `DeciderClient.loading` has loaded (or load them, and wait), all or none;
    return a sentence for the caller. Raises Refusal with file and line: then the former exits stay."""
    found = client.loading
    loading = found if isinstance(found, Loading) else Loading(client, strict=True)
    loading.wait(float("inf"))
    refusal = loading.refusal()
    if refusal is not None:
        loading.drop()
        raise refusal
    client.backoff.forgive()
    client.saved.save(client.backoff)
    loading.adopt()
    client.problems = []
    return loaded(client.registry.names, shadows(client.registry.listing(client.backoff.out)))
