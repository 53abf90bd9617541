"""Scripts of real-world shapes (``tests/data/scripts.toml``) and what each must mean: no more and no less."""

import os
import tomllib
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "scripts.toml"
SCRIPTS = tomllib.loads(DATA.read_text())["script"]
EVERYWHERE = {"owner", "uid", "script", "script_name", "environment", "host"}


def meaning(item, here):
    """Return what a request asks for, by field; paths below the current folder begin with ``./``."""
    found = {"umask": os.umask(0), "workdir": here}
    os.umask(found["umask"])
    asked = {name: value for name, value in item["spec"].items() if name not in EVERYWHERE}
    asked = {name: value for name, value in asked.items() if found.get(name, ()) != value}
    flat = {}
    for name, value in asked.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": each for key, each in value.items()}
        elif value != "":
            flat[name] = value
    return {name: value.replace(f"{here}/", "./").replace(here, ".") if isinstance(value, str) else value
            for name, value in flat.items()}  # fmt: skip


def test_there_are_enough_of_them():
    assert len(SCRIPTS) >= 80
    assert len({each["what"] for each in SCRIPTS}) == len(SCRIPTS)


@pytest.mark.parametrize("each", SCRIPTS, ids=[each["what"].replace(" ", "-") for each in SCRIPTS])
def test_a_script_means_what_it_must(desk, screen, each):
    Path("run.sh").write_text(each["text"])
    Path("err").mkdir()
    dialect = [f"--dialect={each['dialect']}"] if "dialect" in each else []
    status, out, err = screen.run(["qsub", *dialect, "run.sh"])
    if "refused" in each:
        assert (status > 0, out) == (True, "")
        assert err.startswith(f"qsub: {each['refused']}"), err
        return
    assert status == 0
    assert all(line.startswith("qsub: warning: ") for line in err.splitlines()), err
    item = next(message for message in desk.messages if message["cmd"] == "submit")["items"][0]
    assert meaning(item, os.getcwd()) == each["means"]
