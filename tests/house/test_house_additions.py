"""A limit, an order, a placement and a fallback policy are one file and one line each: the worked examples of
CONTRIBUTING.md, put into a copy of nqspy, work on a live daemon and are there after kill -9."""

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
KINDS = ("A limit",)


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
    assert re.search(r"name_limit +1\n", site.qmgr("show long queue batch").ok().out)
    assert site.run("qmgr", "--json", "-c", "show queue batch").ok().data["batch"]["name_limit"] == 1
    assert "requests of one name running" in site.qmgr("help set name_limit").ok().out
    assert site.why(second)["reason"]["code"] == "LIMIT"
    site.run("qdel", "-k", first, other).ok()
    assert site.ended(second)["exit_status"] == 0
    site.set("set queue batch name_limit=unlimited", "set machine pes=2")
