"""Other scripts that drive a client: those of the folder that ``NQSPY_CLIENTS`` names, each with status 0."""

import os
from pathlib import Path

import pytest

GIVEN = os.environ.get("NQSPY_CLIENTS", "")
SCRIPTS = [path for path in sorted(Path(GIVEN).glob("*.py")) if path.name[0] != "_"] if GIVEN else []


@pytest.mark.slow
@pytest.mark.skipif(not SCRIPTS, reason="NQSPY_CLIENTS names no folder of scripts")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_given_script_passes(person, script):
    print(person.call(person.python, script.absolute()))
