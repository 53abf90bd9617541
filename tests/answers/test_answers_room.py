"""What a request brings along: words with which a program can start, and bytes that count for its owner."""

from functools import partial

import pytest
from daemon.inner import item

from nqspy.model.ids import array_key

MOST = (128 << 10) - 1


def _environment(size):
    return "A=1\0BIG=" + "z" * (size - 4)


_item = partial(item, held=True)


@pytest.mark.parametrize(
    ("large", "name"),
    [
        (_item(environment=_environment(MOST + 1)), "BIG"),
        (_item(args=["x", "é" * (MOST // 2 + 1)]), "argument 2"),
        (_item(args=["x" * MOST] * 20), "KiB"),
        (_item(args=[""] * 300_000), "KiB"),
        (_item(attributes=[f"a{number}" for number in range(20_000)]), "attributes"),
    ],
    ids=["variable", "argument", "all", "empty ones", "attributes"],
)
def test_what_no_program_can_be_started_with_is_refused_and_named(inner, large, name):
    code, text = inner.refusal("owner", "submit", items=[large])
    assert code in ("too_large", "too_many")
    assert name in text
    assert len(text) < 200
    assert "--after" not in text


def test_the_longest_that_can_be_started_is_taken(inner):
    items = [_item(environment=_environment(MOST), args=["x" * MOST])]
    assert inner.result("owner", "submit", items=items)["ids"]


def test_all_bytes_of_a_request_count_for_its_owner(fresh):
    fresh.qmgr("set server user_spool=3mb")
    large = [_item(args=["x" * 100_000] * 5)]
    ids = [fresh.result("owner", "submit", items=large)["ids"][0] for _ in range(3)]
    for items in (large, [_item(attributes=[f"{n}:" + "y" * 900 for n in range(500)])]):
        code, text = fresh.refusal("owner", "submit", items=items)
        assert (code, "user_spool" in text) == ("user_spool", True)
    fresh.submit("owner", held=True)
    fresh.submit("other", args=["x" * 100_000] * 5)
    for _ in range(10):
        answer = fresh.result("owner", "modify", ids=ids[:1], values={"priority": 3})
    assert [each["code"] for each in answer["failed"]] == ["user_spool"], "the journal has each change"
    assert fresh.result("owner", "delete", ids=ids)["failed"] == []
    code, _ = fresh.refusal("owner", "submit", items=large)
    assert code == "user_spool", "the history has their text as long as their records"


def test_an_array_that_never_ran_counts_on_for_itself_alone(fresh):
    fresh.qmgr("set server user_spool=30mb")
    keeps = fresh.daemon.journal.stored_bytes
    before, items = keeps("anne"), [_item(args=["x" * 9_000], array={"indices": [[0, 1999, 1]]})]
    for number in (1, 2, 3):
        [id] = fresh.result("owner", "submit", items=items)["ids"]
        assert keeps("anne") - before > 18_000_000
        fresh.result("owner", "delete", ids=[id])
        assert number * 18_000 < keeps("anne") - before < number * 20_000
    fresh.daemon.journal._stored.forget()
    assert 3 * 18_000 < keeps("anne") - before < 3 * 20_000, "the rows say the same"


def test_a_list_and_an_array_count_for_each_request(fresh):
    fresh.qmgr("set server user_spool=3mb")
    some = [_item(args=["x" * 100_000])]
    code, _ = fresh.refusal("owner", "submit", items=some * 20)
    assert code == "user_spool"
    code, _ = fresh.refusal(
        "owner", "submit", items=[_item(args=["x" * 9_000], array={"indices": [[0, 999, 1]]})]
    )
    assert code == "user_spool"
    assert fresh.result("owner", "submit", items=some * 10)["ids"]


def test_the_script_of_an_array_stays_when_one_index_is_deleted(inner):
    script = "# " + "".join(map(str, range(300)))
    [id] = inner.result("owner", "submit", items=[_item(script=script, array={"indices": [[0, 9, 1]]})])[
        "ids"
    ]
    seq = id.partition("[")[0]
    inner.result("owner", "modify", ids=[f"{seq}[3]"], values={"priority": 5})
    assert inner.result("owner", "delete", ids=[f"{seq}[3]"])["failed"] == []
    spec = inner.daemon.engine.site.requests[array_key(int(seq))].spec
    assert inner.daemon.journal.blob(spec.script).decode() == script
    inner.result("owner", "delete", ids=[seq])
    with pytest.raises(KeyError):
        inner.daemon.journal.blob(spec.script)
