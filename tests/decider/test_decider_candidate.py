"""A candidate exit is tried without rights and in a process of its own, whatever it does."""

import os

import pytest
from daemon.live import Live

EXIT = "from nqspy.userexit import userexit\n\n@userexit\ndef jobselect(request):\n    return None\n"


@pytest.fixture
def nqspy(tmp_path):
    live = Live(tmp_path / "home", tmp_path / "work").site()
    return lambda *words: live.run("nqspy", *words)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import ctypes\nctypes.string_at(0)\n", "loading it ended its process: it was ended by SIGSEGV"),
        ("import os\nos._exit(3)\n", "loading it ended its process: it ended with status 3"),
        ("import os\nos.fork()\n", "line 2: BlockingIOError"),
        ("x = bytearray(20 << 30)\n", "line 1: MemoryError"),
    ],
)
def test_what_a_candidate_does_while_it_is_loaded_is_told_in_a_line(nqspy, tmp_path, code, said):
    (tmp_path / "wild.py").write_text(code + EXIT)
    done = nqspy("exits", "check", str(tmp_path / "wild.py")).refused(said)
    assert len(done.err.splitlines()) == 1


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: others have nothing to give up")
@pytest.mark.parametrize("words", [("exits", "check"), ("doctor",)])
def test_nothing_of_a_candidate_runs_as_root_or_writes_a_file(nqspy, tmp_path, open_folder, words):
    file = tmp_path / "home" / "exits" / "tells.py"
    told = open_folder / "uid"
    code = "import os\nassert os.getuid() != 0\nopen(os.devnull, 'w').write('x')\ntry:\n"
    file.write_text(f"{code}    open({str(told)!r}, 'w')\nexcept OSError:\n    pass\n{EXIT}")
    done = nqspy(*words, *([str(file)] if words[0] == "exits" else []))
    assert "tells.py" in done.out
    assert "Error" not in done.out
    assert not told.exists()
