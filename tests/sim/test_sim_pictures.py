"""Pictures of simulated workloads and what they are drawn from, as SVG, PNG and one page: readable however
uneven the workload is, of one size however many jobs there are."""

import re
import sys
import xml.etree.ElementTree as ET
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sim.sim_calls import TRACES, call, data_of, log, refused

from nqspy.report.drawing import svg_of
from nqspy.sim.batch import EndedJob, HeldPes
from nqspy.sim.metrics import Metrics
from nqspy.sim.pictures.album import DRAWN, names_of, png_of
from nqspy.sim.pictures.axes import short_time
from nqspy.sim.runs import SimulatedRun
from nqspy.sim.trail import COLUMNS, FINEST, MOST_BOXES, Trail
from nqspy.sim.workloads.jobs import SimulatedJob

ONE = ["gantt.svg", "utilisation.svg", "waits.svg"]


def texts(path, kind="text") -> list[str]:
    return [each.text for each in ET.parse(path).iter(f"{{http://www.w3.org/2000/svg}}{kind}")]


# ---------------------------------------------------------------- files
def test_a_folder_has_an_svg_of_each_picture(tmp_path):
    assert call(TRACES / "example.swf", "--pictures", tmp_path / "new").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ONE
    assert "job 1, PEs 0-1: 0 to 9 s" in texts(tmp_path / "new" / "gantt.svg", "title")
    assert "100 %" not in texts(tmp_path / "new" / "gantt.svg"), "few jobs are drawn one by one"
    assert any("firstfit" in text for text in texts(tmp_path / "new" / "utilisation.svg"))


def test_several_runs_stand_one_below_the_other_and_are_compared(tmp_path):
    assert call(TRACES / "example.swf", "--policy", "fcfs,easy", "--pictures", tmp_path).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["comparison.svg", *ONE]
    for name in ("comparison", "gantt", "utilisation", "waits"):
        assert {"fcfs", "easy"} <= set(texts(tmp_path / f"{name}.svg"))


def test_a_file_is_one_picture_by_its_name_and_all_of_them_by_any_other(tmp_path):
    one, whole, png = tmp_path / "gantt.svg", tmp_path / "monday.svg", tmp_path / "monday.PNG"
    words = [word for path in (one, whole, png) for word in ("--pictures", path)]
    assert call(TRACES / "example.swf", *words).exit_code == 0
    assert "boxes: jobs" in texts(one)
    assert set(texts(one)) < set(texts(whole))
    with Image.open(png) as image:
        assert image.size[0] == 1920
        assert image.size[1] > 600
        assert len(image.getcolors()) > 5
        assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize("path", ["taken/pictures", "taken", "none/gantt.png", "none/of/all.svg"])
def test_what_cannot_be_written_is_told_before_anything_is_run(tmp_path, path):
    (tmp_path / "taken").write_text("a file")
    message = refused(TRACES / "example.swf", "--pictures", tmp_path / path)
    assert str(tmp_path / path) in message
    assert "cannot be written: " in message or "as a folder for pictures: " in message
    assert (tmp_path / "taken").read_text() == "a file"


def test_a_picture_that_there_is_not_of_these_runs_is_refused(tmp_path):
    message = refused(TRACES / "example.swf", "--pictures", tmp_path / "comparison.svg")
    assert "utilisation, gantt, waits" in message
    message = refused(TRACES / "example.swf", "--pictures", tmp_path / "week.PDF")
    assert ".svg or .png" in message
    message = refused("lublin", "--seeds", 2, "--pictures", tmp_path / "gantt.png")
    assert "there are comparison" in message


def test_without_pillow_png_is_refused_in_a_line_and_svg_drawn(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "pip install pillow" in refused(TRACES / "example.swf", "--pictures", tmp_path / "all.png")
    assert call(TRACES / "example.swf", "--pictures", tmp_path / "all.svg").exit_code == 0
    assert texts(tmp_path / "all.svg")


# ---------------------------------------------------------------- uneven workloads
SECOND, YEAR = 1, 31_536_000


@pytest.mark.parametrize(
    "jobs",
    [
        [(0, 10, 1)], [(0, 0, 1)], [(5 * YEAR, 1, 4), (5 * YEAR, 1, 4)],
        [(0, 1, 1), (0, YEAR, 3), (1, 1, 4)], [(n, 1, 1) for n in range(310)],
        [(0, 1000 - n, 1 + n % 4) for n in range(50)], [(0, 5, 4), (0, 5, 400)],
    ],
    ids=["one job", "that runs no time", "late", "a second and a year", "many", "all at once", "too wide"],
)  # fmt: skip
def test_any_workload_is_drawn(tmp_path, jobs):
    path = log(tmp_path / "log.swf", *jobs)
    words = ["--pes", "4", "--policy", "fcfs,conservative", "--processes", "1", "--pictures"]
    answer = call(path, *words, tmp_path, "--pictures", tmp_path / "all.png")
    assert answer.exit_code == 0, answer.output
    for name in DRAWN:
        text = (tmp_path / f"{name}.svg").read_text()
        ET.fromstring(text)
        assert "nan" not in text
        assert "inf" not in text.replace("info", "")
        assert " -" not in text.split("</style>")[1], "nothing lies left of the picture or above it"
    with Image.open(tmp_path / "all.png") as image:
        image.load()


def test_a_machine_on_which_nothing_ever_ran_is_drawn_too(tmp_path):
    config = tmp_path / "stopped.qmgr"
    config.write_text("create batch_queue b\nenable queue b\nset default batch_request queue b\n")
    answer = call(
        TRACES / "example.swf", "--config", config, "--pictures", tmp_path, "--html", tmp_path / "p"
    )
    assert answer.exit_code == 0, answer.output
    assert "never ended" in answer.stdout
    assert any("0.0 % of" in text for text in texts(tmp_path / "utilisation.svg"))


@pytest.mark.parametrize("jobs", [[], [(0, 5, 16)]], ids=["an empty log", "only jobs that are too wide"])
def test_a_workload_without_jobs_is_told_in_a_line(tmp_path, jobs):
    path = log(tmp_path / "log.swf", *jobs)
    message = refused(path, "--pes", 8, "--policy", "fcfs,easy", "--pictures", tmp_path)
    assert str(path) in message


def many_jobs() -> SimulatedRun:
    """Return a run of many jobs on 1,000 PEs; an engine's results do not matter here."""
    rng, trail, metrics = Random(1), Trail(1000, 0), Metrics(1000)
    for n in range(20_000):
        begin, run, first = n * 700 + rng.randrange(700), rng.randrange(600_000), rng.randrange(1000)
        pes = tuple(range(first, min(1000, first + rng.randrange(1, 40))))
        job = SimulatedJob(n, n, max(0, begin - rng.randrange(10_000_000)), run, run, len(pes))
        ended = EndedJob(job, begin, begin + run, run, (HeldPes(begin, begin + run, pes),))
        trail.add(ended)
        metrics.add(ended)
    return SimulatedRun("big", 1, "big", 1000, {}, metrics, 0, {}, trail)


@pytest.mark.slow
def test_twenty_thousand_jobs_make_small_pictures():
    run = many_jobs()
    sizes = {name: len(svg_of(DRAWN[name]([run]))) for name in names_of(1, 1)}
    assert max(sizes.values()) < 400_000, sizes
    assert all(len(png_of(DRAWN[name]([run]))) < 400_000 for name in names_of(1, 1))


def test_times_are_short():
    ms = (0, 500, 1000, 90_000, 5_400_000, 129_600_000, 10**12)
    assert list(map(short_time, ms)) == ["0", "0.5 s", "1 s", "1.5 min", "1.5 h", "1.5 d", "11574.1 d"]


FETCHED = r"[ :](src|href|srcset|data|action|poster|background|cite|ping)="
"""Attributes that name something elsewhere."""


def parts(path) -> tuple[str, set[str], str]:
    """Return a page's markup without texts, its elements, and its styles."""
    text = path.read_text("utf-8")
    markup = "".join(re.findall(r"<[^>]*>", text))
    styles = "".join(
        [*re.findall(r"<style>(.*?)</style>", text, re.DOTALL), *re.findall(r'style="([^"]*)', markup)]
    )
    return markup, set(re.findall(r"<(\w+)", markup)), styles


@pytest.mark.parametrize(
    ("words", "pictures"),
    [
        ([TRACES / "example.swf"], 3),
        ([TRACES / "edge.swf", "--policy", "firstfit,easy"], 4),
        (["lublin", "--jobs", 30, "--seeds", 2, "--policy", "fcfs,easy"], 1),
        (["night"], 3),
    ],
    ids=["one", "two policies", "seeds", "a night"],
)
def test_the_page_needs_no_network_and_no_other_file(tmp_path, words, pictures):
    path = tmp_path / "page.html"
    assert call(*words, "--html", path).exit_code == 0
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    markup, elements, styles = parts(path)
    assert not re.search(FETCHED, markup)
    assert not {"script", "link", "iframe", "object", "embed", "img", "base", "use"} & elements
    assert "url(" not in styles
    assert "@import" not in styles
    assert markup.count("<svg") == pictures
    assert set(re.findall(r"\w+://[^\"'< ]*", path.read_text())) == {"http://www.w3.org/2000/svg"}, "a name"


def test_it_has_all_metrics_tables_and_pictures(tmp_path):
    path = tmp_path / "page.html"
    call(TRACES / "edge.swf", "--policy", "firstfit,easy", "--html", path)
    wait = data_of(TRACES / "edge.swf")["metrics"]["wait_mean_s"]
    message = re.findall(r">([^<]+)<", path.read_text())
    for text in ("Compared", "by group", "by user", "by size", "wait, mean", f"{wait:.1f} s", "mean wait, s"):
        assert any(text in each for each in message), text
    for svg in re.findall(r"<svg.*?</svg>", path.read_text(), re.DOTALL):
        ET.fromstring(svg)
    ids = re.findall(r' id="([^"]+)"', path.read_text())
    assert len(ids) == len(set(ids))


def test_names_of_people_cannot_write_the_page(tmp_path):
    log = tmp_path / "list.csv"
    log.write_text("job,width,submit,run,user,group\n1,1,0,5,<script>x</script>,&\"'<b>\n")
    path = tmp_path / "page.html"
    assert call(log, "--html", path).exit_code == 0
    assert "script" not in parts(path)[1]
    assert "&lt;script&gt;x&lt;/script&gt;" in path.read_text()


def stay(number: int, submit: int, begin: int, end: int, pes: tuple[int, ...]) -> EndedJob:
    job = SimulatedJob(number, number, submit, end - begin, end - begin, len(pes))
    return EndedJob(job, begin, end, end - begin, (HeldPes(begin, end, pes),))


@st.composite
def stays(draw: st.DrawFn) -> list[EndedJob]:
    """Draw jobs from a tenth of a second to half a year, in any order."""
    found = []
    for number in range(draw(st.integers(1, 12))):
        submit = draw(st.integers(0, 10 ** draw(st.integers(2, 10))))
        begin = submit + draw(st.integers(0, 10 ** draw(st.integers(1, 9))))
        end = begin + draw(st.integers(0, 10 ** draw(st.integers(1, 9))))
        first = draw(st.integers(0, 99))
        pes = tuple(range(first, min(100, first + draw(st.integers(1, 40)))))
        found.append(stay(number, submit, begin, end, pes))
    return found


@given(stays())
def test_each_column_has_what_was_held_and_waited_in_it(jobs):
    trail = Trail(100, 0)
    for job in jobs:
        trail.add(job)
    assert trail.end == max(job.end for job in jobs)
    assert trail.columns <= COLUMNS
    assert trail.width == FINEST or trail.columns > COLUMNS // 2 - 1
    for found, times in (
        (trail.held(), [(job.start, job.end, job.job.width) for job in jobs]),
        (trail.waiting(), [(job.job.submit, job.start, 1) for job in jobs]),
    ):
        for column, mean in enumerate(found):
            low, high = column * trail.width, (column + 1) * trail.width
            true = sum(max(0, min(end, high) - max(begin, low)) * weight for begin, end, weight in times)
            assert abs(mean * trail.width - true) < 1e-3 + 1e-9 * true


def test_rows_are_neighbouring_pes():
    trail = Trail(128, 0)
    trail.add(stay(1, 0, 0, 1000, (0, 1, 2, 127)))
    rows = trail.rows()
    assert len(rows) == 64
    assert [row[0] for row in rows] == [2.0, 1.0, *[0.0] * 61, 1.0]
    assert [(box.first, box.last) for box in trail.boxes] == [(0, 2), (127, 127)]


def test_what_was_queued_again_held_its_pes_twice():
    trail, job = Trail(4, 0), SimulatedJob(0, 1, 0, 400, 400, 1)
    trail.add(EndedJob(job, 0, 900, 400, (HeldPes(0, 100, (0,)), HeldPes(500, 900, (2,)))))
    assert [(box.first, box.begin, box.end) for box in trail.boxes] == [(0, 0, 100), (2, 500, 900)]
    assert sum(trail.held()) * trail.width == 500


def test_too_many_boxes_are_forgotten_and_the_rest_is_kept():
    trail, rng = Trail(8, 0), Random(1)
    for n in range(MOST_BOXES + 1):
        trail.add(stay(n, n * 10, n * 10, n * 10 + 10, (rng.randrange(8),)))
    assert trail.boxes is None
    assert sum(trail.held()) * trail.width == (MOST_BOXES + 1) * 10


def test_time_counts_from_the_first_submission_on():
    trail = Trail(1, 5_000_000)
    trail.add(stay(1, 5_000_000, 5_000_100, 5_000_200, (0,)))
    assert (trail.end, trail.held(), trail.waiting()) == (200, [0.0, 1.0], [1.0, 0.0])
