"""Moments in words."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from nqspy.model.texts import in_words

NOW = datetime(2026, 3, 2, 23, 50, tzinfo=ZoneInfo("Europe/Paris"))  # a Monday


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (0, "today 23:50"), (1, "tomorrow 23:50"), (-1, "yesterday 23:50"), (2, "Wed 23:50"),
        (6, "Sun 23:50"), (7, "2026-03-09 23:50"), (-2, "2026-02-28 23:50"),
    ],
)  # fmt: skip
def test_a_moment_is_said_as_people_do(days, said):
    assert in_words(NOW + timedelta(days=days), NOW) == said


def test_days_are_those_of_the_calendar_and_a_moment_alone_has_its_date():
    assert in_words(NOW + timedelta(minutes=20), NOW) == "tomorrow 00:10"
    assert in_words(NOW) == "2026-03-02 23:50"
