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
    """The commands are called by a job."""
    for name, value in OUTER.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MINE", "1")


def sent(item) -> dict[str, str]:
    """The variables of a submitted item, each one exactly as bytes."""
    text = item["environment"].encode("latin-1").decode("utf-8", "surrogateescape")
    return dict(pair.split("=", 1) for pair in text.split("\0"))


@pytest.mark.parametrize(
    "line", ["qsub -V job.sh", "qsub --dialect nqs -x job.sh", "submit job.sh", "qsub --list all.list"]
)
def test_nothing_of_the_outer_job_goes_along(desk, screen, inside, tmp_path, line):
    (tmp_path / "job.sh").write_text("true\n")
    (tmp_path / "all.list").write_text("-V job.sh\n")
    assert screen.run(line)[0] == 0
    found = sent(desk.submitted)
    assert found["MINE"] == "1"
    assert not set(OUTER) & set(found)


def test_what_is_named_goes_along_from_a_job_too(desk, screen, inside, tmp_path):
    (tmp_path / "job.sh").write_text("true\n")
    assert screen.run("qsub -V -v OMP_NUM_THREADS=8,PBS_ARRAY_INDEX job.sh")[0] == 0
    found = sent(desk.submitted)
    assert (found["OMP_NUM_THREADS"], found["PBS_ARRAY_INDEX"]) == ("8", "3")
    assert "NCPUS" not in found


def test_outside_of_a_job_all_goes_along(desk, screen, inside, tmp_path, monkeypatch):
    (tmp_path / "job.sh").write_text("true\n")
    monkeypatch.delenv("NQSPY_ATTEMPT")
    assert screen.run("qsub -V job.sh")[0] == 0
    assert sent(desk.submitted)["OMP_NUM_THREADS"] == "1"


def test_the_library_hands_nothing_of_the_outer_job_on(inside):
    import os

    whole = {**os.environ, "NCPUS": "7"}
    found = sent(submission("true\n", (), {"environment": whole}))
    assert (found["MINE"], found["NCPUS"]) == ("1", "7")
    assert not (set(OUTER) - {"NCPUS"}) & set(found)
