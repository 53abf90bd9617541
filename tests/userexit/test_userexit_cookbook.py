"""Each rule of the manual's page `cookbook` works as described, and so does the pass of the page `pass`."""

import re

import pytest
from house.checkout import PACKAGE

from nqspy.userexit.testing import Site

PAGE = (PACKAGE / "manual" / "cookbook.md").read_text()
RULES = dict(re.findall(r"\(`(\w+)\.py`\)\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
GPUS = "create consumable gpu units=(0, 1, 2, 3)"


def groups(*names):
    """Return the commands that create groups with the user anne as their member."""
    return "".join(f"create group {name} share=1\nadd members=(anne) {name}\n" for name in names)


@pytest.fixture
def site_with():
    def make(rule, at="2026-03-02 12:00", pes=16, qmgr=""):
        site = Site(exits={rule: RULES[rule]}, at=at, pes=pes)
        site.qmgr(qmgr)
        return site

    return make


def test_the_page_has_ten_rules():
    assert len(RULES) == 10
    assert PAGE.count("\n## ") == len(RULES)


def test_curfew(site_with):
    site = site_with("curfew")
    site.submit("long", wall="2:00:00")
    site.submit("endless")
    site.submit("short", wall="1:00:00")
    assert site.running == ["short"]
    site.at("17:59")
    assert site.waiting == ["long", "endless"]
    site.at("18:01")
    assert site.running == ["long", "endless"]


def test_apart(site_with):
    site = site_with("apart", pes=64)
    site.submit("big", pes=16, runs="1h")
    site.submit("bigger", pes=32, runs="1h")
    site.submit("small", pes=15, runs="3h")
    site.must_wait("bigger", because="apart")
    site.must_run("small")
    site.to_the_end()
    site.never_together("big", "bigger")
    site.ran_before("big", "bigger")


def test_students(site_with):
    site = site_with("students", qmgr=groups("students", "staff"), pes=32)
    site.submit("a", group="students", pes=6, runs="20h")
    site.submit("b", group="students", pes=3, runs="1h")
    site.submit("c", group="students", pes=2, runs="1h")
    site.submit("d", group="staff", pes=16, runs="1h")
    assert site.running == ["a", "c", "d"]
    site.at("20:01")
    site.must_run("b")


def test_deadline(site_with):
    site = site_with("deadline", pes=1, qmgr=groups("other", "paper") + "set sched_factor share 100 time 1")
    with site.at_once():
        for n in range(3):
            site.submit(f"o{n}", group="other", runs="1h")
            site.submit(f"p{n}", group="paper", runs="1h")
    site.to_the_end()
    assert site.started[:3] == ["p0", "p1", "p2"]
    site.at("2026-03-09 00:01")
    site.submit("runs", group="paper", runs="5h")
    with site.at_once():
        site.submit("earlier", group="other")
        site.submit("later", group="paper")
    site.to_the_end()
    site.ran_before("earlier", "later")


def test_licences(site_with):
    site = site_with("licences", qmgr="create consumable matlab units=(1, 2)")
    site.submit("m", units={"matlab": 1})
    site.submit("n")
    assert site.running == ["n"]
    site.at("19:01")
    site.must_run("m")


def test_express(site_with):
    site = site_with("express")
    site.open_queue("express", "priority=20")
    short = site.submit("short", wall="10:00")
    assert short.queue == "express"
    for name, asked in {"long": {"wall": "10:01"}, "wide": {"wall": "5:00", "pes": 2}, "none": {}}.items():
        assert site.submit(name, **asked).queue == "batch"


def test_onegpu(site_with):
    site = site_with("onegpu", qmgr=GPUS)
    site.submit("a", owner="anne", units={"gpu": 1}, runs="1h")
    site.submit("b", owner="anne", units={"gpu": 1})
    site.submit("c", owner="ben", units={"gpu": 2})
    site.submit("d", owner="anne")
    assert site.running == ["a", "c", "d"]
    site.to_the_end()
    site.never_together("a", "b")


def test_walltime(site_with):
    site = site_with("walltime")
    assert site.submit("a").spec.ask.wall == 4 * 3_600_000
    assert site.submit("b", wall="48:00:00").spec.ask.wall == 48 * 3_600_000
    site.must_refuse("c", wall="48:00:01")


def test_oneeach(site_with):
    site = site_with("oneeach", pes=2)
    with site.at_once():
        for n in range(4):
            site.submit(f"a{n}", owner="anne", runs="1h")
        site.submit("b", owner="ben", runs="2h")
    assert sorted(site.running) == ["a0", "b"]
    site.to_the_end()
    assert sorted(site.started) == ["a0", "a1", "a2", "a3", "b"]


def test_bigmemory(site_with):
    site = site_with("bigmemory", qmgr="set machine memory=64gb")
    site.submit("big", memory="33gb")
    site.submit("any")
    site.submit("half", memory="32gb")
    assert site.running == ["half"]
    site.at("20:01")
    assert site.running == ["big", "any"]


def test_the_example_of_a_pass():
    site = Site(pes=8)
    site.qmgr("set queue batch reserve=1")
    site.submit("1", owner="anne", pes=2, wall="1:00:00", runs="30min")
    site.submit("2", owner="ben", pes=8, wall="2:00:00")
    site.submit("3", owner="cara", pes=4, wall="3:00:00")
    site.submit("4", owner="cara", pes=2, wall="30:00", runs="20min")
    assert site.running == ["1", "4"]
    site.must_wait("3", because=site.job("2").id)
    site.let_pass("31min")
    site.must_run("2")
