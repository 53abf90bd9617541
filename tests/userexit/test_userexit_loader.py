"""Loading of files: each becomes an exit, or gives one line with file, line and error."""

import os
import subprocess
import sys

import pytest

from nqspy.model.errors import Refusal
from nqspy.model.machine import ExitSettings
from nqspy.system.private_files import writable_by_others
from nqspy.userexit import specs
from nqspy.userexit.hooks import shadows
from nqspy.userexit.loader import load_source, read_file
from nqspy.userexit.site_exits import SiteExits

GOOD = """
@userexit
def jobselect(request):
    return refuse("no")
"""


def test_files_are_loaded_in_name_order_and_others_left_alone(put, load, tmp_path):
    put("zeta", GOOD)
    put("alpha", GOOD)
    put("_helper", "this is no Python")
    put(".hidden", "nor this")
    (tmp_path / "exits" / "__pycache__").mkdir()
    (tmp_path / "exits" / "notes.txt").write_text("nor this")
    assert [each["name"] for each in load().listing()] == ["alpha", "zeta"]


def test_no_folder_is_no_exit(tmp_path, house, req):
    exits = SiteExits(tmp_path / "exits")
    assert exits.listing() == []
    assert not exits.has("jobselect")
    assert exits.jobselect(req(1), house) is None
    assert exits.reload()
    assert exits.problems == []


def test_a_function_takes_any_subset_of_its_arguments_in_any_order(exits_of, house, req):
    exits = exits_of(
        "@userexit\ndef jobselect(now, request):\n    return refuse(f'{request.seq} at {now}')\n",
        b="@userexit\ndef shrpri():\n    return 3\n",
        c="@userexit\ndef route(destinations):\n    return destinations[::-1]\n",
    )
    assert exits.jobselect(req(7), house).text == "7 at 1000000"
    assert exits.shrpri("anne", "d1", house) == 3.0
    assert exits.route(req(7), ("x", "y"), house) == ("y", "x")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("@userexit\ndef jobselct(request):\n    pass", 4, "did you mean jobselect?"),
        ("@userexit\ndef jobselect(reqest):\n    pass", 4, "did you mean request?"),
        ("@userexit\ndef shrpri(request):\n    pass", 4, "its arguments are owner, group, view, now"),
        ("@userexit\ndef jobselect(request, **rest):\n    pass", 4, "plain arguments"),
        ("@userexit\ndef jobselect(request, now=5):\n    pass", 4, "plain arguments"),
        ("@userexit\nasync def jobselect(request):\n    pass", 4, "async"),
        ("@userexit\ndef elected(request):\n    yield 1", 4, "generator"),
        ("def jobselect(request):\n    pass", 3, "write @userexit above it"),
        ("x = 1\ndef jobselect(request):\n    return (", 5, "syntax error"),
        ("x = 1\nreturn x", 4, "syntax error: 'return' outside function"),
        ("x = 1\ny = x / 0", 4, "ZeroDivisionError"),
        ("raise SystemExit(3)", 3, "SystemExit"),
        ("from nqspy.core import passes", 3, "from nqspy.userexit only"),
        ("from nqspy.userexit import forse", 3, "cannot import name 'forse'"),
        ("from nqspy.userexit import setting\nh = setting('h', 'meters', '1', 'x')", 4, "is not a unit"),
        ("from nqspy.userexit import setting\nh = setting('h', 'memory', 'big', 'x')", 4, "is not a size"),
        ("from nqspy.userexit import setting\nh = setting('budget', 'time', '1', 'x')", 4, "is not a name"),
        ("h = setting('h', 'count', '1', 'x')\ng = setting('h', 'text', '1', 'x')", 4, "declared twice"),
        (GOOD + GOOD, 9, "defined twice"),
        ("x = 1", None, "has no exit"),
    ],
)
def test_a_mistake_is_refused_with_file_and_line(put, tmp_path, text, line, expected):
    path = put("bad", text)
    problem = load_source(read_file(path))[1][0]
    where = "exits/bad.py" + (f", line {line}: " if line else ": ")
    assert problem.startswith(where)
    assert expected in problem
    assert "\n" not in problem
    assert SiteExits(tmp_path / "exits").problems == [problem]


@pytest.mark.parametrize("mode", [0o666, 0o646])
def test_a_file_that_all_may_write_or_of_another_owner_is_not_loaded(put, tmp_path, mode):
    of = put("bad", GOOD).stat()
    (tmp_path / "exits" / "bad.py").chmod(mode)
    exits = SiteExits(tmp_path / "exits")
    assert exits.listing() == []
    assert [problem.partition(":")[0] for problem in exits.problems] == ["exits/bad.py"]
    stranger = os.stat_result((of.st_mode, 1, 1, 1, 4711, of.st_gid, 1, 0, 0, 0))
    assert writable_by_others(stranger, owner=4712)
    assert writable_by_others(stranger, owner=4711) is None
    assert writable_by_others(of, owner=of.st_uid) is None
    (tmp_path / "exits").chmod(0o777)
    exits = SiteExits(tmp_path / "exits")
    assert exits.listing() == []
    assert "no exit was loaded" in exits.problems[0]


def test_a_broken_file_does_not_keep_the_good_ones_from_starting(put, tmp_path, house, req):
    put("a", "syntax error here")
    put("b", GOOD)
    exits = SiteExits(tmp_path / "exits")
    assert [each["name"] for each in exits.listing()] == ["b"]
    assert len(exits.problems) == 1
    assert exits.jobselect(req(1), house).who == "b"


def test_a_broken_set_leaves_the_old_one_in_force(put, exits_of, house, req):
    exits = exits_of(GOOD)
    put("a", "@userexit\ndef jobselect(): return force()\n")
    put("b", "@userexit\ndef jobselct(): pass\n")
    with pytest.raises(Refusal, match=r"exits/b\.py, line 4: .*the exits loaded before stay in force"):
        exits.reload()
    assert exits.jobselect(req(1), house).verdict == "refuse"
    assert [each["name"] for each in exits.listing()] == ["a"]
    put("b", "@userexit\ndef shrpri(): return 1\n")
    assert exits.reload() == "2 exits loaded: a, b"
    assert exits.jobselect(req(1), house).verdict == "force"
    assert exits.shrpri("anne", "d1", house) == 1.0


def test_reload_is_refused_when_a_value_in_force_does_not_fit_any_more(exits_of, put, a_pass, site):
    exits = exits_of("h = setting('h', 'text', 'x', 'd')\n" + GOOD)
    a_pass(exits, a=ExitSettings("a", values={"h": "long"}))
    put("a", "h = setting('h', 'memory', '1mb', 'd')\n" + GOOD)
    with pytest.raises(Refusal, match=r"setting h: 'long' is not a size"):
        exits.reload()


def test_a_name_like_a_module_of_python_harms_neither(put, load, house, req):
    put("calendar", "import calendar\nfrom __future__ import annotations\n", head="")
    text = """\
    from __future__ import annotations
    import calendar
    from dataclasses import dataclass
    from nqspy.userexit import refuse, userexit

    @dataclass
    class Day:
        number: int

    @userexit
    def jobselect():
        return refuse(calendar.day_name[Day(0).number])
    """
    put("calendar", text, head="")
    assert load().jobselect(req(1), house).text == "Monday"
    assert "nqspy" not in sys.modules["calendar"].__file__


def test_a_file_that_never_finishes_loading_is_refused(put, tmp_path, monkeypatch):
    monkeypatch.setattr("nqspy.userexit.loader.IMPORT_BUDGET", 50)
    monkeypatch.setattr("nqspy.userexit.guard.WALL_FACTOR", 10_000)  # however busy the machine is
    put("endless", "while True: pass\n")
    problem = "exits/endless.py, line 3: ran longer than its budget of 50 ms of CPU time"
    assert SiteExits(tmp_path / "exits").problems == [problem]


def test_what_an_exit_prints_goes_into_the_log(put, load, house, req, caplog, capsys):
    put("chatty", "@userexit\ndef jobselect(request):\n    print('seen', request.seq)\n")
    with caplog.at_level("INFO", logger="nqspy.userexit"):
        load().jobselect(req(4), house)
    assert "exit chatty: seen 4" in caplog.text
    assert capsys.readouterr().out == ""


def test_every_hook_is_documented_and_site_code_needs_one_import_only():
    for hook in specs.ARGUMENTS:
        assert getattr(specs, hook).__doc__, hook
    script = "from nqspy.userexit import userexit, setting, force, refuse, hold_line, redate, changes"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
    assert set(specs.NOTICES) == {"jobinit", "jobend", "shift_changed", "night_report"}


# ---------------------------------------------------------------- several that answer shrpri
SCALES = "@userexit\ndef shrpri(owner, group, view): return 2 * view.stock_shrpri(owner, group)\n"


def test_the_load_names_files_whose_answer_is_shadowed(put, load, house):
    for name in ("shrpri", "zz_mine"):
        put(name, SCALES)
    exits = load()
    loaded, shadowed = exits.reload().splitlines()
    assert loaded.endswith(": shrpri, zz_mine")
    assert shadowed.startswith("zz_mine: ")
    assert "shrpri.py" in shadowed
    house.stock = {("anne", "d1"): 0.25}
    assert exits.shrpri("anne", "d1", house) == 0.5


def test_nothing_is_reported_where_one_alone_answers_or_the_first_is_off():
    rows = [
        {"name": "a", "enabled": False, "hooks": ["shrpri"]},
        {"name": "b", "enabled": True, "hooks": ["shrpri", "submit"]},
        {"name": "c", "enabled": True, "hooks": ["jobselect"]},
    ]
    assert shadows(rows) == []
