"""Settings of exits: declared in the file, set in the words of people."""

import math

import pytest

from nqspy.model.errors import BadValue
from nqspy.model.machine import ExitSettings
from nqspy.userexit import setting

SHOWS = """
hmax = setting("hmax", "memory", "115mw", "memory of large requests")
@userexit
def jobselect():
    return refuse(f"{hmax.value} {hmax()}")
"""


@pytest.mark.parametrize(
    ("unit", "text", "value"),
    [
        ("memory", "115mw", 115 * 8 * 1024**2), ("size", "2kb", 2048), ("memory", "unlimited", math.inf),
        ("time", "10:00", 600_000), ("count", "4", 4), ("count", "unlimited", math.inf),
        ("number", "-1.5", -1.5), ("number", "3", 3), ("percent", "20%", 20), ("percent", "12.5", 12.5),
        ("text", "any words", "any words"),
        ("flag", "on", True), ("flag", "No", False), ("names", "night", ("night",)),
        ("names", "(night, day)", ("night", "day")), ("names", "()", ()),
    ],
)  # fmt: skip
def test_a_value_is_read_as_people_write_it(unit, text, value):
    assert setting("s", unit, text, "doc").value == value


@pytest.mark.parametrize(
    ("unit", "text"),
    [("memory", "much"), ("time", "soon"), ("count", "-1"), ("number", "nan"), ("percent", "101"),
     ("flag", "x")],
)  # fmt: skip
def test_what_is_no_value_is_refused(unit, text):
    with pytest.raises(BadValue, match=text):
        setting("s", unit, text, "doc")


def test_a_setting_used_as_its_value_by_mistake_says_so():
    s = setting("hmax", "flag", "off", "doc")
    for mistake in (lambda: bool(s), lambda: s == 1, lambda: s > 1, lambda: s > 1):
        with pytest.raises(TypeError, match=r"read its value with hmax\.value"):
            mistake()


def test_a_pass_takes_the_values_in_force_over(exits_of, house, req, a_pass):
    exits = exits_of(SHOWS)
    assert exits.jobselect(req(1), house).text == "964689920 964689920"
    a_pass(exits, a=ExitSettings("a", values={"hmax": "1kb"}))
    assert exits.jobselect(req(1), house).text == "1024 1024"
    assert exits.listing()[0]["settings"]["hmax"]["value"] == "1kb"
    a_pass(exits, a=ExitSettings("a"))
    assert exits.jobselect(req(1), house).text == "964689920 964689920"


def test_a_value_that_does_not_fit_leaves_the_former_one_and_is_reported_once(exits_of, house, req, a_pass):
    exits = exits_of(SHOWS)
    a_pass(exits, a=ExitSettings("a", values={"hmax": "1kb"}))
    bad = ExitSettings("a", values={"hmax": "much"})
    a_pass(exits, a=bad)
    assert exits.jobselect(req(1), house).text == "1024 1024"
    [failure] = exits.failures()
    assert failure.text.startswith("setting hmax: 'much'")
    assert failure.text.endswith(" 1kb")
    a_pass(exits, a=bad)
    assert exits.failures() == ()


def test_declared_and_check_setting_answer_the_counter(exits_of):
    exits = exits_of(SHOWS)
    assert exits.declared() == {"a": {"hmax": "memory"}}
    exits.check_setting("a", "hmax", "32mw")
    with pytest.raises(BadValue, match="is not a size"):
        exits.check_setting("a", "hmax", "32 apples")
    with pytest.raises(BadValue, match="exit a has no setting hmin; settings: enabled, budget, hmax"):
        exits.check_setting("a", "hmin", "1")
    with pytest.raises(BadValue, match="no exit b is loaded; loaded exits: a"):
        exits.check_setting("b", "hmax", "1")
