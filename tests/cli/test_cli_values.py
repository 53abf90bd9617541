"""Values, words and dates as people write them."""

import shlex
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.cli import words
from nqspy.cli.chunks import lay_out
from nqspy.cli.rare import parse_date
from nqspy.cli.resources import Resources, read_list, read_needs, resolve
from nqspy.model.amounts import Wrong


@given(st.text("ab \"'\t=", max_size=20))  # of comments and escapes shlex has other rules: below
def test_lines_are_split_as_a_shell_does(line):
    try:
        expected = shlex.split(line, comments=False)
    except ValueError:
        expected = None
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
        ("21:00", "2026-03-02 21:00"), ("20:55", "2026-03-03 20:55"), ("9pm", "2026-03-02 21:00"),
        ("12:30am", "2026-03-03 00:30"), ("12m tomorrow", "2026-03-03 12:00"), ("noon", "2026-03-03 12:00"),
        ("noon tomorrow", "2026-03-03 12:00"), ("today 23:30:15", "2026-03-02 23:30:15"),
        ("friday", "2026-03-06 00:00"), ("Monday 6pm", "2026-03-09 18:00"),
        ("mon 22:00", "2026-03-02 22:00"), ("03/14", "2026-03-14 00:00"),
        ("03/01 10:00", "2027-03-01 10:00"), ("2/29", "2028-02-29 00:00"),
        ("12/31/26 23:00", "2026-12-31 23:00"), ("2026-04-01 08:30", "2026-04-01 08:30"),
        ("2026-04-01T08:30", "2026-04-01 08:30"), ("14-mar 7am", "2026-03-14 07:00"),
        ("14-March-27", "2027-03-14 00:00"), ("March 14, 2027 12:00", "2027-03-14 12:00"),
        ("202603022105", "2026-03-02 21:05"), ("2603022105.30", "2026-03-02 21:05:30"),
        ("03022105", "2026-03-02 21:05"), ("2105", "2026-03-02 21:05"), ("012105", "2026-04-01 21:05"),
        ("12:00 EST", "2026-03-03 18:00"), ("21:00GMT", "2026-03-02 22:00"), ("9pmGMT", "2026-03-02 22:00"),
        ("2026-03-02T21:00:00+00:00", "2026-03-02 22:00"), ("24:00", "2026-03-03 00:00"),
    ],
)  # fmt: skip
def test_dates(text, expected):
    found = parse_date(text, round(NOW.timestamp() * 1000), "Europe/Paris")
    at = datetime.fromtimestamp(found / 1000, ZoneInfo("Europe/Paris"))
    assert at.isoformat(" ").removesuffix(":00").partition("+")[0].removesuffix(":00") in (
        expected,
        expected.removesuffix(":00"),
    )


@pytest.mark.parametrize("words", ["24:00 {}", "{} 24:00"])
@pytest.mark.parametrize(
    "day", ["2026-03-04", "03/04", "4-mar-26", "mar 4 2026", "wed", "tomorrow", "today", "cet"]
)
def test_the_end_of_a_day_is_the_beginning_of_the_next(day, words):
    now = round(datetime.fromisoformat("2026-03-03T12:00+01:00").timestamp() * 1000)
    found = parse_date(words.format(day), now, "Europe/Paris")
    later = 4 if day in ("today", "cet") else 5
    assert found == round(datetime.fromisoformat(f"2026-03-0{later}T00:00+01:00").timestamp() * 1000)


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "02/30/2026", "13pm", "1:2:3:4", "noon 21:00", "2/30", "-", "03/14/-5"]
)
def test_what_is_no_date_is_refused_in_one_line(text):
    with pytest.raises(Wrong, match="is not a date") as caught:
        parse_date(text, round(NOW.timestamp() * 1000), "Europe/Paris")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [  # Berlin's clock shows 02:00 to 03:00 twice on 25 October, and not at all on 29 March
        ("2026-10-25T01:00+02:00", "0230", "2026-10-25T02:30+02:00"),
        ("2026-10-25T02:15+02:00", "0230", "2026-10-25T02:30+02:00"),
        ("2026-10-25T02:45+02:00", "02:30", "2026-10-25T02:30+01:00"),
        ("2026-10-25T02:45+02:00", "250230", "2026-10-25T02:30+01:00"),
        ("2026-10-25T02:45+02:00", "202610250230", "2026-10-25T02:30+01:00"),
        ("2026-10-25T02:45+02:00", "2026-10-25T02:30", "2026-10-25T02:30+01:00"),
        ("2026-10-25T02:15+01:00", "0200", "2026-10-26T02:00+01:00"),
        ("2026-10-25T02:45+01:00", "0230", "2026-10-26T02:30+01:00"),
        ("2026-10-24T12:00+02:00", "tomorrow 02:30", "2026-10-25T02:30+02:00"),
        ("2026-03-29T01:30+01:00", "0230", "2026-03-29T03:30+02:00"),
        ("2026-03-29T03:10+02:00", "0230", "2026-03-29T03:30+02:00"),
        ("2026-03-29T01:59+01:00", "now+1sec", "2026-03-29T01:59:01+01:00"),
        ("2026-03-29T01:59+01:00", "now + 2 mins", "2026-03-29T03:01+02:00"),
        ("2026-03-29T01:59+01:00", "now+1h", "2026-03-29T03:59+02:00"),
    ],
)  # fmt: skip
def test_dates_around_a_clock_change(now, text, expected):
    found = parse_date(text, round(datetime.fromisoformat(now).timestamp() * 1000), "Europe/Berlin")
    assert found == round(datetime.fromisoformat(expected).timestamp() * 1000)


@given(st.text("0123456789:/-amp montue .T+", max_size=14))
def test_no_text_breaks_the_reader_of_dates(text):
    try:
        assert isinstance(parse_date(text, 1_772_449_200_000, "Europe/Paris"), int)
    except Wrong:
        pass


def resources(text: str) -> Resources:
    listed = {each.name: each for each in read_list(text)}
    found = resolve(listed)
    lay_out(listed, found)
    return found


@pytest.mark.parametrize(
    ("text", "asked", "notes"),
    [
        ("nodes=2:ppn=3:mem=1kb,mem=1MB", {"pes": 6, "memory": 1 << 20}, []),
        ("nodes=1:ppn=2,ncpus=4", {"pes": 4}, []),
        ("nodes=ymp+ape:ppn=2", {"pes": 3}, ["property:ymp", "property:ape"]),
        ("select=ncpus=2:mem=500kB,walltime=00:30:00", {"pes": 2, "memory": 512_000, "wall": 1_800_000}, []),
        ("walltime==60,pmem=2W,software=spice", {"wall": 60_000, "memory_process": 16}, ["software:spice"]),
        ("walltime=36:00:01.5,pcput=90,nice=3", {"wall": 129_601_500, "cpu_process": 90_000, "nice": 3}, []),
    ],
)
def test_resources(text, asked, notes):
    found = resources(text)
    assert (found.asked, found.notes) == (asked, notes)


def test_ranks_and_threads_are_laid_out_without_chunks():
    assert resources("ncpus=8,mpiprocs=4,ompthreads=2").layout == {"ranks": 4, "threads": 2}


def test_needs():
    for text in ("needs=(nfs,ldap)", "needs=nfs+ldap", "needs=nfs,ldap", "needs=(nfs, ldap),mem=1"):
        assert read_needs(read_list(text)[0]) == ["nfs", "ldap"]
    for text in ("needs=", "needs=a++b"):
        with pytest.raises(Wrong):
            read_needs(read_list(text)[0])


@pytest.mark.parametrize(
    "text",
    ["waltime=3", "mem", "pes=0", "mem=5x", "", "nodes=0", "nodes=1:gpu=two", "select=", "select=0:ncpus=1",
     "select=1:ncpus=0", "select=2:ncpus", "select=1:foo=two", "select=1:mem=unlimited", "nodes=1:ppn=",
     "nodes=:", "place=somewhere", "select=999999999:ncpus=9999", "procs=0", "walltime=1:2:3:4:5",
     "mem=1gb,x", "pes=16-4", "pes=0-4", "pes=4-x", "pes=()", "pes=(1,,2)", "pes=(1,x)", "pes=1-200000",
     "pes=(1,2),walltime=(3:00,x)", "pes=1-4,speedup=nan:1", "pes=1-4,speedup=x", "pes=1-4,speedup=4:1:2",
     "pes=1-4,ncpus=2", "pes=1-4,procs=1-2",  # what follows has more than the one value of a resource
     *(f"{name}={text}" for name in ("mem", "vmem", "pmem", "file") for text in ("1,5gb", "1gbx")),
     *(f"{name}={text}" for name in ("walltime", "cput", "pcput", "best_guess") for text in ("1,5", "9;")),
     *(f"{name}={text}" for name in ("ncpus", "pes", "procs", "nproc") for text in ("2,4", "2x", "2.5")),
     "nice=1,5", "gpu=1,5", "select=1:mem=1,5gb", "nodes=1,5", "mpp_t=1,5", "mpp_p=2,2,2",
     "mem=1,5gb,ncpus=2",
    ],
)  # fmt: skip
def test_bad_resources_are_refused(text):
    with pytest.raises(Wrong):
        resources(text)


@pytest.mark.parametrize("name", ["ncpus=4", "mem=1gb", "nodes=2", "procs=2", "ngpus=1"])
@pytest.mark.parametrize("new", ["select=2", "place=free"])
def test_the_two_ways_of_asking_for_nodes_do_not_mix(name, new):
    with pytest.raises(Wrong, match="cannot be used with"):
        resources(f"{name},walltime=60,{new}")
