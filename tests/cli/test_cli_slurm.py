"""Slurm's words: ``--dialect slurm``, ``nqspy submit``, and what is said of ``#SBATCH`` without them."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.cli import submit
from nqspy.cli.slurm import marks, meaning, parse_memory, parse_time
from nqspy.cli.slurm_options import REFUSED, SLURM
from nqspy.model.amounts import UNLIMITED, Wrong
from nqspy.model.commands import decode

HOST = os.uname().nodename.partition(".")[0]


def handed_in(desk, screen, options, *words):
    Path("job.sh").write_text(f"#!/bin/bash\n#SBATCH {options}\nsrun x\n")
    done = screen.run(["qsub", "--dialect", "slurm", *words, "job.sh", "a"])
    assert done[:1] + done[2:] == (0, ""), done
    decode({"cmd": "submit", "items": [desk.submitted]})
    return desk.submitted


CASES = [
    ("-J 'my job' -p night -A d1", {"name": "my_job", "queue": "night", "account": "d1"}),
    ("-N 2-4", {"ask": {"pes": 2}}),
    ("--wckey=weather", {"attributes": ["project:weather"]}),
    ("--nice", {"priority": -100}),
    ("-d aftercorr:7,afterok:8_3", {"attributes": ["after:7[]:each", "after:8[3]:ok"]}),
    ("-d afterok:1.ymp:2[].ymp,afterany:3[4].ymp:5[]", {
        "attributes": ["after:1.ymp:ok", "after:2[].ymp:ok", "after:3[4].ymp:any", "after:5[]:any"]}),
    ("-a 1-9:2%3", {"array": {"indices": [[1, 9, 2]], "limit": 3}, "output": {
        "stdout": "{here}/slurm-%s_%a.out", "join": True}}),
    ("-o out/%x-%j.log -e %N.%a.%%", {
        "output": {"stdout": "{here}/out/%x-%s.log", "stderr": f"{{here}}/{HOST}.%a.%%"}}),
    ("--parsable -v --open-mode=truncate -i /dev/null", {"ask": {"pes": 1}}),
    ("--begin=now+2hours", {"eligible": 1772449200000 + 7_200_000}),
    ("--begin=now+90", {"eligible": 1772449200000 + 90_000}),
    ("--begin=030326", {"eligible": 1772449200000 + 12 * 3_600_000}),  # MMDDYY, no DDhhmm
    ("--begin=03/03/26-13:00", {"eligible": 1772449200000 + 25 * 3_600_000}),
    ("--begin=Teatime", {"eligible": 1772449200000 + 4 * 3_600_000}),
    ("--begin=fika", {"eligible": 1772449200000 + 3 * 3_600_000}),
]  # fmt: skip


@pytest.mark.parametrize(("options", "fields"), CASES)
def test_each_option_has_its_effect(desk, screen, options, fields):
    spec = handed_in(desk, screen, options)["spec"]
    here = os.getcwd()
    for name, value in fields.items():
        if name in ("output", "start_in"):
            seen = {"x": spec[name]} if isinstance(value, str) else spec[name]
            wanted = {"x": value} if isinstance(value, str) else value
            value = {k: v.format(here=here) if isinstance(v, str) else v for k, v in wanted.items()}
            assert seen == value
        else:
            assert spec[name] == value
    assert (spec["dialect"], spec["args"]) == ("slurm", ["a"])


def test_the_command_line_counts_before_the_script_and_the_last_directive_before_others(desk, screen):
    spec = handed_in(desk, screen, "-n 2 -t 10\n#SBATCH -n 3 -c 2", "--time", "20")["spec"]
    assert spec["ask"] == {"pes": 6, "wall": 1_200_000}
    assert handed_in(desk, screen, "-n 2 -c 2", "-n", "5")["spec"]["ask"] == {"pes": 10}


@pytest.mark.parametrize(
    ("export", "has", "lacks"),
    [
        ("", {"MINE=1", "OTHER=2"}, set()),
        ("--export=NONE", set(), {"MINE=1"}),
        ("--export=MINE,X=7", {"MINE=1", "X=7"}, {"OTHER=2"}),
        ("\"--export=ALL,X='a,b'\"", {"MINE=1", "OTHER=2", "X=a,b"}, set()),
    ],
)
def test_all_variables_go_along_unless_some_are_named(desk, screen, monkeypatch, export, has, lacks):
    monkeypatch.setenv("MINE", "1")
    monkeypatch.setenv("OTHER", "2")
    sent = set(handed_in(desk, screen, export)["environment"].split("\0"))
    assert has <= sent
    assert not lacks & sent


def test_each_option_that_is_refused_says_why(desk, screen):
    Path("job.sh").write_text("#!/bin/sh\n")
    for flags, target, kind, _, _ in SLURM:
        if kind.startswith("slurm_refused"):
            for flag in flags:
                value = [] if kind == "slurm_refused_on" else ["x"]
                status, _, err = screen.run(["qsub", "--dialect=slurm", flag, *value, "job.sh"])
                assert (status, err) == (2, f"qsub: {flag}: it is not offered: {REFUSED[target]}\n")
    assert not desk.messages


# ---------------------------------------------------------------- nqspy submit
def nqspy(capfd, *words):
    capfd.readouterr()
    status = submit.run(list(words))
    return (status, *capfd.readouterr())


def test_a_script_a_line_or_standard_input(desk, capfd):
    Path("job.sh").write_text("#!/bin/sh\n#SBATCH -J named\n#PBS -N other\n")
    assert nqspy(capfd, "job.sh", "--time")[0] == 0
    assert (desk.submitted["spec"]["name"], desk.submitted["spec"]["args"]) == ("named", ["--time"])
    assert nqspy(capfd, "--wrap=echo a | wc")[0] == 0
    assert desk.submitted["script"] == "#!/bin/sh\necho a | wc\n"


def test_the_umbrella_knows_it(desk, monkeypatch, capfd):
    from nqspy.cli import nqspy as umbrella

    for words in (["--", "echo", "--time"], ["--time=5", "--", "sh", "-c", "exit 3"]):
        monkeypatch.setattr(sys, "argv", ["nqspy", "submit", *words])
        with pytest.raises(SystemExit) as left:
            umbrella.main()
        assert left.value.code == 0
        assert desk.submitted["spec"]["args"] == words[words.index("--") + 1 :]
    monkeypatch.setattr(sys, "argv", ["nqspy", "submit", "--help"])
    capfd.readouterr()
    with pytest.raises(SystemExit):
        umbrella.main()
    shown = capfd.readouterr().out
    for flags, _, kind, _, _ in SLURM:
        assert (flags[0] in shown) is not kind.startswith("slurm_refused") or flags[0][:2] != "--"


# ---------------------------------------------------------------- values, and what directives mean
@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 1800), ("5:30", 330), ("1:00:00", 3600), ("2-0", 172_800), ("1-12:30", 131_400),
     ("1-0:0:5", 86_405), ("90min", 5400), ("2h", 7200), ("45s", 45)],
)  # fmt: skip
def test_times(text, seconds):
    assert parse_time(text) == seconds * 1000


def test_no_limit_of_time_and_amounts_of_memory():
    assert {parse_time(text) for text in ("0", "UNLIMITED", "infinite", "-1")} == {UNLIMITED}
    for text, megabytes in {"500": 500, "4G": 4096, "1T": 1 << 20, "2048k": 2}.items():
        assert parse_memory(text) == megabytes << 20


@pytest.mark.parametrize("read", [parse_time, parse_memory, marks])
@given(text=st.text(max_size=12))
def test_no_text_breaks_the_readers(read, text):
    try:
        assert read(text) is not None
    except Wrong:
        pass


def test_directives_are_explained_in_the_words_of_pbs():
    message = meaning(["--time=1-0", "--bogus", "-p night --hold", "--qos=x"])
    assert message == "--time=1-0 is -l walltime=24:00:00, -p night is -q night, --hold is -h"
