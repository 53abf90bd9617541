"""Many who ask for the same: long lists are made one at a time, in slices, and given to all who asked."""

import json

import pytest

from nqspy.answers import listing
from nqspy.answers.dispatcher import Dispatcher
from nqspy.answers.slow import SlowAnswers
from nqspy.model.people import Caller
from nqspy.rpc.server import Asked, Handle

ANNE = Caller("anne", 1001, 100, ("users",))
BEN = Caller("ben", 1002, 100, ("users",))


class Crowd:
    """A dispatcher whose questions are lists of three slices; answers are kept by asker."""

    def __init__(self):
        self.made = 0
        self.told = []
        self.dispatcher = Dispatcher.__new__(Dispatcher)
        self.dispatcher._questions = []
        self.dispatcher.slow = SlowAnswers(self, self.dispatcher.told, self.dispatcher.answer)
        self.dispatcher.serving = self
        self.dispatcher.waiting = self
        self.server = self

    def look(self, enough):
        """Nobody waits for anything else."""

    def sent(self, size):
        """No memory is given back here."""

    def slices(self, asked):
        self.made += 1
        number = self.made
        yield None
        yield None
        yield b'{"id":%d,"ok":true,"result":"list %d"}\n' % (asked.handle.id, number)

    def ask(self, id, caller=ANNE, **fields):
        handle = Handle(type("Connection", (), {"gone": False, "stuck_since": None})(), id)
        asked = Asked(handle, caller, {"v": 1, "id": id, "cmd": "qstat", "text": "table", **fields})
        self.dispatcher.slow.take(asked, self.slices(asked))
        return handle

    def reply(self, handle, data):
        self.reply_alike([handle], data)

    def reply_alike(self, handles, data):
        self.told += [(handle.id, json.loads(data)["result"]) for handle in handles]

    def turns(self, count):
        for _ in range(count):
            self.dispatcher.after_turn()


def test_who_asks_for_the_same_list_gets_the_same_and_others_their_own():
    crowd = Crowd()
    for id in (1, 2, 3):
        crowd.ask(id)
    crowd.ask(4, BEN)
    crowd.ask(5, user="ben")
    crowd.turns(20)
    assert crowd.told == [(1, "list 1"), (2, "list 1"), (3, "list 1"), (4, "list 2"), (5, "list 3")]


def test_a_list_begun_before_is_not_given_to_who_asks_later():
    crowd = Crowd()
    crowd.ask(1)
    crowd.turns(1)
    crowd.ask(2)
    crowd.ask(3)
    crowd.turns(10)
    assert crowd.told == [(1, "list 1"), (2, "list 2"), (3, "list 2")]


def test_a_turn_makes_one_slice_of_one_long_list_and_short_answers_do_not_wait_for_it():
    crowd = Crowd()
    crowd.ask(1)
    crowd.ask(2, user="ben")
    crowd.ask(3, operands=["17"])
    crowd.turns(2)
    assert crowd.made == 2, "the second long one has not begun"
    assert [id for id, _ in crowd.told] == [3]
    crowd.turns(1)
    assert [id for id, _ in crowd.told] == [3, 1]


def test_what_nobody_waits_for_any_more_is_not_made():
    crowd = Crowd()
    for id in (1, 2):
        crowd.ask(id)._connection.gone = True
    crowd.turns(3)
    assert (crowd.made, crowd.told, crowd.dispatcher.slow._answers) == (0, [], [])


@pytest.mark.parametrize("size", [10, 3000])
def test_every_client_of_a_crowd_gets_its_whole_list(live, size):
    live.set("stop queue batch")
    for start in range(0, size, 1000):
        many = min(1000, size - start)
        one = {"spec": {"owner": "", "uid": 0, "name": "j", "queue": "batch", "script": "", "environment": "",
                        "workdir": "/"}, "script": "true\n", "environment": ""}  # fmt: skip
        live.client.call("submit", items=[one] * many, key=f"k{start}", dry_run=False)
    question = json.dumps({"v": 1, "id": 5, "cmd": "qstat", "text": "table", "operands": []}).encode()
    answers = live.wire(*[question] * 8, b'{"v":1,"id":6,"cmd":"status"}')
    lists = [each["out"] for each in answers if each["id"] == 5]
    assert len(set(lists)) == 1
    assert len(lists) == 8
    assert len(lists[0].splitlines()) == size + 2
    assert size < listing.SLICE or answers[0]["id"] == 6, "the short question did not wait for the long ones"


def test_summaries_of_one_moment_are_made_once_and_count_what_there_is(live):
    live.set("stop queue batch")
    for held in (True, False, False):
        live.submit("true", held=held)
    ask = b'{"v":1,"id":%d,"cmd":"qstat","text":"%s","operands":[]}'
    answers = live.wire(*[ask % (n, b"queues") for n in range(5)], ask % (7, b"server"))
    assert sorted(each["id"] for each in answers) == [0, 1, 2, 3, 4, 7]
    [summary] = {each["out"] for each in answers if each["id"] < 5}
    assert [word for word in summary.splitlines()[-1].split() if word.isdigit()]
    [server] = [each["out"] for each in answers if each["id"] == 7]
    assert server.splitlines()[-1].split()[2:6] == ["3", "2", "0", "1"]


def test_each_of_those_who_ask_for_the_same_nonsense_is_told(live):
    ask = b'{"v":1,"id":%d,"cmd":"qstat","text":"table","operands":[],"queue":"nowhere"}'
    answers = live.wire(*[ask % n for n in range(4)])
    assert sorted(each["id"] for each in answers) == [0, 1, 2, 3]
    assert all("Unknown queue nowhere" in json.dumps(each) for each in answers)
