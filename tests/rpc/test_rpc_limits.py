"""What one client may take of the counter: however slow, silent, greedy or many they are, all are served;
and what waits for slow readers is kept once, with a bound."""

import contextlib
import os
import resource
import socket
import threading
from collections import Counter

import pytest
from daemon.live import until
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nqspy.model.people import Caller
from nqspy.rpc import messages
from nqspy.rpc.client import Client
from nqspy.rpc.limits import ConnectionShares, Limits
from nqspy.rpc.peer import PIECE, Outbox

QUICK = Limits(idle_time=0.2, message_time=0.3, unread_time=0.3, half_open_time=0.2, sweep=0.05)
ANNE = Caller("anne", 1001)
BEN = Caller("ben", 1002)
OWNER = Caller("owner", 1000, trusted=True)


def lines(numbers):
    return b"".join(b'{"v":1,"id":%d,"cmd":"x","say":%d}\n' % (n, n) for n in numbers)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


class Ordinary:
    """Names callers as the kernel does, but trusts none."""

    def __init__(self, callers):
        self._callers = callers

    def of(self, connection):
        named = self._callers.of(connection)
        return Caller(named.user, named.uid, named.gid, named.groups, trusted=False)


@pytest.fixture
def crowd(counter):
    """Return a server whose clients are ordinary users."""

    def make(**options):
        desk = counter(**options)
        desk.server.callers = Ordinary(desk.server.callers)
        return desk

    return make


# ---------------------------------------------------------------- how many
def test_a_user_has_so_many_connections_and_the_next_is_told_so(crowd, peer):
    desk = crowd(limits=Limits(user_connections=3))
    clients = [peer(desk) for _ in range(3)]
    assert all(client.ask(1, "x", say=1)["ok"] for client in clients)
    refused = peer(desk)
    assert refused.answer()["error"]["code"] == "busy"
    assert refused.answer() is None
    clients[0].close()
    until(lambda: desk.server.shares.all_connections == 2, "the place to become free")
    assert peer(desk).ask(1, "x", say="in")["result"] == "in"


def test_shares_count_by_user_and_in_all_and_the_owner_always_gets_one_more():
    shares = ConnectionShares(Limits(user_connections=2, connections=3, spare=1))
    for caller in (ANNE, ANNE, BEN):
        assert shares.refusal(caller) is None
        shares.enter(caller)
    assert "anne has 2" in str(shares.refusal(ANNE)) or "3 connections" in str(shares.refusal(ANNE))
    assert "it has 3 connections" in str(shares.refusal(BEN))
    assert shares.refusal(OWNER) is None
    shares.enter(OWNER)
    assert shares.refusal(OWNER) is not None
    for caller in (ANNE, ANNE, BEN, OWNER):
        shares.enter(caller, -1)
    assert (shares.connections, shares.all_connections) == ({}, 0)


def test_thousands_of_clients_that_come_and_go_leave_nothing_behind(counter):
    desk = counter()
    before = descriptors()
    for number in range(3000):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(desk.path))
            if number % 3 == 0:
                client.sendall(b'{"v":1,"id":1,"cmd":"x"}\n')
            elif number % 3 == 1:
                client.sendall(b'{"v":1,"id"')
    until(lambda: not desk.server.connections, "all to be gone")
    until(lambda: descriptors() <= before, "no descriptor to be left")
    assert desk.server.shares.all_connections == 0
    assert (desk.server.shares.bytes, desk.server.shares.all_bytes) == ({}, 0)


def test_without_descriptors_the_counter_rests_says_so_once_and_goes_on(counter, peer):
    told = []
    desk = counter(report=told.append)
    first = peer(desk)
    assert first.ask(1, "x", say=1)["ok"]
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    taken = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 8, hard))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for each in waiting:
            each.connect(str(desk.path))
            each.settimeout(120)
            each.sendall(b'{"v":1,"id":1,"cmd":"x","say":"late"}\n')
        assert first.ask(2, "x", say="served")["result"] == "served"
        until(lambda: told, "it to be told")
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert all(b"late" in each.recv(1000) for each in waiting)
    assert len(told) == 1
    assert "Too many open files" in told[0]
    for each in waiting:
        each.close()


# ---------------------------------------------------------------- how slow
def test_one_that_asks_nothing_is_shown_out_and_one_that_waits_for_an_answer_is_not(counter, peer):
    def answer(asked):
        return b"" if asked.message["cmd"] == "hold" else messages.result_answer(asked.handle.id, "now")

    desk = counter(answer, limits=QUICK)
    patient, idle = peer(desk), peer(desk)
    patient.send(b'{"v":1,"id":1,"cmd":"hold"}\n')
    assert idle.ask(1, "x")["result"] == "now"
    assert idle.answer() is None, "it was not closed"
    until(lambda: desk.asked, "the question to arrive")
    held = [asked for asked in desk.asked if asked.message["cmd"] == "hold"]
    assert not held[0].handle.closed
    desk.server.reply(held[0].handle, messages.result_answer(1, "at last"))


def test_one_byte_at_a_time_is_told_that_it_takes_too_long(counter, peer):
    desk = counter(limits=QUICK)
    slow = peer(desk)
    line = b'{"v":1,"id":1,"cmd":"x","say":"' + b"y" * 100_000

    def drip():
        for at in range(len(line)):
            try:
                slow.send(line[at : at + 1])
            except OSError:
                return
            threading.Event().wait(0.01)

    dripping = threading.Thread(target=drip)
    dripping.start()
    assert peer(desk).ask(1, "x", say="quick")["result"] == "quick"
    assert slow.answer()["error"]["code"] == "too_slow"
    with contextlib.suppress(ConnectionResetError):  # where a byte of it was not read any more
        assert slow.answer() is None
    dripping.join()


def test_a_client_that_reads_nothing_is_cut_off_in_time_and_one_that_reads_slowly_is_not(counter, peer):
    big = "y" * 3_000_000
    desk = counter(lambda asked: messages.result_answer(asked.handle.id, big), limits=QUICK)
    lazy, reader = peer(desk), peer(desk)
    for each in (lazy, reader):
        each.send(b'{"v":1,"id":1,"cmd":"x"}\n')
    got = b""
    while not got.endswith(b"\n"):
        got += reader.socket.recv(300_000)
        threading.Event().wait(0.05)
    assert len(got) > len(big)
    until(lambda: all(asked.handle.closed for asked in desk.asked[:1]), "the lazy one to be cut off")


@pytest.mark.parametrize(
    ("answers", "told"), [([], [0, 1]), ([lambda asked: b""], [])], ids=["soon", "never"]
)
def test_one_that_has_closed_its_sending_side_is_closed_after_its_answers(counter, peer, answers, told):
    client = peer(counter(*answers, limits=QUICK))
    client.send(lines(range(2)))
    client.socket.shutdown(socket.SHUT_WR)
    assert [client.answer()["result"] for _ in told] == told
    assert client.answer() is None


# ---------------------------------------------------------------- how much
def test_unfinished_messages_of_one_user_are_bounded_together(crowd, peer):
    desk = crowd(limits=Limits(user_bytes=3_000_000))
    begun = [peer(desk) for _ in range(6)]
    line = b'{"v":1,"id":1,"cmd":"submit","say":"' + b"y" * 900_000
    refused = 0
    for each in begun:
        with contextlib.suppress(BrokenPipeError):
            each.send(line)
    until(lambda: len(desk.server.connections) <= 3, "what is beyond to be refused")
    for each in begun:
        each.socket.settimeout(0.2)
        try:
            refused += each.answer()["error"]["code"] == "busy"
        except TimeoutError:
            pass
    assert refused >= 3
    assert desk.server.shares.all_bytes <= 3_000_000


@pytest.fixture
def gate():
    """An engine that answers nothing before ``open()``; at the end of the test it goes on at the latest.
    ``arrived`` is written by the server's thread alone, ``done`` by the engine's."""
    made = Gate()
    yield made
    made.open()


class Gate:
    def __init__(self):
        self._going = threading.Event()
        self.arrived, self.done = Counter(), Counter()
        self.open = self._going.set

    def answer(self, asked):
        self._going.wait(300)
        self.done[asked.caller.uid] += 1
        return messages.result_answer(asked.handle.id, asked.message["say"])

    def of(self, caller):
        return self.arrived[caller.uid]

    def backlog(self, who):
        left = Counter(dict(self.arrived)) - Counter(dict(self.done))
        return left.total() if who is None else left[who], 0

    def count(self, put):
        def counted(asked):
            self.arrived[asked.caller.uid] += 1
            put(asked)

        return counted


class InOrder:
    """Names these callers, in the order in which they connect."""

    def __init__(self, *callers):
        self._callers = list(callers)

    def of(self, connection):
        return self._callers.pop(0)


def test_a_user_with_a_backlog_is_read_no_further_and_others_are(counter, peer, gate):
    desk = counter(gate.answer, limits=Limits(user_backlog=50), backlog=gate.backlog)
    desk.server.put = gate.count(desk.server.put)
    desk.server.callers = InOrder(ANNE, ANNE, BEN)
    client, second, other = peer(desk), peer(desk), peer(desk)
    client.send(lines(range(200)))
    until(lambda: len(desk.server._delayed) == 1, "the first client to be delayed")
    second.send(lines(range(5)))
    until(lambda: len(desk.server._delayed) == 2, "the same user's other connection to be delayed")
    other.send(lines(range(20)))
    until(lambda: gate.of(BEN) == 20, "another user to be read from")
    assert gate.of(ANNE) == 51, "all of it had come at once"
    gate.open()
    assert [client.answer()["id"] for _ in range(200)] == [*range(200)]
    assert [second.answer()["id"] for _ in range(5)] == [*range(5)]
    assert [other.answer()["id"] for _ in range(20)] == [*range(20)]


def test_what_had_come_before_a_client_closed_its_sending_side_is_done(counter, peer, gate):
    desk = counter(gate.answer, limits=replace(QUICK, user_backlog=5), backlog=gate.backlog)
    desk.server.put = gate.count(desk.server.put)
    client = peer(desk)
    client.send(lines(range(40)))
    client.socket.shutdown(socket.SHUT_WR)
    until(lambda: desk.server._delayed, "the client to be delayed")
    gate.open()
    assert [client.answer()["id"] for _ in range(40)] == [*range(40)]
    assert client.answer() is None


def test_while_all_have_much_waiting_each_may_have_an_eighth_and_nobody_is_kept_out(counter, peer, gate):
    limits = Limits(user_backlog=80, backlog=100, busy_time=600.0)
    desk = counter(gate.answer, limits=limits, backlog=gate.backlog)
    desk.server.put = gate.count(desk.server.put)
    desk.server.callers = InOrder(ANNE, BEN, OWNER)
    clients = [peer(desk) for _ in range(3)]
    for client, count in zip(clients, (200, 200, 10), strict=True):
        client.send(lines(range(count)))
    until(lambda: gate.of(OWNER) == 10, "the owner to be read from")
    assert sum(gate.arrived.values()) < 81 + 81 + 10
    gate.open()
    for client, count in zip(clients, (200, 200, 10), strict=True):
        assert [client.answer()["id"] for _ in range(count)] == [*range(count)]


def test_busy_for_long_refuses_and_clients_come_again_by_themselves(crowd, peer, tmp_path):
    behind = [10]
    desk = crowd(limits=Limits(backlog=1, user_backlog=8, busy_time=0.0), backlog=lambda who: (behind[0], 0))
    client = peer(desk)
    until(lambda: client.ask(1, "x").get("error", {}).get("code") == "busy", "it to say so")
    timer = threading.Timer(0.3, lambda: behind.__setitem__(0, 0))
    timer.start()
    with Client(tmp_path) as nqs:
        assert nqs.call("x", say="through") == "through"
    assert desk.asked[-1].message["say"] == "through"
    timer.join()


def test_the_library_finds_its_connection_closed_and_opens_another(counter, tmp_path):
    desk = counter(limits=QUICK)
    with Client(tmp_path) as nqs:
        assert nqs.call("x", say=1) == 1
        until(lambda: not desk.server.connections, "the idle connection to be closed")
        assert nqs.call("x", say=2) == 2


LONG = 1_500_000


@given(st.lists(st.sampled_from([0, 1, 200, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7]), max_size=8))
def test_answers_leave_whole_and_in_their_order(sizes):
    answers = [bytes([65 + n]) * size for n, size in enumerate(sizes)]
    outbox = Outbox()
    for answer in answers:
        outbox.add(answer)
    assert outbox.size == sum(sizes)
    pieces = []
    while outbox.size:
        pieces.append(bytes(outbox.next_piece()))
    assert b"".join(pieces) == b"".join(answers)
    assert all(0 < len(piece) <= PIECE for piece in pieces)
    assert not list(outbox.stored())


def gathered(counter, peer, count, **limits):
    """Return clients that have all sent the same question."""
    waiting = []
    desk = counter(lambda asked: waiting.append(asked) or b"", limits=Limits(**limits))
    clients = [peer(desk) for _ in range(count)]
    for number, client in enumerate(clients):
        client.send(b'{"v":1,"id":%d,"cmd":"x"}\n' % (7 + number))
    until(lambda: len(waiting) == count, "all have asked")
    return desk, clients, sorted((asked.handle for asked in waiting), key=lambda handle: handle.id)


def test_what_many_get_counts_once_and_each_has_it_whole(counter, peer):
    desk, clients, handles = gathered(counter, peer, 12, unread=4 * LONG)
    desk.server.reply_alike(handles, messages.result_answer(handles[0].id, "y" * LONG))
    until(lambda: all(handle.stuck for handle in handles), "nobody reads yet")
    (caller,) = {each.caller for each in desk.server.connections}
    assert LONG < desk.server.unread(caller) < 3.5 * LONG, "one answer, and what the transports hold"
    for number, client in enumerate(clients):
        assert client.answer() == {"id": 7 + number, "ok": True, "result": "y" * LONG}
    until(lambda: not any(handle.stuck for handle in handles), "all have read")
    assert desk.server.unread(caller) == 0


def test_who_hangs_up_meanwhile_leaves_the_others_theirs(counter, peer):
    desk, clients, handles = gathered(counter, peer, 3)
    desk.server.reply_alike(handles, messages.result_answer(handles[0].id, "y" * LONG))
    until(lambda: all(handle.stuck for handle in handles), "nobody reads yet")
    clients[1].close()
    until(lambda: handles[1].closed, "it is known that one has gone")
    assert len(clients[2].answer()["result"]) == len(clients[0].answer()["result"]) == LONG


def test_a_counter_that_closes_gives_slow_readers_the_rest(counter, peer):
    desk, (client,), (handle,) = gathered(counter, peer, 1)
    desk.server.reply(handle, messages.result_answer(handle.id, "y" * LONG))
    until(lambda: handle.stuck, "it does not read yet")
    thread = threading.Thread(target=desk.server.close)
    thread.start()
    until(lambda: handle.closed, "it is shown out")
    assert len(client.answer()["result"]) == LONG
    assert client.answer() is None
    thread.join()


def test_answers_of_ones_own_are_counted_each(counter, peer):
    desk, _clients, handles = gathered(counter, peer, 6, unread=4 * LONG, unread_time=600.0)
    for handle in handles:
        desk.server.reply(handle, messages.result_answer(handle.id, "y" * LONG))
    until(lambda: any(handle.closed for handle in handles), "one of them is cut off")
