"""Scripts and lists as other systems write them, and lines that are nearly directives."""

import os
import subprocess

import pytest
from daemon.live import ROOT, command

from nqspy.daemon import files
from nqspy.model.errors import BadValue, NqspyError
from nqspy.qmgr.parser import parse_text
from nqspy.rpc.submission import submission

BOM = b"\xef\xbb\xbf"
WARNING = "qsub: warning: "


@pytest.fixture
def hand_in(desk, screen, tmp_path):
    """Submit a script of these bytes; return exit status, errors, and the item."""

    def run(script: bytes, *words: str, command: str = "qsub"):
        (tmp_path / "job.sh").write_bytes(script)
        status, _, err = screen.run([command, *words, "job.sh"])
        return status, err, desk.submitted if status == 0 else None

    return run


def body(item) -> bytes:
    return item["script"].encode("latin-1")


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        (BOM + b"#!/bin/sh\r\n#QSUB -r named\r\n# \xe9\r", b"#!/bin/sh\n#QSUB -r named\n# \xe9"),
        (b"#!/bin/sh\n#PBS -N named\r\na\r\nb\r\n", b"#!/bin/sh\n#PBS -N named\na\nb\n"),
        (b"#!/bin/sh\n#PBS -N named\na\nprintf 'x\r\n'\n", b"#!/bin/sh\n#PBS -N named\na\nprintf 'x\r\n'\n"),
    ],
)
def test_a_script_of_windows_runs_as_it_was_meant(hand_in, script, kept):
    status, err, item = hand_in(script)
    assert (status, body(item), item["spec"]["name"]) == (0, kept, "named")
    assert err
    assert all(line.startswith(WARNING + "job.sh: ") for line in err.splitlines())
    assert hand_in(script, "-z")[1] == ""


@pytest.mark.parametrize("script", [b"#!/bin/sh\ntrue\n\0\r\n\0", b"\x7fELF\2\1\1\0\r\n\0", b"#!/bin/sh\n\r"])
def test_what_is_no_text_of_windows_keeps_its_bytes(hand_in, script):
    assert body(hand_in(script)[2]) == script


@pytest.mark.parametrize("code", ["utf-16", "utf-16-be"])
def test_utf_16_is_refused(desk, hand_in, screen, tmp_path, code):
    status, err, _ = hand_in("#!/bin/sh\ntrue\n".encode(code))
    assert (status, err.count("\n"), "UTF-16" in err) == (1, 1, True)
    (tmp_path / "x.list").write_bytes("job.sh\n".encode(code))
    assert "UTF-16" in screen.run("qsub --list x.list")[2]
    assert not desk.messages


def test_a_list_of_windows_is_read(desk, screen, tmp_path):
    (tmp_path / "x.list").write_bytes(BOM + b"-N one job.sh\r\n\r\njob.sh last\r\n")
    assert screen.run("qsub --list x.list")[::2] == (0, "")
    one, two = desk.messages[-1]["items"]
    assert (one["spec"]["name"], two["spec"]["args"]) == ("one", ["last"])


def test_directives_are_utf_8(desk, hand_in, tmp_path):
    (tmp_path / "größe").mkdir()
    script = "#!/bin/sh\n#PBS -N grüße -o größe/out\n#PBS -v X=é,Y=\udcff\ntrue\n"
    _, _, item = hand_in(script.encode("utf-8", "surrogateescape"))
    assert item["spec"]["name"] == "grüße"
    assert item["spec"]["output"]["stdout"] == f"{tmp_path}/größe/out"
    assert {"X=\xc3\xa9", "Y=\xff"} <= set(item["environment"].split("\0"))
    status, err, _ = hand_in(b"#PBS -N d\xe9\n")
    assert (status, err.count("\n")) == (1, 1)
    assert "UTF-8" in err


@pytest.mark.parametrize(
    ("line", "command"), [("  #PBS -N x", "qsub"), ("\t#QSUB -r x", "qsub"), (" \t #SBATCH -J x", "submit")]
)
def test_an_indented_directive_is_read(hand_in, line, command):
    status, err, item = hand_in(f"#!/bin/sh\n{line}\n".encode(), command=command)
    assert (status, err, item["spec"]["name"]) == (0, "", "x")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("#pbs -l walltime=9", "qsub"), ("#PBS-l walltime=9", "qsub"), ("# PBS -N x", "qsub"),
        ("#qsub -q x", "qsub"), ("# SBATCH -n 2", "qsub"), ("# SBATCH -n 2", "submit"),
        ("#sbatch --time=3", "submit"), ("true\n#PBS -N x", "qsub"), ("true\n#QSUB -r x", "qsub"),
        ("true\n\n#SBATCH -J x", "submit"), ("#PBS\u00a0-N x", "qsub"), ("#\u00a0PBS -N x", "qsub"),
    ],
)  # fmt: skip
def test_what_looks_like_a_directive_and_is_none_is_told(hand_in, line, command):
    status, err, item = hand_in(f"#!/bin/sh\n# comment\n{line}\n".encode(), command=command)
    number = 3 + line.count("\n")
    assert (status, err.count("\n"), item["spec"]["name"]) == (0, 1, "job.sh")
    assert f"warning: job.sh line {number}: " in err


@pytest.mark.parametrize(
    "line",
    [
        "##PBS -l walltime=9", "# #PBS -N x", "# PBS scripts begin so", "#QSUBmit", "#  -l is an option",
        "cat > other.sh <<END\n#PBS -N x\nEND", "echo '#PBS -N x'", "# pbs: -l", "#PBSPRO -l",
    ],
)  # fmt: skip
def test_other_comments_are_comments(hand_in, line):
    assert hand_in(f"#!/bin/sh\n{line}\n".encode())[:2] == (0, "")


def test_files_of_commands_are_read_as_windows_writes_them(desk, screen, tmp_path):
    (tmp_path / "a.qmgr").write_bytes(BOM + b"set grace 1\r\nshow all\r\n")
    assert screen.run("qmgr a.qmgr")[0] == 0
    assert desk.messages[-1]["script"] == "set grace 1\nshow all\n"
    (tmp_path / "b.qmgr").write_bytes("show all\n".encode("utf-16-le"))
    assert "UTF-16" in screen.run("qmgr b.qmgr")[2]
    assert [each.text for each in parse_text("\ufeffset grace 1\r\n")] == ["set grace 1"]
    with pytest.raises(NqspyError, match="UTF-16"):
        files.read(tmp_path, os.getuid())
    (tmp_path / "b.qmgr").unlink()
    assert [each[2] for each in files.read(tmp_path, os.getuid())] == ["set grace 1\nshow all\n"]


def test_the_library_converts_a_script_too(tmp_path):
    (tmp_path / "job.sh").write_bytes(BOM + b"#!/bin/sh\r\ntrue\r\n")
    for script in (tmp_path / "job.sh", b"#!/bin/sh\r\ntrue\r\n", "\ufeff#!/bin/sh\ntrue\n"):
        assert submission(script, (), {})["script"] == "#!/bin/sh\ntrue\n"
    with pytest.raises(BadValue, match="UTF-16"):
        submission("#!/bin/sh\n".encode("utf-16"), (), {})


@pytest.mark.parametrize("words", [["qsub", "-N", "ü", "jöb.sh"], ["nqspy", "submit", "-J", "ü", "jöb.sh"]])
def test_names_are_utf_8_in_every_locale(desk, tmp_path, words):
    folder = tmp_path / "größe"
    folder.mkdir()
    (folder / "jöb.sh").write_text("true\n")
    call = [*command(words[0]), *words[1:]]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(call, cwd=folder, env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    spec = desk.submitted["spec"]
    assert (spec["name"], spec["workdir"]) == ("ü", str(folder))


def test_the_library_says_which_name_is_no_utf_8():
    assert submission("true\n", ("\udcc3\udcbc",), {})["spec"]["args"] == ["ü"]
    with pytest.raises(BadValue, match="rename it"):
        submission("true\n", ("\udcff",), {})
