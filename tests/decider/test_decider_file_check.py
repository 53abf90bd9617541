"""`exits check` finds what is wrong with a candidate before a request meets it, in a process of its own."""

import os

import pytest
from daemon.live import Live

from nqspy.decider.file_check import made_up_site, problems_of
from nqspy.model.site_checks import check_site
from nqspy.system.shipped import shipped

HEAD = """\
from nqspy.userexit import changes, force, hold_line, redate, refuse, setting, userexit

most = setting("most", "count", "1", "what it may be")

"""


def hook(signature, *lines):
    """Return a file with one hook; its first line is line 7."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"{HEAD}@userexit\ndef {signature}:\n{body}"


@pytest.fixture
def check(tmp_path):
    def check(code):
        (tmp_path / "mine.py").write_text(code)
        return [line.partition("mine.py")[2] for line in problems_of(tmp_path / "mine.py")]

    return check


JOBSELECT, SUBMIT, OF_X = "jobselect(request, view, now)", "submit(request)", "if request.owner == 'x':"
UNKNOWN = [
    (JOBSELECT, ("if request.foo:", "    pass"), "a request has no foo; it has "),
    (JOBSELECT, ("return view.queue('q').per_request.foo",), "limits have no foo"),
    (JOBSELECT, ("return view.bar",), "the view has no bar; it has "),
    (JOBSELECT, ("if request.memry:", "    pass"), "no memry (did you mean memory?)"),
    (JOBSELECT, ("return refuse(request.script)",), "a request has no script"),
    (JOBSELECT, ("for r in view.running():", "    r.pess"), "a request has no pess (did you mean pes?)"),
    (JOBSELECT, ("any(r.pess for r in view.waiting(queue='x'))",), "no pess (did you mean pes?)"),
    (JOBSELECT, ("for r, a in view.ahead(request):", "    a.verdikt"), "no verdikt (did you mean verdict?)"),
    (JOBSELECT, ("q = view.queue('night')", "q.per_request.memory_limt"), "did you mean memory_limit?"),
    (JOBSELECT, ("view.machine.pess",), "did you mean pes?"),
    (JOBSELECT, ("view.settings.global_.run_limt",), "did you mean run_limit?"),
    (JOBSELECT, ("most.valu",), "did you mean value?"),
    (JOBSELECT, ("view.running(ownr='x')",), "running(): got an unexpected keyword argument 'ownr'"),
    (JOBSELECT, ("if now > 1e15:", "    return 'no'"), "jobselect must answer None, force(),"),
    (JOBSELECT, ("if now > 1e15:", "    return True"), "not True"),
    (JOBSELECT, ("if now > 1e15:", "    return changes(queue='x')"), "not changes(...)"),
    (JOBSELECT, ("if now > 1e15:", "    return refuse()"), "missing a required argument: 'text'"),
    (JOBSELECT, ("if now > 1e15:", "    return refuse(3)"), "needs a text with the reason, not 3"),
    (SUBMIT, (OF_X, "    return force()"), "submit must answer None,"),
    (SUBMIT, (OF_X, "    return changes(colour=1)"), "arguments: queue, priority"),
    (SUBMIT, (OF_X, "    return changes(pes='2')"), "changes(): pes must be a whole number, not '2'"),
    ("elected(request, now)", ("if now > 1e15:", "    return redate(request, now)"), "a list of redate(...)"),
    ("elected(request, now)", ("if now > 1e15:", "    return [refuse('x')]"), "a list of redate(...)"),
    ("shrpri(owner)", ("if owner == 'x':", "    return -1"), "a number from 0 or None, not -1"),
    ("shrpri(owner)", ("if owner == 'x':", "    return 'much'"), "a number from 0 or None, not 'much'"),
    ("route(request)", ("if request.owner == 'x':", "    return 'night'"), "in a list, not 'night'"),
    ("jobend(request)", ("request.exit_code",), "a request has no exit_code"),
]


@pytest.mark.parametrize(("signature", "lines", "message"), UNKNOWN)
def test_what_nobody_has_and_answers_of_no_hook_are_found_by_line(check, signature, lines, message):
    [problem] = check(hook(signature, *lines))
    assert problem.startswith((f", line {6 + len(lines)}: ", ", line 7: "))
    assert message in problem


RUNS = [
    (JOBSELECT, ("return [1][request.pes + 5]",), "IndexError: list index out of range (line 7)"),
    (JOBSELECT, ("while True:", "    pass"), "ran longer than its budget of 50 ms of CPU time"),
    (JOBSELECT, ("return view.running()",), "jobselect must answer None"),
    ("submit(request, view)", ("import os", "os.fork()"), "BlockingIOError"),
    (
        "route(request, destinations)",
        ("return [d.upper() for d in destinations]",),
        "route must answer some of",
    ),
    ("shrpri(owner, group, view)", ("return 1 / view.usage(group='nobody')",), "ZeroDivisionError"),
    ("shift_changed(old, new)", ("return old / 2",), "TypeError"),
    ("night_report(report)", ("return report['dat']",), "KeyError: 'dat'"),
]


@pytest.mark.parametrize(("signature", "lines", "message"), RUNS)
def test_each_hook_is_run_once_on_a_made_up_request(check, signature, lines, message):
    [problem] = check(hook(signature, *lines))
    assert message in problem
    assert f"({signature.partition('(')[0]} of mine on" in problem


GOOD = f"""{HEAD}
def helper(request):
    return request.colour  # nothing is known of it

@userexit
def jobselect(request, view, now):
    mine = view.running(owner=request.owner)
    if request.memory and sum(r.memory or 0 for r in mine) > most.value:
        return refuse(f"{{len(mine)}} of yours run")
    first = min(view.waiting(), key=lambda request: request.seq, default=None)
    request = first or request
    limit = view.queue(request.queue).per_request.memory_limit
    return hold_line("x") if limit == 5 else force() if limit == 6 else None

@userexit
def submit(request, view, now):
    if "secret" in request.script and "-x" in request.arguments:
        return refuse("no secrets")
    return changes(date=now + 1000, hold=False, cpu="10:00", memory="8mw", wall=60_000, pes=1,
                   attributes=["fast"], output="out", error="/tmp/err", queue="night", priority=3)

@userexit
def elected(request, view, now):
    return [redate(view.waiting(owner=request.owner), now)]

@userexit
def jobinit(request):
    raise PermissionError("it may here and not there")

@userexit
def night_report(report):
    return report["date"], report["line"], report["failed"][0]["id"], report["groups"][0]
"""


def test_what_is_right_is_right(check):
    assert check(GOOD) == []


def test_the_shipped_exits_are_right_and_the_made_up_site_is_sound():
    for file in sorted((shipped() / "exits").glob("*.py")):
        assert problems_of(file) == []
    check_site(made_up_site()[0])


@pytest.fixture
def nqspy(tmp_path):
    live = Live(tmp_path / "home", tmp_path / "work").site()
    return lambda *words: live.run("nqspy", *words)


def test_the_command_names_every_problem_one_a_line(nqspy, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(hook(JOBSELECT, "request.foo", "view.bar"))
    done = nqspy("exits", "check", str(file))
    assert done.status == 1
    first, second = done.err.splitlines()
    assert "mine.py, line 7: " in first
    assert "mine.py, line 8: " in second


NOTHING_WRONG = "from nqspy.userexit import userexit\n\n@userexit\ndef jobselect(request):\n    return None\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import ctypes\nctypes.string_at(0)\n", "loading failed: it was ended by SIGSEGV"),
        ("import os\nos._exit(3)\n", "loading failed: it ended with status 3"),
        ("import os\nos.fork()\n", "line 2: BlockingIOError"),
        ("x = bytearray(20 << 30)\n", "line 1: MemoryError"),
    ],
)
def test_what_a_candidate_does_while_it_is_loaded_is_told_in_a_line(check, code, message):
    [problem] = check(code + NOTHING_WRONG)
    assert message in problem
    assert "\n" not in problem


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: others have nothing to give up")
@pytest.mark.parametrize("words", [("exits", "check"), ("doctor",)])
def test_nothing_of_a_candidate_runs_as_root_or_writes_a_file(nqspy, tmp_path, open_folder, words):
    file = tmp_path / "home" / "exits" / "tells.py"
    told = open_folder / "uid"
    code = "import os\nassert os.getuid() != 0\nopen(os.devnull, 'w').write('x')\ntry:\n"
    file.write_text(f"{code}    open({str(told)!r}, 'w')\nexcept OSError:\n    pass\n{NOTHING_WRONG}")
    done = nqspy(*words, *([str(file)] if words[0] == "exits" else []))
    assert "tells.py" in done.out
    assert "Error" not in done.out
    assert not told.exists()
