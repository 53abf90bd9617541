"""The manual at a terminal: it opens at its index, by a pager, and no word of a table is broken."""

import re
from pathlib import Path

from daemon.live import ROOT
from daemon.terminal import at_a_terminal

from nqspy.cli.umbrella import book

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
