"""One page with everything, which needs nothing else."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from sim.sim_calls import TRACES, call

FETCHED = {"src", "href", "srcset", "data", "action", "poster", "background", "xlink:href", "cite", "ping"}
"""Attributes that name something elsewhere."""


class Reading(HTMLParser):
    """Notes elements, what is fetched, and texts of cells."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.fetched: list[str] = []
        self.styles: list[str] = []
        self.said: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.fetched += [f"{tag} {name}" for name, _ in attrs if name in FETCHED]
        self.styles += [value or "" for name, value in attrs if name == "style"]

    def handle_data(self, data):
        (self.styles if self.elements[-1:] == ["style"] else self.said).append(data)


def read(path) -> Reading:
    reading = Reading()
    reading.feed(path.read_text("utf-8"))
    return reading


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
    found = read(path)
    assert found.fetched == []
    assert not {"script", "link", "iframe", "object", "embed", "img", "base", "use"} & set(found.elements)
    assert not any("url(" in style or "@import" in style for style in found.styles)
    assert found.elements.count("svg") == pictures
    assert set(re.findall(r"\w+://[^\"'< ]*", path.read_text())) == {"http://www.w3.org/2000/svg"}, "a name"


def test_it_has_all_metrics_tables_and_pictures(tmp_path):
    path = tmp_path / "page.html"
    call(TRACES / "ties.swf", "--policy", "firstfit,easy", "--html", path)
    said = set(read(path).said)
    for text in ("Compared", "by group", "by user", "by size", "wait, mean", "9187.120 s", "mean wait, s"):
        assert any(text in each for each in said), text
    for svg in re.findall(r"<svg.*?</svg>", path.read_text(), re.DOTALL):
        ET.fromstring(svg)
    ids = re.findall(r' id="([^"]+)"', path.read_text())
    assert len(ids) == len(set(ids))


def test_names_of_people_cannot_write_the_page(tmp_path):
    log = tmp_path / "list.csv"
    log.write_text("job,width,submit,run,user,group\n1,1,0,5,<script>x</script>,&\"'<b>\n")
    path = tmp_path / "page.html"
    assert call(log, "--html", path).exit_code == 0
    found = read(path)
    assert "script" not in found.elements
    assert "<script>x</script>" in found.said
