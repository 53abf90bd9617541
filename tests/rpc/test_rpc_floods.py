"""What is cheap to send is cheap to take: rubbish in long messages, lines that are no messages, users
without a name."""

import contextlib
import json
import os
import resource
import socket
import tempfile
import time
from types import SimpleNamespace

import msgspec
import pytest
from daemon.person import speaking_as
from msgspec.structs import replace
from rpc.test_rpc_limits import ANNE

from nqspy.answers import fields
from nqspy.answers.dispatcher import _decode
from nqspy.model.errors import Refusal
from nqspy.rpc import auth, wire
from nqspy.rpc.limits import DEFAULTS, NAMELESS, Limits, person
from nqspy.rpc.submission import submission


def peak():
    """Return the most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def command(line):
    message = wire.read_message(line, DEFAULTS.message)
    fields.check_list(message)
    return _decode(message)


def submit(items, **more):
    return json.dumps({"v": 1, "id": 1, "cmd": "submit", "items": items, **more}).encode()


def item(script=b"true\n", args=()):
    return submission(script, args, {"name": "x", "queue": "a", "cpu": "10"})


# ---------------------------------------------------------------- long messages
@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b'{"v":1,"id":1,"cmd":"submit","items":[', b"[],"),
        (b'{"v":1,"id":1,"cmd":"submit","items":[', b"{},"),
        (b'{"v":1,"id":1,"cmd":"submit","items":[{"script":"","spec":{"args":[', b'"ab",'),
        (b'{"v":1,"id":1,"cmd":"submit","odd":[', b"[],"),
        (b'{"v":1,"id":1,"cmd":"submit","key":[', b"[],"),
        (b'{"v":1,"id":1,"cmd":"hold","ids":[', b"{},"),
        (b'{"v":1,"id":1,"odd":"\\"cmd\\":\\"submit\\"","cmd":"hold","ids":[', b'"",'),
    ],
)
def test_a_long_line_of_rubbish_is_refused_before_it_becomes_objects(head, piece):
    line = head + piece * (9_000_000 // len(piece)) + piece.rstrip(b",")
    opened = [c for c in head.decode() if c in "[{"]
    line += b"".join(b"]" if c == "[" else b"}" for c in reversed(opened))
    before, began = peak(), time.process_time()
    with pytest.raises((wire.WireError, Refusal, msgspec.ValidationError, TypeError)):
        command(line)
    assert peak() - before < 60
    assert time.process_time() - began < 1.0


def test_ids_in_plenty_are_too_many_and_a_hundred_thousand_are_not():
    ids = [f"{n}.ymp" for n in range(100_000)]
    line = json.dumps({"v": 1, "id": 1, "cmd": "hold", "ids": ids}).encode()
    assert command(line).ids[-1] == "99999.ymp"
    crowd = json.dumps({"v": 1, "id": 7, "cmd": "hold", "ids": [[]] * 500_000}).encode()
    with pytest.raises(wire.WireError) as refused:
        wire.read_message(crowd)
    assert (refused.value.code, refused.value.id) == ("too_many", 7)


def test_commas_and_brackets_in_a_text_are_no_values():
    script = '{[,\\",' * 200_000
    line = json.dumps({"v": 1, "id": 1, "cmd": "qmgr", "script": script}).encode()
    assert wire.read_message(line)["script"] == script


@pytest.mark.parametrize("script", [b'"' * 4_000_000, b'\\"' * 4_000_000, b"\\" * 4_000_001 + b'"'])
def test_quotes_and_backslashes_in_a_script_are_no_words(script):
    [only] = command(submit([item(script)])).items
    assert only.script == script.decode()


def test_a_long_list_is_read_as_a_short_one_is_and_a_hundred_thousand_is_the_most():
    one = item(b"#!/bin/sh\ntrue\n")
    [short] = command(submit([one], key="k", dry_run=True)).items
    many = command(submit([one] * 1_000, key="k", dry_run=True))
    assert (many.key, many.dry_run) == ("k", True)
    assert many.items == (short,) * 1_000
    head, piece = b'{"v":1,"id":1,"cmd":"submit","items":[', json.dumps(one).encode()
    fields.check_list(wire.read_message(head + b",".join([piece] * 100_000) + b"]}"))
    with pytest.raises(Refusal) as refused:
        fields.check_list(wire.read_message(head + b",".join([piece] * 100_001) + b"]}"))
    assert refused.value.code == "too_many"


def test_what_is_wrong_in_a_long_list_is_named_as_in_a_short_one():
    wrong = item()
    wrong["spec"]["priority"] = "high"
    for count in (1, 1_000):
        with pytest.raises(msgspec.ValidationError, match=rf"\$\.items\[{count - 1}\]\.spec\.priority"):
            command(submit([item()] * (count - 1) + [wrong]))


def test_a_long_message_that_only_looks_like_a_submission_is_too_big(counter, peer):
    desk = counter(limits=Limits(message=100_000))
    client = peer(desk)
    client.send(b'{"v":1,"id":1,"odd":{"cmd":"submit"},"cmd":"x","say":"' + b"y" * 400_000 + b'"}\n')
    assert client.answer()["error"]["code"] == "too_big"
    assert client.ask(2, "x", say="well")["result"] == "well"


# ---------------------------------------------------------------- lines that are no messages
def test_the_refusals_of_all_that_came_at_once_are_written_at_once(counter, peer):
    desk = counter()
    client = peer(desk)
    assert client.ask(1, "x")["ok"]
    [connection] = desk.server.connections
    written = []
    write = connection._transport.write
    connection._transport.write = lambda data: (written.append(data), write(data))
    client.send(b"x\n" * 1_000 + b'{"v":1,"id":2,"cmd":"x","say":"well"}\n')
    answers = [client.answer() for _ in range(1_001)]
    assert [each["error"]["code"] for each in answers if not each["ok"]] == ["malformed"] * 1_000
    assert [each["result"] for each in answers if each["ok"]] == ["well"]
    assert len(written) < 20


# ---------------------------------------------------------------- users without a name
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as other users")
def test_users_without_a_name_cannot_take_all_connections_together(counter, peer, monkeypatch):
    monkeypatch.setattr("nqspy.rpc.server._IDLE", 600.0)
    with tempfile.TemporaryDirectory(prefix="nqspy-nameless-") as folder:
        os.chmod(folder, 0o755)
        desk = counter(name=f"{folder}/s", limits=Limits(nameless_connections=4))
        os.chmod(desk.path, 0o666)

        def asks(uid):
            with speaking_as(uid):
                client = peer(desk)
            with contextlib.suppress(BrokenPipeError):
                return client.ask(1, "x")["ok"]

        assert all(asks(uid) for uid in range(3_000_001, 3_000_005))
        assert desk.server.shares.nameless == 4
        assert not asks(3_000_009), "the share of those without a name is taken"
        assert asks(1), "a user with a name has one of his own"


def test_root_and_the_owner_keep_their_share_without_a_name():
    nameless = replace(ANNE, user=str(ANNE.uid))
    assert person(nameless) == NAMELESS
    assert person(ANNE) == ANNE.uid
    assert person(replace(nameless, trusted=True)) == ANNE.uid


def test_a_user_who_is_renamed_has_the_new_name_within_an_hour(monkeypatch):
    names, now = ["old"], [0.0]
    monkeypatch.setattr("pwd.getpwuid", lambda uid: SimpleNamespace(pw_name=names[0]))
    callers = auth.Callers(0, lambda: now[0])
    here, there = socket.socketpair()
    with here, there:
        assert callers.of(here).user == "old"
        names[0] = "new"
        now[0] = 3_000.0
        assert callers.of(here).user == "old"
        now[0] = 3_700.0
        assert callers.of(here).user == "new"


def test_names_that_are_missing_for_a_while_replace_none_that_are_known(monkeypatch):
    names, groups, now = ["anne"], ["staff"], [0.0]
    monkeypatch.setattr("pwd.getpwuid", lambda uid: SimpleNamespace(pw_name=names[0]))
    monkeypatch.setattr("grp.getgrgid", lambda gid: SimpleNamespace(gr_name=groups[0] or str(gid)))
    callers = auth.Callers(-1, lambda: now[0])
    here, there = socket.socketpair()
    with here, there:
        assert callers.of(here).user == "anne"
        now[0], names[0] = 3_700.0, str(os.getuid())
        assert callers.of(here).user == "anne", "the database does not answer"
        names[0], groups[0] = "anne", ""
        assert set(callers.of(here).groups) != {"staff"}
        now[0], groups[0] = 3_711.0, "staff"
        assert callers.of(here).groups == ("staff",)
