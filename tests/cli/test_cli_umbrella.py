"""The umbrella command against a counter on a real socket: what it asks, what it prints, how it fails; and
the manual at a terminal."""

import errno
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from daemon.live import ROOT
from daemon.terminal import at_a_terminal
from typer.testing import CliRunner

from nqspy.cli import nqspy as umbrella
from nqspy.cli.umbrella import book
from nqspy.daemon import tools
from nqspy.model.errors import NqspyError
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.report.night import night_bounds, night_report
from nqspy.report.pages import night_text
from nqspy.report.time_text import zone_of
from nqspy.rpc import messages
from nqspy.rpc.home import nobody_there, socket_path

NOW = Instant(1_772_481_600_000)  # 2026-03-02 20:00 UTC
EVENTS = [
    {"n": n, "at": f"2026-03-02T20:00:0{n}.000+00:00", "kind": "started", "request": f"{n}.ymp", "pes": [0]}
    for n in range(1, 6)
]
EXIT = {
    "name": "dependency", "doc": "Same name, one after another.\nMore.", "enabled": True,
    "hooks": ["jobselect"], "settings": {"queues": {"value": "night", "default": "night"}}, "calls": 7,
    "failures": 1, "total_ms": 3.25, "longest_ms": 1.5,
}  # fmt: skip
TRACE = [
    {"at": NOW, "exit": "dependency", "hook": "jobselect", "answer": "refuse('later')", "error": None},
    {"at": NOW, "exit": "large_memory", "hook": "jobselect", "answer": None, "error": None},
    {"at": NOW, "exit": "broken", "hook": "jobselect", "answer": None, "error": "ZeroDivisionError"},
]


REPORTS = {
    "counters": "counters", "report usage": "report_usage", "report estimates": "report_estimates",
    "report quota": "report_quota",
}  # fmt: skip
ANSWERS = {
    "now": {"now": NOW, "zone": "UTC"},
    **{cmd: {"text": f"{cmd} in words\n", "of": cmd} for cmd in REPORTS.values()},
    "exits_list": {"exits": [EXIT]},
    "exits_trace": {"id": "17.ymp", "trace": TRACE},
}


@pytest.fixture
def counter(desk):
    """Return a counter that answers the umbrella's questions; ``messages``: those it got."""

    def answered(id, message):
        cmd = message["cmd"]
        if cmd == "report_night":
            if message.get("date") == "never":
                return messages.error_answer(id, "'never' is not a date; write it like 2026-03-02")
            data = night_report((), Site(), night_bounds((), zone_of("UTC"), NOW), NOW)
            return messages.result_answer(id, {"text": night_text(data), **data})
        if cmd == "events":
            page = [each for each in EVENTS if each["n"] > message["after"]][:2]
            last = page[-1]["n"] if page else message["after"]
            return messages.result_answer(id, {"events": page, "last": last})
        return messages.result_answer(id, ANSWERS[cmd])

    desk.answers = dict.fromkeys([*ANSWERS, "report_night", "events"], answered)
    return desk


def run(counter, *words):
    return CliRunner().invoke(umbrella.app, ["--home", str(counter.home), *words])


@pytest.mark.parametrize(("words", "cmd"), REPORTS.items())
def test_a_report_comes_in_words_or_as_data(counter, words, cmd):
    assert run(counter, *words.split()).stdout == f"{cmd} in words\n"
    behind = ["--home", "/nowhere", *words.split(), "--home", str(counter.home)]
    assert CliRunner().invoke(umbrella.app, behind).exit_code == 0
    assert json.loads(run(counter, *words.split(), "--json").stdout) == {"of": cmd}


def test_the_night_comes_as_text_data_and_page(counter, tmp_path):
    text = run(counter, "report", "night")
    assert text.stdout.startswith("night: 0 requests: 0 ended well")
    assert not {"date", "group", "final"} & set(counter.messages[-1])
    words = ("--json", "--date", "2026-03-01", "--group", "d1", "--final")
    data = json.loads(run(counter, "report", "night", *words).stdout)
    assert {"groups", "failed", "waiting", "busy", "line"} <= set(data)
    asked = counter.messages[-1]
    assert (asked["date"], asked["group"], asked["final"]) == ("2026-03-01", "d1", True)
    page = tmp_path / "night.html"
    assert run(counter, "report", "night", "--html", str(page)).exit_code == 0
    assert page.read_text().startswith("<!doctype html>")
    for words in (["--html", str(tmp_path / "no" / "night.html")], ["--date", "never"]):
        failed = run(counter, "report", "night", *words)
        assert (failed.exit_code, failed.stdout, failed.stderr.count("\n")) == (1, "", 1)


def test_quotas_come_for_the_night_or_for_any_period_by_the_daemons_clock(counter):
    run(counter, "report", "quota")
    assert "from" not in counter.messages[-1]
    run(counter, "report", "quota", "--from", "2026-03-02T10:00", "--to", "30min", "--shift", "night")
    asked = [counter.messages[-1][name] for name in ("from", "to", "shift")]
    assert asked == [NOW - 10 * 3_600_000, NOW - 30 * 60_000, "night"]


def test_events_are_asked_for_page_by_page_and_are_json_lines(counter):
    lines = run(counter, "events", "--json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == EVENTS
    assert [each["after"] for each in counter.messages] == [0, 2, 4, 5]


def test_events_since_a_moment_are_asked_for_by_the_daemons_clock(counter):
    assert "3.ymp" in run(counter, "events", "--since", "30min").stdout
    assert counter.messages[1]["since"] == NOW - 30 * 60_000
    wrong = run(counter, "events", "--since", "yesterday")
    assert wrong.exit_code == 1
    assert "is not a moment" in wrong.stderr


def test_following_waits_for_what_happens_and_ends_with_the_reader(counter):
    """The reader closes the pipe; the next event ends the command quietly."""
    counter.answers["events"] = lambda id, message: messages.result_answer(
        id, {"events": [EVENTS[0] | {"n": message["after"] + 1}], "last": message["after"] + 1}
    )
    process = subprocess.Popen(
        [sys.executable, "-c", "from nqspy.cli.nqspy import main; main()", "events", "--follow", "--json",
         "--home", str(counter.home)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["n"] == 1
    process.stdout.close()
    assert process.wait(timeout=180) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    assert counter.messages[1]["wait"]


def test_exits_are_listed_with_what_they_cost(counter):
    text = run(counter, "exits", "list").stdout
    assert text.startswith("dependency (on): jobselect\n  Same name, one after another.\n")
    assert "7 calls, 1 failure, 3.2 ms in all, longest 1.50 ms" in text
    assert "queues = night" in text
    assert json.loads(run(counter, "exits", "list", "--json").stdout) == {"exits": [EXIT]}


def test_a_trace_says_what_each_exit_answered(counter):
    text = run(counter, "exits", "trace", "17").stdout
    assert counter.messages[0]["request"] == "17"
    for word in ("refuse('later')", "the standard rules", "failed: ZeroDivisionError", "2026-03-02 20:00:00"):
        assert word in text


@pytest.mark.parametrize(
    ("words", "became"),
    [
        ("--home /h exits check x.py", "daemon.tools exits-check x.py --home /h"),
        ("--home /h doctor --json", "daemon.tools doctor --json --home /h"),
        ("sim log.swf --pes 8 --json", "sim.command log.swf --pes 8 --json"),
        ("sim --help", "sim.command --help"),
        ("--home /h replay 7d", "sim.replay.command --home /h 7d"),
    ],
)
def test_what_another_room_does_becomes_its_command(monkeypatch, words, became):
    def execv(program, command):
        assert (program, command[:3]) == (sys.executable, [sys.executable, "-P", "-m"])
        assert command[3:] == f"nqspy.{became}".split()
        raise SystemExit(77)

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(sys, "argv", ["nqspy", *words.split()])
    with pytest.raises(SystemExit) as ended:
        umbrella.main()
    assert ended.value.code == 77


STRANGE = 'raise SystemExit("what lies here was run")\n'


def test_a_file_in_the_folder_one_stands_in_is_not_taken_for_a_module_of_pythons(tmp_path):
    for name in ("json", "signal", "typer"):
        (tmp_path / f"{name}.py").write_text(STRANGE)
    program = [sys.executable, "-P", "-c", "from nqspy.cli.nqspy import main; main()"]
    done = subprocess.run(
        [*program, "exits", "check", "x.py"], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.getcwd(), "NQSPY_HOME": str(tmp_path / "none")},
    )  # fmt: skip
    assert (done.returncode, done.stderr[:7], done.stderr.count("\n")) == (1, "nqspy: ", 1)


def test_a_python_that_cannot_be_run_is_one_line(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    failed = CliRunner().invoke(umbrella.app, ["--home", "/h", "exits", "check", "x.py"])
    assert failed.exit_code == 1
    assert failed.stderr == f"nqspy: /nowhere/python cannot be run: {os.strerror(errno.ENOENT)}\n"


# ---------------------------------------------------------------- the manual
@pytest.fixture
def shelf(tmp_path):
    (tmp_path / "shifts.md").write_text("# Shifts\n\nA *named* list.\n")
    (tmp_path / "shares.md").write_text("# Shares and use\n")
    (tmp_path / "README.md").write_text("# not a topic\n")
    return tmp_path


def test_the_manual_prints_its_index_and_topics_plainly_into_a_pipe(shelf, capsys):
    book.print_manual(None, shelf)
    assert "- `shares`: Shares and use\n- `shifts`: Shifts\n" in capsys.readouterr().out
    book.print_manual("shifts", shelf)
    assert capsys.readouterr().out == "# Shifts\n\nA *named* list.\n"
    book.print_manual("shi", shelf)
    assert capsys.readouterr().out.startswith("# Shifts")


def test_a_word_that_is_no_topic_finds_the_pages_that_have_it(shelf, capsys):
    (shelf / "shifts.md").write_text("# Shifts\n\nUse it. The use of it. Use.\n\n## Holidays\n")
    book.print_manual("USE", shelf)
    found = capsys.readouterr().out.splitlines()[2:]
    assert found == ["- `shares`: Shares and use", "- `shifts`: Shifts"]
    book.print_manual("holiday", shelf)
    assert capsys.readouterr().out.splitlines()[2:] == ["- `shifts`: Shifts (Holidays)"]


def test_the_manual_of_nqspy_finds_shares_for_quota_and_completes_topics(capsys):
    book.print_manual("quota")
    assert {"departments", "shares"} <= set(re.findall(r"^- `(\w+)`", capsys.readouterr().out, re.MULTILINE))
    env = {"_NQSPY_COMPLETE": "complete_bash", "COMP_WORDS": "nqspy manual fir", "COMP_CWORD": "2"}
    completed = CliRunner().invoke(umbrella.app, [], prog_name="nqspy", env=env)
    assert completed.stdout.split() == ["firstjobs", "firstrule"]


def test_an_unknown_word_names_the_topics(shelf, capsys):
    with pytest.raises(SystemExit) as ended:
        book.print_manual("xyz", shelf)
    assert ended.value.code == 2
    assert "topics: shares, shifts" in capsys.readouterr().err


def test_version_and_help():
    assert CliRunner().invoke(umbrella.app, ["version"]).stdout.startswith("nqspy")
    helped = CliRunner().invoke(umbrella.app, ["--help"]).stdout
    assert all(word in helped for word in ("counters", "report", "events", "exits", "doctor", "manual"))


# ---------------------------------------------------------------- mistakes
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["foo"], "no such command 'foo'; see `nqspy --help`"),
        (["events", "--bad"], "no such option: --bad; see `nqspy events --help`"),
        (["exits", "trace"], "missing argument 'ID'; see `nqspy exits trace --help`"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(monkeypatch, capsys, words, expected):
    monkeypatch.setattr(sys, "argv", ["nqspy", *words])
    with pytest.raises(SystemExit) as ended:
        umbrella.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"nqspy: {expected}\n"


@pytest.mark.parametrize(
    "words",
    [["counters"], ["events"], ["events", "--follow"], ["events", "--since", "9h"], ["exits", "list"],
     ["report", "night"], ["report", "quota", "--from", "9h"]],
)  # fmt: skip
def test_a_daemon_that_was_killed_is_missed_at_once(tmp_path, words):
    """Its pid file and its socket are still there, as after a power failure."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(socket_path(str(tmp_path)))
    (tmp_path / "nqsd.pid").write_text("1\n")
    began = time.monotonic()
    failed = CliRunner().invoke(umbrella.app, ["--home", str(tmp_path), *words])
    assert failed.exit_code == 1
    assert failed.stderr == f"nqspy: {nobody_there(str(tmp_path))}\n"
    assert time.monotonic() - began < 5


def test_a_candidate_in_the_folder_one_is_in_is_named_as_it_was_given(tmp_path):
    (tmp_path / "e1.py").write_text("x = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "nqspy.daemon.tools", "exits-check", "e1.py"],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert done.stderr.startswith("nqspy: e1.py: ")


def test_whoever_asks_waits_for_no_room_of_the_daemon():
    heavy = {"numpy", "peewee", "nqspy.model.site", "nqspy.model.events"}
    code = f"import nqspy.cli.nqspy, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_database_of_somebody_else_is_not_backed_up(tmp_path, monkeypatch):
    (tmp_path / "nqs.db").write_text("")
    monkeypatch.setattr("nqspy.daemon.tools.os.access", lambda path, mode: False)
    with pytest.raises(NqspyError, match="only its owner and root make backups"):
        tools.backup(None, str(tmp_path))


PAGES = sorted((ROOT / "nqspy" / "manual").glob("*.md"))


def test_a_terminal_gets_it_by_the_persons_pager(make_live):
    live = make_live()
    kept = live.work / "paged"
    pager = live.write("pager", f"#!/bin/sh\nexec cat > {kept}\n")
    pager.chmod(0o755)
    done = at_a_terminal(live, "nqspy", "manual", "shifts", out=True, tty=True, PAGER=str(pager))
    assert (done.status, done.err) == (0, "")
    assert "Shifts" in kept.read_text()
    kept.unlink()
    for pager_there_is_none in ("", "/no/such/pager"):
        done = at_a_terminal(live, "nqspy", "manual", out=True, tty=True, PAGER=pager_there_is_none)
        assert "The nqspy manual" in done.err
    done = at_a_terminal(live, "nqspy", "manual", out=True, tty=True, PAGER=str(pager), TERM="dumb")
    assert "The nqspy manual" in done.err
    assert not kept.exists(), "a pipe, and a terminal that can do nothing, have no pager"
    index = live.run("nqspy", "manual", env={"PAGER": str(pager)}).ok().out
    assert index == (ROOT / "nqspy" / "manual" / "index.md").read_text()
    assert not kept.exists()


def _words(page: Path) -> set[str]:
    rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
    plain = re.sub(r"\]\([^)]*\)|[\[`*|\\\\]", " ", "\n".join(rows).replace("<br>", " "))
    return {word for word in plain.split() if set(word) - set("-:") and len(word) < 70}


def test_no_word_of_a_table_is_broken_at_80_columns():
    for page in PAGES:
        drawn = book.drawn(page.read_text(), 80)
        assert max(len(line.rstrip()) for line in drawn.splitlines()) <= 80, page.name
        shown = " ".join(drawn.split())
        assert not {word for word in _words(page) if word not in shown}, page.name
