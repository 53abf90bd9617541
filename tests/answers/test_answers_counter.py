"""The daemon behind its counter: long answers in turn, plain logs and mails, nobody held up."""

import logging
import socket
import threading
import time
from itertools import cycle

import pytest
from daemon.inner import PEOPLE, Catch
from daemon.live import until

from nqspy.answers import shows
from nqspy.daemon.log import _Form
from nqspy.rpc.server import Asked


def test_long_answers_are_made_a_few_of_each_user_at_a_time(fresh):
    fresh.submit("owner", count=50)
    dispatcher = fresh.daemon.dispatcher
    handles = [Catch(n) for n in range(1, 21)]
    message = {"v": 1, "cmd": "qstat", "text": "json"}
    crowd = [
        Asked(each, PEOPLE["other"], message | {"id": each.id, "operands": [str(each.id)]})
        for each in handles
    ]
    last = Catch(99)
    dispatcher.answer_questions()
    for each in (*crowd, Asked(last, PEOPLE["owner"], message | {"id": 99})):
        assert dispatcher.accept(each) is None
    dispatcher.answer_questions()
    assert [slow.asked.handle.id for slow in dispatcher.slow._in_turn()] == [1, 2, 3, 4, 99]
    handles[0].stuck = True
    assert [slow.asked.handle.id for slow in dispatcher.slow._in_turn()] == [2, 3, 4, 5, 99]
    handles[0].stuck = False
    while dispatcher.slow._answers:
        dispatcher.after_turn()
    until(lambda: all(not each.answers.empty() for each in (*handles, last)), "all to be answered")


def test_who_does_not_read_does_not_keep_the_engine_awake(fresh):
    handle = Catch(1)
    handle.stuck = True
    fresh.daemon.dispatcher.accept(
        Asked(handle, PEOPLE["other"], {"v": 1, "id": 1, "cmd": "qstat", "text": "json"})
    )
    fresh.daemon.dispatcher.answer_questions()
    fresh.daemon.dispatcher.after_turn()
    assert fresh.daemon.dispatcher.patience() > 0
    handle.closed = True
    assert fresh.daemon.dispatcher.patience() == 0


def test_a_log_line_shows_control_characters_and_stays_one_entry():
    record = logging.LogRecord("nqspy", logging.INFO, "", 1, "bad %s", ("\x1b[2J\n2026 forged",), None)
    assert _Form("file").format(record).endswith(" INFO bad \\u001b[2J\n    2026 forged")


def test_silent_slow_and_greedy_clients_delay_nobody(live):
    path = str(live.home / "nqsd.sock")
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(60)]
    events, wait = b'{"v":1,"id":1,"cmd":"events","after":0}\n', b'{"v":1,"id":1,"cmd":"wait","ids":["1"]}\n'
    for each, data in zip(crowd, cycle((b"", b'{"v":1,"id":1,"cm', events * 50, wait)), strict=False):
        each.connect(path)
        each.sendall(data)
    id = live.submit("true")
    assert live.ended(id)["exit_status"] == 0
    took = []
    for _ in range(50):
        begun = time.perf_counter()
        live.client.call("ping")
        took.append(time.perf_counter() - begun)
    assert sorted(took)[len(took) // 2] < 0.1
    for each in crowd:
        each.close()


def test_counters_of_a_script_are_made_once_and_not_by_the_engine(fresh, monkeypatch):
    threads = []

    def counted(*args, real=shows.count):
        threads.append(threading.current_thread().name)
        return real(*args)

    monkeypatch.setattr(shows, "count", counted)
    heading = fresh.result("other", "counters")["text"].splitlines()[3]
    assert heading.startswith("dep. %"), "a line that tells no time: the minute may change meanwhile"
    threads.clear()
    shown = fresh.qmgr("show queue batch", by="other")
    script = "show counters\nshow queue batch\nshow counters\n"
    out = fresh.result("other", "qmgr", script=script)["out"]
    assert len(threads) == 1
    assert threads[0].startswith("reports")
    assert (out.count(heading), out.count(shown)) == (2, 1)


def test_a_script_that_shows_more_than_anybody_reads_is_refused_and_nothing_of_it_is_done(fresh):
    script = "set queue batch priority=33\n" + "show queue batch\n" * 1_001
    assert fresh.refusal("manager", "qmgr", script=script)[0] == "bad_command"
    assert fresh.daemon.engine.site.settings.queues["batch"].priority == 10
    assert fresh.result("manager", "qmgr", script="show queue batch\n" * 1_000)["out"]


@pytest.mark.parametrize(
    ("cmd", "fields", "word"),
    [
        ("report_quota", {"from": 10**30}, "instant in ms"),
        ("report_quota", {"to": 2**53}, "instant in ms"),
        ("report_quota", {"from": -1}, "instant in ms"),
        ("report_quota", {"shift": 5}, "bad report_quota message"),
        ("report_night", {"date": "9999-12-31"}, "there is no night of 9999-12-31"),
        ("report_night", {"date": "0001-01-01"}, "there is no night of 0001-01-01"),
        ("report_night", {"date": "1970-01-01"}, "there is no night of 1970-01-01"),
        ("cat", {"request": "9" * 19}, "illegally formed"),
    ],
)
def test_numbers_and_days_that_cannot_be_are_refused_in_words(inner, cmd, fields, word):
    code, text = inner.refusal("manager", cmd, **fields)
    assert code != "internal", text
    assert word in text
