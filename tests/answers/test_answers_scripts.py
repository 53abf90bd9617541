"""Long scripts of qmgr: run in slices, lines committed together, each line's fault told; nobody waits."""

import queue

import pytest
from daemon.inner import PEOPLE, SITE, Catch, Inner, fresh

from nqspy.rpc.server import Asked

QUEUES = 400

inner = fresh


def lines(first: int, last: int) -> list[str]:
    return [
        line
        for n in range(first, last)
        for line in (f"create batch_queue q{n} priority=5 run_limit=4", f"enable queue q{n}")
    ]


def begin(inner: Inner, script: list[str], number: int = 900_001, **more) -> Catch:
    """Send a script and run the turn in which it arrives."""
    handle = Catch(number)
    message = {"v": 1, "id": number, "cmd": "qmgr", "script": "\n".join(script), **more}
    inner.daemon.turn([Asked(handle, PEOPLE["root"], message)])
    return handle


def answer(inner: Inner, handle: Catch) -> dict:
    for _ in range(10_000):
        try:
            return handle.answers.get(timeout=0.002)
        except queue.Empty:
            inner.daemon.turn([])
    raise AssertionError("the script was not answered")


def test_a_long_script_lets_others_be_answered_and_tells_each_line_that_is_wrong(inner):
    script = [*lines(0, QUEUES), "create batch_queue q7", *lines(QUEUES, 2 * QUEUES), "set run_limit=x q1 y"]
    wrong_at = 2 * QUEUES + 1
    commits = inner.daemon.engine.commits
    handle = begin(inner, script[:-1])
    meanwhile = 0
    while handle.answers.empty() and inner.daemon.dispatcher.patience() == 0.0:
        assert inner.result("other", "status")["text"]
        meanwhile += handle.answers.empty()
    assert meanwhile > 1, "others were answered while it ran"
    found = answer(inner, handle)
    assert found["error"]["text"] == f"line {wrong_at}: queue q7 already exists"
    queues = inner.daemon.engine.site.settings.queues
    assert sum(name.startswith("q") and queues[name].enabled for name in queues) == 2 * QUEUES
    assert inner.daemon.engine.commits - commits < len(script) / 4, "lines were committed together"


def test_what_is_one_transaction_stays_one_and_names_the_line_that_is_wrong(inner):
    before = set(inner.daemon.engine.site.settings.queues)
    for atomic, bad, text in (
        ("atomic", "create batch_queue batch", "queue batch already exists"),
        ("check", "create pipe_queue p destination=(nowhere)", "destination nowhere does not exist"),
    ):
        handle = begin(inner, [*lines(0, 200), bad, *lines(200, 300)], **{atomic: True})
        assert f"line 401: {text}" in answer(inner, handle)["error"]["text"].replace("queue p: ", "")
        assert set(inner.daemon.engine.site.settings.queues) == before
    assert answer(inner, begin(inner, lines(0, 200), atomic=True))["ok"]
    assert len(inner.daemon.engine.site.settings.queues) == len(before) + 200


def test_a_script_whose_client_has_gone_is_carried_out_to_its_end(inner):
    class Gone(Catch):
        gone = True

    handle = Gone(5)
    message = {"v": 1, "id": 5, "cmd": "qmgr", "script": "\n".join(lines(0, QUEUES))}
    inner.daemon.turn([Asked(handle, PEOPLE["root"], message)])
    while inner.daemon.dispatcher.patience() == 0.0:
        inner.daemon.turn([])
    assert inner.daemon.engine.site.settings.queues[f"q{QUEUES - 1}"].enabled


def test_lines_that_move_shifts_take_effect_before_the_next_one(tmp_path):
    inner = Inner(tmp_path / "home", SITE.partition("define")[0])
    script = [
        'define shift early when=("* * * * *")', "set run_limit=9 batch", "end", "set run_limit=2 batch",
        "set run_limit=3 spare",
    ]  # fmt: skip
    assert answer(inner, begin(inner, script, file=True))["ok"]
    settings = inner.daemon.engine.site.settings
    assert inner.daemon.engine.site.shift.current == "early"
    assert (settings.queues["batch"].run_limit, settings.queues["spare"].run_limit) == (2, 3)
    inner.close()


def test_two_who_hand_in_the_same_script_have_it_run_twice(inner):
    first, second = begin(inner, lines(0, QUEUES), 11), begin(inner, lines(0, QUEUES), 12)
    answers = [answer(inner, first), answer(inner, second)]
    told = "".join(each["error"]["text"] for each in answers if not each["ok"])
    assert told.count("already exists") == QUEUES, "each queue was made by one of them"


def test_objects_deleted_and_made_again_keep_their_order_over_a_restart(tmp_path):
    inner = Inner(tmp_path / "home", SITE)
    script = [*lines(0, 60), *(f"disable queue q{n}" for n in range(3)),
              "delete queue q1", "create batch_queue q1", "delete queue q0",
              "create batch_queue q0"]  # fmt: skip
    assert answer(inner, begin(inner, script))["ok"]
    order = list(inner.daemon.engine.site.settings.queues)
    assert order[-2:] == ["q1", "q0"]
    inner.close()
    again = Inner(tmp_path / "home", SITE)
    assert list(again.daemon.engine.site.settings.queues) == order
    again.close()


@pytest.mark.parametrize(
    "script",
    [
        "purge queue nope\nset queue batch run_limit=8",
        "set queue batch run_limit=8\nhold request 99999",
        "set queue batch run_limit=8\nhold request 1\nshow queue batch",
        "hold request 1\nrelease request 1",
    ],
)
def test_what_could_not_be_taken_back_is_refused_beside_others_where_all_or_none_is_asked(inner, script):
    before = inner.qmgr("show long queue batch")
    error = answer(inner, begin(inner, script.splitlines(), atomic=True))["error"]
    assert (error["code"], "--atomic" in error["text"]) == ("bad_command", True), error
    assert inner.qmgr("show long queue batch") == before
    alone = answer(inner, begin(inner, ["show queue batch", "hold request 99999"], atomic=True))
    assert "99999" in alone["error"]["text"], "by itself it is carried out"
