"""Any text fed to qmgr's language is a list of commands or one error with its place, never anything else."""

import contextlib

import msgspec
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model.commands import Command, encode
from nqspy.model.configure import apply_change
from nqspy.model.errors import BadValue
from nqspy.model.events import Change
from nqspy.model.site import Settings
from nqspy.qmgr.grammar import FORMS
from nqspy.qmgr.lexer import ParseError
from nqspy.qmgr.parser import parse_text

WORDS = sorted({word for form in FORMS for word in form.words})
ODD = [
    "=", "(", ")", ",", '"', "\\", "#", "!", "\n", "all", "user", "end", "when=", "unlimited", "-1", "9" * 50,
    "1.5gw", "10:00", "a:m", "--next", "\0", "\x1b[31m", "é", "../x", "%s",
]  # fmt: skip
PIECES = st.sampled_from([*WORDS, *ODD]) | st.text(max_size=8)
TEXTS = st.lists(PIECES, max_size=14).map(" ".join) | st.text(max_size=120)


@settings(max_examples=examples(600))
@given(TEXTS)
def test_any_text_is_read_or_refused_at_a_place(text):
    try:
        found = parse_text(text)
    except ParseError as error:
        found, place = [], (error.line, error.column)
        error.caret()
    else:
        place = (1, 1)
    assert min(place) >= 1
    for each in found:
        if isinstance(each.command, Command):
            msgspec.json.encode(encode(each.command))


@pytest.mark.parametrize("text", ["(" * 100_000, '"' * 99_999, "set " * 50_000, "x" * 1_000_000])
def test_long_and_deep_texts_are_refused_in_short_words(text):
    with pytest.raises(ParseError) as caught:
        parse_text(text)
    assert len(str(caught.value)) < 2_000
    assert len(caught.value.caret()) < 4_000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=4), below, max_size=3),
    max_leaves=6,
)
PARTS = (
    "queue", "global", "shift", "exit", "managers", "server", "group", "q", "*", "", "run_limit", "enabled",
    "when", "queued_limit", "per_request", "cpu_limit", "members", "privacy",
)  # fmt: skip
PATHS = st.lists(st.sampled_from(PARTS), max_size=4).map("/".join)


@given(st.sampled_from(("set", "add", "remove", "create", "delete")), PATHS, VALUES)
def test_any_change_of_the_settings_is_carried_out_or_a_bad_value(op, path, value):
    with contextlib.suppress(BadValue):
        apply_change(Settings(), Change(op, path, value))
