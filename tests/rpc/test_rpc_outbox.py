"""What waits for slow readers: kept once for all who get it, given whole and in order, with a bound."""

import threading

from daemon.live import until
from hypothesis import given
from hypothesis import strategies as st

from nqspy.rpc import messages
from nqspy.rpc.limits import Limits
from nqspy.rpc.peer import PIECE, Outbox

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
