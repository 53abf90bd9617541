"""The counter with a real socket: who asks is known, answers find their way, nobody can do harm."""

import os
import pwd
import threading
from pathlib import Path

import pytest
from daemon.live import until

from nqspy.rpc import messages
from nqspy.rpc.limits import DEFAULTS, Limits
from nqspy.rpc.server import RpcServer


def test_the_caller_is_named_by_the_kernel(counter, peer):
    desk = counter()
    answer = peer(desk).ask(7, "ping", say="hello", user="root of all evil")
    assert answer == {"id": 7, "ok": True, "result": "hello"}
    caller = desk.asked[0].caller
    mine = (pwd.getpwuid(os.getuid()).pw_name, os.getuid(), os.getgid())
    assert (caller.user, caller.uid, caller.gid) == mine
    assert caller.trusted


def test_many_requests_on_one_connection_are_answered_under_their_ids(counter, peer):
    desk, count = counter(), 3 * DEFAULTS.pending
    client = peer(desk)
    lines = b"".join(b'{"v":1,"id":%d,"cmd":"x","say":%d}\n' % (n, n * n) for n in range(count))
    sender = threading.Thread(target=client.send, args=(lines,))
    sender.start()
    answers = [client.answer() for _ in range(count)]
    sender.join()
    assert {a["id"]: a["result"] for a in answers} == {n: n * n for n in range(count)}


def test_eight_clients_at_once_get_their_own_answers(counter, peer):
    desk = counter()
    wrong: list[int] = []

    def talk(number: int) -> None:
        client = peer(desk)
        wrong.extend(n for n in range(300) if client.ask(n, "x", say=[number, n])["result"] != [number, n])

    clients = [threading.Thread(target=talk, args=(n,)) for n in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert not wrong
    assert len(desk.asked) == 2400


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"hello", "malformed", None), (b"[1,2]", "malformed", None), (b"[" * 100_000, "malformed", None),
        (b"\xff\xfe{}", "malformed", None), (b'{"id":1,"cmd":"x"}', "version", 1),
        (b'{"v":2,"id":5,"cmd":"x"}', "version", 5), (b'{"v":true,"id":5,"cmd":"x"}', "version", 5),
        (b'{"v":1,"cmd":"x"}', "malformed", None), (b'{"v":1,"id":true,"cmd":"x"}', "malformed", None),
        (b'{"v":1,"id":3}', "malformed", 3), (b'{"v":1,"id":3,"cmd":["x"]}', "malformed", 3),
    ],
)  # fmt: skip
def test_what_is_no_message_gets_one_error_and_the_connection_goes_on(counter, peer, line, code, id):
    client = peer(counter())
    client.send(line + b"\n")
    answer = client.answer()
    assert (answer["ok"], answer["id"], answer["error"]["code"]) == (False, id, code)
    assert "\n" not in answer["error"]["text"]
    assert client.ask(9, "x", say=1)["id"] == 9


def test_a_message_that_is_too_long_is_refused_in_one_line_and_the_connection_closed(counter, peer):
    client = peer(counter(limits=Limits(message=1000)))
    client.send(b'{"v":1,"id":1,"cmd":"' + b"x" * 50_000)
    refusal = client.answer()["error"]
    assert refusal["code"] == "too_big"
    assert "at most 1000 bytes" in refusal["text"]
    assert client.answer() is None


def test_a_submission_may_be_larger_and_has_to_say_so_at_its_beginning(counter, peer):
    desk = counter(limits=Limits(message=1000, submission=100_000))
    assert peer(desk).ask(1, "submit", say="y" * 90_000)["result"] == "y" * 90_000
    for line in (
        b'{"v":1,"id":1,"say":"%b","cmd":"submit"}\n',
        b'{"v":1,"id":1,"cmd":"submit","say":"%b%b"}\n',
    ):
        client = peer(desk)
        client.send(line.replace(b"%b", b"z" * 60_000))
        assert client.answer()["error"]["code"] == "too_big"


def test_a_peer_that_may_not_is_told_so_and_hung_up_on(counter, peer):
    client = peer(counter(allow_uid=lambda uid: False))
    answer = client.answer()
    assert answer["error"]["code"] == "not_allowed"
    assert "does not serve" in answer["error"]["text"]
    assert client.answer() is None


def test_a_handle_knows_that_its_client_has_gone(counter, peer):
    desk = counter()
    client = peer(desk)
    client.ask(1, "x")
    handle = desk.asked[0].handle
    assert not handle.closed
    client.close()
    until(lambda: handle.closed, "it is known that the client has gone")
    desk.server.reply(handle, messages.result_answer(1, "nobody reads this"))


def test_closing_delivers_the_answers_handed_over_and_removes_the_socket(counter, peer):
    desk = counter()
    client = peer(desk)
    client.send(b"".join(b'{"v":1,"id":%d,"cmd":"x","say":"%s"}\n' % (n, b"z" * 100) for n in range(500)))
    answers = [client.answer()]
    while len(desk.asked) < 500:
        answers.append(client.answer())
    desk.close()
    answers += [client.answer() for _ in range(500 - len(answers))]
    assert [a["id"] for a in answers] == list(range(500))
    assert client.answer() is None
    assert not desk.path.exists()


def test_a_left_over_socket_is_replaced_and_another_daemons_is_left_alone(counter, peer, tmp_path):
    first = counter()
    second = counter()  # takes the place of the first one's socket
    first.close()
    assert peer(second).ask(1, "x", say=2)["result"] == 2
    assert (tmp_path / "nqsd.sock").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_written_is_an_error_at_start(tmp_path):
    lost = RpcServer(str(tmp_path / "a_folder"), lambda asked: None, allow_uid=lambda uid: True, mode=0o600)
    (tmp_path / "a_folder").mkdir()
    with pytest.raises(IsADirectoryError):
        lost.start()
    assert [path.name for path in tmp_path.iterdir() if not Path(path).is_dir()] == []
