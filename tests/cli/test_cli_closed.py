"""Commands whose output is closed, or goes where nothing can be written."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("words", ["cli.qstat --help", "cli.nqspy --help", "cli.qmgr --version"])
@pytest.mark.parametrize("outcome", ["full", "closed"])
def test_an_output_that_is_full_or_closed_is_no_traceback(words, outcome, tmp_path):
    module, *after = words.split()
    name = module.rpartition(".")[2]
    code = f"import sys; sys.argv[1:] = {after!r}; from nqspy.{module} import main; main()"
    line = f'"$@" {">/dev/full" if outcome == "full" else ">&-"}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", sys.executable, "-c", code], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "NQSPY_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert len(done.stderr.splitlines()) <= 1, done.stderr
    if outcome == "full":
        assert done.returncode == 1
        assert done.stderr.startswith(f"{name}: ")
        assert done.stderr.endswith(f"{os.strerror(errno.ENOSPC)}\n")
