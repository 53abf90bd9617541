"""How well people know how long their requests run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model.ids import Instant
from nqspy.model.lifetimes import Lifetimes, Lived
from nqspy.report.estimates import estimates, estimates_text
from nqspy.report.time_text import Zone

NOON = Instant(1_772_449_200_000)


def rows(*ends):
    """Return rows by user; ends are (owner, name, wall, part, guess)."""
    known = Lifetimes()
    for n, (owner, name, *run) in enumerate(ends):
        list(known.add((owner, name, 1), Lived(*run), n))
    return estimates(known.known, NOON, Zone("UTC"))


def test_limits_are_judged_by_what_of_them_was_used():
    [anne, ben] = rows(("ben", "x", 60, 0), *(("anne", "a", 60, part) for part in (500, 100, 90)))["users"]
    assert (anne["user"], anne["ended"]) == ("anne", 3)
    assert anne["limit"] == {
        "known": 3, "accuracy": pytest.approx(0.23), "times": 10.0, "tenfold": pytest.approx(2 / 3)
    }  # fmt: skip
    assert ben["limit"] == {"known": 0, "accuracy": None, "times": None, "tenfold": None}
    assert anne["best_guess"]["known"] == 0


def test_guesses_err_both_ways_and_the_middle_of_an_even_number_lies_between_two():
    [anne] = rows(("anne", "a", 50, 10, 500), ("anne", "a", 200, 10, 2000))["users"]
    assert anne["best_guess"] == {"known": 2, "accuracy": 0.5, "times": 1.25, "outran": 0.5}
    [anne] = rows(("anne", "a", 60, 1000), ("anne", "a", 60, 50))["users"]
    assert anne["limit"]["times"] == 10.5, "one needed all of it, the other a twentieth"


def test_the_past_is_judged_as_it_is_used():
    [anne] = rows(*(("anne", "a", wall, 0) for wall in (10, 10, 10, 20, 10)))["users"]
    assert anne["history"] == {"known": 2, "accuracy": 0.75}
    [ben] = rows(*(("ben", "a", wall, 100) for wall in (10, 20, 40, 80)))["users"]
    assert ben["history"] == {"known": 1, "accuracy": 1.0}, "by the limits where all have one"
    [cleo] = rows(*(("cleo", name, 10, 0) for name in "abcd"))["users"]
    assert cleo["history"] == {"known": 0, "accuracy": None}, "names apart"


def test_the_table_fits_a_terminal():
    text = estimates_text(rows(("anne", "a", 50, 10, 500), ("ben", "x", 60, 0)))
    assert "at 2026-03-02 11:00" in text.splitlines()[0]
    assert max(map(len, text.splitlines())) <= 80
    assert [line.split()[0] for line in text.splitlines()[-2:]] == ["anne", "ben"]
    assert estimates_text(rows()) == "no request has ended yet\n"


_ends = st.tuples(
    st.sampled_from(["anne", "ben"]), st.sampled_from("xy"), st.integers(0, 10**9), st.integers(0, 1000),
    st.integers(0, 10**6),
)  # fmt: skip


@given(st.lists(_ends, max_size=40))
def test_parts_are_parts_whatever_came(ends):
    for each in rows(*ends)["users"]:
        parts = [each[of]["accuracy"] for of in ("limit", "best_guess", "history")]
        parts += [each["limit"]["tenfold"], each["best_guess"]["outran"]]
        assert all(part is None or 0 <= part <= 1 for part in parts)
        assert (each["limit"]["known"] == 0) == (each["limit"]["accuracy"] is None)
