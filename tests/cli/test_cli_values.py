"""Values, words and dates as people write them."""

import shlex
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nqspy.cli import values, words
from nqspy.cli.dates import parse_date
from nqspy.cli.resources import read_resources
from nqspy.cli.values import Wrong
from nqspy.model import units
from nqspy.model.errors import BadValue

NUMBERS = st.from_regex(r"\A[0-9]{0,9}\.?[0-9]{0,5}\Z")
TEXTS = st.one_of(
    st.text("0123456789.:kmgtpwbdhs unlited-", max_size=12),
    st.builds(
        "".join,
        st.tuples(NUMBERS, st.sampled_from(["", "k", "M", "g", "t"]), st.sampled_from(["", "w", "B"])),
    ),
    st.builds(
        "".join, st.tuples(NUMBERS, st.sampled_from(["", "s", "min", " hours", "ms", "d", "sec", "days"]))
    ),
    st.lists(NUMBERS, min_size=1, max_size=5).map(":".join),
)


@pytest.mark.parametrize("name", ["parse_size", "parse_time", "parse_count"])
@given(text=TEXTS)
@example(text="unlimited")
@example(text="23.4mw")
@example(text=" 1:0:0 ")
def test_the_lean_reader_agrees_with_the_model(name, text):
    def outcome(read, error):
        try:
            return read(text)
        except error as problem:
            return str(problem)

    expected = outcome(getattr(units, name), BadValue)
    found = outcome(getattr(values, name), Wrong)
    if isinstance(expected, int) and expected > values.GREATEST:
        assert "too great" in found
    else:
        assert found == expected


def test_a_value_beyond_all_machines_is_refused():
    with pytest.raises(Wrong, match="too great"):
        values.parse_size("9999999999999999tw")


@given(st.text("ab \\\"'#\t=", max_size=20))
@example('a \'b c\' "d\\"e" f\\ g # comment')
def test_lines_are_split_as_a_shell_does(line):
    reference = shlex.shlex(line, posix=True, punctuation_chars=False)
    reference.whitespace_split = True
    try:
        expected = shlex.split(line, comments=False)
    except ValueError:
        expected = None
    if "#" in line or line.endswith("\\") or '\\"' in line or "\\" in line:
        return  # shlex knows comments inside words and other escapes; the examples below fix ours
    if expected is None:
        with pytest.raises(Wrong, match="not closed"):
            words.split(line)
    else:
        assert words.split(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-q night  job.sh # by anne", ["-q", "night", "job.sh"]),
        ("a#b c", ["a#b", "c"]),
        (r"a\ b '\n' \# x", ["a b", r"\n", "#", "x"]),
        ('"a \\"b\\" $c \\d" \'\'', ['a "b" $c \\d', ""]),
        ("-N'x y'z", ["-Nx yz"]),
        ("", []),
    ],
)
def test_words(line, expected):
    assert words.split(line) == expected


def test_lists_part_at_commas_outside_quotes_and_parentheses():
    assert words.split_list("A=1,B='x,y',needs=(nfs,ldap),C") == ["A=1", "B=x,y", "needs=(nfs,ldap)", "C"]


NOW = datetime(2026, 3, 2, 20, 55, tzinfo=ZoneInfo("Europe/Paris"))  # a Monday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("21:00", "2026-03-02 21:00"),
        ("20:55", "2026-03-03 20:55"),
        ("20:00", "2026-03-03 20:00"),
        ("22", "2026-03-02 22:00"),
        ("9pm", "2026-03-02 21:00"),
        ("9 pm", "2026-03-02 21:00"),
        ("12:30am", "2026-03-03 00:30"),
        ("12m tomorrow", "2026-03-03 12:00"),
        ("noon", "2026-03-03 12:00"),
        ("midnight", "2026-03-03 00:00"),
        ("noon tomorrow", "2026-03-03 12:00"),
        ("tomorrow", "2026-03-03 00:00"),
        ("today 23:30:15", "2026-03-02 23:30:15"),
        ("friday", "2026-03-06 00:00"),
        ("Monday 6pm", "2026-03-09 18:00"),
        ("mon 22:00", "2026-03-02 22:00"),
        ("03/14", "2026-03-14 00:00"),
        ("03/01 10:00", "2027-03-01 10:00"),
        ("2/29", "2028-02-29 00:00"),
        ("12/31/26 23:00", "2026-12-31 23:00"),
        ("12/31/2027", "2027-12-31 00:00"),
        ("2026-04-01 08:30", "2026-04-01 08:30"),
        ("2026-04-01T08:30", "2026-04-01 08:30"),
        ("14-mar 7am", "2026-03-14 07:00"),
        ("14-March-27", "2027-03-14 00:00"),
        ("March 14, 2027 12:00", "2027-03-14 12:00"),
        ("mar 14", "2026-03-14 00:00"),
        ("203022105", None),
        ("202603022105", "2026-03-02 21:05"),
        ("2603022105.30", "2026-03-02 21:05:30"),
        ("03022105", "2026-03-02 21:05"),
        ("2105", "2026-03-02 21:05"),
        ("012105", "2026-04-01 21:05"),
        ("12:00 EST", "2026-03-03 18:00"),
        ("21:00GMT", "2026-03-02 22:00"),
        ("9pmGMT", "2026-03-02 22:00"),
        ("2026-03-02T21:00:00+00:00", "2026-03-02 22:00"),
        ("24:00", "2026-03-03 00:00"),
    ],
)  # fmt: skip
def test_dates(text, expected):
    if expected is None:
        with pytest.raises(Wrong, match="is no date"):
            parse_date(text, round(NOW.timestamp() * 1000), "Europe/Paris")
        return
    found = parse_date(text, round(NOW.timestamp() * 1000), "Europe/Paris")
    at = datetime.fromtimestamp(found / 1000, ZoneInfo("Europe/Paris"))
    assert at.isoformat(" ").removesuffix(":00").partition("+")[0].removesuffix(":00") in (
        expected,
        expected.removesuffix(":00"),
    )


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "02/30/2026", "13pm", "1:2:3:4", "noon 21:00", "2/30", "-"]
)
def test_what_is_no_date_is_refused_in_one_line(text):
    with pytest.raises(Wrong, match="is no date") as caught:
        parse_date(text, round(NOW.timestamp() * 1000), "Europe/Paris")
    assert "\n" not in str(caught.value)


@given(st.text("0123456789:/-amp montue .T+", max_size=14))
def test_no_text_breaks_the_reader_of_dates(text):
    try:
        assert isinstance(parse_date(text, 1_772_449_200_000, "Europe/Paris"), int)
    except Wrong:
        pass


@pytest.mark.parametrize(
    ("text", "asked", "notes"),
    [
        ("walltime=0:3:0,mem=1024MB", [("wall", 180_000), ("memory", 1 << 30)], []),
        ("mpp_p=4,mpp_t=600,590", [("pes", 4), ("wall", 600_000)], ["warning:mpp_t:590000"]),
        ("nodes=2:ppn=3:mem=1kb", [("pes", 6), ("memory", 2048)], []),
        ("select=2:ncpus=4+1,place=scatter", [("pes", 9)], ["place:scatter"]),
        ("nodes=1,needs=nfs", [("pes", 1)], []),
    ],
)
def test_resources(text, asked, notes):
    assert read_resources(text)[:2] == (asked, notes)


@pytest.mark.parametrize(
    "text", ["needs=(nfs,ldap)", "needs=nfs+ldap", "needs=nfs,ldap", "needs=nfs,mem=1,needs=ldap"]
)
def test_needs(text):
    assert read_resources(text)[2] == ["nfs", "ldap"]


@pytest.mark.parametrize(
    "text", ["waltime=3", "mem", "pes=0", "mem=5x", "", "nodes=0", "nodes=1:gpu=2", "needs=", "needs=a++b"]
)
def test_bad_resources_are_refused(text):
    with pytest.raises(Wrong):
        read_resources(text)
