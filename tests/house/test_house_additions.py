"""A limit, an order, a placement, a share rule and a fallback policy are one file and one line each: worked
examples of CONTRIBUTING.md, put into a copy of nqspy, work on a live daemon and are there after kill -9."""

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise

import pytest
from daemon.live import ONE_QUEUE, ROOT, Live

_SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
_CODE = re.compile(r"`(nqspy/[\w/]+\.py)`:\n\n```python\n(.*?)```", re.DOTALL)
_LIST = re.compile(r"^FILES = \(\n(?:    .*\n)*", re.MULTILINE)
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
KINDS = ("A limit", "An order", "A placement", "A share rule", "A fallback policy")


def example(kind: str) -> Iterator[tuple[str, str]]:
    """Yield the file and the line of a worked example, each with the path where it goes."""
    heads = [*_SECTION.finditer(PAGE), None]
    for head, following in pairwise(heads):
        if head is not None and head[1] == kind:
            yield from _CODE.findall(PAGE, head.end(), following.start() if following else len(PAGE))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A daemon of a copy of nqspy with all worked examples."""
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
    live = Live(folder / "home", folder / "work")
    live.environment["PYTHONPATH"] = str(folder)
    yield live.site(ONE_QUEUE).start()
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
    site.qmgr("set queue batch backfill=selective reserve=1 patience=2:00:00").ok()
    first = site.submit("sleep 60", wall="1:00:00")
    site.running(first)
    wide = site.submit("true", pes=2, wall="1:00:00")

    kill_and_start(site)
    shown = site.client.qmgr("show long queue batch\n")
    assert re.search(r"backfill +selective\n", shown)
    assert re.search(r"patience +2:00:00\n", shown)
    assert site.ended(site.submit("true", wall="10:00:00"))["exit_status"] == 0
    site.set("set queue batch patience=0")
    long = site.submit("true", wall="10:00:00")
    site.until(long, lambda job: job["reason"] and job["reason"]["code"] == "RESERVED", "wait for the wide")
    site.client.delete(first, kill=True)
    assert site.ended(wide)["started"] < site.ended(long)["started"]
    site.set("set queue batch backfill=limit reserve=0")
