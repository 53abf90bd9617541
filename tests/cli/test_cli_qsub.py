"""``qsub``: the message that options, directives and lists become, and the lines that say what is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nqspy.model.commands import Submit, decode
from nqspy.rpc.messages import error_answer, text_answer


def script(text: str, name: str = "job.sh") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def test_a_plain_submission(desk, screen):
    script("#!/bin/sh\necho caf\u00e9\n", "simulation.sh")
    assert screen.run(["qsub", "simulation.sh", "-x", "a b"]) == (0, "1.ymp\n", "")
    item = desk.submitted
    assert item["script"].encode("latin-1").decode() == "#!/bin/sh\necho caf\u00e9\n"
    spec = item["spec"]
    assert (spec["name"], "name_given" in spec, spec["args"]) == ("simulation.sh", False, ["-x", "a b"])
    assert (spec["workdir"], spec["host"]) == (os.getcwd(), os.uname().nodename)
    variables = dict(pair.split("=", 1) for pair in item["environment"].split("\0"))
    assert variables["QSUB_WORKDIR"] == variables["PBS_O_WORKDIR"] == os.getcwd()
    assert variables["QSUB_PATH"] == os.environ["PATH"]
    assert "PATH" not in variables
    message = desk.messages[-1]
    command = decode({k: v for k, v in message.items() if k not in ("v", "id", "text")})
    assert isinstance(command, Submit)
    assert command.items[0].spec.args == ("-x", "a b")
    assert len(message["key"]) > 30


def test_a_user_and_requests_to_wait_for_are_named(desk, screen):
    assert screen.run("qsub -u ben --after 3 --after 4.ymp:any job.sh")[0] == 0
    assert desk.submitted["user"] == "ben"
    assert desk.submitted["spec"]["attributes"] == ["after:3:ok", "after:4.ymp:any"]


def test_the_command_line_overrides_directives(desk, screen):
    script("#QSUB -q night -lT 60 -lM 1mw -r DEEP -v A=1,B=2\n")
    assert screen.run(["qsub", "-q", "day", "-lT", "70", "-N", "top", "-v", "C=3", "job.sh"])[0] == 0
    item = desk.submitted
    assert (item["spec"]["queue"], item["spec"]["name"]) == ("day", "top")
    assert item["spec"]["ask"] == {"cpu": 70_000, "memory": 8 << 20}
    assert "C=3" in item["environment"].split("\0")
    assert "A=1" not in item["environment"].split("\0")


@pytest.mark.parametrize(
    ("directive", "words", "field", "value"),
    [
        ("#QSUB -x", "-r y", "name", "y"),  # an NQS script: a name
        ("#PBS -V", "-r n", "rerunnable", False),
        ("#", "-r n", "rerunnable", False),  # undecided: the value's form
        ("#", "-r n --dialect nqs", "name", "n"),
        ("#PBS -q x", "--dialect nqs", "queue", ""),  # not read: a comment
    ],
)
def test_clashing_letters_follow_the_dialect(desk, screen, directive, words, field, value):
    script(directive + "\n")
    assert screen.run(f"qsub {words} job.sh")[0] == 0
    assert desk.submitted["spec"][field] == value


def test_variables_are_exported_by_name_value_or_all(desk, screen, monkeypatch):
    monkeypatch.setenv("MODEL_RUN", "17")
    monkeypatch.setitem(os.environb, b"RAW", b"\xff\xfe")
    screen.run(["qsub", "-v", "MODEL_RUN,X='a,b',MISSING", "job.sh"])
    chosen = desk.submitted["environment"].split("\0")
    assert {"MODEL_RUN=17", "X=a,b"} <= set(chosen)
    assert not any(pair.startswith(("MISSING", "RAW=")) for pair in chosen)
    screen.run("qsub -x job.sh")
    assert "RAW=\xff\xfe" in desk.submitted["environment"].split("\0")


def test_scripts_that_cannot_be_taken(desk, screen, monkeypatch):
    Path("ok.sh").write_text("true\n")
    monkeypatch.setattr("nqspy.cli.directives.LONGEST_SCRIPT", 10)
    script("#" * 11)
    assert screen.run("qsub job.sh")[2].startswith("qsub: job.sh: ")
    monkeypatch.setattr("nqspy.cli.draft.LONGEST_ENVIRONMENT", 100)
    assert "qsub: the environment has" in screen.run("qsub -x ok.sh")[2]


def test_the_daemons_refusal_is_printed_and_the_status_is_one(desk, screen):
    desk.answers["submit"] = lambda id, message: text_answer(id, 170, "", "no such queue x")
    assert screen.run("qsub -q x job.sh") == (1, "", "qsub: no such queue x\n")
    desk.answers["submit"] = lambda id, message: error_answer(id, "another version")
    assert screen.run("qsub job.sh") == (1, "", "qsub: another version\n")


LIST = """# the night of department 1
-r A1 -lT 60 first.sh alpha 'two words'   # longest first
-q day first.sh

sub/second.sh
"""


def test_a_list_is_one_submission_in_its_order(desk, screen):
    Path("sub").mkdir()
    script("#QSUB -q night -lM 1mw\n", "first.sh")
    script("true\n", "sub/second.sh")
    script(LIST, "d1.list")
    assert screen.run("qsub -A d1 --key monday --list d1.list") == (0, "1.ymp\n2.ymp\n3.ymp\n", "")
    (message,) = desk.messages
    assert message["key"] == "monday"
    assert [item["line"] for item in message["items"]] == [2, 3, 5]
    specs = [item["spec"] for item in message["items"]]
    assert [spec["queue"] for spec in specs] == ["night", "day", ""]
    assert [spec["name"] for spec in specs] == ["A1", "first.sh", "second.sh"]
    assert specs[0]["args"] == ["alpha", "two words"]
    assert {spec["account"] for spec in specs} == {"d1"}


def test_dry_run_and_delete_and_json(desk, screen):
    path = script("true\n")
    assert screen.run("qsub -d --dry-run job.sh")[0] == 0
    assert path.exists()
    assert desk.messages[-1]["dry_run"] is True
    screen.run("qsub -d --json job.sh")
    assert desk.messages[-1]["text"] == "json"
    assert not path.exists()


def test_standard_input_is_the_script_when_none_is_named(desk):
    code = "from nqspy.cli.qsub import main; main()"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    text = b"#QSUB -q night\nls\n"
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True, env=env)
    assert (done.stdout, done.stderr) == (b"1.ymp\n", b"")
    assert (desk.submitted["spec"]["name"], desk.submitted["spec"]["queue"]) == ("STDIN", "night")


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("qsub -W depend=afterok:99 job.sh", "-W depend: "), ("qsub --after 99 job.sh", "--after: "),
        ("qsub --dialect slurm -d afterok:99 job.sh", "--dependency: "),
        ("submit --dependency afterany:99 job.sh", "--dependency: "),
    ],
)  # fmt: skip
def test_a_refused_dependency_names_the_option_that_was_typed(desk, screen, words, flag):
    desk.answers["submit"] = lambda id, _: text_answer(id, 206, "", "--after: no 99.ymp\n")
    status, out, err = screen.run(words)
    assert (status != 0, out) == (True, "")
    assert f"{flag}no 99.ymp" in err


def test_a_refused_dependency_of_a_line_names_file_line_and_word(desk, screen):
    script("after:99 job.sh\n", "x.list")
    for told, typed in (("--after: Unknown 9", "after: Unknown 9"), ("--after 9:each: x", "after:9:each: x")):
        desk.answers["submit"] = lambda id, _, told=told: text_answer(id, 206, "", f"line 1: {told}\n")
        assert screen.run("qsub --list x.list") == (1, "", f"qsub: x.list line 1: {typed}\n")


@pytest.mark.parametrize("words", [["qsub", "-N"], ["submit", "-J"]])
def test_a_name_is_as_long_as_a_file_name_has_room_for(desk, screen, words):
    script("true\n", "é" * 120)
    assert screen.run([*words, "é" * 115, "job.sh"])[0] == 0
    assert screen.run([*words, "é" * 116, "job.sh"])[0] == 2
    assert screen.run([words[0], "é" * 120])[0] == 0
    assert desk.submitted["spec"]["name"] == "é" * 115
