"""The tables of PBS's qstat, character by character: other programs read them."""

import pytest
from msgspec import structs
from msgspec.structs import replace
from report.pbs_book import PARIS, ended, subject

from nqspy.model import events as ev
from nqspy.model.ids import HOUR, MINUTE
from nqspy.model.requests import Used
from nqspy.report import pbs_tables
from nqspy.report.pbs_tables import Style, Where

TABLE = (
    "Job id            Name             User              Time Use S Queue\n"
    "----------------  ---------------- ----------------  -------- - -----\n"
    "1.ymp             job              anne              01:01:01 R night           \n"
    "2.ymp             a-very-long-nam* anne                     0 Q night           \n"
)
WIDE = (
    "Job id                         Name            User             Time Use S Queue\n"
    "-----------------------------  --------------- ---------------  -------- - ---------------\n"
    "1.ymp                          job             anne             01:01:01 R night          \n"
    "2.ymp                          a-very-long-na* anne                    0 Q night          \n"
)
DONE = (
    "Job id            Name             User               % done  S Queue\n"
    "----------------  ---------------- ----------------  -------- - -----\n"
    "1.ymp             job              anne                   50  R night           \n"
    "2.ymp             a-very-long-nam* anne                   --  Q night           \n"
)
ALTERNATE = (
    "\nymp: \n"
    "                                                            Req'd  Req'd   Elap\n"
    "Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time\n"
    "--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----\n"
    "1.ymp           anne     night    job           --    1   2   64mb 02:00 R 01:01\n"
    "2.ymp           anne     night    a-very-lo*    --    1   1    --    --  Q   -- \n"
    "3.ymp           anne     day      job           --    1   1    --    --  H   -- \n"
)


def default(subjects, server="ymp", *, wide=False, done=False):
    shape = pbs_tables.shape(server, wide=wide, done=done)
    return shape.head + "".join(pbs_tables.line(each, shape) for each in subjects)


def alternate(subjects, look=Style(), server="ymp", now=0):  # noqa: B008
    at = Where(server, "ymp", PARIS, now)
    rows = [pbs_tables.alternate_row(each, look, at) for each in subjects]
    return pbs_tables.alternate_head(server, look) + "".join(rows)


def subjects(book):
    return [subject(request) for request in book.site.requests.values()]


def test_the_default_table_has_openpbss_widths(book):
    assert default(subjects(book)[:2]) == TABLE
    assert all(len(line.split()) == 6 for line in TABLE.splitlines()[2:])


def test_the_wide_table_and_the_one_with_what_is_done(book):
    assert default(subjects(book)[:2], wide=True) == WIDE
    assert default(subjects(book)[:2], done=True) == DONE


def test_what_is_too_long_is_cut_but_no_identifier_and_the_first_label_is_shown(diary):
    book = diary()
    book.submit(0, "default", owner="a" * 20, name="n" * 16)
    [one] = subjects(book)
    assert default([one], "ymp.centre.example").splitlines()[2].split()[0] == "1.ymp"
    cells = default([one], "h" * 40).splitlines()[2].split()
    assert cells[:3] == ["1." + "h" * 40, "n" * 15 + "*", "a" * 15 + "*"]
    long = structs.replace(one, used=Used(cpu=1234 * HOUR))
    assert default([long]).splitlines()[2].split()[3] == "1234:00*"


@pytest.mark.parametrize("wide", [False, True])
def test_an_identifier_stands_whole_in_the_alternate_table(book, wide):
    at = Where("a-node-with-a-very-long-name.example.org", "h", PARIS, 0)
    [one, *_] = subjects(book)
    line = pbs_tables.alternate_row(one, Style(wide=wide), at)
    assert line.split()[0] == f"{one.request.seq}.{at.server}"


def test_an_ended_request_is_f_with_its_cpu_time(book):
    gone = ended(book, 1, ev.Ended(1, 1, "exit", 0, None, Used(61_000)))
    cells = default([gone]).splitlines()[2].split()
    assert cells == ["1.ymp", "job", "anne", "00:01:01", "F", "night"]


# ---------------------------------------------------------------- the alternate table
def test_the_alternate_table_has_openpbss_columns(book):
    assert alternate(subjects(book)) == ALTERNATE


def test_the_alternate_table_can_be_wide(book):
    lines = alternate(subjects(book)[:1], Style(wide=True)).splitlines()
    assert lines[2] == " " * 99 + "Req'd  Req'd   Elap"
    assert lines[3].startswith(
        "Job ID                         Username        Queue           Jobname         SessID"
    )
    assert {len(lines[4]), len(lines[5])} == {99 + len("------ ----- - -----")}
    assert lines[5].split()[:4] == ["1.ymp", "anne", "night", "job"]


def test_hosts_and_comments_stand_below_or_beside_a_job(book):
    [one, two, _] = subjects(book)
    two = structs.replace(two, comment="run limit 1 of queue night is reached, " + "and so on, " * 8)
    hosts = alternate([one, two], Style(hosts=True)).splitlines()
    assert (hosts[6], hosts[8]) == ("   ymp/0*2", "    -- ")
    beside = alternate([one], Style(hosts=True, one_line=True)).splitlines()
    assert beside[5].endswith(" R 01:01 ymp/0*2")
    message = alternate([one, two], Style(comments=True)).splitlines()
    assert message[6] == "    -- "
    assert message[8].endswith("...")
    assert len(message[8]) == 3 + 74
    both = alternate([two], Style(hosts=True, comments=True, one_line=True)).splitlines()
    assert both[5].endswith("  --   -- ")
    assert both[6].startswith("   run limit 1 of")


@pytest.mark.parametrize(
    ("size", "look", "shown"),
    [
        (1 << 30, Style(), "1gb"), (64 << 20, Style(), "64mb"), (64 << 20, Style(megawords=True), "8mw"),
        (64 << 20, Style(gigabytes=True), "1gb"), (10_000 << 20, Style(), "10gb"), (1500, Style(), "2kb"),
    ],
)  # fmt: skip
def test_memory_has_four_digits_at_most(diary, size, look, shown):
    book = diary()
    book.submit(0, "default", memory=size)
    assert alternate(subjects(book), look).splitlines()[5].split()[7] == shown


def test_the_estimated_start_stands_where_else_the_elapsed_time_does(book):
    now = book.at(0)
    requests = subjects(book)
    two = requests[1]

    def start(ms):
        table = alternate([two], Style(starts={2: now + ms}), now=now)
        assert table.splitlines()[2] == " " * 75 + "Est"
        assert table.splitlines()[3].endswith("Req'd  Req'd   Start")
        return table.splitlines()[-1].split("Q ")[1].strip()

    assert start(5 * MINUTE) == "21:05"
    assert start(24 * HOUR) == "Tu 21"
    assert start(30 * 24 * HOUR) == "Apr"
    assert start(400 * 24 * HOUR) == "2027"
    assert start(-1) == "--"
    assert alternate(requests[:1], Style(starts={1: now + 5}), now=now).splitlines()[-1].endswith(" R    --")


def test_times_asked_for_are_of_the_cpu_where_it_was_asked_for(diary):
    book = diary()
    book.submit(0, "default", wall=HOUR)
    [one] = subjects(book)
    began = structs.replace(one, used=Used(cpu=10 * MINUTE, wall=30 * MINUTE))
    assert alternate([began]).splitlines()[-1].split()[-3:] == ["01:00", "Q", "00:30"]
    assert default([began], done=True).splitlines()[2].split()[3] == "50"
    spec = replace(one.request.spec, ask=replace(one.request.spec.ask, cpu=20 * MINUTE))
    both = structs.replace(began, request=structs.replace(one.request, spec=spec))
    assert alternate([both]).splitlines()[-1].split()[-3:] == ["00:20", "Q", "00:10"]
