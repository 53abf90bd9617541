"""Which variables a submission takes along, and the exact bytes of their values."""

import pytest

from nqspy.rpc.submission import submission

OUTER = {
    "NQSPY_ATTEMPT": "1", "PBS_ARRAY_INDEX": "3", "NCPUS": "1", "OMP_NUM_THREADS": "1", "PBS_NP": "4",
    "PBS_NODEFILE": "/tmp/nqspy.9.ab/hosts", "TMPDIR": "/tmp/nqspy.9.ab/tmp", "SLURM_ARRAY_TASK_ID": "3",
    "NQSPY_UNITS": "gpu=0", "QSUB_REQID": "9.ymp",
}  # fmt: skip


@pytest.fixture
def inside(monkeypatch):
    """Run the commands inside a job."""
    for name, value in OUTER.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MINE", "1")


def sent(item) -> dict[str, str]:
    """Return the variables of a submitted item, as bytes."""
    text = item["environment"].encode("latin-1").decode("utf-8", "surrogateescape")
    return dict(pair.split("=", 1) for pair in text.split("\0"))


@pytest.mark.parametrize(
    "line", ["qsub -V job.sh", "qsub --dialect nqs -x job.sh", "submit job.sh", "qsub --list all.list"]
)
def test_nothing_of_the_outer_job_goes_along(desk, screen, inside, tmp_path, line):
    (tmp_path / "all.list").write_text("-V job.sh\n")
    assert screen.run(line)[0] == 0
    found = sent(desk.submitted)
    assert found["MINE"] == "1"
    assert not set(OUTER) & set(found)


def test_from_a_job_named_variables_go_along(desk, screen, inside, monkeypatch):
    assert screen.run("qsub -V -v OMP_NUM_THREADS=8,PBS_ARRAY_INDEX job.sh")[0] == 0
    found = sent(desk.submitted)
    assert (found["OMP_NUM_THREADS"], found["PBS_ARRAY_INDEX"]) == ("8", "3")
    assert "NCPUS" not in found
    monkeypatch.delenv("NQSPY_ATTEMPT")
    assert screen.run("qsub -V job.sh")[0] == 0
    assert sent(desk.submitted)["OMP_NUM_THREADS"] == "1"


def test_the_library_hands_nothing_of_the_outer_job_on(inside):
    import os

    whole = {**os.environ, "NCPUS": "7"}
    found = sent(submission("true\n", (), {"environment": whole}))
    assert (found["MINE"], found["NCPUS"]) == ("1", "7")
    assert not (set(OUTER) - {"NCPUS"}) & set(found)


EXACT = {
    'S="a,b",B=2': {"S": "a,b", "B": "2"},
    "\"S=a,b\",B='2'": {"S": "a,b", "B": "2"},
    'J={"a":1}': {"J": '{"a":1}'},
    'J={"a":1\\,"b":2},B=2': {"J": '{"a":1,"b":2}', "B": "2"},
    """J='{"a":1,"b":2}',B=2""": {"J": '{"a":1,"b":2}', "B": "2"},
    "F=f(x,B=2": {"F": "f(x", "B": "2"},
    "P=a\\\\b\\c": {"P": "a\\\\b\\c"},
    "P=C:\\\\,B=2": {"P": "C:\\", "B": "2"},
    "P=C:\\": {"P": "C:\\"},
    "P=C:\\,B": {"P": "C:,B"},
    "Q=it's,R=5\"": {"Q": "it's", "R": '5"'},
    'E="",N=': {"E": "", "N": ""},
    'D=""x""': {"D": '"x"'},
    "X=a=b==c, Y= z ": {"X": "a=b==c", "Y": " z "},
    "U=é\udcff": {"U": "é\udcff"},
    "L=1\n2": {"L": "1\n2"},
    "BASH_FUNC_f%%=() { :; },": {"BASH_FUNC_f%%": "() { :; }"},
}


UNCLEAR = ('J={"a":1,"b":2},B=2', "F=f(x,y)", "L=1,2,3", 'S="a,b"c', 'S="a', "=1", "a b=1", "J=[1,[2]]")


@pytest.mark.parametrize("words", [["qsub", "-v"], ["submit", "--export"]])
@pytest.mark.parametrize("text", [*EXACT, *UNCLEAR])
def test_a_value_has_exactly_its_bytes_and_what_could_be_two_is_refused(desk, screen, words, text):
    status, out, err = screen.run([*words, text, "job.sh"])
    if text in UNCLEAR:
        assert (status, out, len(err.splitlines()), desk.messages) == (2, "", 1, [])
    else:
        assert (status, out, err) == (0, "1.ymp\n", "")
        found = sent(desk.submitted)
        assert {name: found.get(name) for name in EXACT[text]} == EXACT[text]


def test_a_name_that_is_not_set_is_told_without_a_terminal_too(desk, screen, tmp_path):
    (tmp_path / "job.sh").write_text("#PBS -v NOSUCH,OTHER=1\ntrue\n")
    status, out, err = screen.run("qsub job.sh")
    assert (status, out, len(err.splitlines())) == (0, "1.ymp\n", 1)
    assert "NOSUCH" in err
    assert screen.run("qsub -z job.sh") == (0, "", "")
    assert "NOSUCH" in screen.run("submit --export NOSUCH job.sh")[2]
