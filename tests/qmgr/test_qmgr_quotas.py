"""Quotas in the command language: caps as percentages, use corrected by hand."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model import commands as cm
from nqspy.model.configure import apply_changes
from nqspy.model.events import Change
from nqspy.model.ids import HOUR, MINUTE
from nqspy.model.site import Settings
from nqspy.qmgr import show
from nqspy.qmgr.parser import ParseError, completions, parse_line, parse_text
from nqspy.qmgr.printer import print_settings


def built(text: str) -> Settings:
    settings = Settings()
    for parsed in parse_text(text):
        assert isinstance(parsed.command, cm.Configure)
        apply_changes(settings, parsed.command.changes)
    return settings


@pytest.mark.parametrize(
    ("text", "value"),
    [("20%", 20.0), ("20", 20.0), ("12.5%", 12.5), ("0", 0.0), ("100 %", None), ("unlimited", None)],
)
def test_a_cap_is_a_percentage_or_unlimited(text, value):
    if text == "100 %":
        with pytest.raises(ParseError, match="'%' is not known here"):
            parse_line(f"set group d3 limit={text}")
        return
    assert parse_line(f"set group d3 limit={text}") == [
        cm.Configure((Change("set", "group/d3/limit", value),))
    ]


@pytest.mark.parametrize("text", ["120%", "-5%", "much", "1e2", ""])
def test_what_is_no_percentage_is_pointed_at(text):
    with pytest.raises(ParseError) as wrong:
        parse_line(f"set group d3 limit={text}")
    assert wrong.value.caret().splitlines()[1].index("^") == len("set group d3 limit=")


def test_a_cap_is_shown_and_comes_back_from_a_snapshot():
    site = built("create group ymp share=80\ncreate group d3 parent=ymp share=16 limit=12.5%\n")
    assert "limit=12.5%" in print_settings(site)
    assert built(print_settings(site)) == site
    lines = show.show_groups(site).splitlines()
    assert lines[0].split() == ["GROUP", "SHARE", "PART", "LIMIT", "MEMBERS"]
    assert lines[2].split() == ["d3", "16", "100.0", "%", "12.5%"]


@given(st.integers(0, 100_000).map(lambda thousandths: thousandths / 1000))
def test_any_cap_comes_back_from_a_snapshot(limit):
    site = built("create group d3")
    site.groups["d3"].limit = limit
    assert built(print_settings(site)) == site


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("set usage of group d3 12h", cm.CorrectUsage("d3", 12 * HOUR)),
        ("set usage of group d3 = 600", cm.CorrectUsage("d3", 10 * MINUTE)),
        ("set usage of group d3 +2h", cm.CorrectUsage("d3", 2 * HOUR, True)),
        ("set usage of group d3 -30min", cm.CorrectUsage("d3", -30 * MINUTE, True)),
        ("SE USAGE OF GROUP d3 0", cm.CorrectUsage("d3", 0)),
    ],
)
def test_use_is_corrected_to_a_time_or_by_one(text, command):
    assert parse_line(text) == [command]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("set usage of group d3 unlimited", "use is never unlimited"),
        ("set usage of group d3 much", "'much' is no time"),
        ("set usage of group d3 --5", "no time"),
        ("set usage of group d3", "expected a time like 12h, +2h or -30min"),
        ("set usage of group", "expected the name of a group"),
        ("set usage of d3 12h", "expected group"),
        ("set usage for group d3 12h", "expected half_life, charge, payback, period, of"),
    ],
)
def test_a_correction_that_cannot_be_read_says_why(text, message):
    with pytest.raises(ParseError, match=re.escape(message)):
        parse_line(text)


def test_settings_of_use_and_its_correction_complete_side_by_side():
    assert completions("set usage ") == ["charge", "half_life", "of", "payback", "period"]
    assert parse_line("set usage half_life=12h") == [
        cm.Configure((Change("set", "usage/half_life", 12 * HOUR),))
    ]


def test_a_shift_cannot_correct_use():
    with pytest.raises(ParseError, match="cannot stand in a shift"):
        parse_text('define shift night when=("0 21 * * *")\nset usage of group d3 1h\nend\n')
