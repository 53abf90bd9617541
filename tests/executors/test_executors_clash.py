"""Two requests that wait or run at the same time with one output path: the second file replaces no first."""

import pytest
from msgspec import structs

from nqspy.model.actions import Start
from nqspy.model.arrays import ArraySpec
from nqspy.model.ids import member
from nqspy.model.requests import Output


def two(bench, way: str, second: str = "out", **direct):
    """Two requests of one path, both handed in before either starts; runs one after the other."""
    bench.site.settings.server.output_clash = way
    (bench.work / "gone").mkdir()
    requests = []
    for word, name in (("first", "out"), ("second", second)):
        output = Output(stdout=f"{bench.work}/{name}", stderr="/dev/null", **direct)
        requests.append(bench.request(f"echo {word}\n", output=output))
    for request in requests:
        bench.site.requests[request.seq] = request
        bench.site.watch_for(request)
    found = []
    for request in requests:
        bench.do(Start(request.seq, 1, (0,)), request)
        found.append(bench.ending(request).stdout)
        bench.site.watch_no_more(request)
        del bench.site.requests[request.seq]
    return found


@pytest.mark.parametrize("direct", [False, True], ids=["spooled", "in place"])
def test_the_second_gets_a_number(bench, direct):
    assert two(bench, "number", direct_stdout=direct) == [str(bench.work / "out"), str(bench.work / "out.2")]
    assert (bench.text("out"), bench.text("out.2")) == ("first\n", "second\n")


@pytest.mark.parametrize("direct", [False, True], ids=["spooled", "in place"])
def test_the_second_is_added(bench, direct):
    assert two(bench, "append", direct_stdout=direct) == [str(bench.work / "out")] * 2
    assert bench.text("out") == "first\nsecond\n"


@pytest.mark.parametrize("second", ["./out", "gone/../out", "/./out"])
@pytest.mark.parametrize("way", ["number", "append"])
def test_the_second_is_known_however_its_path_is_written(bench, way, second):
    two(bench, way, second=second)
    assert bench.text("out") == ("first\n" if way == "number" else "first\nsecond\n")


def test_the_second_replaces_the_first_where_that_is_wanted(bench):
    two(bench, "overwrite")
    assert bench.text("out") == "second\n"


def test_one_that_starts_while_another_of_its_path_runs_is_second(bench):
    output = Output(stdout=str(bench.work / "out"))
    first = bench.running("echo first; while [ ! -e go ]; do sleep 0.02; done\n", output=output)
    bench.site.requests[first.seq] = bench.site.started[first.seq] = first
    bench.site.watch_for(first)
    second = bench.request("echo second\n", output=output)
    bench.site.watch_for(second)
    bench.do(Start(second.seq, 1, (0,)), second)
    assert bench.ending(second).stdout == str(bench.work / f"out.{second.seq}")
    (bench.work / "go").touch()
    bench.ending(first)
    assert bench.text("out") == "first\n"


@pytest.mark.parametrize("way", ["number", "append", "overwrite"])
def test_indices_of_one_path_are_kept_apart_also_one_after_the_other(bench, way):
    bench.site.settings.server.output_clash = way
    array = ArraySpec(((1, 3, 2),))
    for index in (1, 3):
        output = Output(stdout=str(bench.work / "out"), stderr=str(bench.work / "err.%a"))
        request = bench.request(f"echo {index}; echo {index} >&2\n", output=output, array=array)
        request = structs.replace(request, seq=member(5, index))
        bench.site.requests[request.seq] = request
        bench.site.watch_for(request)
        bench.do(Start(request.seq, 1, (0,)), request)
        bench.ending(request)
        bench.site.watch_no_more(request)
        del bench.site.requests[request.seq]
    written = {path.name: path.read_text() for path in bench.work.iterdir()}
    ours = {
        "number": {"out.5.1": "1\n", "out.5.3": "3\n"},
        "append": {"out": "1\n3\n"},
        "overwrite": {"out": "3\n"},
    }
    assert written == {"err.1": "1\n", "err.3": "3\n", **ours[way]}
