"""What PBS's full form says of a job, in which order, and that what is read back is what there was."""

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace
from report.pbs_book import CONTEXT, ended, subject

from nqspy.model import events as ev
from nqspy.model.requests import Dependency, MailWishes, Output, Used
from nqspy.model.shapes import Layout
from nqspy.report import pbs_forms
from nqspy.report.pbs_attributes import asked_for, attributes, resource_list
from nqspy.report.pbs_forms import JobWriter, Written, folded, layout, written
from nqspy.report.pbs_values import VariableList, is_number
from nqspy.rpc import messages


def text(one, **wish):
    return written(layout(wish, "Job Id: "), f"{one.request.seq}.ymp", attributes(one, CONTEXT))


def charged_to(book, account):
    """Return the second request, charged to an account."""
    request = book.site.requests[2]
    return subject(structs.replace(request, spec=replace(request.spec, account=account)))


def test_the_full_form_has_its_lines_in_openpbss_order(book):
    shown = [text(subject(request)) for request in book.site.requests.values()]
    first = shown[0].split("\n")
    assert first[0] == "Job Id: 1.ymp"
    assert first[1:9] == [
        "    Job_Name = job",
        "    Job_Owner = anne@ymp",
        "    resources_used.cput = 01:01:01",
        "    resources_used.mem = 5120kb",
        "    resources_used.ncpus = 2",
        "    resources_used.walltime = 01:06:40",
        "    job_state = R",
        "    queue = night",
    ]
    assert {
        "    ctime = Mon Mar  2 21:00:00 2026", "    stime = Mon Mar  2 21:00:10 2026",
        "    exec_host = ymp/0*2", "    exec_vnode = (ymp:ncpus=2:mem=65536kb)",
        "    Resource_List.mem = 65536kb", "    Resource_List.select = 1:ncpus=2:mem=65536kb",
        "    Output_Path = ymp:/home/anne/w/job.o1", "    substate = 42",
    } <= set(first)  # fmt: skip
    assert shown[0].endswith("\n\n")
    found = [line for line in "".join(shown).split("\n") if "Job Id:" in line or "job_state =" in line]
    assert found[::2] == ["Job Id: 1.ymp", "Job Id: 2.ymp", "Job Id: 3.ymp"]
    assert [line[-1] for line in found[1::2]] == ["R", "Q", "H"]
    assert "    Hold_Types = u" in shown[2].split("\n")


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (Layout("select=2:ncpus=1:ngpus=1+1:ncpus=3", 3, 3, 1, place="scatter"),
         {"nodect": 3, "place": "scatter", "select": "2:ncpus=1:ngpus=1+1:ncpus=3"}),
        (Layout("nodes=2:ppn=2", 2, 4, 2),
         {"nodect": 2, "nodes": "2:ppn=2", "place": "pack", "select": "1:ncpus=2:mem=65536kb"}),
        (Layout("nodes=2", 2, 2, 1), {"nodect": 2, "nodes": 2}),
        (None, {"nodect": 1, "place": "pack", "select": "1:ncpus=2:mem=65536kb"}),
    ],
)  # fmt: skip
def test_resources_are_shown_as_they_were_laid_out(book, asked, shown):
    found = resource_list(replace(book.site.requests[1].spec, layout=asked))
    assert {name: found[name] for name in shown} == shown
    assert ("nodes" in found) is ("nodes" in shown)


PBS_ORDER = """
    Job_Name Job_Owner resources_used job_state queue server Account_Name Checkpoint ctime depend Error_Path
    exec_host exec_vnode Execution_Time Hold_Types Join_Path Keep_Files Mail_Points Mail_Users mtime
    Output_Path Priority qtime Rerunable Resource_List stime obittime Shell_Path_List substate Variable_List
    euser egroup comment etime umask run_count Exit_status history_timestamp project Submit_Host
""".split()  # noqa: SIM905
OURS = {"domain", "output_clash", "end_reason"}


def full_of_everything(book):
    """Return a request that has all possible attributes."""
    request = book.site.requests[1]
    spec = replace(
        request.spec, account="d1", eligible=book.at(5),
        after=(Dependency(7), Dependency(8, "any"), Dependency(9)),
        output=Output(join=True, keep_stdout=True), mail=MailWishes(begin=True, to="anne@ymp"), priority=5,
        shell="/bin/sh", host="front", umask=0o077,
        attributes=("checkpoint:c=5", "project:weather", "join:eo"),
    )  # fmt: skip
    book.site.requests[1] = structs.replace(request, spec=spec)
    over = ended(book, 1, ev.Ended(1, 1, "signal", None, 15, Used(61_000, 62_000, 4096), "TERM"))
    return structs.replace(over,
        request=structs.replace(over.request, spec=spec, attempt=request.attempt), comment="TERM",
        shared_output="/o (also 2.ymp)",
        variables=VariableList({"A": "1"}),
    )  # fmt: skip


def test_every_attribute_has_its_place(book):
    found = attributes(full_of_everything(book), CONTEXT._replace(domains={"night": "big"}))
    assert [name for name in found if name not in OURS] == PBS_ORDER
    assert set(found) - set(PBS_ORDER) == OURS
    assert list(found)[:4] == ["Job_Name", "Job_Owner", "resources_used", "job_state"]
    assert found["depend"] == "afterok:7.ymp@ymp:9.ymp@ymp,afterany:8.ymp@ymp"
    assert (found["Join_Path"], found["Keep_Files"], found["Mail_Points"]) == ("eo", "o", "b")
    assert (found["umask"], found["Checkpoint"], found["project"]) == (77, "c=5", "weather")
    assert (found["Job_Owner"], found["obittime"]) == ("anne@front", "Mon Mar  2 21:01:00 2026")


@pytest.mark.parametrize(
    ("event", "status", "substate"),
    [
        (ev.Ended(1, 1, "exit", 0), 0, 92),
        (ev.Ended(1, 1, "exit", 3), 3, 93),
        (ev.Ended(1, 1, "signal", None, 9), 265, 93),
        (ev.Ended(1, 1, "deleted", None, 15), 271, 91),
        (ev.Ended(1, 1, "deleted", 7), 7, 91),
        (ev.Ended(1, 1, "not_started"), -1, 93),
        (ev.Ended(1, 1, "lost"), -4, 93),
    ],
)
def test_the_exit_status_is_a_number_as_pbs_has_it(book, event, status, substate):
    over = ended(book, 1, event)
    found = attributes(over, CONTEXT)
    assert (found["job_state"], found["Exit_status"], found["substate"]) == ("F", status, substate)
    member = written(layout({"format": "json"}, ""), "1.ymp", found)
    assert json.loads(f"{{{member}}}")["1.ymp"]["Exit_status"] == status


def test_one_that_was_deleted_before_it_ran_and_one_that_is_being_started_say_so(book):
    found = attributes(ended(book, 2, ev.Deleted(2, "anne")), CONTEXT)
    assert {"Exit_status", "stime"}.isdisjoint(found)
    assert (found["job_state"], found["substate"], found["end_reason"]) == ("F", 91, "deleted")
    request = book.site.requests[1]
    starting = structs.replace(request, attempt=structs.replace(request.run, starting=True))
    assert attributes(subject(starting), CONTEXT)["substate"] == 41


def test_json_has_resources_and_variables_as_objects_and_numbers_as_numbers(book):
    variables = VariableList(
        {"PBS_O_HOME": "/home/anne", "N": "12", "LIST": "a,b", "ZIP": "007", "TEXT": 'a"b\\'}
    )
    one = structs.replace(subject(book.site.requests[1]), variables=variables)
    one = structs.replace(
        one, request=structs.replace(one.request, spec=replace(one.request.spec, name="123", account="42"))
    )
    found = json.loads(
        "{" + written(layout({"format": "json"}, ""), "1.ymp", attributes(one, CONTEXT)) + "}"
    )["1.ymp"]
    assert (found["Job_Name"], found["Account_Name"], found["Resource_List"]["ncpus"]) == ("123", "42", 2)
    assert found["resources_used"]["cput"] == "01:01:01"
    assert found["Variable_List"] == {
        "PBS_O_HOME": "/home/anne", "N": 12, "LIST": "a,b", "ZIP": "007", "TEXT": 'a"b\\',
    }  # fmt: skip
    assert (found["Priority"], found["Rerunable"]) == (0, "True")


def test_variables_begin_with_those_of_the_submission_and_none_is_said_twice():
    environment = b"A=x\0QSUB_HOME=/h\0PBS_O_SYSTEM=Linux\0PBS_O_WORKDIR=/old\0PBS_O_HOME=/h\0B=c,d\0broken"
    found = VariableList.of(environment, "/w", "night")
    assert found.text == "PBS_O_HOME=/h,PBS_O_WORKDIR=/w,PBS_O_SYSTEM=Linux,PBS_O_QUEUE=night,A=x,B=c\\,d"


# ---------------------------------------------------------------- folding
VALUES = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")) | st.sampled_from(",,, "), max_size=400
)


@given(st.sampled_from(["Job_Name", "Variable_List", "Resource_List.ncpus"]), VALUES)
def test_a_folded_line_is_the_value_again_without_newlines_before_tabs(name, value):
    line = f"    {name} = {value}"
    shown = folded(line, len(name) + 7)
    assert shown.replace("\n\t", "") == line
    assert all(len(each.expandtabs(8)) < 78 for each in shown.split("\n"))


def test_pieces_stay_whole_where_they_fit():
    pieces = [f"{n}.ymp" for n in range(100, 160)]
    shown = folded("    depend = " + ",".join(pieces), 13)
    assert [
        piece
        for line in shown.split("\n")
        for piece in line.strip().removeprefix("depend = ").split(",")
        if piece
    ] == pieces


@pytest.mark.parametrize("words", ["x job_state = R", "Job Id: 7", "job_state =", "a,Job Id:,job_state ="])
def test_what_a_user_writes_is_never_taken_for_a_line_of_ours(book, words):
    shown = text(charged_to(book, words))
    found = [line for line in shown.split("\n") if "Job Id:" in line or "job_state =" in line]
    assert found == ["Job Id: 2.ymp", "    job_state = Q"]
    assert f"    Account_Name = {words}" in shown.replace("\n\t", "").split("\n"), "as the manual reads it"


def test_lines_are_not_folded_where_that_is_asked_for(book):
    variables = VariableList({"A": "x" * 100 + "\n" + "\f"})
    one = structs.replace(subject(book.site.requests[1]), variables=variables)
    [line] = [each for each in text(one, letters="w").split("\n") if "Variable_List" in each]
    assert line == "    Variable_List = A=" + "x" * 100 + "\\n\\f"
    assert text(one, letters="1") == text(one, letters="w")
    assert "\n\t" in text(one)


def test_dsv_is_a_line_with_escaped_delimiters(book):
    one = charged_to(book, "a|b")
    [line, rest] = text(one, format="dsv").split("\n")
    assert rest == ""
    assert line.startswith("Job Id: 2.ymp|Job_Name=a-very-long-name-indeed|Job_Owner=anne@ymp|")
    assert "|Account_Name=a\\|b|" in line
    assert "|Resource_List.ncpus=1|" in line
    assert text(one, format="dsv", delimiter=";;").startswith("Job Id: 2.ymp;;Job_Name=")


def parts_of(text: str, between: str) -> list[str]:
    """Return the parts between delimiters without a backslash before them, still escaped."""
    parts, at = [""], 0
    while at < len(text):
        if text.startswith(between, at):
            parts.append("")
            at += len(between)
            continue
        size = 2 if text[at] == "\\" else 1
        parts[-1] += text[at : at + size]
        at += size
    return parts


def plain(text: str) -> str:
    """Return the value of an escaped text."""
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "f": "\f"}.get(found[1], found[1]), text)


ANY = st.text(st.sampled_from("ab,\\|;=\n\f '\"nf"), max_size=12)


@given(ANY, ANY, ANY, st.sampled_from(["|", ";;", "|;", ",", "<|>"]))
def test_every_value_can_be_read_back_from_dsv_and_from_the_full_form(name, first, second, between):
    variables = VariableList({"A": first, "B": second})
    for form in (layout({"format": "dsv", "delimiter": between}, ""), layout({"letters": "w"}, "")):
        shown = written(form, "1.ymp", {"Job_Name": name, "Variable_List": variables, "queue": "q"})
        if form.form == "dsv":
            parts = parts_of(shown.removesuffix("\n"), between)[1:]
            cells = {cell.partition("=")[0]: cell.partition("=")[2] for cell in parts}
            if "," in between:
                cells["Variable_List"] = plain(cells["Variable_List"])
        else:
            rows = [row.partition(" = ") for row in shown.split("\n")[1:-2]]
            cells = {head.strip(): value for head, _, value in rows}
        assert plain(cells["Job_Name"]) == name
        pairs = [plain(each).partition("=")[::2] for each in parts_of(cells["Variable_List"], ",")]
        assert pairs == [("A", first), ("B", second)]
        assert cells["queue"] == "q"


# ---------------------------------------------------------------- many that are alike
def unescaped(parts):
    return msgspec.json.decode(b'"' + b"".join(parts) + b'"')


@pytest.mark.parametrize("form", pbs_forms.FORMS)
def test_what_is_written_from_a_template_is_what_is_written_by_itself(diary, form):
    book = diary(pes=2, d1=1, d2=1)
    names = ["job", "a\tb", "x\t\ty", "100%", "%b", 'q"\\', "\\t\\t", "n<|>", "n" * 100]
    for number in range(64):
        book.submit(
            number / 7, f"d{number % 2 + 1}", name=names[number % len(names)],
            queue=("night", "day")[number % 3 // 2],
            cpu=1000 * (number % 4 + 1), eligible=3600 if number % 5 == 0 else None,
            state="waiting" if number % 5 == 0 else "queued",
        )  # fmt: skip
    book.decide(100, 2, 3)
    book.add(101, ev.Held((8, 9), "u", "anne"))
    shared = VariableList({"A": "1", "B": "%s,%d"})
    subjects = [
        subject(request, comment="" if request.seq % 3 else f"{request.seq} ahead of it", variables=shared)
        for request in book.site.requests.values()
    ]
    chosen = layout({"format": form}, "Job Id: ")
    slow = [written(chosen, f"{each.request.seq}.ymp", attributes(each, CONTEXT)) for each in subjects]
    quick = JobWriter(chosen, CONTEXT, messages.escaped)
    assert [unescaped([quick.write(each)]) for each in subjects] == [messages.plain(each) for each in slow]
    sharing = JobWriter(chosen, CONTEXT, messages.escaped, messages.reference)
    texts = [unescaped([sharing.write(each)]) for each in subjects]
    parts = [unescaped([each]) for each in sharing.shared]
    found = [
        "".join(parts[int(piece)] if at % 2 else piece for at, piece in enumerate(each.split("\x01")))
        for each in texts
    ]
    assert found == [messages.plain(each) for each in slow]
    assert sharing.shared
    assert sharing.size == quick.size


def test_what_was_written_before_is_told_as_it_is_now(diary):
    book = diary(pes=2, d1=1)
    for number in range(8):
        book.submit(number, "d1", name=f"n<|>{number}" if number == 3 else f"job{number}")
    chosen, remembered = layout({"format": "json"}, "Job Id: "), Written()

    def both(comment="", variables=None):
        quick = JobWriter(chosen, CONTEXT, messages.escaped, written=remembered)
        told = [subject(r, comment=comment, variables=variables) for r in book.site.requests.values()]
        slow = [written(chosen, f"{each.request.seq}.ymp", attributes(each, CONTEXT)) for each in told]
        assert [unescaped([quick.write(each)]) for each in told] == [messages.plain(each) for each in slow]

    both()
    both()  # most of it from memory
    both(comment="2 ahead of it")
    both(comment="3 ahead of it", variables=VariableList({"A": "1"}))
    book.add(101, ev.Held((1, 2), "u", "anne"))
    both()
    book.add(102, ev.Released((1, 2), "u", "anne"))
    book.add(103, ev.Moved((4,), "day", "op"))
    asked = book.site.requests[5].spec
    book.add(104, ev.Modified(5, replace(asked, name="other"), "anne"))
    both()
    assert len(remembered.form((chosen, CONTEXT.server, CONTEXT.zone.info)).stored) == 7


def test_memory_of_what_was_written_is_bounded_and_numbers_are_never_given_twice(diary, monkeypatch):
    monkeypatch.setattr(pbs_forms, "MOST_WRITTEN", 3)
    book, numbers = diary(pes=2, d1=1), set()
    form = Written().form("any")
    for number in range(9):
        book.submit(number, "d1", cpu=1000 * number + 1000)
    for request in book.site.requests.values():
        numbers.add(form.store(subject(request), b"written"))
        assert len(form.stored) <= 3
    assert len(numbers) == 9


@pytest.mark.parametrize(
    ("value", "number"),
    [("1", True), ("-5", True), ("1.5", True), ("1e9", True), ("0", True), ("007", False), ("", False),
     ("1.", False),
     ("0x1f", False), ("9" * 30, False), ("1,5", False), ("nan", False)],
)  # fmt: skip
def test_a_number_is_what_json_takes_for_one(value, number):
    assert is_number(value) == number
    if number:
        json.loads(value)


def test_requests_with_other_layouts_are_not_alike(book):
    spec = next(iter(book.site.requests.values())).spec
    other = replace(spec, layout=Layout(text="select=2:ncpus=1"))
    assert resource_list(spec) != resource_list(other)
    assert asked_for(spec) != asked_for(other)
