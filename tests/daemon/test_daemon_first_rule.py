"""The manual's page "Your first rule in ten minutes", gone through as it stands there: its files are written,
its commands typed, and what they print is what the page shows (`…` stands for anything)."""

import re
import shlex
import time
from pathlib import Path

import pytest
from daemon.live import PATIENCE, ROOT, Live, command

MANUAL = ROOT / "nqspy" / "manual"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMES_SOON = ("qstat", "qselect", "nqspy exits trace")
"""Commands that only look: what they show may come a moment later."""


def _shown(text: str) -> str:
    """A pattern of what the page shows: ``…`` alone stands for any lines, else for anything in one."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace(re.escape("…"), ".*") + r"\n"
        for line in text.splitlines()
    ]
    return "".join(lines)


class Reader:
    """Somebody who does what the page says, in a folder of his own."""

    def __init__(self, live: Live) -> None:
        self.live = live
        path = dict.fromkeys(str(Path(command(name)[0]).parent) for name in ("nqsd", "qsub"))
        self.env = {"PATH": ":".join([*path, "/usr/bin:/bin"]), "NQSPY_HOME": ""}
        self.typed: list[str] = []

    def goes_through(self, page: str) -> None:
        for found in BLOCK.finditer(page):
            kind, text = found[1], found[2]
            if kind == "python":
                [*_, name] = re.findall(r"`(\w+\.py)`", page[: found.start()].rpartition("\n\n")[2])
                self.live.write(name, text)
            else:
                for typed, _, shown in (
                    step.partition("\n") for step in re.split(r"^\$ ", text, flags=re.M)[1:]
                ):
                    self.types(typed, shown)

    def types(self, line: str, shown: str) -> None:
        self.typed.append(line)
        if line.startswith("export "):
            name, _, value = shlex.split(line)[1].partition("=")
            self.env[name] = value.replace("$PWD", str(self.live.work))
            return
        end = time.monotonic() + (PATIENCE if line.startswith(COMES_SOON) else 0)
        while True:
            done = self.live.sh(line, **self.env).ok()
            if re.fullmatch(_shown(shown), done.out):
                return
            assert time.monotonic() < end, f"$ {line}\n{done.out}\ninstead of\n{shown}"


@pytest.mark.slow
def test_your_first_rule_in_ten_minutes(make_live):
    live = make_live("play-work/play")
    live.work = live.home.parent
    reader = Reader(live)
    page = (MANUAL / "firstrule.md").read_text()
    began = time.monotonic()
    reader.goes_through(page)
    assert time.monotonic() - began < 600
    words = " ".join(reader.typed)
    for step in ("exits new", "pytest", "exits check", "exits try", "--since 7d", "reload exits"):
        assert step in words


def test_the_page_on_testing_shows_what_happens(make_live, monkeypatch):
    page = (MANUAL / "testing.md").read_text()
    code = BLOCK.search(page)[2]
    live = make_live()
    live.write("quiet.py", BLOCK.search((MANUAL / "exits.md").read_text())[2])
    monkeypatch.chdir(live.work)
    exec(compile(code, "testing.md", "exec"), {"__name__": "page"})
    failing = "site = Site()\nsite.submit('a')\nsite.submit('b')\nsite.must_wait('b')\n"
    with pytest.raises(AssertionError) as wrong:
        exec(code.splitlines()[0] + "\n" + failing, {"__name__": "page"})
    assert f"AssertionError: {wrong.value}\n" in page
