"""Pages of the manual and the README, gone through as they stand there: files are written, commands typed,
and what these print is what the page shows (`…` stands for anything)."""

import getpass
import re
import shlex
import time
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, PATIENCE, ROOT, Live, command

MANUAL = ROOT / "nqspy" / "manual"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMES_SOON = ("qcat", "qstat", "qselect", "nqspy exits trace", "qmgr -c 'show")
"""Commands that only look: what they show may come a moment later."""


def _shown(text: str) -> str:
    """Return a pattern for what the page shows: ``…`` alone stands for any lines, else for any text in
    one."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace(re.escape("…"), ".*") + r"\n"
        for line in text.splitlines()
    ]
    return "".join(lines)


class Reader:
    """Does what the page says, in a folder of its own."""

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


@pytest.mark.parametrize(
    "page", ["firstjobs", "failed", "gpus", "maintenance", "moving", "departments", "foreign"]
)
def test_what_a_guide_shows_is_what_happens(make_live, page):
    live = make_live("play-work/play")
    live.work = live.home.parent
    reader = Reader(live)
    reader.goes_through((MANUAL / f"{page}.md").read_text())
    assert reader.typed[-1].startswith("nqsd stop")


def _comes(typed: str, id: str) -> str:
    """Return a command or option from the tables of the page `coming`, as it may be typed; empty for other
    words."""
    words = typed.replace("CMD", "true").replace("17", id).replace(" me", f" {getpass.getuser()}")
    first = words.partition(" ")[0]
    if typed in ("qsub -I", "mpprun", "CMD") or not first.startswith(("q", "nqspy", "pbsnodes", "-")):
        return ""
    if first.startswith("-"):
        return f"nqspy submit {words} --wrap true" if "=" in words else f"qsub {words} -- true"
    return f"{words} {id}" if words in ("qhold", "qrls", "qrerun") else words


@pytest.mark.slow
def test_what_a_newcomer_types_instead_of_the_former_command_is_taken(make_live):
    page = (MANUAL / "coming.md").read_text()
    live = make_live().site(ONE_QUEUE + "set machine pes=40\ncreate consumable gpu units=(0,1)\n").start()
    reader = Reader(live)
    reader.env["NQSPY_HOME"] = str(live.home)
    live.write("job.sh", "#!/bin/sh\n#SBATCH --time=1:00:00\ntrue\n")
    live.write("nightly.sh", "true\n")
    live.write("one.dat", "1\n")
    live.write("analyse", "#!/bin/sh\ntrue\n").chmod(0o755)
    cells = [
        cell for row in re.findall(r"^\| (`?.*`.*) \|$", page, re.MULTILINE) for cell in row.split(" | ")
    ]
    asked = [text for cell in cells for text in re.findall(r"`([^`]*)`", cell.replace("\\|", "|"))]
    options = {text for text in asked if text.startswith("-")}
    assert options >= {"--array=1-9%2", "--dependency=afterok:17", "--gres=gpu:2", "--gpus 2"}
    for typed in asked:
        id = live.submit("sleep 600", held=typed != "qrerun")
        if typed == "qrerun":
            live.running(id)
        if line := _comes(typed, id):
            reader.types(line, "…\n")
    cron, loop = (found[2] for found in BLOCK.finditer(page))
    nightly = cron.partition("*  ")[2].replace("\\%", "%").replace("/home/anne", str(live.work))
    assert live.sh(nightly, **reader.env).ok().out == live.sh(nightly, **reader.env).ok().out, "the same key"
    assert live.ended(live.sh(loop, **reader.env).ok().out.strip())["exit_status"] == 0
    assert len(reader.typed) > 25


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


@pytest.mark.slow
def test_what_the_page_on_replay_shows_is_what_happens(make_live):
    live = make_live("play-work/play")
    live.work = live.home.parent
    reader = Reader(live)
    reader.goes_through((MANUAL / "replay.md").read_text())
    words = "\n".join(reader.typed)
    for step in ("nqspy replay -c", "qmgr plan", "--steps"):
        assert step in words


# ---------------------------------------------------------------- the README
PAGE = (ROOT / "README.md").read_text()


def _block(title: str, kind: str = "") -> str:
    section = PAGE.partition(f"## {title}\n")[2]
    return re.split(rf"^```{kind}\n", section, flags=re.MULTILINE)[1].partition("```")[0]


def test_the_first_steps_give_what_they_show(make_live):
    live = make_live()
    steps = [line for line in _block("First steps").splitlines() if line.strip()]
    assert len(steps) >= 7
    path = ":".join(dict.fromkeys(command(name)[0].rpartition("/")[0] for name in ("nqsd", "qsub")))
    message = []
    for step in steps:
        done = live.sh(step, PATH=f"{path}:/usr/bin:/bin").ok()
        assert not done.err, done
        message.append(done.out)
    shown = "".join(message)
    identifier = message[1].strip()
    assert re.fullmatch(r"1\.[\w.-]+", identifier)
    assert f"{identifier}  hello" in shown
    rule = next(text for step, text in zip(steps, message, strict=True) if "show long queue" in step)
    assert re.search(r"user[_ ]limit\D+2\b", rule, re.IGNORECASE), rule


def test_the_rule_of_the_readme_is_loaded(make_live):
    live = make_live().site()
    code = _block("First steps", "python")
    live.exit("tests", code)
    live.start()
    assert "tests [on] jobselect" in live.qmgr("show exits").ok().out
