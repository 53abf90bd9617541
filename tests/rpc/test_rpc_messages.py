"""Answers byte for byte, lines cut from any pieces, callers by number and name."""

import json
import os
import socket
import sys
from itertools import pairwise

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model.errors import BadValue, Refusal
from nqspy.rpc import messages, wire
from nqspy.rpc.auth import Callers
from nqspy.rpc.home import resolve_home, with_short_path
from nqspy.rpc.wire import Lines


def test_the_text_form_has_its_keys_in_exactly_this_order_and_spacing():
    assert messages.text_answer(3, 0, "7.ymp\n") == b'{"id":3,"ok":true,"exit":0,"out":"7.ymp\\n","err":""}\n'
    assert messages.text_answer(3, 1, "", "no") == b'{"id":3,"ok":false,"exit":1,"out":"","err":"no"}\n'
    more = messages.text_answer(1, 0, 'a"b', next=7, done=False)
    assert more == b'{"id":1,"ok":true,"exit":0,"out":"a\\"b","err":"","next":7,"done":false}\n'


@given(st.text(), st.text(), st.integers(0, 255), st.integers(0, 2**31))
def test_any_text_survives_the_text_form(out, err, status, id):
    line = messages.text_answer(id, status, out, err)
    assert line.count(b"\n") == 1
    shown = {"out": messages.plain(out), "err": messages.plain(err)}
    assert json.loads(line) == {"id": id, "ok": status == 0, "exit": status, **shown}


def test_a_jobs_own_output_comes_as_it_is():
    assert json.loads(messages.output_answer(1, "\x1b[31m\xff", next=6))["out"] == "\x1b[31m\xff"


def test_an_undecodable_file_name_does_not_break_the_answer():
    assert json.loads(messages.text_answer(1, 1, err="no \udcff"))["err"] == "no ?"


def test_exceptions_become_errors_with_text_code_and_status():
    message = {"text": "no such queue x", "code": "no_queue", "status": 170}
    refused = json.loads(messages.answer_of_error(4, Refusal.received(message)))
    assert refused["error"] == {"text": "no such queue x", "code": "no_queue", "status": 170}
    assert json.loads(messages.answer_of_error(4, BadValue("5x")))["error"]["code"] == "bad_value"


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=10))
def test_lines_are_the_same_however_the_bytes_arrive(data, cuts):
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    lines = Lines()
    found = [line for a, b in pairwise(places) for line in lines.feed(data[a:b])]
    assert found == [line for line in data.split(b"\n")[:-1] if line]


@given(st.lists(st.binary(min_size=1, max_size=30).map(lambda b: b.replace(b"\n", b"x")), max_size=20))
def test_lines_beyond_the_limit_are_reported_once_and_the_others_kept(rows):
    lines = Lines(limit=15)
    found = [line for piece in b"".join(r + b"\n" for r in rows) for line in lines.feed(bytes([piece]))]
    assert found == [row if len(row) <= 15 else None for row in rows]


def test_the_owner_of_the_home_and_root_are_trusted():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert Callers(os.getuid()).of(ours).trusted
        assert Callers(os.getuid() + 1).of(ours).trusted == (os.getuid() == 0)
        assert Callers(0).of(ours).uid == os.getuid()


def test_groups_are_those_of_the_peer():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert len(Callers(0).of(ours).groups) == len({os.getgid(), *os.getgroups()})


def test_the_home_is_the_option_then_the_variable_then_the_users_own(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NQSPY_HOME", "/srv/nqs")
    assert resolve_home("here") == str(tmp_path / "here")
    assert resolve_home(None) == "/srv/nqs"
    monkeypatch.delenv("NQSPY_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("nqspy.rpc.home.SYSTEM_HOME", str(tmp_path / "none"))
    assert resolve_home(None) == str(tmp_path / "nqspy")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert resolve_home(None) == str(tmp_path / "none")


def test_a_short_path_stays_as_it_is():
    assert with_short_path("/a/b") == ("/a/b", -1)
    assert sys.getfilesystemencoding() == "utf-8"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=8), below, max_size=4),
    max_leaves=12,
)
HEADS = st.fixed_dictionaries(
    {}, optional={name: JSON | st.sampled_from((1, "ping")) for name in ("v", "id", "cmd", "text", "ids")}
)
LINES = (
    st.binary(max_size=300)
    | JSON.map(lambda each: json.dumps(each).encode())
    | HEADS.map(lambda each: json.dumps(each).encode())
    | st.builds(lambda one, cut: json.dumps(one).encode()[:cut], HEADS, st.integers(0, 80))
    | st.builds(
        lambda n, sign: sign * n, st.integers(1, 5000), st.sampled_from((b"[", b'{"a":', b'"\\u', b"9"))
    )
)


@given(LINES)
def test_a_line_is_a_message_or_refused_with_one_sentence(line):
    try:
        message = wire.read_message(line.replace(b"\n", b" "))
    except wire.WireError as error:
        refusal = json.loads(messages.error_answer(error.id, error.text, error.code))["error"]
        message = {"v": 1, "cmd": refusal["text"]}
    assert message["v"] == 1
    assert isinstance(message["cmd"], str)
    assert len(message["cmd"]) < 400
    assert "\n" not in message["cmd"] or message.get("id") is not None


@given(st.lists(st.binary(max_size=60), max_size=12), st.integers(1, 40), st.integers(1, 80))
def test_no_stream_makes_the_cutter_keep_more_than_a_line(pieces, usual, limit):
    lines = wire.Lines(limit, usual)
    for piece in pieces:
        for line in lines.feed(piece):
            assert line is None or 0 < len(line) <= limit
        assert lines.size <= limit


@given(st.text())
def test_texts_for_people_hold_no_control_characters_and_stay_what_they_are_as_json(text):
    shown = messages.plain(text)
    assert all(c in "\n\t" or not (ord(c) < 32 or 127 <= ord(c) < 160) for c in shown)
    assert messages.plain(shown) == shown
    encoded = json.dumps(text, ensure_ascii=False)
    assert json.loads(messages.plain(encoded)) == text


@settings(max_examples=examples(60))
@given(st.lists(LINES, max_size=6))
def test_a_server_answers_each_line_once_and_serves_the_next_client(fuzzed, lines):
    desk, peer = fuzzed
    client = peer(desk)
    client.send(b"".join(line.replace(b"\n", b"") + b"\n" for line in lines))
    expected = len([line for line in lines if line.replace(b"\n", b"")])
    for _ in range(expected):
        assert client.answer()["ok"] in (True, False)
    assert client.ask(7, "x", say="well")["id"] == 7
    client.close()
