"""The manual names everything there is: settings, commands, events, exits, pages."""

import os
import re
import runpy
import subprocess
import sys
import tomllib

import pytest
from house.checkout import PACKAGE, ROOT

from nqspy.engine.handlers.people import need
from nqspy.model.errors import Refusal
from nqspy.model.people import Caller
from nqspy.model.site import Settings
from nqspy.userexit import specs

MANUAL = PACKAGE / "manual"
PAGES = sorted(path.stem for path in MANUAL.glob("*.md"))
HOOKS = [name for name, value in vars(specs).items() if hasattr(value, f"{specs.PROJECT}_spec")]


def page(name: str) -> str:
    return (MANUAL / f"{name}.md").read_text()


def test_the_tables_say_what_the_declarations_say():
    words = [sys.executable, ROOT / "scripts" / "manual_tables.py", "--check"]
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(words, env=here, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_each_table_of_declarations_stands_on_a_page():
    known = runpy.run_path(str(ROOT / "scripts" / "manual_tables.py"))["tables"]()
    placed = re.findall(r"<!-- table: (.+) -->", "".join(page(name) for name in PAGES))
    assert sorted(placed) == sorted(known)


def test_the_daemon_page_refuses_in_the_programs_words():
    with pytest.raises(Refusal) as refused:
        need(Settings(managers={"bob": "o"}), Caller("bob", 1002, 100), "manager", "set global run_limit")
    assert str(refused.value) in page("daemon")


def test_every_hook_of_the_user_exits_is_explained():
    assert "jobselect" in HOOKS
    assert not [hook for hook in HOOKS if f"`{hook}(" not in page("exits")]


def test_every_program_that_is_installed_is_explained():
    programs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    book = "".join(page(name) for name in PAGES)
    assert not [name for name in programs if f"`{name}" not in book]


def test_the_index_leads_to_every_page_and_no_link_is_dead():
    linked = set(re.findall(r"\]\(([a-z]+)\.md\)", page("index")))
    assert linked == set(PAGES) - {"index"}
    for name in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page(name)):
            assert (MANUAL / (target or f"{name}.md")).exists(), f"{name}.md: {target}"
            assert not anchor or anchor in anchors(target.removesuffix(".md") or name), (
                f"{name}.md: #{anchor}"
            )


def anchors(name: str) -> set[str]:
    """Return the anchors of a page's headings, as web sites make them."""
    plain = re.sub(r"\]\([^)]*\)", "", page(name))
    headings = re.findall(r"^#+ (.*)$", plain, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


KINDS = {
    "Tutorials": "Tutorial", "How to": "How-to", "Explanation": "Explanation", "Reference": "Reference",
    "Evidence": "Evidence",
}  # fmt: skip


def test_each_page_says_which_kind_it_is_and_stands_there_in_the_index():
    groups = dict(re.findall(r"^## (.+)\n((?:- .*\n)+)", page("index"), re.MULTILINE))
    assert list(groups) == list(KINDS)
    for group, kind in KINDS.items():
        for name in re.findall(r"\((\w+)\.md\)", groups[group]):
            assert re.search(r"^\*(\S+)\.\*", page(name), re.MULTILINE)[1] == kind, name


def test_no_line_of_the_manual_is_wider_than_120_columns():
    wide = {name: max(map(len, page(name).splitlines())) for name in PAGES}
    assert not {name: width for name, width in wide.items() if width > 120}
