"""How commands are installed: scripts of ours, which load nothing that the command does not need."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def source(tmp_path):
    """What a build reads, without the modules."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("nqspy", "exits", "queues.d"):
        (tmp_path / name).mkdir()
    return tmp_path


def built(source, command, python=sys.executable):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [python, "-W", "ignore", "setup.py", "-q", *command]
    done = subprocess.run(words, cwd=source, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def commands():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


def test_each_command_is_a_script_that_loads_its_module_alone(source):
    built(source, ["build_scripts", "-e", "python", "-d", "made"])
    scripts = {file.name: file.read_text().splitlines() for file in (source / "made").iterdir()}
    assert sorted(scripts) == sorted(commands())
    for name, lines in scripts.items():
        module, _, function = commands()[name].partition(":")
        loaded = [line for line in lines if "import" in line]
        assert lines[0] == "#!python", "pip puts the interpreter here"
        assert loaded == ["import sys", f"from {module} import {function}"]


def test_an_interpreter_with_a_blank_in_its_path_is_left_to_pip(source, tmp_path):
    (tmp_path / "a b").mkdir()
    python = tmp_path / "a b" / "python"
    python.symlink_to(sys.executable)
    built(source, ["egg_info"], str(python))
    points = (source / "nqspy.egg-info" / "entry_points.txt").read_text()
    assert all(f"{name} = {place}" in points for name, place in commands().items())
