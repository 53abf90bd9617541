"""The screen of ``nqspy gangster`` at a terminal: a Textual application, which only this command loads. It
asks one question each few seconds; what a key does goes to the daemon as a command, whose answer it shows.
"""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, Vertical, VerticalScroll
from textual.events import Key
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from nqspy.cli.umbrella.asking import answering
from nqspy.model.errors import NqspyError
from nqspy.report import gangster

Ask = Callable[..., Any]
"""Sends a command with fields to the daemon and returns its result (`Client.call`)."""
PROMPT = "gangster: "
HELP = """\
c  change the class of the selected job   r  resume it when its turn comes
s  suspend it: it gives up its PEs        q  quit
arrows  select a job; its nodes are shown reversed

.  free node        -  offline node       #  held by a job not shown to you
BASE  lowest PE of a job: its z, y, x     W     barrier circuit
#PE   number of its PEs                   H:MM  time that it has run

ST  i  moving in                          R  running
    N  new: it has no nodes yet           S  suspended by a person
    o  moving out                         W  has nodes, about to begin
    O  moved out: it comes back by itself

Owners may change their own jobs, operators all. Press any key to go on."""


class HelpScreen(ModalScreen[None]):
    """Keys and states, until a key is pressed."""

    CSS = "HelpScreen { align: center middle; } HelpScreen Static { width: auto; padding: 1 2; }"

    def compose(self) -> ComposeResult:
        """Yield the text."""
        yield Static(HELP, markup=False)

    def on_key(self, event: Key) -> None:
        """Close at any key, which has no other effect."""
        event.stop()
        self.dismiss()


class Gangster(App[None]):
    """Node map and table of jobs. ``ask``: sends a command; ``every``: seconds between two looks."""

    CSS = """
    #whole { layout: horizontal; height: 1fr; }
    #whole.above { layout: vertical; }
    #map { width: auto; max-width: 50%; height: 100%; margin-right: 2; }
    .above #map { width: 100%; max-width: 100%; height: auto; max-height: 50%; margin: 0 0 1 0; }
    #nodes, #heads, #said { width: auto; height: auto; }
    #prompt { height: 1; }
    #jobs { width: 1fr; height: 1fr; }
    #rows, #rows:focus { border: none; padding: 0; height: 1fr; background: transparent; }
    #rows > .option-list--option { padding: 0; }
    #asked { border: none; padding: 0; height: 1; width: 1fr; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("c", "change_class", "class"),
        ("s", "suspend", "suspend"),
        ("r", "resume", "resume"),
        ("h,question_mark", "help", "help"),
        ("q", "quit", "quit"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, ask: Ask, every: float = 3.0) -> None:
        super().__init__()
        self._ask, self._every = ask, every
        self._turn = asyncio.Lock()  # a client serves one question at a time
        self._data: gangster.Data = {}
        self._letters: gangster.Letters = {}
        self._subject, self._lines = "", list[str]()

    def compose(self) -> ComposeResult:
        """Yield the map, the table, the prompt and the keys."""
        with Container(id="whole"):
            with VerticalScroll(id="map", can_focus=False):
                yield Static(id="nodes", markup=False)
            with Vertical(id="jobs"):
                yield Static(id="heads", markup=False)
                yield OptionList(id="rows", markup=False)
        with Horizontal(id="prompt"):
            yield Static(PROMPT, id="said", markup=False)
            yield Input(id="asked")
        yield Footer()

    def on_mount(self) -> None:
        """Look at once, then each few seconds."""
        self.query_one("#rows").focus()
        self.look()
        self.set_interval(self._every, self.look)

    # ------------------------------------------------------------ the daemon

    async def _answer(self, cmd: str, **fields: Any) -> Any:
        """Return the daemon's result, or None after its refusal or silence was shown."""
        async with self._turn:
            try:
                return await asyncio.to_thread(self._ask, cmd, **fields)
            except NqspyError as error:
                self.say(str(error))
                return None

    @work(exclusive=True, group="look")
    async def look(self) -> None:
        """Ask for the present state and show it."""
        found = await self._answer("gangster")
        if found is not None:
            self._data, self._letters = found, gangster.letters_of(found, self._letters)
            self._paint()

    @work(group="act")
    async def act(self, done: str, cmd: str, **fields: Any) -> None:
        """Send a command on one job, and show its refusal or that it is ``done``."""
        result = await self._answer(cmd, **fields)
        if result is not None:
            failed = result["failed"]
            self.say(failed[0]["text"] if failed else done)
            self.look()

    def say(self, text: str) -> None:
        """Show a line behind the prompt."""
        self.query_one("#said", Static).update(PROMPT + text)

    # ------------------------------------------------------------ the screen

    def _paint(self) -> None:
        width, rows = self.size.width, self.query_one("#rows", OptionList)
        head, lines = gangster.table(self._data, self._letters, wide=width >= gangster.WIDE)
        nodes = gangster.node_map(self._data, self._letters)
        above = not gangster.beside(nodes, head, width)
        self.query_one("#whole").set_class(above, "above")
        self._lines = gangster.wrapped(nodes, width) if above else nodes
        self.query_one("#heads", Static).update(head)
        chosen = self._chosen()
        rows.clear_options()
        rows.add_options([Option(line, id or None, disabled=not id) for id, line in lines])
        ids = [id for id, _ in lines]
        rows.highlighted = ids.index(chosen if chosen and chosen in ids else ids[0]) if ids else None
        self._paint_nodes()

    def _paint_nodes(self) -> None:
        text, letter = Text("\n".join(self._lines)), self._letters.get(self._chosen())
        if letter not in (None, gangster.FURTHER):
            text.highlight_regex(letter, "reverse")
        self.query_one("#nodes", Static).update(text)

    def _chosen(self) -> str:
        """Return the identifier of the selected job; empty: there is none."""
        rows = self.query_one("#rows", OptionList)
        return "" if rows.highlighted is None else rows.get_option_at_index(rows.highlighted).id or ""

    def on_resize(self) -> None:
        """Lay out the screen anew."""
        if self._data:
            self._paint()

    def on_option_list_option_highlighted(self) -> None:
        """Show the nodes of the selected job reversed."""
        self._paint_nodes()

    # ------------------------------------------------------------ keys

    def action_suspend(self) -> None:
        """Suspend the selected job."""
        self._of_chosen("is suspended", "suspend", resume=False)

    def action_resume(self) -> None:
        """Resume the selected job."""
        self._of_chosen("goes on when its turn comes", "suspend", resume=True)

    def _of_chosen(self, done: str, cmd: str, **fields: Any) -> None:
        if id := self._chosen():
            self.act(f"{id} {done}", cmd, ids=[id], **fields)

    def action_change_class(self) -> None:
        """Ask for the new class of the selected job."""
        if id := self._chosen():
            asked = self.query_one("#asked", Input)
            self._subject, asked.value = id, ""
            asked.placeholder = ", ".join(self._data["classes"])
            asked.suggester = SuggestFromList(self._data["classes"])
            self.say(f"class of {self._letters[id]}: ")
            asked.display = True
            asked.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Change the class to the one typed; nothing typed changes nothing."""
        self._close_input()
        if name := event.value.strip():
            fields = {"ids": [self._subject], "values": {"job_class": name}}
            self.act(f"{self._subject} is of class {name}", "modify", **fields)

    def key_escape(self) -> None:
        """Leave the question for a class."""
        self._close_input()

    def _close_input(self) -> None:
        self.query_one("#asked").display = False
        self.say("")
        self.query_one("#rows").focus()

    def action_help(self) -> None:
        """Show keys and states."""
        self.push_screen(HelpScreen())


def run_screen(every: float) -> None:
    """Run the screen until its user quits."""
    with answering() as client:
        Gangster(client.call, every).run()
