"""The output of every attempt of a request that runs again is kept, and shown by qcat."""

import os
import signal

import pytest
from daemon.live import until

SAY = 'echo "attempt $NQSPY_ATTEMPT"; [ $NQSPY_ATTEMPT -ge {last} ] || exec sleep 60\n'


@pytest.fixture(autouse=True)
def clean(office):
    yield
    office.set("set default rerun_output=append", "start queue batch")
    office.run("qdel", "--all", "-k").ok()
    office.run("qwait", "--all")


def whole(id, *attempts):
    """Return the text of a file to which these attempts wrote."""
    later = (f"---- nqspy: attempt {n} of {id} ----\nattempt {n}\n" for n in attempts[1:])
    return f"attempt {attempts[0]}\n" + "".join(later)


def await_line(office, id, attempt):
    """Wait until the attempt has written its line."""
    name = id.partition(".")[0].replace("[", "_").replace("]", "")
    folder = office.home / "spool" / f"{name}.{attempt}"
    until(lambda: (folder / "claim").exists(), "it has begun")
    until(lambda: f"attempt {attempt}" in office.run("qcat", id).out, "it has written")
    return folder


def rerun(office, id, *attempts):
    for attempt in attempts:
        await_line(office, id, attempt)
        office.run("qrerun", id).ok()


def lose(office, id, attempt):
    """Kill the shepherd of an attempt."""
    folder = await_line(office, id, attempt)
    office.set("stop queue batch")
    os.kill(int((folder / "claim").read_text().split()[1]), signal.SIGKILL)
    until(lambda: office.job(id)["state"] == "queued", "it waits again")
    return folder


def submit(office, *options, last=2):
    return office.qsub(SAY.format(last=last), *options)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("-j", "oe", "-o", "out1"), "out1"),
        (("-k", "oe", "-N", "kept"), ""),
        (("-o", "out2", "-ro", "-eo"), "out2"),
    ],
)
def test_an_attempt_that_is_run_again_is_appended_to(office, options, name):
    id = submit(office, *options, last=3)
    if "-ro" in options:
        for n in (1, 2):
            until(lambda n=n: f"attempt {n}\n" in office.text(name), "it has written")
            office.run("qrerun", id).ok()
    else:
        rerun(office, id, 1, 2)
    path = office.ended(id)["output"]
    with open(path) as file:
        assert file.read() == whole(id, 1, 2, 3)
    outputs = [office.run("qcat", "--attempt", str(n), id).ok().out for n in (1, 2, 3)]
    os.unlink(path)
    assert outputs == [f"attempt {n}\n" for n in (1, 2, 3)]
    assert office.run("qcat", "--attempt", "4", id).status != 0
    assert office.run("qcat", "--attempt", "x", id).status == 2


@pytest.mark.parametrize(
    ("way", "wish", "files"),
    [
        ("number", "own", {"own": 1, "own.2": 2}),
        ("replace", "replaced", {"replaced": 2}),
        ("append", "at-a.%a", {"at-a.1": 1, "at-a.2": 2}),
        ("append", "at-r.%r", {"at-r.1": 1, "at-r.2": 2}),
    ],
)
def test_each_attempt_may_have_a_file_of_its_own_or_replace_the_one_before(office, way, wish, files):
    office.set(f"set default rerun_output={way}")
    id = submit(office, "-o", wish)
    rerun(office, id, 1)
    office.ended(id)
    assert all(office.text(name) == f"attempt {n}\n" for name, n in files.items())
    first = office.run("qcat", "--attempt", "1", id)
    assert (first.status, first.out) == ((35, "") if way == "replace" else (0, "attempt 1\n"))
    assert office.run("qcat", "--attempt", "2", id).ok().out == "attempt 2\n"


def test_indices_of_arrays_are_kept_too(office):
    id = submit(office, "-J", "4-5", "-o", "index.%a.%r")
    one = id.replace("[]", "[4]")
    rerun(office, one, 1)
    until(lambda: office.job(one)["state"] == "ended", "it has ended")
    assert [office.text(f"index.4.{n}") for n in (1, 2)] == ["attempt 1\n", "attempt 2\n"]


def test_the_output_of_a_lost_attempt_is_kept_and_shown(office):
    id = submit(office, "-j", "oe", "-o", "lost")
    folder = lose(office, id, 1)
    assert office.run("qcat", id).ok().out == "attempt 1\n"
    office.set("start queue batch")
    office.ended(id)
    assert office.text("lost") == "attempt 2\n"
    assert office.run("qcat", "--attempt", "1", id).ok().out == "attempt 1\n"
    assert office.run("qcat", id).ok().out == "attempt 2\n"
    assert (folder / "stdout").exists()


def test_a_lost_attempt_that_wrote_in_place_is_appended_to(office):
    id = submit(office, "-o", "lost2", "-ro", "-eo")
    until(lambda: (office.work / "lost2").exists() and office.text("lost2"), "it has written")
    folder = office.home / "spool" / f"{id.partition('.')[0]}.1"
    os.kill(int((folder / "claim").read_text().split()[1]), signal.SIGKILL)
    office.ended(id)
    assert office.text("lost2") == whole(id, 1, 2)


@pytest.mark.parametrize("way", ["append", "number"])
def test_what_is_no_file_has_no_attempts(office, way):
    office.set(f"set default rerun_output={way}")
    id = submit(office, "-j", "oe", "-o", "/dev/null")
    rerun(office, id, 1)
    assert office.ended(id)["output"] == "/dev/null"
    assert not os.path.lexists("/dev/null.2")
