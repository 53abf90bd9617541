"""An option of a request is a field, a declaration and its types: the worked example of CONTRIBUTING.md, put
into a copy of nqspy, works in each dialect, in exits, reports and Python, and is there after kill -9."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from daemon.live import ONE_QUEUE, ROOT, Live

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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A daemon of a copy of nqspy with the option of the worked example."""
    folder = tmp_path_factory.mktemp("option")
    shutil.copytree(ROOT / "nqspy", folder / "nqspy")
    page = (ROOT / "CONTRIBUTING.md").read_text()
    section = page.partition("## An option of a request\n")[2].partition("\n## ")[0]
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
