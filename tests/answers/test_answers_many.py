"""Commands that name many requests, or many indices of an array: others are answered meanwhile."""

import time

import pytest

from nqspy.answers import many
from nqspy.model import commands as cm


def _array(inner, number):
    [id] = inner.submit("owner", array={"indices": [[0, number - 1, 1]]}, held=True)
    return id.partition("[")[0]


def test_holds_of_thousands_of_single_indices_keep_nobody_waiting(inner):
    seq = _array(inner, 100_000)
    ids = [f"{seq}[{index}]" for index in range(1, 6_000, 2)]
    longest, turn = 0.0, inner.daemon.turn

    def timed(items):
        nonlocal longest
        began = time.process_time()
        turn(items)
        longest = max(longest, time.process_time() - began)

    inner.daemon.turn = timed
    try:
        for cmd in ("hold", "release"):
            answer = inner.result("owner", cmd, ids=ids)
            assert (len(answer["done"]), answer["failed"]) == (3_000, [])
    finally:
        inner.daemon.turn = turn
    assert longest < 1.0, "the engine's longest step; it has about 0.1 s"


def test_each_failure_of_a_long_command_is_told(inner):
    ids = inner.submit("owner", held=True, count=1_001)
    answer = inner.result("owner", "delete", ids=[*ids, "99999"])
    assert len(answer["done"]) == 1_001
    [failed] = answer["failed"]
    assert (failed["id"], failed["code"]) == ("99999", "unknown_request")
    code, _ = inner.refusal("owner", "hold", ids=ids, letter="x")
    assert code == "bad_value"


def test_what_an_earlier_slice_deleted_along_is_no_failure(inner):
    first, second = inner.submit("owner", held=True, count=2)
    [last] = inner.submit("owner", after=[{"seq": int(first.partition(".")[0]), "word": "any"}])
    ids = [first, *[second] * 1_100, last]
    answer = inner.result("owner", "delete", ids=ids, cascade=True)
    assert last in answer["done"]
    assert last not in [each["id"] for each in answer["failed"]]


@pytest.mark.parametrize(
    ("command", "long"),
    [
        (cm.Delete(("1",) * 1_000), False),
        (cm.Delete(("1",) * 1_001), True),
        (cm.HoldRequests(("1[2]",) * 101), True),
        (cm.MoveRequests(("1",) * 2_000, "spare", "batch"), False),
        (cm.ExchangeRequests(("1",) * 2_000), False),
    ],
)
def test_commands_that_name_many_are_done_in_slices(command, long):
    assert many.is_long(command) is long


def test_a_part_of_an_array_that_becomes_requests_is_bounded(inner):
    began = time.process_time()
    for cmd, more in (("modify", {"values": {"priority": 5}}), ("move", {"queue": "spare"})):
        seq = _array(inner, 1_000_000)
        code, text = inner.refusal("owner", cmd, ids=[f"{seq}[0-249999]"], **more)
        assert code == "bad_id", text
        some = [f"{seq}[0-599]", f"{seq}[600-1199]"]
        assert [each["code"] for each in inner.result("owner", cmd, ids=some, **more)["failed"]] == ["bad_id"]
    assert time.process_time() - began < 5
    assert inner.result("owner", "modify", ids=[seq], values={"priority": 5})["failed"] == []


@pytest.mark.parametrize("most", [1, 5_000], ids=["a run with a step", "as many pieces as may be"])
def test_what_is_said_of_indices_that_there_are_not_is_short_and_quickly_found(inner, most):
    runs = [[0, 999_999, 7]] if most == 1 else [[10 * at, 10 * at + 3, 1] for at in range(most)]
    [id] = inner.submit("owner", array={"indices": runs}, held=True)
    began = time.process_time()
    answer = inner.result("owner", "delete", ids=[id.replace("[]", "[0-999999]")] * 50)
    assert time.process_time() - began < 2.0, "5 s for a single one"
    texts = [each["text"] for each in answer["failed"]]
    assert len(texts) == 50
    assert max(map(len, texts)) < 300


def test_what_would_be_in_too_many_pieces_is_refused_before_they_are_made(inner):
    seq = _array(inner, 1_000_000)
    assert inner.result("owner", "release", ids=[f"{seq}[0-999999:2]"])["failed"] == []
    began = time.process_time()
    answer = inner.result("owner", "hold", ids=[f"{seq}[0-999999:3]"] * 5)
    assert time.process_time() - began < 2.0, "2 s for a single one"
    assert {each["code"] for each in answer["failed"]} == {"bad_id"}
    assert inner.result("owner", "hold", ids=[f"{seq}[0-9999:3]", f"{seq}[0-99999:2]"])["failed"] == []
