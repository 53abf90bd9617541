"""The daemon behind its counter: long answers in turn, plain logs and mails, nobody held up."""

import logging
import socket
import threading
import time

from daemon.inner import PEOPLE, Catch
from daemon.live import until

from nqspy.daemon.log import _Formatter
from nqspy.rpc.server import Asked


def test_long_answers_are_made_a_few_of_each_user_at_a_time(fresh):
    fresh.submit("owner", count=50)
    front = fresh.daemon.front
    handles = [Catch(n) for n in range(1, 21)]
    message = {"v": 1, "cmd": "qstat", "text": "json"}
    crowd = [
        Asked(each, PEOPLE["other"], message | {"id": each.id, "operands": [str(each.id)]})
        for each in handles
    ]
    last = Catch(99)
    front.answer_questions()
    for each in (*crowd, Asked(last, PEOPLE["owner"], message | {"id": 99})):
        assert front.take(each) is None
    front.answer_questions()
    assert [slow.asked.handle.id for slow in front._in_turn()] == [1, 2, 3, 4, 99]
    handles[0].stuck = True
    assert [slow.asked.handle.id for slow in front._in_turn()] == [2, 3, 4, 5, 99]
    handles[0].stuck = False
    while front._slow:
        front.after_turn()
    until(lambda: all(not each.answers.empty() for each in (*handles, last)), "all to be answered")


def test_who_does_not_read_does_not_keep_the_engine_awake(fresh):
    handle = Catch(1)
    handle.stuck = True
    fresh.daemon.front.take(Asked(handle, PEOPLE["other"], {"v": 1, "id": 1, "cmd": "qstat", "text": "json"}))
    fresh.daemon.front.answer_questions()
    fresh.daemon.front.after_turn()
    assert fresh.daemon.front.patience() > 0
    handle.gone = True
    assert fresh.daemon.front.patience() == 0


def test_a_log_line_shows_control_characters_and_stays_one_entry():
    record = logging.LogRecord("nqspy", logging.INFO, "", 1, "bad %s", ("\x1b[2J\n2026 forged",), None)
    assert _Formatter("%(message)s").format(record) == "bad \\u001b[2J\n    2026 forged"


def test_silent_slow_and_greedy_clients_delay_nobody(live):
    path = str(live.home / "nqsd.sock")
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(200)]
    for number, each in enumerate(crowd):
        each.connect(path)
        if number % 4 == 1:
            each.sendall(b'{"v":1,"id":1,"cm')
        elif number % 4 == 2:
            each.sendall(b'{"v":1,"id":1,"cmd":"events","after":0}\n' * 50)
        elif number % 4 == 3:
            each.sendall(b'{"v":1,"id":1,"cmd":"wait","ids":["1"]}\n')
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


def test_a_burst_beyond_the_bound_is_delayed_and_all_of_it_is_answered(live):
    counts: list[int] = []

    def flood() -> None:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(str(live.home / "nqsd.sock"))
            lines = b"".join(b'{"v":1,"id":%d,"cmd":"status"}\n' % n for n in range(1500))
            sender = threading.Thread(target=sock.sendall, args=(lines,))
            sender.start()
            with sock.makefile("rb") as answers:
                counts.append(sum(b'"ok":true' in answers.readline() for _ in range(1500)))
            sender.join()

    floods = [threading.Thread(target=flood) for _ in range(5)]
    for each in floods:
        each.start()
    for each in floods:
        each.join()
    assert counts == [1500] * 5
    assert live.client.call("ping")
