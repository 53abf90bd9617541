"""The files of the repository: nothing of a machine in them, the lock complete, the scripts usable."""

import os
import re
import subprocess
import sys
import tomllib
from functools import cache

import pytest
from house.checkout import PACKAGE, ROOT, place, tracked

HOSTS = (
    "pypi" + ".org", "python" + "hosted", "registry." + "npmjs", "deb." + "debian", "security." + "debian",
)  # fmt: skip
PLACES = re.compile(r"(?<![\w.~}/-])/(?:work|opt)/|/" + r"root/\.|bash_" + "jobs")
SCRIPTS = ("quickstart", "test", "check", "clients", "bench", "chaos", "house", "lock", "plans")


def _texts():
    for path in tracked():
        try:
            yield path, path.read_text()
        except UnicodeDecodeError:
            continue


def test_no_file_names_a_package_registry_or_a_place_of_somebodys_machine():
    found = []
    for path, text in _texts():
        found += [f"{place(path)}: {host}" for host in HOSTS if host in text]
        found += [f"{place(path)}: {hit[0]}" for hit in PLACES.finditer(text)]
    assert not found


def _names(text: str) -> set[str]:
    lines = (line for line in text.splitlines() if re.match(r"[a-zA-Z]", line))
    return {re.split(r"[<>=! ;\[]", line)[0].lower() for line in lines}


def test_the_lock_pins_every_dependency_with_hashes():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = _names("\n".join([*project["project"]["dependencies"], *project["build-system"]["requires"]]))
    run, tests = ((ROOT / "requirements" / name).read_text() for name in ("run.txt", "test.txt"))
    assert wanted <= _names(run)
    assert _names((ROOT / "requirements" / "test.in").read_text()) <= _names(tests)
    clients = (ROOT / "requirements" / "clients.txt").read_text()
    assert _names((ROOT / "requirements" / "clients.in").read_text()) <= _names(clients)
    for text in (run, tests, clients):
        pinned = [entry for entry in re.split(r"\n(?=[a-z])", text) if re.match(r"[a-z]", entry)]
        assert all("==" in entry and "--hash=sha256:" in entry for entry in pinned)
    ours, theirs = (dict(re.findall(r"^([a-z0-9-]+)==(\S+)", each, re.MULTILINE)) for each in (run, tests))
    common = ours.keys() & theirs.keys()
    assert common
    assert {name: ours[name] for name in common} == {name: theirs[name] for name in common}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_can_be_run_and_explains_itself(script):
    path = ROOT / "scripts" / script
    assert os.access(path, os.X_OK)
    run = subprocess.run([path, "--help"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0
    assert run.stdout.startswith(f"scripts/{script}: ")


def test_the_build_server_runs_the_same_script_as_people():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "scripts/test" in (ROOT / ".ci" / "run").read_text()


def test_setting_up_takes_the_two_commands_of_the_readme():
    text = (ROOT / "README.md").read_text()
    block = re.search(r"```\n(scripts/[^`]+)```", text)
    assert block is not None
    assert [line.split()[0] for line in block[1].splitlines()] == ["scripts/quickstart", "scripts/test"]


def test_the_readme_names_the_commands_that_are_installed():
    named = re.search(r"installs the commands `([^`]+)`", (ROOT / "README.md").read_text())
    assert named is not None
    commands = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert sorted(named[1].split()) == sorted(commands)


WITHIN = {
    f"{folder}/": room
    for room, folders in {
        "core": "order variants fallback gate placement timeline preemption",
        "engine": "handlers virtual replay",
    }.items()
    for folder in folders.split()
}


def test_the_map_names_only_what_exists():
    """In the map's lines the words behind a colon are modules of the room, but for remarks in brackets."""
    layout = (PACKAGE / "README.md").read_text().split("## Layout\n```\n")[1].split("```")[0]
    room, missing = PACKAGE, []
    for line in layout.splitlines():
        if found := re.match(r"\s*(\w+/)", line):
            room = PACKAGE / WITHIN.get(found[1], "") / found[1]
        listed = re.sub(r"\([^)]*\)|[,;]", " ", line.partition(": ")[2]) if line[:1] != "p" else ""
        paths = [room / word for word in listed.split()]
        missing += [
            place(path) for path in paths if not path.is_dir() and not path.with_suffix(".py").exists()
        ]
    assert not missing


def test_measures_find_all_that_they_import():
    """Without being run: what they measure may have been renamed since."""
    here = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "scripts")))}
    scripts = sorted(path.stem for path in (ROOT / "scripts").glob("bench*.py"))
    words = (sys.executable, "-c", f"import {', '.join(scripts)}")
    run = subprocess.run(words, env=os.environ | here, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


ROOMS = sorted(path for path in tracked() if path.name == "README.md" and path.parent.parent == PACKAGE)


@pytest.mark.parametrize("page", ROOMS, ids=lambda path: path.parent.name)
def test_the_page_of_a_room_names_only_what_exists(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    named = [token for token in re.findall(r"`([^`\n]+)`", text) if re.fullmatch(r"[\w./]+", token)]
    assert not {word for token in named for word in re.findall(r"\w+", token)} - _known_words()


@cache
def _known_words():
    code = "".join(path.read_text() for path in tracked() if path.suffix == ".py" and PACKAGE in path.parents)
    return set(re.findall(r"\w+", " ".join([code, *(place(path) for path in tracked())])))


def test_each_folder_has_a_page_or_stands_on_that_of_a_folder_above():
    folders = {path.parent for path in tracked() if not {"data", ".ci"} & set(path.relative_to(ROOT).parts)}
    missing = []
    for folder in sorted(folders):
        pages = [above / "README.md" for above in (folder, *folder.parents) if above.is_relative_to(ROOT)]
        texts = [page.read_text() for page in pages[1:] if page.exists()]
        if not pages[0].exists() and not any(re.search(rf"\b{folder.name}\b", text) for text in texts):
            missing.append(place(folder))
    assert not missing
