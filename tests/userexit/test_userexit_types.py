"""Types for site code: an editor knows the names of requests and views, and mypy reports a wrong name."""

import re
import subprocess
import sys
from typing import get_type_hints

import pytest

from nqspy import userexit
from nqspy.core.views import FIELDS, SUBMIT_FIELD
from nqspy.ports import RequestView

EXAMPLE = '''\
"""Tests of one owner run one after the other; night work gets a wall limit."""

from nqspy.userexit import (
    Answer, Changes, Instant, Redate, Request, SubmittedRequest, View,
    changes, redate, refuse, setting, userexit,
)

most = setting("most", "count", "1", "tests of one owner at a time")
who = setting("who", "names", "anne", "owners whose tests count")
on = setting("on", "flag", "on", "whether it counts")


@userexit
def jobselect(request: Request, view: View) -> Answer | None:
    reveal_type(request.memory)  # int | None
    reveal_type(request.started)  # int | None (an Instant)
    reveal_type(request.consumables)  # Mapping[str, int]
    reveal_type(view.running(owner=request.owner)[0].pes)  # int
    reveal_type([other.name for other in view.waiting(queue="night")])  # list[str]
    reveal_type(view.queue("night").per_request.memory_limit)  # int | None
    reveal_type(view.machine.pes)  # int | None
    reveal_type(view.settings.queues["night"].run_limit)  # int | None
    reveal_type(view.share(group=request.group))  # float
    reveal_type(view.ahead(request)[0][1])  # Answer | None
    reveal_type((most.value, who.value, on.value))  # tuple[float, tuple[str, ...], bool]
    running = view.running(owner=request.owner, name="test")
    return refuse("your tests are running") if len(running) >= most.value else None


@userexit
def elected(request: Request, view: View, now: Instant) -> list[Redate]:
    return [redate(view.waiting(owner=request.owner), now), redate(request, now)]


@userexit
def submit(request: SubmittedRequest, view: View) -> Changes | None:
    reveal_type(request.script)  # str
    return changes(wall="8:00:00") if request.wall is None else None


reveal_type(jobselect)  # def (request: RequestView, view: View) -> Answer | None
'''


def mypy(folder, text):
    (folder / "example.py").write_text(text)
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "example.py"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True).stdout.splitlines()


def plain(kind):
    """Return a type as a person writes it: without modules, unions in one form, an instant as a number."""
    kind = re.sub(r"[\w.]+\.(\w+)", r"\1", kind).replace("Instant", "int")
    return re.sub(r"Union\[(.*?), None\]", r"\1 | None", kind)


@pytest.mark.slow
def test_mypy_knows_what_an_editor_completes(tmp_path):
    wanted = re.findall(r"reveal_type\(.*\)  # ([^(].*?)(?: \(an Instant\))?$", EXAMPLE, re.MULTILINE)
    lines = mypy(tmp_path, EXAMPLE)
    assert [line for line in lines if "error" in line and "reveal" not in line] == []
    assert [plain(re.split(r'"(.*)"', line)[1]) for line in lines if "Revealed type" in line] == wanted
    slip = EXAMPLE.replace("request.started", "request.begun").replace("view.share", "view.shared")
    slip = slip.replace("run_limit", "runlimit").replace("request.script", "request.text")
    found = re.findall(r'has no attribute "(\w+)"', "\n".join(mypy(tmp_path, slip)))
    assert found == ["begun", "runlimit", "shared", "text"]


def test_the_types_have_what_exits_are_handed():
    assert set(get_type_hints(RequestView)) == set(FIELDS)
    assert set(get_type_hints(userexit.SubmittedRequest)) - set(FIELDS) == {SUBMIT_FIELD}
