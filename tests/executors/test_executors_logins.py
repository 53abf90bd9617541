"""What a login gives where there is no PAM to ask: limits, search path, variables, from the files in /etc."""

from pathlib import Path

import pytest

from nqspy.executors.person import Person, limits_of, smaller, variables

ANNE = Person(1001, 1001, "anne", "/home/anne", "/bin/bash", 1001)
ROOT = Person(0, 0, "root", "/root", "/bin/sh", 0)
GROUPS = {"anne": 1001, "users": 100}


@pytest.fixture
def etc(tmp_path: Path):
    (tmp_path / "etc/security/limits.d").mkdir(parents=True)

    def write(name: str, text: str) -> str:
        (tmp_path / "etc" / name).write_text(text)
        return str(tmp_path)

    return write


def test_files_that_are_not_there_say_nothing(tmp_path):
    assert limits_of(ANNE, GROUPS, str(tmp_path)) == {}
    assert variables(ANNE, str(tmp_path)) == {
        "HOME": "/home/anne", "USER": "anne", "LOGNAME": "anne", "SHELL": "/bin/bash",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("anne hard nofile 100", {"NOFILE": (None, 100)}),
        ("anne - nproc 50", {"NPROC": (50, 50)}),
        ("@users soft stack 64", {"STACK": (65536, None)}),
        ("@100: soft core 0", {"CORE": (0, None)}),
        ("1000:2000 hard cpu 2", {"CPU": (None, 120)}),
        ("* hard memlock unlimited", {"MEMLOCK": (None, -1)}),
        ("ben hard nofile 100", {}),
        ("@wheel hard nofile 100", {}),
        ("% hard nofile 100", {}),
        ("* hard maxlogins 3", {}),
        ("* hard nofile many   # no number", {}),
        ("# anne hard nofile 100", {}),
    ],
)
def test_each_kind_of_line(etc, line, found):
    assert limits_of(ANNE, GROUPS, etc("security/limits.conf", line + "\n")) == found


def test_the_closest_line_counts_then_the_last(etc):
    etc("security/limits.conf", "anne hard nofile 10\n@users hard nofile 20\n* hard nofile 30\n* hard as 1\n")
    root = etc("security/limits.d/50-more.conf", "* hard as 2\n")
    assert limits_of(ANNE, GROUPS, root) == {"NOFILE": (None, 10), "AS": (None, 2048)}


def test_root_gets_only_what_names_root(etc):
    root = etc("security/limits.conf", "* hard nofile 10\n@users hard nproc 20\nroot hard core 0\n")
    assert limits_of(ROOT, {"root": 0, "users": 100}, root) == {"CORE": (None, 0)}


def test_of_queue_and_login_the_smaller_limit_counts():
    asked = {"CORE": (100, 100), "CPU": (10, 15), "AS": (500, 500)}
    login = {"CORE": (0, 200), "CPU": (None, 12), "AS": (None, -1), "NPROC": (5, None)}
    assert smaller(asked, login) == {
        "CORE": (0, 100), "CPU": (10, 12), "AS": (500, 500), "NPROC": (5, -1),
    }  # fmt: skip


def test_the_environment_of_a_login(etc):
    etc("login.defs", "ENV_SUPATH\tPATH=/sbin:/bin\nENV_PATH\tPATH=/site/bin:/bin\n")
    root = etc("environment", 'LANG="fr_FR.UTF-8"\nexport TZ=Europe/Paris\nnot a line\nHOME=/tmp\n')
    found = variables(ANNE, root)
    assert (found["PATH"], found["LANG"], found["TZ"]) == ("/site/bin:/bin", "fr_FR.UTF-8", "Europe/Paris")
    assert found["HOME"] == "/home/anne"
    assert variables(ROOT, root)["PATH"] == "/sbin:/bin"
