"""Sizes, times, counts, identifiers, moments and paths as people write them."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model.errors import BadValue
from nqspy.model.ids import (
    GREATEST_INDEX,
    array_key,
    array_of,
    full_id,
    member,
    number_of,
    rank_in_list,
    rank_of,
    request_named,
)
from nqspy.model.output_paths import plain
from nqspy.model.texts import in_words
from nqspy.model.units import (
    GREATEST,
    UNLIMITED,
    format_exact,
    format_size,
    format_span,
    format_time,
    parse_count,
    parse_size,
    parse_time,
)

K = 1024


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1024", 1024), ("0", 0), ("1b", 1), ("1w", 8), ("1kw", 8 * K), ("115mw", 115 * 8 * K**2),
        ("32MW", 32 * 8 * K**2), ("600mb", 600 * K**2), ("2gb", 2 * K**3), ("1tb", K**4), ("2.5kb", 2560),
        ("1k", K), ("0.5w", 4), (" 8mw ", 8 * 8 * K**2), ("23.4mw", 196293428), ("unlimited", UNLIMITED),
        ("Infinity", UNLIMITED),
    ],
)  # fmt: skip
def test_sizes_are_bytes_with_words_of_eight(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("600", 600_000), ("10:00", 600_000), ("1:00:00", 3_600_000), ("1:00:00:00", 86_400_000),
        ("1.5", 1_500), ("30min", 1_800_000), ("24h", 86_400_000), ("500ms", 500), ("10s", 10_000),
        ("2 hours", 7_200_000), ("14d", 14 * 86_400_000), ("1 day", 86_400_000), ("0:00.25", 250),
        ("0.0001", 1), ("5m", 300_000), ("unlimited", UNLIMITED),
    ],
)  # fmt: skip
def test_times_are_seconds_or_have_units(text, ms):
    assert parse_time(text) == ms


@pytest.mark.parametrize("read", [parse_size, parse_time, parse_count])
@pytest.mark.parametrize(
    "text", ["", "x", "-1", "1..2", ".", "1e3", "10 10", "\u0661", "1:2:3:4:5", "9" * 21, "mw", "::", "nan"]
)
def test_what_is_none_is_refused_and_named(read, text):
    with pytest.raises(BadValue) as error:
        read(text)
    assert "\n" not in str(error.value)


def test_what_no_machine_has_is_refused_and_counts_may_be_unlimited():
    for read, text in ((parse_size, "99999999tb"), (parse_time, "99999999999999999999d")):
        with pytest.raises(BadValue, match="is too large for a "):
            read(text)
    counts = {"12": 12, "unlimited": UNLIMITED, "unspecified": UNLIMITED}
    assert {text: parse_count(text) for text in counts} == counts


@given(st.integers(0, GREATEST))
def test_a_printed_size_is_read_back_exactly(size):
    assert parse_size(format_size(size)) == size


@given(st.integers(0, 10**13))
def test_a_printed_time_is_read_back_exactly(ms):
    assert parse_time(format_time(ms)) == ms


def test_how_values_are_printed():
    times = {0: "0", 59_000: "59", 600_000: "10:00", 3_723_000: "1:02:03", 1_500: "1.5"}
    assert {ms: format_time(ms) for ms in times} == times
    assert [format_size(size) for size in (0, 1, 1536, 8 * 115 * K**2)] == ["0b", "1b", "1536b", "920mb"]
    exact = {600_000: "10 min", 1_250: "1.25 s", 5_400_001: "1 h 30 min 0.001 s", 0: "0 s", None: "unlimited"}
    assert {ms: format_exact(ms) for ms in exact} == exact
    spans = [format_span(ms) for ms in (-5, 12_900, 200_000, 7_200_000, 100_800_000)]
    assert spans == ["0 s", "13 s", "3 min 20 s", "2 h", "28 h"]
    assert {format_time(None), format_size(UNLIMITED), format_time(UNLIMITED)} == {"unlimited"}


@given(st.integers(1, 10**12 - 1))
def test_an_identifier_names_its_number(seq):
    for text in (str(seq), full_id(seq, "ymp"), f"{seq}.ymp@ymp"):
        assert request_named(text, ("ymp",)) == seq


@pytest.mark.parametrize(
    "text",
    ["", "x", "17.", "17.other", "17x", "-3", "1.5.ymp", "\u0661", "9" * 19, "@ymp", ".ymp", "17[", "17[x]",
     "17[3-9]", "17[3", "17]", "[3]", "17[-1]", "17[3].c90", "17[3]4"],
)  # fmt: skip
def test_what_is_no_identifier_of_this_host_names_nothing(text):
    assert request_named(text, ("ymp",)) is None


def test_every_name_that_the_home_has_had_is_one_and_no_other_is():
    names = ("site.example.org", "new", "old")
    for host in ("new", "old", "site", "new.example.org", "site.example.org"):
        assert request_named(f"17.{host}", names) == 17
        assert request_named(f"17[3].{host}", names) == member(17, 3)
    for host in ("", "newer", "ne", "example.org"):
        assert request_named(f"17.{host}", names) is None


@pytest.mark.parametrize("seq", [17, member(17, 3), member(1, 0), array_key(17)])
def test_whatever_can_hold_pes_has_one_name_and_is_found_by_it(seq):
    name = full_id(seq, "ymp")
    assert request_named(name, ("ymp",)) == request_named(f"{name}@ymp", ("ymp",)) == seq


def test_indices_stand_beside_their_array_and_requests_in_their_order():
    keys = [3, member(4, 0), member(4, 1_000), array_key(4), 5]
    assert sorted(keys, key=rank_of) == keys
    assert sorted(keys, key=rank_in_list) == [keys[0], keys[3], keys[1], keys[2], keys[4]]
    greatest = member(4, GREATEST_INDEX)
    assert sorted([keys[4], greatest, keys[3]], key=rank_in_list) == [keys[3], greatest, keys[4]]
    assert {array_of(key) for key in keys[1:3]} == {keys[3]}
    assert [number_of(key) for key in keys] == [3, 4, 4, 4, 5]
    assert max(keys) < 2**63


MONDAY = datetime(2026, 3, 2, 23, 50, tzinfo=ZoneInfo("Europe/Paris"))  # a Monday
DAY = 24 * 60


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        (0, "today 23:50"), (DAY, "tomorrow 23:50"), (-DAY, "yesterday 23:50"), (2 * DAY, "Wed 23:50"),
        (6 * DAY, "Sun 23:50"), (7 * DAY, "2026-03-09 23:50"), (-2 * DAY, "2026-02-28 23:50"),
        (20, "tomorrow 00:10"),
    ],
)  # fmt: skip
def test_a_moment_is_written_as_people_do_and_alone_with_its_date(minutes, text):
    assert in_words(MONDAY + timedelta(minutes=minutes), MONDAY) == text
    assert in_words(MONDAY) == "2026-03-02 23:50"


PATHS = {
    "/w/out": "/w/out", "/w/./out": "/w/out", "/w//out": "/w/out", "//w/out": "/w/out",
    "/w/a/../out": "/w/out",
    "/../w/out": "/w/out", "/w/.out": "/w/.out", "/w/..out": "/w/..out", "/w/out.": "/w/out.",
    "/w/logs/": "/w/logs/", "/w/logs//": "/w/logs/", "/w/logs/.": "/w/logs/", "/w/logs/..": "/w/",
    "/w/../": "/", "/": "/", "/dev/./null": "/dev/null", "out": "out", "./out": "out", "a/../out": "out",
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_known_however_it_is_written(path):
    assert plain(path) == PATHS[path]
    assert plain(plain(path)) == PATHS[path]
