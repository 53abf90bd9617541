"""Worked examples of CONTRIBUTING.md, put into a copy of nqspy, work on a live daemon and are there after a
kill: a limit, an order, a placement, a share rule, a fallback policy, a feature, each one file and one line;
an option of a request, a field, a declaration and its types."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, ROOT, Live, until

_SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
_CODE = re.compile(r"`(nqspy/[\w/]+\.py)`:\n\n```python\n(.*?)```", re.DOTALL)
_LIST = re.compile(r"^FILES = \(\n(?:    .*\n)*", re.MULTILINE)
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
FEATURE = Path(__file__).with_name("feature") / "rest.py"
LISTED = '    "preemption.rest": "they have worked for a while",\n'
BEFORE = '    "choose": "",  # choose the requests that start, and their PEs\n'
KINDS = ("A limit", "An order", "A placement", "A share rule", "A fallback policy")

_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PLACES = (
    ("model/requests.py", "class Spec(", '    script_name: str = ""\n'),
    ("model/options.py", "OPTIONS = (", 'the numbers of PEs on which it may run", when="waiting"),\n'),
    ("ports.py", "class RequestView(", "    count: int\n"),
    ("ports.py", "class ChangedFields(", "    error: str | None\n"),
    ("rpc/submission.py", "class Options(", "    key: str\n"),
)
"""File of each block of the example, where the class or list begins, and the line before the block."""
EXIT = '''"""Requests for tests are held."""
from nqspy.userexit import changes, userexit


@userexit
def submit(request):
    return changes(purpose="trial", hold=True) if request.purpose == "test" else None
'''


def example(kind: str) -> Iterator[tuple[str, str]]:
    """Yield the file and the line of a worked example, each with the path where it goes."""
    heads = [*_SECTION.finditer(PAGE), None]
    for head, following in pairwise(heads):
        if head is not None and head[1] == kind:
            yield from _CODE.findall(PAGE, head.end(), following.start() if following else len(PAGE))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A daemon of a copy of nqspy with all worked examples, and an exit that sees the option."""
    folder = tmp_path_factory.mktemp("additions")
    shutil.copytree(ROOT / "nqspy", folder / "nqspy")  # what is compiled too: that is quicker
    for kind in KINDS:
        (path, text), (list_path, line) = example(kind)
        assert not (folder / path).exists()
        (folder / path).write_text(text)
        listed = folder / list_path
        code = listed.read_text()
        found = _LIST.search(code)
        assert found, f"{list_path} has no list FILES"
        listed.write_text(code[: found.end()] + line + code[found.end() :])
    shutil.copy(FEATURE, folder / "nqspy" / "core" / "preemption")
    listed = folder / "nqspy" / "core" / "features.py"
    assert BEFORE in listed.read_text()
    listed.write_text(listed.read_text().replace(BEFORE, BEFORE + LISTED))
    section = PAGE.partition("## An option of a request\n")[2].partition("\n## ")[0]
    for (name, begin, line), block in zip(PLACES, _BLOCK.findall(section), strict=True):
        file = folder / "nqspy" / name
        head, found, rest = file.read_text().partition(begin)
        before, last, behind = rest.partition(line)
        assert found, f"{name} has no {begin}"
        assert last, f"{name} has no {line}"
        file.write_text(head + found + before + last + block + behind)
    live = Live(folder / "home", folder / "work")
    live.environment["PYTHONPATH"] = str(folder)
    yield live.site(ONE_QUEUE, {"tests": EXIT}).start()
    live.close()


def kill_and_start(site: Live) -> None:
    site.kill()
    site.start()


def test_a_limit_holds_is_shown_and_kept(site):
    site.qmgr("set queue batch name_limit=1").ok()
    first, other = site.submit("sleep 60", name="model"), site.submit("sleep 60", name="prepare")
    second = site.submit("true", name="model")
    site.running(first)
    site.running(other)
    site.set("set machine pes=3")
    site.waits(second, "name limit 1 of queue batch is reached for model")

    kill_and_start(site)
    shown = site.qmgr("show long queue batch", "help set name_limit").ok().out
    assert re.search(r"name_limit +1\n", shown)
    assert "requests of one name running at a time" in shown
    assert site.run("qmgr", "--json", "-c", "show queue batch").ok().data["batch"]["name_limit"] == 1
    site.until(second, lambda job: job["reason"] and job["reason"]["code"] == "LIMIT", "wait")
    site.client.delete(first, other, kill=True)
    assert site.ended(second)["exit_status"] == 0
    site.set("set queue batch name_limit=unlimited", "set machine pes=2")


def test_an_order_sorts_is_shown_and_kept(site):
    site.qmgr("set queue batch order=widest").ok()
    first = site.submit("sleep 60", pes=2)
    site.running(first)
    narrow, wide = site.submit("true", pes=1), site.submit("true", pes=2)

    kill_and_start(site)
    assert re.search(r"order +widest\n", site.client.qmgr("show long queue batch\n"))
    site.until(narrow, lambda job: job["position"] == 2, "be second")
    site.client.delete(first, kill=True)
    ended = [site.ended(each) for each in (wide, narrow)]
    assert ended[0]["started"] < ended[1]["started"]
    site.set("set queue batch order=priority")


def test_a_placement_chooses_pes_is_shown_and_kept(site):
    site.qmgr("set domain application placement=highest").ok()
    first = site.submit("sleep 60")
    assert site.running(first)["pes"] == [1]

    kill_and_start(site)
    assert "placement=highest" in site.client.qmgr("show domain\n")
    site.set("set machine pes=3")
    second = site.submit("sleep 60")
    assert site.running(second)["pes"] == [2]
    site.client.delete(first, second, kill=True)
    site.set("set domain application placement=lowest", "set machine pes=2")


def test_a_share_rule_values_departments_is_shown_and_kept(site):
    site.set("create group d1 share=3", "create group d2 share=1", "set global share_rule=fixed")
    first = site.submit("sleep 60", pes=2)
    site.running(first)

    kill_and_start(site)
    assert site.run("qmgr", "--json", "-c", "show global").ok().data["share_rule"] == "fixed"
    rows = {row["group"]: row for row in site.run("qmgr", "--json", "-c", "show shares").ok().data}
    assert {name: row["rule"] for name, row in rows.items()} == dict.fromkeys(rows, "fixed")
    assert rows["default"]["stock"] == 1, "it alone has work"
    assert rows["d1"]["stock"] == 0.01
    site.client.delete(first, kill=True)
    site.set("set global share_rule=deficit", "delete group d1", "delete group d2")


def test_a_fallback_policy_with_a_setting_of_its_own_decides_is_shown_and_kept(site):
    site.qmgr("set queue batch backfill=selective reserve=1 reserve_after=2:00:00").ok()
    first = site.submit("sleep 60", wall="1:00:00")
    site.running(first)
    wide = site.submit("true", pes=2, wall="1:00:00")

    kill_and_start(site)
    shown = site.client.qmgr("show long queue batch\n")
    assert re.search(r"backfill +selective\n", shown)
    assert re.search(r"reserve_after +2:00:00\n", shown)
    assert site.ended(site.submit("true", wall="10:00:00"))["exit_status"] == 0
    site.set("set queue batch reserve_after=0")
    long = site.submit("true", wall="10:00:00")
    site.until(long, lambda job: job["reason"] and job["reason"]["code"] == "RESERVED", "wait for the wide")
    site.client.delete(first, kill=True)
    assert site.ended(wide)["started"] < site.ended(long)["started"]
    site.set("set queue batch backfill=limit reserve=0")


def test_a_feature_is_set_shown_kept_explained_and_remembered(site):
    wrong = site.run("qmgr", "-c", "set rest on work=1 pause=0")
    assert wrong.status == 1
    assert "pause" in wrong.err
    site.qmgr("set rest on work=1 pause=1:00:00").ok()
    told = [" ".join(line.split()) for line in site.qmgr("show rest").ok().lines]
    assert told[:3] == ["rest on", "work 1", "pause 1:00:00"]
    assert "how long it rests" in site.qmgr("help set rest").ok().out
    job = site.qsub("sleep 2\necho rested\n")
    site.until(job, lambda found: found["state"] == "suspended", "rest")
    why = site.why(job)["reason"]
    assert (why["code"], why["who"]) == ("SUSPENDED", "rest")
    said = site.run("qstat", "--why", job).ok().out
    assert "its rest must be over" in said
    assert "an operator must" not in said
    rests = until(lambda: rests_of(site, job), "it is shown until when it rests")

    kill_and_start(site)
    assert rests_of(site, job) == rests, "what was promised is remembered"
    assert site.job(job)["state"] == "suspended"
    assert "set rest on work=1 pause=1:00:00" in site.qmgr("snap").ok().lines

    site.qmgr("set rest off").ok()
    assert site.ended(job)["exit_status"] == 0
    until(lambda: site.events("promised")[-1]["value"] is None, "nothing is promised any more")


def rests_of(site: Live, job: str) -> str:
    rows = [line.split(maxsplit=1) for line in site.qmgr("show rest").ok().lines]
    return dict(each for each in rows if len(each) == 2).get(job, "")


# ---------------------------------------------------------------- an option of a request
def test_four_files_have_an_option():
    assert len({name for name, _, _ in PLACES}) == 4


@pytest.mark.parametrize(("dialect", "word"), [("nqs", "#QSUB"), ("pbs", "#PBS"), ("slurm", "#SBATCH")])
def test_each_dialect_has_it_as_an_option_and_as_a_directive(site, dialect, word):
    options = ("--dialect", dialect)
    given = site.run("qsub", *options, "--purpose", "model", stdin="#!/bin/sh\ntrue\n").ok()
    said = site.run("qsub", *options, stdin=f"#!/bin/sh\n{word} --purpose=model\ntrue\n").ok()
    ids = (given.lines[0].split()[-1], said.lines[0].split()[-1])
    assert [site.ended(id)["purpose"] for id in ids] == ["model", "model"]


def python(site, code):
    """Run a line of Python with the client of the copy and return what it prints."""
    code = f"from nqspy import Client; nqs = Client({str(site.home)!r}); {code}"
    words = [sys.executable, "-c", code]
    run = subprocess.run(
        words, capture_output=True, text=True, cwd=site.work, env=site.environment, check=True
    )
    return run.stdout.strip()


def test_it_is_seen_changed_shown_and_kept(site):
    held = python(site, "print(nqs.submit('true\\n', shell='/bin/sh', purpose='test').id)")
    assert site.job(held)["purpose"] == "trial"
    assert site.job(held)["state"] == "held"
    site.kill()
    site.start()
    assert "    purpose = trial\n" in site.run("qstat", "-f", held).ok().out
    site.qmgr(f"modify request {held} purpose=model").ok()
    assert site.job(held)["purpose"] == "model"
    site.run("qalter", "--purpose", "weather", held).ok()
    assert site.job(held)["purpose"] == "weather"
    site.qmgr(f"modify request {held} purpose=none").ok()
    assert "purpose" not in site.job(held)
    assert "what it is for" in site.run("qsub", "--help").ok().out
    site.client.release(held)
    assert site.ended(held)["exit_status"] == 0


@pytest.mark.parametrize("value", ["3", "'x' * 2000"])
def test_a_value_of_another_type_and_a_long_one_are_refused(site, value):
    code = f"\ntry: nqs.submit('true\\n', purpose={value})\nexcept Exception as error: print(error)"
    assert "purpose" in python(site, code)


def test_tests_of_exits_have_it(site):
    code = "from nqspy.userexit.testing import Site; print(Site().submit('a', purpose='model').spec.purpose)"
    assert python(site, code) == "model"
