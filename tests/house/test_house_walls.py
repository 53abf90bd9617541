"""The walls between the rooms: import contracts, and that nothing can hide from them."""

import ast
import configparser
import subprocess
import sys
from pathlib import Path

import pytest
from house.checkout import PACKAGE, ROOT, parsed, place, sources, tracked

DATA_FOLDERS = {"manual", "site"}


def test_every_import_respects_the_contracts_of_setup_cfg():
    linter = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=600)
    report = run.stdout.partition("Contracts\n")[2]
    assert run.returncode == 0, report + run.stderr
    assert " 0 broken" in report


def test_every_folder_of_code_is_a_package_that_the_contracts_see():
    folders = {path.parent for path in tracked() if path.suffix == ".py" and path.is_relative_to(PACKAGE)}
    unseen = [
        place(folder)
        for folder in sorted(folders)
        if not (folder / "__init__.py").exists() and not DATA_FOLDERS & set(folder.relative_to(PACKAGE).parts)
    ]
    assert not unseen, f"without __init__.py import-linter skips {unseen}"


def test_the_contract_of_circles_has_no_exemption():
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / "setup.cfg")
    assert not contracts.has_option("importlinter:contract:circles", "ignore_imports")


def test_one_file_alone_writes_the_state_of_a_request():
    writers = {
        place(path)
        for path in sources("nqspy")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Assign) and "State." in ast.unparse(node.value)
        for to in node.targets
        if isinstance(to, ast.Attribute) and to.attr == "state"
    }
    assert writers == {"nqspy/model/transitions.py"}


def test_the_shadow_shares_no_code_with_what_it_judges():
    used = {
        node.module if node.module != "nqspy.model" else f"nqspy.model.{name.name}"
        for path in sources("tests/shadow")
        if not path.name.startswith("test_")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }
    ours = {module for module in used if module.startswith("nqspy")}
    others = {module for module in ours if not module.startswith("nqspy.model.")}
    assert others == {"nqspy.report.past_site"}


@pytest.mark.parametrize("room", ["nqspy", "nqspy.model", "nqspy.cli"])
def test_a_package_on_the_way_of_every_command_imports_nothing_by_itself(room):
    script = f"""
import sys
sys.path.insert(0, sys.argv[1])
old = set(sys.modules)
import {room}
print(*sorted(set(sys.modules) - old))
"""
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(ROOT)], capture_output=True, text=True, check=True
    )
    assert set(run.stdout.split()) <= {"nqspy", room}
