"""``qsub`` in the dialect of POSIX and PBS: what its options become, and its words for what is wrong."""

import os
from pathlib import Path

import pytest

from nqspy.model.commands import decode
from nqspy.rpc import messages


def job(desk, screen, head, *words, status=0):
    """Submit a script with this head; return the item that was sent."""
    Path("job.sh").write_text(f"#!/bin/sh\n{head}\ntrue\n")
    done = screen.run(["qsub", *words, "job.sh"])
    assert done[0] == status, done
    decode({"cmd": "submit", "items": [desk.submitted]})
    return desk.submitted


def spec(desk, screen, head, *words):
    return job(desk, screen, head, *words)["spec"]


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ("-f -n -P prj -c c=10", {"attributes": ["whole_nodes", "project:prj", "checkpoint:c=10"]}),
        ("-koed", {"output": {"direct_stdout": True, "direct_stderr": True}}),
        ("-hz -N=z1", {"held": True, "name": "z1"}),
        ("-W max_run_subjobs=5 -J 1-9", {"array": {"indices": [[1, 9, 1]], "limit": 5}}),
        ("-J 1-9%3 -W max_run_subjobs=0", {"array": {"indices": [[1, 9, 1]], "limit": None}}),
        ("-lT 600 -s /bin/sh", {"ask": {"cpu": 600_000}, "shell": "/bin/sh"}),
        ("-eo", {"output": {"stderr": "{here}/o"}}),
    ],
)  # fmt: skip
def test_options_that_no_real_script_has_have_their_effect(desk, screen, options, fields):
    found = spec(desk, screen, f"#PBS {options}")
    if "output" in fields:
        here = os.getcwd()
        output = fields["output"].items()
        fields["output"] = {k: v.format(here=here) if isinstance(v, str) else v for k, v in output}
    assert {name: found[name] for name in fields} == fields
    assert found["dialect"] == "pbs"


def test_mail_at_an_abort_is_the_rule(desk, screen):
    assert spec(desk, screen, "#PBS -N x")["mail"] == {"abort": True}
    assert "mail" not in spec(desk, screen, "#QSUB -r x")


def test_a_folder_to_start_in_is_named_by_each_dialect_in_its_way(desk, screen):
    Path("sub").mkdir()
    there = f"{os.getcwd()}/sub"
    assert spec(desk, screen, "#PBS -d sub")["start_in"] == there
    assert spec(desk, screen, "#PBS -w sub")["start_in"] == there
    assert spec(desk, screen, "#PBS -l wd")["start_in"] == os.getcwd()
    assert spec(desk, screen, "#", "-d", "sub")["start_in"] == there, "a folder follows: no deletion is meant"
    assert Path("job.sh").exists()
    assert "start_in" not in spec(desk, screen, "#", "-d")
    assert not Path("job.sh").exists(), "the script is deleted where no folder follows"


def test_the_first_value_of_a_resource_stands_and_the_command_line_counts_before(desk, screen):
    head = (
        "#PBS -l walltime=60,mem=1gb,walltime=61\n#PBS -l walltime=99 -l pmem=1mb\n#PBS -W umask=1 -W umask=2"
    )
    found = spec(desk, screen, head)
    assert found["ask"] == {"wall": 60_000, "memory": 1 << 30, "memory_process": 1 << 20}
    assert found["umask"] == 1
    found = spec(desk, screen, head, "-l", "mem=2gb", "-l", "ncpus=3", "-W", "umask=7")
    assert found["ask"] == {"wall": 60_000, "memory": 2 << 30, "memory_process": 1 << 20, "pes": 3}
    assert found["umask"] == 7
    chosen = spec(desk, screen, "#PBS -l select=2:ncpus=4:mem=1gb", "-l", "select=1")
    assert chosen["ask"] == {"pes": 1}, "another selection replaces all of the first"
    letters = spec(desk, screen, "#PBS -l select=2:ncpus=4,walltime=5", "-lP", "3")
    assert (letters["ask"], letters.get("layout")) == ({"pes": 3, "wall": 5000}, None)


HEADS = [
    ("#PBS -N a \\\n   -q b\n#PBS -A c\n", ("a", "b", "c")),
    ("#PBS -N a\n#PBSPRO -q b\n##PBS -q b\n # PBS -q b\n#PBS -A c\n", ("a", "", "c")),
    ("#PBS\t-N a -q 'b' -A \"c\"\n", ("a", "b", "c")),
]


@pytest.mark.parametrize(("head", "found"), HEADS)
@pytest.mark.parametrize("first", ["#!/bin/bash\n", ": the shell's own\n", ""])
def test_where_directives_are_looked_for(desk, screen, head, found, first):
    Path("job.sh").write_text(first + head)
    assert screen.run("qsub job.sh")[0] == 0
    seen = desk.submitted["spec"]
    assert (seen["name"], seen["queue"], seen.get("account")) == found


@pytest.mark.parametrize(
    ("words", "env", "name"),
    [
        (["-C", "#MINE"], "", "mine"),
        ([], "#MINE", "mine"),
        (["-C", "REM"], "", "rem"),
        (["-C", ""], "#MINE", "job.sh"),
        ([], "", "pbs"),
    ],
)
def test_the_prefix_of_directives_is_a_choice(desk, screen, monkeypatch, words, env, name):
    monkeypatch.setenv("NQSPY_DIALECT", "pbs")
    if env:
        monkeypatch.setenv("PBS_DPREFIX", env)
    Path("job.sh").write_text("#MINE -N mine\n#PBS -N pbs -C '#OTHER'\nREM -N rem\ntrue\n")
    assert screen.run(["qsub", *words, "job.sh"])[0] == 0
    assert desk.submitted["spec"]["name"] == name


def test_a_relative_path_behind_a_host_is_seen_from_the_home(desk, screen, monkeypatch):
    monkeypatch.setenv("HOME", "/home/anne")
    output = spec(desk, screen, "#PBS -o ymp:out -e ymp:/abs/err")["output"]
    assert output == {"stdout": "/home/anne/out", "stderr": "/abs/err"}


def test_block_waits_for_the_end(desk, screen):
    desk.answers["wait"] = lambda id, message: messages.text_answer(id, 7)
    Path("job.sh").write_text("#PBS -W block=true\n")
    assert screen.run("qsub job.sh") == (7, "1.ymp\n", "")
    assert desk.messages[-1]["cmd"] == "wait"
    assert screen.run("qsub -W block=false job.sh") == (0, "2.ymp\n", "")


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (170, "Unknown queue x; queues: batch", "qsub: Unknown queue x; queues: batch\n"),
        (206, "--after: Unknown Job Id 9", "qsub: Invalid Job Dependency: --after: Unknown Job Id 9\n"),
        (188, "batch: too much", "qsub: Job violates queue and/or server resource limits: batch: too much\n"),
        (1, "nobody submits", "qsub: nobody submits\n"),
    ],
)
def test_a_refusal_has_the_status_and_the_text_of_pbs(desk, screen, status, text, expected):
    desk.answers["submit"] = lambda id, message: messages.text_answer(id, status, "", text)
    Path("job.sh").write_text("#PBS -N x\n")
    assert screen.run("qsub job.sh") == (status, "", expected)


@pytest.mark.parametrize(
    ("head", "printed"), [("#PBS -N x", ""), ("#QSUB -r x", "1.ymp\n"), ("#", "1.ymp\n")]
)
def test_silence_is_the_identifiers_in_pbs_alone(desk, screen, head, printed):
    Path("job.sh").write_text(f"{head}\n")
    assert screen.run("qsub -z job.sh") == (0, printed, "")


@pytest.mark.parametrize(
    ("dialect", "name"), [("nqs", "R2nd_si"), ("pbs", "2nd_simulation.sh"), ("", "2nd_simulation.sh")]
)
def test_a_default_name_is_the_files_whole_name_but_for_nqs(desk, screen, dialect, name):
    Path("2nd_simulation.sh").write_text("#\n")
    chosen = ["--dialect", dialect] if dialect else []
    assert screen.run(["qsub", *chosen, "2nd_simulation.sh"])[0] == 0
    assert desk.submitted["spec"]["name"] == name


def test_a_command_may_stand_in_for_a_script(desk, screen):
    Path("data.txt").write_text("#PBS -N data\n")
    assert screen.run(["qsub", "-N", "--", "--", "sleep", "-v", "3"])[0] == 0
    item = desk.submitted
    assert item["script"] == '#!/bin/sh\nexec "$@"\n'
    assert (item["spec"]["args"], item["spec"]["name"]) == (["sleep", "-v", "3"], "--")
    screen.run("qsub -- /bin/echo a")
    assert desk.submitted["spec"]["name"] == "echo"
    screen.run("qsub -- data.txt")
    assert desk.submitted["spec"]["name"] == "data", "a file that cannot be executed is a script"
    screen.run("qsub --dialect nqs -- data.txt")
    assert desk.submitted["script"] == "#PBS -N data\n"
