"""A real daemon fed with rubbish: each message is refused clearly or the connection closed; afterwards
nothing has changed, nothing has grown and the log is clean."""

import contextlib
import json
import os
import random
import socket
import string
from pathlib import Path

import pytest
from daemon.inner import item
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.answers.dispatcher import DIRECT, QUESTIONS
from nqspy.model.commands import COMMANDS
from nqspy.rpc.home import with_short_path

CMDS = sorted({*COMMANDS, *DIRECT, *QUESTIONS} - {"submit"})
FIELDS = (
    "ids", "queue", "values", "changes", "items", "key", "text", "script", "request", "after", "since",
    "limit", "offset", "letter", "place", "shift", "until", "seconds", "mode", "operands", "date", "user",
    "state", "what", "names", "files", "source", "signal", "owner", "account", "stream",
)  # fmt: skip
ODD = st.sampled_from((
    "", "\0", "\n", "../../etc/passwd", "%s%n", "\x1b[31mred", "9" * 400, "-1", "é\u202e", "a" * 3000, "1.x@",
))  # fmt: skip
WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ODD
    | st.text(max_size=12),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(ODD | st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)  # fmt: skip
MESSAGES = st.builds(
    lambda cmd, fields: {"cmd": cmd, **fields} | ({"mode": "no way"} if cmd == "shutdown" else {}),
    st.sampled_from(CMDS) | st.text(max_size=8),
    st.dictionaries(st.sampled_from(FIELDS), WILD, max_size=5),
)


def picture(inner):
    site = inner.daemon.engine.site
    return inner.qmgr("snap"), {seq: (r.state, r.queue, r.spec, r.holds) for seq, r in site.requests.items()}


@pytest.fixture(scope="module")
def stage(inner):
    inner.submit("owner", count=3)
    inner.before = picture(inner)
    return inner


@settings(max_examples=examples(400))
@given(MESSAGES, st.sampled_from(("root", "operator", "owner", "unknown uid")))
def test_any_fields_of_any_command_are_answered_and_change_nothing(stage, message, by):
    answer = stage.ask(by, message["cmd"], **{name: message[name] for name in message if name != "cmd"})
    text = str(answer.get("error", {}).get("text", ""))
    assert answer["ok"] in (True, False)
    assert "internal error" not in text + str(answer.get("err", "")), answer
    assert len(text.splitlines()) <= 4
    assert picture(stage) == stage.before


SPEC_FIELDS = [
    *item()["spec"], "ask", "args", "shell", "account", "output", "mail", "umask", "eligible", "priority",
    "attributes", "after", "held", "host", "dialect", "unix_groups", "group",
]  # fmt: skip


@settings(max_examples=examples(300))
@given(st.dictionaries(st.sampled_from(SPEC_FIELDS), WILD, min_size=1, max_size=4))
def test_any_submission_is_taken_or_refused_in_one_line_and_shown_without_harm(stage, spec):
    answer = stage.ask("owner", "submit", items=[item(**spec)])
    assert "internal error" not in str(answer)
    if not answer["ok"]:
        assert len(answer["error"]["text"].splitlines()) == 1
        assert answer["error"]["text"].isprintable()
        return
    [id] = answer["result"]["ids"]
    for form in ("table", "full", "why", "json"):
        shown = stage.ask("other", "qstat", text=form, operands=[id])
        assert all(c == "\n" or c == "\t" or c.isprintable() for c in shown["out"] + shown["err"]), shown
    stage.result("root", "delete", ids=[id])
    assert picture(stage) == stage.before


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        *(({"name": name}, "request name") for name in ("a\nb", "../x", "\x1b[J", "a\0b", "x" * 10**6)),
        ({"args": ["a\0b"]}, "NUL"), ({"account": "\x1b]0;x\x07"}, "account"), ({"host": "\x9b1m"}, "host"),
        *(({"mail": {"to": to}}, "mail address") for to in ("-oQ/tmp", "a\nBcc: b")),
        ({"attributes": [f"after:{n}:ok" for n in range(10_000)]}, "1000 others"),
        ({"workdir": "/" + "x" * 5000}, "is too long"),
        ({"output": {"stdout": "/a\nb"}}, "line break"),
        ({"eligible": 2**62}, "date"), ({"priority": 2**40}, "priority"),
    ],
)  # fmt: skip
def test_bad_words_of_a_submission_are_refused_and_named(stage, fields, word):
    _, text = stage.refusal("owner", "submit", items=[item(**fields)])
    assert word in text, text
    assert text.isprintable()
    assert len(text) < 400


def test_an_environment_of_200_kb_is_taken_and_one_beyond_1_mib_refused(stage):
    large = "\0".join(f"A{n}=" + "x" * 20_000 for n in range(10))
    [id] = stage.result("owner", "submit", items=[item(environment=large)])["ids"]
    stage.result("owner", "delete", ids=[id])
    for what, word in (({"environment": "A=" + "x" * (1 << 20)}, "1 MiB"), ({"script": "\u20ac"}, "Latin-1")):
        assert word in stage.refusal("owner", "submit", items=[item(**what)])[1]


def test_a_list_of_more_than_100000_is_refused_before_it_is_read(stage):
    assert stage.refusal("owner", "submit", items=[{}] * 100_001)[0] == "too_many"
    assert stage.refusal("owner", "delete", ids=["1"] * 100_001)[0] == "too_many"
    assert stage.refusal("owner", "wait", ids=["1"] * 100_001)[0] == "bad_message"


def test_a_percent_sign_is_a_percent_sign(stage):
    [id] = stage.submit("owner", name="%s%n%d")
    assert "%s%n%d" in stage.ask("owner", "qstat", text="full", operands=[id])["out"]
    stage.result("root", "delete", ids=[id])


def test_control_characters_of_operators_reach_nobodys_terminal(fresh):
    _, text = fresh.refusal("root", "qmgr", script='create group d1 members=("a\x1b[31mb")', text="qmgr")
    assert "control characters" in text
    assert "\x1b" not in text
    assert "31m" not in fresh.qmgr("show groups", by="other")


# ---------------------------------------------------------------- over the socket
def speak(live, data: bytes) -> None:
    """Send bytes, read for a moment, and disconnect."""
    with socket.socket(socket.AF_UNIX) as sock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        name, folder = with_short_path(str(live.home / "nqsd.sock"))
        sock.connect(name)
        if folder >= 0:
            os.close(folder)
        sock.settimeout(120)
        sock.sendall(data)
        sock.settimeout(0.02)
        with contextlib.suppress(TimeoutError):
            while sock.recv(65536):
                pass


def memory(pid: int) -> int:
    """Return a process's resident bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def streams(dice: random.Random) -> bytes:
    good = [b'{"v":1,"id":%d,"cmd":"%b"}\n' % (n, dice.choice((b"ping", b"now"))) for n in range(3)]
    kind = dice.randrange(7)
    if kind == 0:
        return dice.randbytes(dice.randrange(5000))
    if kind == 1:
        text = "".join(dice.choice(string.printable) for _ in range(dice.randrange(500)))
        message = {"v": 1, "id": 1, "cmd": dice.choice(CMDS), "mode": text, "ids": [text]}
        return json.dumps(message).encode() + b"\n"
    if kind == 2:
        whole = bytearray(b"".join(good))
        for _ in range(dice.randrange(1, 10)):
            whole[dice.randrange(len(whole))] = dice.randrange(256)
        return bytes(whole)
    if kind == 3:
        return b"".join(good)[: dice.randrange(100)]
    if kind == 4:
        return dice.choice((b"[", b'{"v":', b'[{"a":')) * dice.randrange(200_000)
    if kind == 5:
        return b'{"v":1,"id":1,"cmd":"ping","x":' + b"9" * dice.randrange(100_000) + b"}\n"
    return b'{"v":1,"id":1,"cmd":"' + b"z" * dice.randrange(6 << 20)


def test_a_fuzzed_stream_of_bytes_never_harms(live):
    id = live.submit("sleep 60")
    live.running(id)
    events, dice = len(live.events()), random.Random(20)
    for _ in range(50):
        speak(live, streams(dice))
    before = memory(live.pid)
    for _ in range(250):
        speak(live, streams(dice))
    assert memory(live.pid) < before + 64 * 1024 * 1024
    assert live.job(id)["state"] == "running"
    assert {each["kind"] for each in live.events()[events:]} <= {"exits_loaded"}, "some reload the exits"
    assert live.run("nqsd", "status").ok()
    assert "Traceback" not in live.log
    assert all(c == "\n" or c.isprintable() for c in live.log)
    live.client.delete(id)
