"""Whatever stands in a script or on the command line, in whatever dialect: qsub hands it in or says in one
line what is wrong; it never ends with 0 and has done nothing."""

import json
import os
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.cli import directives, fast, qsub, submit
from nqspy.cli.request_tables import QSUB, QSUB_PBS
from nqspy.cli.slurm_options import TABLE
from nqspy.model.commands import decode
from nqspy.rpc import messages

SHOWS_HELP = ("--help",)
TABLE_OF = {"": QSUB, "nqs": QSUB, "pbs": QSUB_PBS, "slurm": TABLE}
FLAGS = {
    dialect: sorted({flag for row in table for flag in row[0]} - set(SHOWS_HELP))
    for dialect, table in TABLE_OF.items()
}
STARTS = (
    "#QSUB ", "# QSUB ", "#@$", "#@$-", "#PBS ", "#PBS -l ", "#PBS -W ", "#SBATCH ", "#SBATCH --", "#", ":",
    "",
)  # fmt: skip
ODD = (
    "600", "10:00", "1gw", "-1", "9" * 60, "walltime=1:00", "ncpus=", "mem=1tb,", "y", "n", "oe", "(", "=",
    "/", "../x", "%s", "\x1b[2J", "\0", "1-5:2%3", "a:b:c", "17:ok", ",", "x" * 3000, "é", '"', "'", "\\",
    "select=2:ncpus=4:mem=1gb+1", "nodes=2:ppn=3:gpus=1", "place=scatter:shared", "depend=afterok:1:2",
    "noon", "block=true", "umask=027", "--time=1-2:3", "--mem=4G", "--dependency=afterok:1",
    "--export=ALL,A=1", "-n4", "--array=1-9", "now+2hours", "abe", "job.sh", "--", "-", "--dialect",
    "--dialect=slurm", "pbs", "slurm",
)  # fmt: skip
TEXTS = st.text(st.characters(max_codepoint=255), max_size=10)


def words_of(dialect):
    return st.sampled_from([*FLAGS[dialect], *ODD]) | TEXTS


def scripts_of(dialect):
    line = st.builds(
        lambda start, words: start + " ".join(words),
        st.sampled_from(STARTS), st.lists(words_of(dialect), max_size=5),
    )  # fmt: skip
    return st.lists(line, max_size=8).map("\n".join) | st.text(st.characters(max_codepoint=255), max_size=100)


CASES = st.sampled_from(sorted(FLAGS)).flatmap(
    lambda dialect: st.tuples(
        st.just(dialect), scripts_of(dialect), st.lists(words_of(dialect), max_size=6), st.booleans()
    )
)


class Counter:
    """Replaces the daemon: decodes what it can, answers with an identifier for each item."""

    def __init__(self):
        self.taken = []

    def send(self, message, *_how, **_more):
        line = fast.dump(message)
        told = json.loads(line)
        if told["cmd"] == "now":
            return messages.result_answer(1, {"now": 1772449200000, "zone": "Europe/Paris"}).decode()
        if told["cmd"] == "submit":
            decode({name: value for name, value in told.items() if name != "text"})
            self.taken.append(told)
            return messages.text_answer(1, 0, "17.ymp\n" * len(told["items"])).decode()
        return messages.text_answer(1, 0).decode()


def hand_in(program, script, words):
    """Run a command in this process; return its status, its output, and what the daemon got."""
    counter, shown = Counter(), {1: b"", 2: b""}

    def write(descriptor, data):
        shown[descriptor] += data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast.DaemonConnection, "send", lambda _, *how, **more: counter.send(*how, **more))
        patch.setattr(fast, "write", write)
        patch.setattr(directives, "_read", lambda fd: _read(fd) if fd else b"")
        patch.setattr(os, "unlink", lambda file: None)
        Path("job.sh").write_bytes(script.encode("latin-1"))
        status = submit.run(words) if program == "nqspy submit" else fast.run("qsub", qsub.body, words)
    return status, shown[1].decode(), shown[2].decode(), counter.taken


_read = directives._read


def check(program, dialect, script, words, named):
    line = [f"--dialect={dialect}"] if dialect and program == "qsub" else []
    line += [word for word in words if not word.startswith("--h")]
    status, out, err, taken = hand_in(program, script, [*line, *(["job.sh"] if named else [])])
    assert "Traceback" not in err
    if status == 0:
        assert taken, (line, out, err)
        assert all(": warning: " in line for line in err.splitlines()), err
    else:
        assert err.count("\n") == 1, (line, err)
        assert err.startswith(f"{program}: ")
        assert not taken
        assert not out


@pytest.fixture(autouse=True)
def _here(tmp_path_factory, monkeypatch):
    """Use a new folder, and an environment that decides nothing."""
    monkeypatch.chdir(tmp_path_factory.mktemp("fuzz"))
    for name in ("NQSPY_DIALECT", "PBS_DPREFIX", "PWD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NQSPY_HOME", os.getcwd())


@settings(max_examples=examples(600))
@given(CASES)
def test_any_script_and_any_options_are_taken_or_refused_in_one_line(case):
    check("qsub", *case)


@settings(max_examples=examples(200))
@given(scripts_of("slurm"), st.lists(words_of("slurm"), max_size=6), st.booleans())
def test_so_are_those_of_a_submission_in_the_words_of_slurm(script, words, named):
    check("nqspy submit", "slurm", script, words, named)


@pytest.mark.long
@settings(max_examples=50_000)
@given(CASES)
def test_any_script_and_any_options_many_times(case):
    check("qsub", *case)


@given(st.text())
def test_what_is_complained_of_reaches_no_terminal_raw(text):
    shown = fast.plain(text)
    assert all(c in "\n\t" or c.isprintable() for c in shown)
