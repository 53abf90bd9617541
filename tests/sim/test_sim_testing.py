"""Tools for authors of exits: a site in a few lines, claims about it, and clear errors where they do not
hold."""

import logging
import subprocess
import sys
import textwrap

import pytest

from nqspy.userexit.testing import BadExit, BadStory, ExitFailed, Refusal, Site

QUIET = '''\
"""Tests of one owner run one after the other."""
from nqspy.userexit import refuse, setting, userexit

most = setting("most", "count", "1", "tests of one owner at a time")

@userexit
def jobselect(request, view):
    if request.name == "test" and len(view.running(owner=request.owner, name="test")) >= most.value:
        return refuse("your tests are running")
'''


HEAD = "from nqspy.userexit import *\nfrom nqspy.userexit import userexit\n"


def exit(body):
    return HEAD + textwrap.dedent(body)


# ---------------------------------------------------------------- a story
def test_a_rule_is_told_as_a_story():
    site = Site(exits={"quiet": QUIET}, pes=4)
    site.submit("a", named="test", runs="1h")
    b = site.submit("b", named="test")
    site.submit("c", owner="ben", named="test")
    site.submit("d", named="model")
    assert site.running == ["a", "c", "d"]
    assert site.waiting == ["b"]
    site.must_wait("b", because="your tests are running")
    site.must_wait(b, because="quiet")
    assert site.answers("b") == ["quiet.jobselect: refuse('your tests are running')"]
    site.let_pass("59min")
    assert (b.state, b.place, b.started) == ("queued", 1, None)
    site.at("21:00")
    site.must_run("b")
    assert b.started == site.now == "2026-03-02 21:00:00"
    site.to_the_end()
    assert site.ended == ["c", "d", "a", "b"]
    assert site.ran_before("a", "b")
    assert site.never_together("a", "b")
    assert site.must_have_ended("b", status=0)
    assert (b.ended, b.exit_status, site.most_at_once(owner="anne")) == ("2026-03-02 21:10:00", 0, 2)


def test_settings_are_given_in_qmgrs_language():
    site = Site(
        """
        create batch_queue night priority=20 user_limit=1
        enable queue night
        start queue night
        create group d1 share=60 members=(anne)
        set exit quiet most=2
        """,
        exits={"quiet": QUIET},
    )
    for name in ("a", "b"):
        site.submit(name, named="test", group="d1")
    site.must_wait("b", because="night")
    site.qmgr("set queue night user_limit=unlimited")
    assert site.running == ["a", "b"]
    assert site.job("a").spec.group == "d1"
    site.submit("c", named="test")
    site.must_wait("c", because="your tests")
    site.open_queue("day", "run_limit=1")
    site.submit("d", queue="day")
    assert site.job("d").queue == "day"


def test_shifts_come_at_their_times_in_the_sites_zone():
    site = Site(
        """
        create batch_queue night
        enable queue night
        define shift day when=("0 6 * * *")
        stop queue night
        end
        define shift night when=("0 21 * * mon-fri")
        start queue night
        end
        """,
        zone="Europe/Paris",
    )
    site.submit("a", runs="2h")
    assert site.shift == "day"
    site.must_wait("a", because="stopped")
    site.at("21:00")
    assert (site.shift, site.running) == ("night", ["a"])
    site.at("tue 03:00")
    assert site.now == "2026-03-03 03:00:00"
    site.at("2026-03-03 06:00")
    assert site.shift == "day"
    site.at("06:00")
    assert site.now == "2026-03-03 06:00:00", "it is six o'clock"


def test_what_arrives_at_once_is_looked_at_in_one_pass():
    exits = {"first": exit("""
        @userexit
        def jobselect(request, view):
            return None if request.owner == "ben" else hold_line("behind ben")
    """)}  # fmt: skip
    site = Site(exits=exits, pes=1)
    with site.at_once():
        site.submit("a")
        b = site.submit("b", owner="ben")
    assert site.started == []
    site.must_wait("b")
    assert b.id == "2.test"
    alone = Site(exits=exits, pes=1)
    alone.submit("b", owner="ben")
    alone.submit("a")
    assert alone.started == ["b"]


def test_requests_ask_for_what_people_ask_for():
    site = Site("create batch_queue night\nenable queue night\ncreate consumable gpu count=2\n")
    a = site.submit(
        "a", cpu="10:00", wall=3600, memory="8mw", priority=5, attributes=["fast"], arguments=["x", "y"],
        units={"gpu": 1}, held=True, named="",
    )  # fmt: skip
    ask = a.spec.ask
    assert (ask.cpu, ask.wall, ask.memory, ask.consumables) == (600_000, 3_600_000, 64 << 20, (("gpu", 1),))
    assert (a.spec.name, a.spec.name_given, a.spec.args, a.spec.priority) == ("STDIN", False, ("x", "y"), 5)
    assert a.state == "held"
    b = site.submit("b", not_before="23:00")
    site.must_wait(b, because="date")
    spec = site.submit("d", contract=True, best_guess="10:00", nice=5).spec
    assert (spec.contract, spec.ask.best_guess, spec.ask.nice) == (True, 600_000, 5)


def test_dependencies_arrays_and_ends():
    site = Site(pes=2)
    site.submit("a", status=3, runs="5min")
    site.submit("b", after=["a:fail"])
    site.submit("c", after="a")
    site.submit("d", array="1-4%1", runs=60)
    site.to_the_end()
    assert site.job("a").exit_status == 3
    assert "b" in site.ended
    site.must_wait("c")
    assert [name for name in site.started if name.startswith("d")] == ["d[1]", "d[2]", "d[3]", "d[4]"]
    site.delete("c")
    site.must_have_ended("c")


def test_limits_end_what_runs_too_long_and_operators_hold_and_release():
    site = Site(pes=3)
    site.submit("a", wall="10:00", runs="1h")
    site.submit("b", cpu="1:00", runs="10min", uses="2:00")
    site.submit("c", pes=3)
    site.hold("c")
    site.let_pass("1h")
    assert "a ends (wall_limit)" in site.story()
    assert "b ends (cpu_limit)" in site.story()
    assert site.job("b").ended == "2026-03-02 20:05:00"
    site.must_wait("c", because="operator")
    site.release("c")
    site.must_run("c")


# ---------------------------------------------------------------- other hooks
def test_submissions_may_be_refused_and_changed():
    site = Site(exits={"gate": exit("""
        @userexit
        def submit(request):
            if "#pragma long" in request.script:
                return changes(queue="night", wall="8:00:00")
            return refuse("students stay out") if request.owner == "stu" else None
    """)})  # fmt: skip
    site.open_queue("night")
    site.must_refuse("a", owner="stu", because="students stay out")
    a = site.submit("a", script="#pragma long\n")
    assert (a.queue, a.spec.ask.wall) == ("night", 28_800_000)
    with pytest.raises(Refusal, match="students"):
        site.submit("b", owner="stu")
    assert site.submit("b").id == "2.test", "what was refused has no number"


def test_shares_re_datings_and_routes_are_the_engines_own():
    site = Site(
        """
        create batch_queue small priority=10
        create batch_queue large priority=10
        create pipe_queue door destination=(small, large)
        enable queue all
        start queue door, small
        set sched_factor share 100
        set machine pes=1
        """,
        exits={
            "vip": exit("""
                @userexit
                def shrpri(owner):
                    return 1.0 if owner == "vip" else 0.1
                @userexit
                def elected(request, view, now):
                    return [redate(view.waiting(owner=request.owner), now)]
                @userexit
                def route(request, destinations):
                    return ["large"] if request.pes > 1 else None
            """)
        },
    )
    site.qmgr("set machine pes=2")
    assert site.submit("wide", queue="door", pes=2).queue == "large"
    site.qmgr("set machine pes=1")
    site.submit("a", queue="door")
    for name in ("b", "c"):
        site.submit(name, queue="door")
    site.submit("v", owner="vip", queue="door")
    assert site.waiting == ["wide", "v", "b", "c"]
    site.let_pass("20min")
    assert site.ran_before("v", "b")
    assert site.job("c").date_in_queue == site.job("b").started == "2026-03-02 20:20:00"


def test_notices_are_given_as_things_happen():
    site = Site(
        'create batch_queue q\nenable queue q\nstart queue q\ndefine shift night when=("0 21 * * *")\n'
        "set queue q priority=5\nend\n",
        exits={
            "told": exit("""
                @userexit
                def jobinit(request): print("began", request.name, request.state)
                @userexit
                def jobend(request): print("over", request.name)
                @userexit
                def shift_changed(old, new): print("shift", new)
                @userexit
                def night_report(report): print(report["requests"], "in the night")
            """)
        },
    )
    assert site.printed == ["told: shift night"]
    site.submit("a")
    site.let_pass("30min")
    assert site.printed[1:] == ["told: began a running", "told: over a"]
    assert site.report_night()["requests"] == 1
    assert site.printed[-1] == "told: 1 in the night"


# ---------------------------------------------------------------- what does not hold
CLAIMS = [
    (lambda site: site.must_wait("a"), "a should wait, and is running"),
    (lambda site: site.ran_before("b", "a"), "b should run before a, which started first, at 2026"),
    (lambda site: site.never_together("a", "b"), "never run at the same time, and do at 2026-03-02 20:00:00"),
    (lambda site: site.must_run("c"), "c should run, and is queued because: "),
    (lambda site: site.must_wait("c", because="a reason"), "because: a reason\nand waits because: "),
    (lambda site: site.ran_before("a", "c"), "c has not run: "),
    (lambda site: site.must_refuse("d"), "d should be refused, and is queued"),
    (lambda site: site.must_have_ended("e", status=1), "should have ended with 1, and did with 0"),
]
SLIPS = [
    (lambda site: site.must_run("z"), "nothing was submitted as 'z'; submitted were e, a, b, c"),
    (lambda site: site.submit("a"), "'a' was submitted before; call this one otherwise"),
    (lambda site: site.submit("x", queue="nowhere"), "Unknown queue nowhere; queues: batch"),
    (lambda site: site.submit("x", memory="much"), "is not a size"),
    (lambda site: site.submit("x", colour="red"), "has no option colour"),
    (lambda site: site.submit("x", after="a:never"), "behind the colon stands one of ok, any"),
    (lambda site: site.qmgr("show queue batch"), "changes nothing"),
    (lambda site: site.at("soon"), "is not a moment"),
    (lambda site: site.at("2026-03-01 21:00"), "has gone by: it is 2026-03-02 20:00:00"),
]


@pytest.mark.parametrize(("claim", "message"), CLAIMS + SLIPS, ids=[message for _, message in CLAIMS + SLIPS])
def test_what_does_not_hold_or_makes_no_sense_is_told_in_its_words(claim, message):
    site = Site(pes=2)
    for name, runs in (("e", 0), ("a", 600), ("b", 60), ("c", 600)):
        site.submit(name, runs=runs)
    with pytest.raises((AssertionError, BadStory, Refusal), match=message) as wrong:
        claim(site)
    shows_the_story = "2026-03-02 20:00:00  a starts on PEs " in str(wrong.value)
    assert shows_the_story is (wrong.type is AssertionError)


def test_what_an_exit_fails_with_fails_the_test():
    broken = exit("@userexit\ndef jobselect(request):\n    return refuse(request.nmae)\n")
    site = Site(exits={"broken": broken})
    with pytest.raises(ExitFailed, match=r"exit broken: AttributeError: a request has no nmae") as failed:
        site.submit("a")
    assert "return refuse(request.nmae)" in str(failed.value), "with its traceback"
    lenient = Site(exits={"broken": broken}, strict=False)
    lenient.submit("a")
    lenient.must_wait("a", because="exit broken failed on this request")
    endless = Site(exits={"endless": exit("@userexit\ndef jobselect():\n    while True: pass\n")})
    with pytest.raises(ExitFailed, match="ran longer than its budget"):
        endless.submit("a")


def test_a_file_that_is_no_exit_is_told_line_by_line(tmp_path):
    with pytest.raises(
        BadExit, match=r"bad\.py, line 4: jobselct is not an exit \(did you mean jobselect\?\)"
    ):
        Site(exits={"bad": exit("@userexit\ndef jobselct(): pass\n")})
    with pytest.raises(BadExit, match=r"nowhere\.py cannot be read: No such file"):
        Site(exits="nowhere.py")


# ---------------------------------------------------------------- files
def test_files_folders_and_modules_are_loaded_and_loaded_again(tmp_path, monkeypatch):
    (tmp_path / "quiet.py").write_text(QUIET)
    (tmp_path / "_quiet_test.py").write_text("raise RuntimeError\n")
    for given in (tmp_path / "quiet.py", str(tmp_path), [tmp_path / "quiet.py"]):
        assert "quiet" in Site(exits=given).exits.declared()
    monkeypatch.syspath_prepend(str(tmp_path))
    import quiet

    site = Site(exits=quiet, pes=4)
    for name in ("a", "b"):
        site.submit(name, named="test")
    site.must_wait("b")
    (tmp_path / "quiet.py").write_text(QUIET.replace('"1"', '"2"'))
    site.qmgr("reload exits")
    site.must_run("b")
    site.load({"shut": exit("@userexit\ndef jobselect():\n    return refuse('closed')\n")})
    site.submit("c", owner="ben")
    site.must_wait("c", because="closed")
    assert list(site.exits.declared()) == ["quiet", "shut"]
    with pytest.raises(BadExit):
        site.load({"bad": "1 +"})
    assert list(site.exits.declared()) == ["quiet", "shut"], "all or none"


TEST_FILE = """\
pytest_plugins = "nqspy.userexit.testing"

def test_one_after_the_other(site):
    site.submit("a", named="test")
    site.submit("b", named="test")
    site.must_wait("b", because="your tests are running")

def test_that_is_wrong(site):
    site.submit("a")
    site.must_wait("a")
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["_quiet_test.py", "tests/test_quiet.py"])
def test_the_fixture_finds_the_exit_by_the_name_of_the_test(tmp_path, place):
    exits = tmp_path / "exits" if "/" in place else tmp_path
    exits.mkdir(exist_ok=True)
    (exits / "quiet.py").write_text(QUIET)
    test = tmp_path / place
    test.parent.mkdir(exist_ok=True)
    test.write_text(TEST_FILE)
    words = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "a should wait, and is running" in run.stdout
    assert "site.py" not in run.stdout, "the traceback ends in the test's own line"


def test_nothing_is_loaded_that_is_not_asked_for():
    script = (
        "import sys, nqspy.userexit\n"
        "assert 'nqspy.engine' not in sys.modules and 'pytest' not in sys.modules\n"
        "from nqspy.userexit.testing import Site\n"
        "assert 'pytest' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_exits_see_account_and_project_of_a_story_and_a_test_leaves_the_log_as_it_was(caplog):
    caplog.set_level(logging.INFO)
    rule = "@userexit\ndef jobselect(request):\n    print(request.account, request.project)\n"
    site = Site(exits={"loud": exit(rule)})
    site.submit("a", account="water", project="P")
    site.submit("b", attributes=["project:Q"])
    assert site.printed == ["loud: water P", "loud: None Q"]
    assert not caplog.records
