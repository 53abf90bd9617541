"""Requests that may run on several numbers of PEs, on real processes: the size is chosen as they start, and
the job finds it."""

import pytest
from daemon.live import Live

TOLD = 'echo "$NQSPY_PES $NCPUS"\n'


@pytest.fixture
def four(shared: Live) -> Live:
    """Return a site with four PEs."""
    shared.set("set machine pes=4")
    return shared


def held(live: Live, pes: int) -> str:
    """Hold so many PEs until there is a gate; return the request."""
    gate = live.work / "gate"
    holder = live.qsub(f"while [ ! -e {gate} ]; do sleep 0.05; done\n", "-l", f"ncpus={pes},walltime=1:00:00")
    live.running(holder)
    return holder


def test_the_job_gets_what_is_free_and_sees_it(four: Live) -> None:
    wide = four.ended(four.qsub(TOLD, "-l", "pes=2-4", "-l", "walltime=10:00", "-N", "wide"))
    assert four.text(f"wide.o{wide['seq']}") == "0-3 4\n"
    held(four, 2)
    slim = four.ended(four.qsub(TOLD, "-l", "pes=2-4,walltime=10:00", "-N", "slim"))
    assert four.text(f"slim.o{slim['seq']}") == "2-3 2\n"
    assert (slim["requested"]["pes"], slim["requested"]["sizes"]) == (2, [2, 3, 4])
    assert slim["lacked"] == [{"pes": 4, "why": "NO_PES"}, {"pes": 3, "why": "NO_PES"}]


def test_the_times_of_each_size_are_its_wall_limits_and_why_names_them(four: Live) -> None:
    held(four, 2)
    id = four.qsub("sleep 60\n", "-l", "pes=(4,2)", "-l", "walltime=(1,2)")
    ended = four.ended(id)
    assert ended["end_reason"] == "wall_limit"
    assert ended["used"]["wall_s"] >= 2
    assert ended["requested"]["walls_s"] == [2.0, 1.0]
    running = four.qsub("sleep 60\n", "-l", "pes=(2,4),walltime=(20:00,9:00)")
    four.running(running)
    why = four.run("qstat", "--why", running).ok().out
    assert "sizes:    2 (20:00), 4 (9:00) PEs; " in why
    assert "not start on 4 (too few free)" in why
    full = four.run("qstat", "-f", running).ok().out
    assert "Resource_List.pes = 2,4" in full
    assert "Resource_List.walltimes = 00:20:00,00:09:00" in full
    assert "Resource_List.ncpus = 2" in full


def test_programs_name_sizes_too(four: Live) -> None:
    one = four.submit("true", sizes=[4, 2], walls=["5:00", "10:00"])
    other = four.submit("true", sizes=[2, 4], speedup=(2, 0), wall="20:00")
    assert four.ended(one)["requested"]["walls_s"] == [600.0, 300.0]
    assert four.ended(other)["requested"]["walls_s"] == [600.0, 600.0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("pes=1-400", ("400 sizes", "256")),
        ("pes=(8,16)", ("8 PEs", "machine has 4")),
        ("pes=(1,2,4),walltime=(3:00,2:00)", ("2 times", "3 sizes")),
        ("pes=1-4,nodes=2:ppn=1", ("nodes=", "one number of PEs")),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(office: Live, asked: str, words: tuple[str, ...]) -> None:
    office.set("set machine pes=4")
    office.run("qsub", "-l", asked, stdin="true\n").refused(*words)
