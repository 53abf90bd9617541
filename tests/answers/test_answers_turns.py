"""Whose turn it is: whatever one user sends at once, others are served in between; shown by the order of
service, with turns of the engine that have time for one thing only."""

import json

from daemon.inner import PEOPLE, Catch, item

from nqspy.answers.dispatcher import Dispatcher
from nqspy.answers.slow import MOST, SlowAnswers
from nqspy.answers.turns import Turns, after, never
from nqspy.model.people import Caller
from nqspy.rpc.server import Asked, Handle

ANNE, BEN, CARL = 1, 2, 3


class Line(Catch):
    """A handle of a connection with other questions."""

    def __init__(self, id, connection):
        super().__init__(id)
        self._line = connection

    @property
    def place(self):
        return self._line


def put(inner, by, *messages, connection=None):
    handles = [Line(number, connection or object()) for number in range(1, len(messages) + 1)]
    for handle, message in zip(handles, messages, strict=True):
        asked = Asked(handle, PEOPLE[by], {"v": 1, "id": handle.id, **message}, 50)
        inner.daemon.inbox.put_message(asked)
    return handles


def turns(inner, count):
    for _ in range(count):
        inner.daemon.turn(inner.daemon.inbox.drain(0.0))


def told(handle):
    return handle.answers.get(timeout=120)


def waiting(inner, by):
    return inner.daemon.inbox.backlog(PEOPLE[by].uid)[0]


# ---------------------------------------------------------------- turns
def test_users_take_turns_and_what_one_wants_keeps_its_order():
    turn = Turns()
    for who, thing in [(ANNE, "a1"), (ANNE, "a2"), (ANNE, "a3"), (BEN, "b1"), (CARL, "c1"), (BEN, "b2")]:
        turn.add(who, thing, 10)
    assert (turn.count, turn.size, turn.of(ANNE)) == (6, 60, (3, 30))
    assert [turn.next()[1] for _ in range(6)] == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert (turn.next(), turn.count, turn.size, turn.of(ANNE)) == (None, 0, 0, (0, 0))


def test_what_is_put_back_comes_first_and_in_its_order():
    turn = Turns()
    for who, thing in [(ANNE, "a1"), (ANNE, "a2"), (ANNE, "a3"), (BEN, "b1"), (BEN, "b2")]:
        turn.add(who, thing)
    taken = [turn.next() for _ in range(4)]
    turn.put_back(taken[1:])
    turn.add(CARL, "c1")
    assert [turn.next()[1] for _ in range(5)] == ["b1", "a2", "c1", "b2", "a3"]


def test_who_is_left_out_keeps_what_he_has():
    turn = Turns()
    turn.add(ANNE, "a1")
    turn.add(BEN, "b1")
    assert turn.next({ANNE})[1] == "b1"
    assert turn.next({ANNE}) is None
    assert turn.next()[1] == "a1"


def test_enough_is_what_took_the_time():
    now = [0.0]
    enough = after(0.5, lambda: now[0])
    assert not enough()
    now[0] = 0.5
    assert enough()
    assert not never()


# ---------------------------------------------------------------- messages
def test_a_small_question_does_not_wait_for_all_that_another_user_asked_before(hasty):
    [id] = hasty.submit("owner")
    hasty.result("owner", "delete", ids=[id])
    put(hasty, "owner", *[{"cmd": "wait", "ids": [id]}] * 50)
    [ping] = put(hasty, "other", {"cmd": "ping"})
    turns(hasty, 2)
    assert told(ping)["ok"]
    assert waiting(hasty, "owner") == 49


def test_a_command_does_not_wait_for_all_commands_of_another_user(hasty):
    many = put(hasty, "owner", *[{"cmd": "submit", "items": [item()]}] * 20)
    [mine] = put(hasty, "other", {"cmd": "submit", "items": [item()]})
    turns(hasty, 2)
    assert told(mine)["result"]["ids"] == ["2.vm".replace("vm", hasty.daemon.engine.site.name)]
    assert waiting(hasty, "owner") == 19
    turns(hasty, 19)
    numbers = [int(told(each)["result"]["ids"][0].partition(".")[0]) for each in many]
    assert numbers == [1, *range(3, 22)], "in the order in which they came"


def test_questions_and_commands_of_one_connection_keep_their_order(fresh):
    line = object()
    fresh.submit("owner")
    asked = put(
        fresh, "owner", {"cmd": "status"}, {"cmd": "delete", "ids": ["1"]}, {"cmd": "status"}, connection=line
    )
    turns(fresh, 3)
    before, deleted, behind = map(told, asked)
    assert (before["result"]["requests"], behind["result"]["requests"]) == (1, 0)
    assert deleted["result"]["done"]


def test_what_has_come_is_done_in_one_turn_where_there_is_time(fresh):
    fresh.daemon.part = lambda: never
    before = fresh.daemon.engine.commits
    asked = put(fresh, "owner", *[{"cmd": "submit", "items": [item()]}] * 20)
    fresh.daemon.turn([])
    assert all(told(each)["ok"] for each in asked)
    assert fresh.daemon.engine.commits == before + 1


def test_the_executor_is_heard_between_two_messages(hasty):
    heard = []
    hasty.daemon.report_trouble("the mail is gone")
    put(hasty, "owner", *[{"cmd": "status"}] * 20)
    hasty.daemon.note = heard.append
    turns(hasty, 1)
    assert [each.text for each in heard] == ["the mail is gone"]
    assert waiting(hasty, "owner") == 19


# ---------------------------------------------------------------- slow answers
class Crowd:
    """A dispatcher whose questions are answered in steps; it notes who was served, and the answers by
    user."""

    def __init__(self):
        self.made, self.told, self.served = 0, [], []
        self.dispatcher = Dispatcher.__new__(Dispatcher)
        self.slow = self.dispatcher.slow = SlowAnswers(self, self.dispatcher.errors, self.dispatcher.answer)
        self.dispatcher.serving = self.dispatcher.waiting = self.server = self

    def check(self, enough):
        """Do nothing: nothing else is waiting."""

    def sent(self, size):
        """Do nothing: no memory is given back here."""

    def ask(self, uid, steps=2, ids=(1,), **fields):
        for id in ids:
            handle = Handle(type("Connection", (), {"closed": False, "stuck_since": None})(), id)
            message = {"v": 1, "id": id, "cmd": "qstat", "text": "table", **fields}
            asked = Asked(handle, Caller(f"user{uid}", uid), message)
            self.slow.add(asked, self._steps(asked, steps))
        return handle

    def _steps(self, asked, steps):
        self.made += 1
        number = self.made
        for _ in range(steps):
            self.served.append(asked.caller.uid)
            yield None
        self.served.append(asked.caller.uid)
        yield b'{"id":%d,"ok":true,"result":"list %d"}\n' % (asked.handle.id, number)

    def reply(self, handle, data):
        self.reply_alike([handle], data)

    def reply_alike(self, handles, data):
        self.told += [(handle.id, json.loads(data)["result"]) for handle in handles]

    def turns(self, count):
        for _ in range(count):
            self.dispatcher.after_turn()


def test_slices_are_made_for_each_user_in_turn():
    crowd = Crowd()
    crowd.ask(ANNE, 9, range(4), operands=["1"])
    crowd.ask(BEN, 9, operands=["1"])
    for _ in range(4):
        crowd.slow.go_on(lambda: True)
    assert crowd.served == [ANNE] * 2 + [BEN] * 2 + [ANNE] * 2 + [BEN] * 2


def test_long_lists_are_made_for_each_user_in_turn_and_each_to_its_end():
    crowd = Crowd()
    for name in ("a", "b", "c"):
        crowd.ask(ANNE, 2, user=name)
    crowd.ask(BEN, 2, user="a")
    for _ in range(12):
        crowd.slow.go_on()
    assert crowd.served == [ANNE] * 3 + [BEN] * 3 + [ANNE] * 6


def test_who_has_many_slow_answers_under_way_is_not_asked_for_more():
    crowd = Crowd()
    crowd.ask(ANNE, 2, range(MOST), operands=["1"])
    crowd.ask(BEN, 2, range(MOST - 1), operands=["1"])
    assert crowd.slow.crowded() == {ANNE}


def test_reports_are_made_for_each_user_in_turn():
    crowd, made = Crowd(), []
    for who in (ANNE, ANNE, ANNE, BEN):
        crowd.slow._works.add(who, lambda who=who: made.append(who))
    for _ in range(4):
        crowd.slow._next_work()
    crowd.slow.close()
    assert made == [ANNE, BEN, ANNE, ANNE]


# ---------------------------------------------------------------- many who ask for the same
def test_who_asks_for_the_same_list_gets_the_same_and_others_their_own():
    crowd = Crowd()
    crowd.ask(ANNE, ids=(1, 2, 3))
    crowd.ask(BEN, ids=(4,))
    crowd.ask(ANNE, ids=(5,), user="ben")
    crowd.turns(20)
    assert crowd.told == [(1, "list 1"), (2, "list 1"), (3, "list 1"), (4, "list 2"), (5, "list 3")]


def test_a_list_begun_before_is_not_given_to_who_asks_later():
    crowd = Crowd()
    crowd.ask(ANNE)
    crowd.turns(1)
    crowd.ask(ANNE, ids=(2, 3))
    crowd.turns(10)
    assert crowd.told == [(1, "list 1"), (2, "list 2"), (3, "list 2")]


def test_a_turn_makes_one_slice_of_one_long_list_and_short_answers_do_not_wait_for_it():
    crowd = Crowd()
    crowd.ask(ANNE)
    crowd.ask(ANNE, ids=(2,), user="ben")
    crowd.ask(ANNE, ids=(3,), operands=["17"])
    crowd.turns(2)
    assert crowd.made == 2, "the second long one has not begun"
    assert [id for id, _ in crowd.told] == [3]
    crowd.turns(1)
    assert [id for id, _ in crowd.told] == [3, 1]


def test_what_nobody_waits_for_any_more_is_not_made():
    crowd = Crowd()
    for id in (1, 2):
        crowd.ask(ANNE, ids=(id,))._connection.closed = True
    crowd.turns(3)
    assert (crowd.made, crowd.told, crowd.dispatcher.slow._answers) == (0, [], [])


def test_every_client_of_a_crowd_gets_its_whole_list(live):
    live.set("stop queue batch")
    one = {"spec": {"owner": "", "uid": 0, "name": "j", "queue": "batch", "script": "", "environment": "",
                    "workdir": "/"}, "script": "true\n", "environment": ""}  # fmt: skip
    live.client.call("submit", items=[one] * 1000, key="k", dry_run=False)
    question = json.dumps({"v": 1, "id": 5, "cmd": "qstat", "text": "table", "operands": []}).encode()
    answers = live.wire(*[question] * 8, b'{"v":1,"id":6,"cmd":"status"}')
    lists = [each["out"] for each in answers if each["id"] == 5]
    assert len(set(lists)) == 1
    assert len(lists) == 8
    assert len(lists[0].splitlines()) == 1000 + 2
    assert answers[0]["id"] == 6, "the short question did not wait for the long ones"
    live.client.call("hold", ids=["1"], letter="u")
    ask = b'{"v":1,"id":%d,"cmd":"qstat","text":"%s","operands":[]%b}'
    nonsense = [ask % (n, b"table", b',"queue":"nowhere"') for n in range(8, 12)]
    summaries = [ask % (n, b"queues", b"") for n in range(5)]
    answers = live.wire(*summaries, ask % (7, b"server", b""), *nonsense)
    told = {each["id"]: each["out"] + each["err"] for each in answers}
    assert sorted(told) == [*range(5), *range(7, 12)]
    assert len({told[id] for id in range(5)}) == 1, "what several ask is made once"
    assert told[7].splitlines()[-1].split()[2:6] == ["1000", "999", "0", "1"]
    assert [told[id] for id in range(8, 12)] == ["Unknown queue nowhere\n"] * 4
