"""``nqspy exits new KIND [NAME]``: what it writes can be loaded, passes its check and its own tests as it
stands, and nothing is overwritten."""

import os
import subprocess
import sys

import pytest
from daemon.live import command

from nqspy.cli.umbrella import skeleton
from nqspy.decider.file_check import problems_of
from nqspy.userexit import specs


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return subprocess.run([*command("nqspy"), "exits", "new", *words], capture_output=True, text=True)


def test_there_is_a_skeleton_for_each_hook():
    assert skeleton.kinds() == sorted(specs.ARGUMENTS)


@pytest.mark.parametrize("kind", sorted(specs.ARGUMENTS))
def test_a_skeleton_is_good_as_it_stands(folder, kind):
    skeleton.new(kind, "my-rule")
    assert sorted(each.name for each in folder.iterdir()) == ["_my-rule_test.py", "my-rule.py"]
    assert problems_of(folder / "my-rule.py") == []
    text = (folder / "my-rule.py").read_text()
    assert text.startswith('"""my-rule: ')
    assert "NAME" not in text + (folder / "_my-rule_test.py").read_text()
    assert "set exit my-rule " in text, "each has a setting"


@pytest.mark.slow
def test_their_tests_pass_as_written_and_their_types_and_style_are_right(folder):
    for number, kind in enumerate(sorted(specs.ARGUMENTS)):
        skeleton.new(kind, f"r{number:03}")  # as long as NAME: how lines are broken depends on it
    tests = sorted(each.name for each in folder.glob("_*_test.py"))
    assert len(tests) == len(specs.ARGUMENTS)
    files = sorted(each.name for each in folder.glob("*.py"))
    for words in (
        ["-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        ["-m", "mypy", "--strict", "--cache-dir", "cache", *files],
        ["-m", "ruff", "check", "--no-cache", "--isolated", *files],
        ["-m", "ruff", "format", "--check", "--no-cache", "--isolated", *files],
    ):
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_test_of_a_skeleton_holds_the_rule(folder):
    """Whoever breaks the rule is told by the test that came with it."""
    skeleton.new("jobselect", None)
    path = folder / "jobselect.py"
    path.write_text(path.read_text().replace(">= most.value", "> most.value"))
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "_jobselect_test.py"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    assert "assert ['a', 'b', 'c'] == ['a', 'b']" in done.stdout


def test_the_command_tells_what_it_wrote_and_overwrites_nothing(folder):
    (folder / "exits").mkdir()
    os.umask(old := os.umask(0))
    done = run("jobselect", "exits/quiet.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        "exits/quiet.py", "exits/_quiet_test.py",
    ]  # fmt: skip
    os.umask(old)
    (folder / "exits" / "quiet.py").unlink()
    test = folder / "exits" / "_quiet_test.py"
    test.write_text("mine")
    done = run("jobselect", "exits/quiet")
    assert done.returncode == 1
    assert "exits/_quiet_test.py" in done.stderr
    assert test.read_text() == "mine"
    assert not (folder / "exits" / "quiet.py").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["jobselct"], "jobselct is not an exit (did you mean jobselect?); exits are elected, jobend, "),
        (["submit", "9lives"], "'9lives' cannot be an exit's name"),
        (["jobselect", "json"], "'json' is a module of Python's"),
        (["submit", "my.rule"], "'my.rule' cannot be an exit's name"),
        (["submit", "nowhere/x"], "nowhere/x.py cannot be written: No such file or directory"),
        ([], "missing argument 'KIND'"),
    ],
)
def test_what_is_wrong_is_one_line(folder, words, message):
    done = run(*words)
    assert done.returncode != 0
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(folder.iterdir()) == []
