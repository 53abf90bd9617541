"""Who is told that he asks for more wall time than he needs."""

import pytest

from nqspy.core.runtime import hint_on_wall as hint
from nqspy.model.lifetimes import Lifetimes, Lived
from nqspy.model.settings import Settings
from nqspy.model.units import parse_time

KEY = ("anne", "job", 1)


def told(limit, *walls, times=10):
    """What is said of a wall limit after runs that took so long."""
    settings, past = Settings(), Lifetimes()
    settings.server.limit_hint = times
    for n, wall in enumerate(walls):
        list(past.add(KEY, Lived(parse_time(wall), 0), n))
    return hint(settings, past, KEY, parse_time(limit))


def test_ten_times_what_the_longest_needed_is_told_with_what_would_do():
    assert told("2:00:00", "5:00", "12:00", "11:59") == (
        "the last 3 like it ran 12:00 at most, of a wall limit of 2:00:00: with 18:00 instead (-l walltime=)"
        " it may start earlier"
    )
    assert told("1:00:00", "20").startswith("the one like it ran 20 s at most, of")
    assert "with 1:00 instead" in told("1:00:00", "20")


@pytest.mark.parametrize(
    ("limit", "walls", "times"),
    [
        ("1:59:59", ["12:00"], 10),
        ("2:00:00", ["5:00", "12:01"], 10),
        ("9:59", ["1"], 10),
        ("2:00:00", [], 10),
        ("unlimited", ["1"], 10),
        ("2:00:00", ["1"], None),
        ("2:00:00", ["12:00"], 11),
    ],
)
def test_who_asks_for_what_he_may_need_is_told_nothing(limit, walls, times):
    assert told(limit, *walls, times=times) == ""


def test_what_ran_long_ago_is_forgotten():
    assert told("2:00:00", "1:00:00", *["1:00"] * 15) == ""
    assert told("2:00:00", "1:00:00", *["1:00"] * 16)
