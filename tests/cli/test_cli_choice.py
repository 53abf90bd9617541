"""Requests named by more than identifiers: what is asked first, and what is done with the answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.cli import fast
from nqspy.cli.fast import Failure
from nqspy.cli.joblist import read_list
from nqspy.cli.qalter import values_of
from nqspy.cli.request_commands import chooses
from nqspy.cli.request_tables import table_of
from nqspy.rpc import messages


@pytest.mark.parametrize(
    ("word", "chosen"),
    [
        ("17", False), ("17.my-host", False), ("17[].ymp", False), ("17[3-9].ymp", False), ("3-9", True),
        ("3-9.my-host", True), ("sim*", True), ("s?m", True), ("[ab]x", True), ("nonsense", False),
        ("", False),
    ],
)  # fmt: skip
def test_what_is_a_range_or_a_pattern(word, chosen):
    assert chooses(word) is chosen


def chosen(desk, *ids):
    text = "".join(f"{id}\n" for id in ids)
    desk.answers["choose"] = lambda id, message: messages.text_answer(id, 0, text)


def test_identifiers_alone_ask_nothing_first(desk, screen):
    screen.run("qdel 17 18.ymp")
    assert [message["cmd"] for message in desk.messages] == ["delete"]
    assert desk.messages[0]["lenient"] is False


def test_what_was_chosen_is_deleted_beside_what_was_named_and_once(desk, screen):
    chosen(desk, "3.ymp", "4.ymp")
    assert screen.run("qdel 17 3-9 3.ymp")[0] == 0
    asked, deleted = desk.messages
    assert (asked["cmd"], asked["operands"], asked["name"], asked["state"]) == ("choose", ["3-9"], None, None)
    assert (deleted["ids"], deleted["lenient"]) == (["17", "3.ymp", "4.ymp"], True)


def test_more_requests_than_go_into_one_message_are_deleted_in_several_the_waiting_ones_first(desk, screen):
    ids = [f"{number}.ymp" for number in range(1, 5_001)]
    chosen(desk, *ids)
    assert screen.run("qdel --all --yes -W suppress_email=2500")[0] == 0
    _, *deleted = desk.messages
    assert [id for message in deleted for id in message["ids"]] == ids[::-1]
    assert max(len(message["ids"]) for message in deleted) <= 2_000
    assert [message["mails"] for message in deleted[:3]] == [2_500, 500, 0]


def test_more_requests_than_go_into_one_message_are_waited_for_in_turn(desk, screen):
    chosen(desk, *(f"{number}.ymp" for number in range(1, 5_001)))
    status = iter([1, 0, 0])
    desk.answers["wait"] = lambda id, message: messages.text_answer(id, next(status), "")
    assert screen.run("qwait --all")[0] == 1
    assert sum(len(message["ids"]) for message in desk.messages[1:]) == 5_000


def test_names_states_and_users_go_along(desk, screen):
    chosen(desk, "3.ymp")
    screen.run("qdel --name a* --state held -u anne")
    asked, deleted = desk.messages
    assert (asked["operands"], asked["name"], asked["state"], asked["user"]) == ([], "a*", "held", "anne")
    assert (deleted["ids"], deleted["owner"]) == (["3.ymp"], "anne")


def test_nothing_found_is_told_and_nothing_done(desk, screen):
    desk.answers["choose"] = lambda id, message: messages.text_answer(id, 153, "", "none\n")
    assert screen.run("qdel x*") == (153, "", "qdel: none\n")
    chosen(desk)
    assert screen.run("qdel --all") == (0, "", "")
    assert screen.run("qwait --all") == (0, "", "")
    assert {message["cmd"] for message in desk.messages} == {"choose"}


def test_qwait_asks_for_those_that_have_ended_too_and_waits(desk, screen):
    chosen(desk, "3.ymp")
    screen.run("qwait 17 3-9 --any --timeout 10")
    asked, waited = desk.messages
    assert (asked["operands"], asked["ended"]) == (["3-9"], True)
    assert (waited["cmd"], waited["ids"], waited["any"]) == ("wait", ["17", "3.ymp"], True)
    desk.messages.clear()
    screen.run("qwait --all")
    assert desk.messages[0]["ended"] is False


FLAGS = sorted({flag for row in table_of("qalter") for flag in row[0] if flag != "--home"})
ODD = ("17", "600", "walltime=1:00", "select=2:mem=1gb", "n", "oe", "uo", "y", "/x", "a:b", "\0", "\x1b", "é")
WORDS = st.sampled_from([*FLAGS, *ODD]) | st.text(st.characters(max_codepoint=255), max_size=8)


@given(st.lists(WORDS, max_size=6))
def test_any_options_of_qalter_become_a_message_or_one_line(words):
    try:
        found, _ = fast.Parser(table_of("qalter")).parse(words)
        fast.dump(values_of([each for each in found if each.target not in ("help", "eligible")], None))
    except Failure as failure:
        text = failure.text
    else:
        text = "a message"
    assert text


LEADING = st.sampled_from(
    ("name:a", "name:b", "after:a", "after:b:any", "after:", "name:", "after:7", "after:a:each", "job.sh")
)
LINES = st.lists(st.lists(LEADING | WORDS, max_size=5).map(" ".join), max_size=6)


@given(lines=LINES)
def test_any_list_is_read_or_refused_in_one_line(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("list") / "x.list"
    path.write_bytes("\n".join(lines).encode("utf-8", "replace"))
    parser = fast.Parser(table_of("qsub"), interspersed=False)
    text, items = str(path), []
    try:
        items = read_list(str(path), parser, lambda script, args, options: {"script": script})
    except Failure as failure:
        text = failure.text
    assert str(path) in text
    for place, item in enumerate(items):
        assert all(0 <= other < place for other, _ in item.get("after", ()))
