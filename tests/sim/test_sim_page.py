"""One page with everything, which needs nothing else."""

import re
import xml.etree.ElementTree as ET

import pytest
from sim.sim_calls import TRACES, call, data_of

FETCHED = r"[ :](src|href|srcset|data|action|poster|background|cite|ping)="
"""Attributes that name something elsewhere."""


def parts(path) -> tuple[str, set[str], str]:
    """Return a page's markup without texts, its elements, and its styles."""
    text = path.read_text("utf-8")
    markup = "".join(re.findall(r"<[^>]*>", text))
    styles = "".join(
        [*re.findall(r"<style>(.*?)</style>", text, re.DOTALL), *re.findall(r'style="([^"]*)', markup)]
    )
    return markup, set(re.findall(r"<(\w+)", markup)), styles


@pytest.mark.parametrize(
    ("words", "pictures"),
    [
        ([TRACES / "example.swf"], 3),
        ([TRACES / "edge.swf", "--policy", "firstfit,easy"], 4),
        (["lublin", "--jobs", 30, "--seeds", 2, "--policy", "fcfs,easy"], 1),
        (["night"], 3),
    ],
    ids=["one", "two policies", "seeds", "a night"],
)
def test_the_page_needs_no_network_and_no_other_file(tmp_path, words, pictures):
    path = tmp_path / "page.html"
    assert call(*words, "--html", path).exit_code == 0
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    markup, elements, styles = parts(path)
    assert not re.search(FETCHED, markup)
    assert not {"script", "link", "iframe", "object", "embed", "img", "base", "use"} & elements
    assert "url(" not in styles
    assert "@import" not in styles
    assert markup.count("<svg") == pictures
    assert set(re.findall(r"\w+://[^\"'< ]*", path.read_text())) == {"http://www.w3.org/2000/svg"}, "a name"


def test_it_has_all_metrics_tables_and_pictures(tmp_path):
    path = tmp_path / "page.html"
    call(TRACES / "edge.swf", "--policy", "firstfit,easy", "--html", path)
    wait = data_of(TRACES / "edge.swf")["metrics"]["wait_mean_s"]
    message = re.findall(r">([^<]+)<", path.read_text())
    for text in ("Compared", "by group", "by user", "by size", "wait, mean", f"{wait:.1f} s", "mean wait, s"):
        assert any(text in each for each in message), text
    for svg in re.findall(r"<svg.*?</svg>", path.read_text(), re.DOTALL):
        ET.fromstring(svg)
    ids = re.findall(r' id="([^"]+)"', path.read_text())
    assert len(ids) == len(set(ids))


def test_names_of_people_cannot_write_the_page(tmp_path):
    log = tmp_path / "list.csv"
    log.write_text("job,width,submit,run,user,group\n1,1,0,5,<script>x</script>,&\"'<b>\n")
    path = tmp_path / "page.html"
    assert call(log, "--html", path).exit_code == 0
    assert "script" not in parts(path)[1]
    assert "&lt;script&gt;x&lt;/script&gt;" in path.read_text()
