"""Arrays on real processes: variables, output names, parts of them, and kill -9 while they run."""

import random
import threading

import pytest
from daemon.live import Live, until


def _submit(live: Live, script: str, *options: str) -> str:
    live.write("job.sh", script)
    return live.run("qsub", "-s", "/bin/sh", *options, "job.sh").ok().out.strip()


def test_an_index_knows_itself_and_writes_a_file_of_its_own(live: Live) -> None:
    told = "PBS_ARRAY_INDEX PBS_ARRAYID QSUB_ARRAY_INDEX NQSPY_ARRAY_INDEX PBS_ARRAY_ID NQSPY_ARRAY_ID"
    more = "NQSPY_ARRAY_COUNT NQSPY_ARRAY_MIN NQSPY_ARRAY_MAX NQSPY_ARRAY_STEP PBS_JOBID QSUB_REQID"
    words = " ".join(f"${name}" for name in (told + " " + more).split())
    script = f"echo {words}\nexit $PBS_ARRAY_INDEX\n"
    id = _submit(live, script, "-N", "sweep", "-J", "2-6:2%1")
    number, host = id.split("[].")
    assert live.ended(id)["exit_status"] == 6, "the greatest"
    for index in (2, 4, 6):
        own = f"{number}[{index}].{host}"
        values = [index, index, index, index, id, id, 3, 2, 6, 2, own, own]
        assert live.text(f"sweep.o{number}.{index}").split() == [str(value) for value in values]
    assert sorted(path.name for path in live.work.glob("sweep.*")) == sorted(
        f"sweep.{letter}{number}.{index}" for letter in "oe" for index in (2, 4, 6)
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("count", "kills"), [(60, 12), pytest.param(500, 50, marks=pytest.mark.long)])
def test_kills_while_arrays_run_lose_no_index_and_run_none_twice(live: Live, count: int, kills: int) -> None:
    """Ten arrays, half of them index by index behind another one, some with few at a time."""
    marks = live.work / "marks"
    marks.mkdir()
    live.set("set machine pes=6")
    script = f"echo $PBS_ARRAY_INDEX >> {marks}/$PBS_JOBNAME\nexit $(( PBS_ARRAY_INDEX % 29 == 7 ))\n"
    ids = []
    for number in range(10):
        options = ["-N", f"a{number}", "-o", "/dev/null", "-j", "oe", "-S", "/bin/sh"]
        limit = "%3" if number % 3 == 0 else ""
        options += ["-J", f"1-{count}{limit}"]
        if number % 2:
            options += ["--after", f"{ids[-1]}:each"]
        ids.append(_submit(live, script, *options))
    moments = random.Random(5)
    for _ in range(kills):
        threading.Event().wait(moments.uniform(0.0, 0.7))
        live.kill()
        live.start()
    for id in ids[::2]:
        live.ended(id)
    spared = [index for index in range(1, count + 1) if index % 29 != 7]

    def ran(number: int) -> list[int]:
        file = marks / f"a{number}"
        return sorted(map(int, file.read_text().split())) if file.exists() else []

    for number in range(0, 10, 2):
        assert ran(number) == list(range(1, count + 1))
    for number in range(1, 10, 2):
        until(lambda number=number: len(ran(number)) >= len(spared), f"array {number} runs")  # type: ignore[misc]
        assert ran(number) == spared
        (array,) = live.run("qstat", "--json", ids[number]).data
        assert array["array"]["counts"]["held"] == count - len(spared)
        assert array["array"]["indices"].startswith("7")
    live.run("qdel", *ids[1::2]).ok()
    for id in ids:
        live.ended(id)


def test_output_of_an_index_that_had_to_stay_is_there_after_a_restart(live: Live) -> None:
    number = _submit(live, "echo $PBS_ARRAY_INDEX\n", "-J", "1-2", "-o", "/nowhere/%a").partition("[")[0]
    live.ended(number)
    live.restart()
    assert [live.run("qcat", f"{number}[{index}]").ok().out for index in (1, 2)] == ["1\n", "2\n"]
    live.kill()
    live.start()
    assert live.run("qcat", f"{number}[1]").ok().out == "1\n"
    assert not live.events("alarm")
