"""The manual names everything there is: settings, commands, events, exits, pages."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
from house.checkout import PACKAGE, ROOT

from nqspy.engine.handlers.people import need
from nqspy.model import registry
from nqspy.model.commands import COMMANDS
from nqspy.model.errors import Refusal
from nqspy.model.events import KINDS
from nqspy.model.people import Caller
from nqspy.model.site import Settings
from nqspy.model.tree import declared
from nqspy.userexit import specs

MANUAL = PACKAGE / "manual"
PAGES = sorted(path.stem for path in MANUAL.glob("*.md"))
HOOKS = [name for name, value in vars(specs).items() if hasattr(value, f"{specs.PROJECT}_spec")]


def page(name: str) -> str:
    return (MANUAL / f"{name}.md").read_text()


def objects() -> dict[str, type]:
    return {each.head: each.kind for each in registry.objects()}


def section(text: str, name: str) -> str:
    found = re.search(rf"<!-- table: {name} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert found, f"there is no table {name!r}"
    return found[1]


@pytest.mark.parametrize("head", objects())
def test_every_setting_of_an_object_stands_in_the_qmgr_page(head):
    rows = section(page("qmgr"), f"settings {head}")
    missing = [path for path in declared(objects()[head]) if f"| `{path.replace('/', ' ')}` |" not in rows]
    assert not missing


def test_the_tables_say_what_the_declarations_say():
    words = [sys.executable, ROOT / "scripts" / "manual_tables.py", "--check"]
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(words, env=here, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_daemon_page_refuses_in_the_programs_words():
    with pytest.raises(Refusal) as refused:
        need(Settings(managers={"bob": "o"}), Caller("bob", 1002, 100), "manager", "set global run_limit")
    assert str(refused.value) in page("daemon")


def test_every_kind_of_event_stands_in_the_journal_page():
    assert not [kind for kind in KINDS if f"| `{kind}` |" not in page("journal")]


def test_every_command_stands_in_the_wire_page():
    assert not [cmd for cmd in COMMANDS if f"| `{cmd}` |" not in page("wire")]


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
        for target in re.findall(r"\]\(([^)#]+)\)", page(name)):
            assert (MANUAL / target).exists(), f"{name}.md: {target}"
