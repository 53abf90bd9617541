"""Plain tables: at most 80 columns, with lines broken only between words."""

from hypothesis import given
from hypothesis import strategies as st

from nqspy.model.texts import WIDTH, grid

WORD = st.text("abcXYZ/_-", min_size=1, max_size=30)
CELL = st.lists(WORD, max_size=12).map(" ".join)


def test_a_table_that_fits_is_unchanged_and_its_row_of_sums_has_its_rule():
    assert grid(("A", "B"), [("x", 1), ("all", 1)], foot=True).splitlines()[3] == "--- -"
    assert grid(("NAME", "N"), [("a", 1), ("bcd", 22)]) == "NAME  N\n---- --\na     1\nbcd  22\n"


def test_what_does_not_fit_stands_below_its_row():
    why = "it used more CPU time than it asked for: 600 s, and that is a long story indeed to be told in one"
    shown = grid(("REQUEST", "END", "WHY", "ERRORS"), [("17.ymp", "exit", why, "/home/a/b.e17")], left=4)
    assert shown == (
        "REQUEST END\n------- ----\n17.ymp  exit\n"
        "    why: it used more CPU time than it asked for: 600 s, and that is a long\n"
        "    story indeed to be told in one\n"
        "    errors: /home/a/b.e17\n"
    )


def test_short_ones_stand_side_by_side_and_empty_ones_nowhere():
    heads = ("G", *(f"COLUMN{n}" for n in range(12)))
    row = ("d1", *(["-"] * 9), "1", "", "3")
    assert grid(heads, [row]).splitlines()[-1] == "    column9: 1   column11: 3"


@given(st.lists(st.lists(CELL, min_size=6, max_size=6), min_size=1, max_size=4), st.booleans())
def test_no_line_is_longer_than_a_terminal_and_no_word_is_lost(rows, foot):
    shown = grid(("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX"), rows, left=6, foot=foot)
    first = max(len(row[0]) for row in rows)
    assert all(len(line) <= max(WIDTH, first) for line in shown.splitlines())
    words = shown.split()
    for word in {word for row in rows for cell in row for word in cell.split() if cell != "-"}:
        assert word in words
