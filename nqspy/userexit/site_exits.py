"""The site's user exits behind their guard: the engine uses them as ``ports.Exits``.

Effects of a failure (an exit that raises, gives a wrong answer or overruns its budget):

- Its answer is the fallback of the hook: jobselect refuses this request, the others leave the stock rule.
- The exit is not called again in this pass; candidates without its answer wait for the next one, which comes
  at once. So no request passes an exit by making it fail, and an endless loop costs one budget.
- For five minutes of the site's time, or until exits are reloaded or its settings change, the fallback counts
  for that request without a call.
- Failures on five different requests in a row, of two owners or more, switch the exit off. After five of one
  owner it is not asked about that owner's for five minutes: they stay refused.
"""

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nqspy.model.actions import Action, ExitFailure
from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant, Seq
from nqspy.model.machine import ExitSettings
from nqspy.model.requests import State
from nqspy.model.site import Site
from nqspy.ports import Answer, OfferRound, PassView, RequestView, SubmitAnswer
from nqspy.userexit import settings, specs
from nqspy.userexit.answers import Changes
from nqspy.userexit.call_stats import UNWATCHED, CallWatch, Mark, OwnerBackoff, Record, SavedMemory, Skipped
from nqspy.userexit.calls import Calls
from nqspy.userexit.errors import describe, traceback_of, unloadable
from nqspy.userexit.guard import Guard, is_ctrl_c
from nqspy.userexit.hooks import Exit, Failed, Hook, entry, shadows
from nqspy.userexit.loader import Module, Source, load_sources, loaded, misfits, read_folder
from nqspy.userexit.view import View

NOTICE_WALL = 30_000
"""Budget of wall time (ms) of a notice."""

_AS_IT_COMES = ExitSettings("")
"""Settings of an exit for which none were set: the defaults."""

Asked = tuple[Hook, View, dict[Any, Any]]
"""A shrpri hook, the view of its exit, and its answers of this round by owner and group."""

_log = logging.getLogger("nqspy.userexit")


class SiteExits:
    """``ports.Exits`` for a folder of exit files.

    ``problems``: one line for each file that was left out at the start (a broken set never keeps the daemon
    from starting). ``sources``: use these files, read before, instead of the folder's. ``watch``: is told
    which exit's code runs; ``guard``: makes the guards that hold calls to their budgets.
    """

    def __init__(
        self,
        folder: Path,
        *,
        sources: Sequence[Source] | None = None,
        watch: CallWatch = UNWATCHED,
        guard: Callable[[], Guard] = Guard,
    ) -> None:
        self.folder = folder
        self.problems: list[str] = []
        self._sources = sources
        self._watch = watch
        self._guard, self._notice_guard = guard(), guard()
        self._calls = self._make_calls(watch)
        self._rounds: tuple[Site | None, Mapping[str, OfferRound]] = (None, {})
        self._exits: dict[str, Exit] = {}
        self._active: dict[str, tuple[Hook, ...]] = {}
        self._had: frozenset[str] = frozenset()
        self._settings: Mapping[str, ExitSettings] = {}
        modules, self.problems = self._load()
        self._install(modules)

    def _make_calls(self, watch: CallWatch) -> Calls:
        return Calls(self._guard, watch)

    # ------------------------------------------------------------ files

    def reload(self) -> str:
        """Load the files again, all or none; return text on what was loaded. Raises Refusal (file, line)."""
        modules, problems = self._load()
        problems = problems or misfits(modules, self._settings)
        if problems:
            raise unloadable(problems)
        self._install(modules)
        self.problems = []
        return loaded([module.name for module in modules], shadows(self.listing()))

    def _load(self) -> tuple[list[Module], list[str]]:
        if self._sources is not None:
            return load_sources(self._sources, self._printed, self._watch)
        sources, unread = read_folder(self.folder)
        modules, problems = load_sources(sources, self._printed, self._watch)
        return modules, sorted(unread + problems)

    def unfit(self, known: Mapping[str, ExitSettings]) -> list[str]:
        """Return a line for each setting's value in ``known`` that the loaded files do not accept."""
        return misfits([one.module for one in self._exits.values()], known)

    # ------------------------------------------------------------ what outlives the process

    def lost(self, skips: Iterable[Skipped], backoffs: Iterable[OwnerBackoff]) -> None:
        """Begin back-offs for subjects and owners of calls that ended the process; call it after `begin`."""
        for each in skips:
            for record in self._records(each.exit, each.hook):
                record.skip(each.subject, Mark(each.at, each.text, lost=True))
        for owned in backoffs:
            for record in self._records(owned.exit):
                record.back_off(owned.owner, Mark(owned.at, lost=True))

    def _records(self, exit: str, hook: str | None = None) -> list[Record]:
        """Return the records of the exit's hooks (``hook`` None: of all); empty: it is not loaded."""
        hooks = self._exits[exit].hooks if exit in self._exits else {}
        return [each.record for name, each in hooks.items() if hook in (None, name)]

    def remember(self, listing: Iterable[Mapping[str, Any]]) -> None:
        """Continue counting calls and times from the figures of an earlier `listing`."""
        for row in listing:
            for name, figures in row["by_hook"].items():
                for record in self._records(row["name"], name):
                    record.resume(figures)

    @property
    def stamp(self) -> int:
        """Number that changes when a failure is recorded or a row of failures ends."""
        return sum(hook.record.changes for one in self._exits.values() for hook in one.hooks.values())

    def memory(self, files: Mapping[str, str], answers: bool = True) -> SavedMemory:
        """Return what must outlive this process, for `recollect`. ``files``: content hash of each exit;
        ``answers``: with the latest answers, not only failures."""
        hooks = [(name, hook) for name, one in self._exits.items() for hook in one.hooks.values()]
        rows = [(name, hook.name, row) for name, hook in hooks if (row := hook.record.row())]
        return SavedMemory(
            dict(files),
            [(name, hook, [subject for subject, _ in row]) for name, hook, row in rows],
            [(name, hook.name, *each) for name, hook in hooks for each in hook.record.skips()],
            self._calls.trace.dump() if answers else [],
            [[owner for _, owner in row] for _, _, row in rows],
            [(name, hook.name, *each) for name, hook in hooks for each in hook.record.backed_off()],
        )

    def recollect(self, former: SavedMemory, files: Mapping[str, str]) -> None:
        """Continue from an earlier process's memory, except failures of changed files. Call after `begin`."""
        self._calls.trace.load(former.answers)
        same = {name for name, digest in files.items() if former.files.get(name) == digest}
        for (name, hook, row), owners in zip(former.rows, former.owners, strict=True):
            for record in self._records(name, hook) if name in same else ():
                record.take_over(zip(row, owners, strict=True))
        for name, hook, owner, at in former.resting:
            for record in self._records(name, hook) if name in same else ():
                record.back_off(owner, Mark(Instant(at)))
        for name, hook, subject, at, text in former.spared:
            for record in self._records(name, hook) if name in same else ():
                record.skip(subject, Mark(Instant(at), text))

    # ------------------------------------------------------------ loading

    def _printed(self, exit: str, text: str) -> None:
        self._guard.shielded(_log.info)("exit %s: %s", exit, text)

    def _install(self, modules: list[Module]) -> None:
        self._exits = {module.name: Exit(module) for module in modules}
        for one in self._exits.values():
            one.hooks = {name: Hook(one, name) for name in one.module.hooks}
        self._calls.forget()
        self._rounds = (None, {})
        self._follow(self._settings)
        self._index_hooks()

    # ------------------------------------------------------------ settings

    def begin(self, site: Site) -> None:
        """Apply the exits' settings and allow calls of failed exits again, before a pass or submission."""
        self._calls.begin(site.timezone)
        for one in self._exits.values():
            one.down = False
        self._settings = site.settings.exits
        if self._follow(self._settings):
            self._index_hooks()

    def _follow(self, known: Mapping[str, ExitSettings]) -> bool:
        changed = False
        for name, one in self._exits.items():
            wanted = known.get(name) or _AS_IT_COMES
            if (one.enabled, one.budget, one.values) == (wanted.enabled, wanted.budget, wanted.values):
                continue
            one.enabled, one.budget, one.values = wanted.enabled, wanted.budget, dict(wanted.values)
            for setting in one.module.settings.values():
                try:
                    setting.apply(one.values.get(setting.name))
                except BadValue as error:
                    text = f"setting {setting.name}: {error}; it stays {setting.text}"
                    self._calls.failures.append(ExitFailure(name, None, text))
            for hook in one.hooks.values():
                hook.record.forgive()
            changed = True
        return changed

    def _index_hooks(self) -> None:
        self._active = {
            hook: tuple(one.hooks[hook] for one in self._exits.values() if one.enabled and hook in one.hooks)
            for hook in specs.ARGUMENTS
        }
        self._had = frozenset(hook for hook, those in self._active.items() if those)

    def files(self) -> Mapping[str, bytes]:
        """Return the source text of each loaded exit, by name."""
        return {name: one.module.text for name, one in self._exits.items()}

    def declared(self) -> Mapping[str, Mapping[str, str]]:
        """Return the loaded exits: name -> setting -> unit."""
        return {
            name: {setting.name: setting.unit for setting in one.module.settings.values()}
            for name, one in self._exits.items()
        }

    def check_setting(self, exit: str, setting: str, text: str) -> None:
        """Raise BadValue unless the loaded exit has this setting and accepts the text as its value."""
        settings.check(self.declared(), exit, setting, text)

    # ------------------------------------------------------------ decisions

    def has(self, hook: str) -> bool:
        """True if an exit that is switched on implements that hook."""
        return hook in self._had

    def jobselect(self, request: RequestView, view: PassView) -> Answer | None:
        """Return the exits' answer about a candidate: a refusal before a force, else the first in file-name
        order; None: no exit has an answer. A failed exit refuses."""
        first = unasked = None
        seq, now = request.seq, view.now
        with self._guard:
            for hook in self._active["jobselect"]:
                given = self._calls.ask(hook, seq, seq, (request, self._calls.view_for(hook.who, view), now))
                if type(given) is Failed:
                    on = "" if given.backed_off else "on this request: "
                    return Answer("refuse", f"exit {hook.who} failed {on}{given.text}", hook.who)
                if hook.exit.down and self._calls.really is None:
                    why = f"exit {hook.who} failed on another request; it is asked in the next pass"
                    unasked = unasked or Answer("refuse", why, hook.who)
                elif given is not None:
                    until = given.until if given.until is not None and given.until > now else None
                    answer = Answer(given.verdict, given.text, hook.who, given.alike, given.within, until)
                    if given.verdict != "force":
                        return answer
                    first = first or answer
        return unasked or first

    def elected(self, request: RequestView, view: PassView) -> Sequence[Action]:
        """Return the actions of all exits after a request was chosen to start; a failed exit has none."""
        actions: list[Action] = []
        with self._guard:
            for hook in self._active["elected"]:
                args = (request, self._calls.view_for(hook.who, view), view.now)
                answer = self._calls.ask(hook, request.seq, request.seq, args)
                if answer and type(answer) is not Failed:
                    actions += [dataclasses.replace(action, who=hook.who) for action in answer]
        return actions

    def shrpri(self, owner: str, group: str, view: PassView) -> float | None:
        """Return the share term of a user in a group, from the first exit with one; None: the stock rule."""
        return self.shrpris(((owner, group),), view)[0]

    def shrpris(self, pairs: Sequence[tuple[str, str]], view: PassView) -> list[float | None]:
        """Return `shrpri` of many (owner, group); an exit is called once for pairs that are alike to it."""
        view_for, hooks, now = self._calls.view_for, self._active["shrpri"], view.now
        asked = [(hook, view_for(hook.who, view), dict[Any, Any]()) for hook in hooks]
        # True if an answer about a group is valid for each owner in it.
        of_group = all(hook.of_group and not (hook.exit.down or hook.record.marked) for hook in hooks)
        with self._guard:
            found = self._shares_of_groups(pairs, asked, now) if of_group else []
            # After a failure exits are asked about each owner.
            found += [self._share(pair, asked, now) for pair in pairs[len(found) :]]
        return found

    def _shares_of_groups(
        self, pairs: Sequence[tuple[str, str]], asked: Sequence[Asked], now: Instant
    ) -> list[float | None]:
        """Return the terms of pairs by one call for each group, as no exit takes an owner. They end behind
        the first pair on which an exit fails."""
        of_group: dict[str, float | None] = {}
        found, failed = [], list[Hook]()
        for pair in pairs:
            group = pair[1]
            if group not in of_group:
                of_group[group] = self._share(pair, asked, now)
                failed = [hook for hook, _, _ in asked if hook.exit.down]
            found.append(of_group[group])
            if failed:
                break
        return found

    def _share(self, pair: tuple[str, str], asked: Iterable[Asked], now: Instant) -> float | None:
        for hook, shown, answers in asked:
            about = pair[1] if hook.of_group else pair
            if about not in answers or hook.exit.down or hook.record.marked:
                answers[about] = self._calls.ask(hook, pair, None, (*pair, shown, now))
            answer: float | Failed | None = answers[about]
            if answer is not None and not isinstance(answer, Failed):
                return answer
        return None

    def submit(self, request: RequestView, view: PassView) -> SubmitAnswer | None:
        """Return the answer to a submission: the first refusal, else the changes of all; None: no answer."""
        changed: dict[str, Any] = {}
        who: list[str] = []
        with self._guard:
            for hook in self._active["submit"]:
                args = (request, self._calls.view_for(hook.who, view), view.now)
                # No subject: another request may get the number.
                answer = self._calls.ask(hook, None, request.seq or None, args)
                if type(answer) is Answer:
                    text = f"never: {answer.text}" if answer.verdict == "never" else answer.text
                    return SubmitAnswer(text, hook.who)
                if type(answer) is Changes and answer.fields:
                    changed = answer.fields | changed
                    who.append(hook.who)
        return SubmitAnswer(None, ", ".join(who), changed) if changed else None

    def route(self, request: RequestView, destinations: Sequence[str], view: PassView) -> Sequence[str]:
        """Return the destinations to try, in order, from the first exit with an answer; else unchanged."""
        with self._guard:
            for hook in self._active["route"]:
                args = (request, destinations, self._calls.view_for(hook.who, view), view.now)
                subject = None if request.state == State.ARRIVING else request.seq or None  # as in `submit`
                answer = self._calls.ask(hook, subject, request.seq or None, args)
                if answer is not None and type(answer) is not Failed:
                    return tuple(answer)
        return destinations

    def forces(self) -> bool:
        """True if an exit that is switched on may force a start."""
        return any(hook.exit.module.forces for hook in self._active["jobselect"])

    def rounds(self, site: Site) -> Mapping[str, OfferRound]:
        """Return by queue the rounds of offers that the last pass did not finish; none in a rehearsal."""
        of, rounds = self._rounds
        return rounds if of is site and self._calls.really is None else {}

    def store(self, site: Site, rounds: Mapping[str, OfferRound]) -> bool:
        """Store by queue the rounds of offers that a pass did not finish; False: not stored, in a
        rehearsal."""
        if self._calls.really is not None:
            return False
        self._rounds = (site, rounds)
        return True

    def asks_again(self) -> Instant | None:
        """Return when the first back-off for an owner ends of those met since `begin`; None: none was met."""
        return self._calls.again

    @contextmanager
    def rehearsal(self, now: Instant) -> Iterator[None]:
        """Ask exits in the block without recording failures: a simulation is no evidence about them. ``now``:
        present instant, which decides on back-offs after lost processes in the whole block."""
        self._calls.really = now
        try:
            yield
        finally:
            self._calls.really = None

    # ------------------------------------------------------------ notices

    def notify(self, hook: str, **arguments: Any) -> list[ExitFailure]:
        """Call a notice of every exit that has it, after the commit; log each failure and return all. A
        notice may do I/O and has 30 s of wall time. In another thread a notice that does not return cannot be
        interrupted."""
        args = tuple(arguments.get(name) for name in specs.ARGUMENTS[hook])
        failures = []
        for one in self._active[hook]:
            try:
                with self._notice_guard:
                    self._notice_guard.call(one.run, (args,), NOTICE_WALL, NOTICE_WALL)
            except BaseException as error:
                if is_ctrl_c(error):
                    raise
                one.record.failures += 1
                text, trace = describe(error), traceback_of(error, str(one.exit.module.path))
                _log.error("exit %s: %s failed: %s\n%s", one.exit.module.name, hook, text, trace)
                failures.append(ExitFailure(one.exit.module.name, None, f"{hook}: {text}", trace))
            one.record.took(self._notice_guard.took)
        return failures

    # ------------------------------------------------------------ what became of it

    def failures(self) -> tuple[ExitFailure, ...]:
        """Return the failures since `begin` or the last call of this, and forget them."""
        failures, self._calls.failures = tuple(self._calls.failures), []
        return failures

    def trace(self, seq: Seq) -> list[dict[str, Any]]:
        """Return the latest answers about a request, earliest first: ``at exit hook answer error``."""
        return self._calls.trace.of(seq)

    def listing(self) -> list[dict[str, Any]]:
        """Return an entry for each loaded exit, as in `hooks.entry`."""
        return [entry(one) for one in self._exits.values()]
