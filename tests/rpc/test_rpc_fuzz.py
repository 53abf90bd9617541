"""Whatever bytes come in: the decoder says what is wrong with them in one line, the server answers."""

import json

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.rpc import messages, wire

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
