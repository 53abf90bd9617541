"""What programs of PBS ask with: `qstat`, `qselect`, `pbsnodes`, `--version`."""

import pytest

from nqspy.rpc import messages


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "qstat -a -u anne night",
            {"text": "alternate", "letters": "a", "user": "anne", "operands": ["night"]},
        ),
        ("qstat --user anne", {"text": "table", "letters": "", "user": "anne"}),
        ("qstat --dialect nqs -a -u anne", {"text": "table", "user": "anne"}),
        ("qstat -i -w @ymp", {"text": "alternate", "letters": "iw", "operands": ["@ymp"]}),
        ("qstat -ns1", {"text": "alternate", "letters": "1ns"}),
        ("qstat -xfFjson 17", {"text": "full", "format": "json", "letters": "fx", "operands": ["17"]}),
        ("qstat -f -F dsv -D ; 17", {"text": "full", "format": "dsv", "delimiter": ";"}),
        ("qstat -f -1 batch", {"text": "full", "letters": "1f", "operands": ["batch"]}),
        ("qstat -f -u anne", {"text": "full", "user": "anne"}),
        ("qstat -F json -E 3 1", {"text": "full", "format": "json", "letters": "E"}),
        ("qstat -t --json", {"text": "json", "expand": True}),
        ("qstat -Q -f", {"text": "queues", "posix": True, "letters": "f"}),
        ("qstat -Bf -F json", {"text": "server", "letters": "f", "format": "json"}),
        ("qstat -q batch", {"text": "queue_limits", "operands": ["batch"]}),
        ("qstat --dialect pbs -p", {"text": "table", "letters": "p"}),
        ("qselect -s QR -l mem.ge.1gb -x", {"criteria": [["s", "QR"], ["l", "mem.ge.1gb"]], "letters": "x"}),
        (
            "qselect -ts.gt.09251200 -p.gt.5 -q@ymp",
            {"criteria": [["t", "s.gt.09251200"], ["p", ".gt.5"], ["q", "@ymp"]]},
        ),
        ("pbsnodes -a", {"cmd": "pbsnodes", "operands": [], "format": None, "letters": ""}),
        ("pbsnodes -aF json", {"format": "json"}),
        ("pbsnodes -v ymp", {"operands": ["ymp"]}),
        ("pbsnodes -l", {"letters": "l"}),
    ],
)
def test_options_become_a_question(desk, screen, line, expected):
    status, out, err = screen.run(line)
    assert (status, err) == (0, "")
    assert out.endswith("done\n")
    message = desk.messages[-1]
    assert {name: message[name] for name in expected} == expected


def test_who_submits_in_slurms_words_asks_as_others_do(desk, screen, monkeypatch):
    monkeypatch.setenv("NQSPY_DIALECT", "slurm")
    assert screen.run("qstat")[0] == 0
    assert desk.messages[-1]["text"] == "table"
    monkeypatch.setenv("NQSPY_DIALECT", "vms")
    assert screen.run("qstat")[0] == 2
    monkeypatch.delenv("NQSPY_DIALECT")
    assert screen.run("qstat --dialect slurm")[0] == 2


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("qstat -Y", "qstat: unknown option -Y"),
        ("qstat -a -r", "qstat: conflicting options: -a and -r"),
        ("qstat -Q -B", "qstat: conflicting options: -Q and -B"),
        ("qstat -1", "qstat: conflicting options: -1"),
        ("qstat -f -F xml", "qstat: -F: there is no format 'xml'; formats: json, dsv, default"),
        ("qstat -f -F json -w", "qstat: conflicting options: -F and -w"),
        ("qstat -f -D ;", "qstat: -D goes with -F dsv"),
        ("qstat --dialect vms", "qstat: there is no dialect 'vms' of this command"),
        ("qselect -Y", "qselect: unknown option -Y"),
        ("qselect 17", "qselect: what is '17'? usage: qselect"),
        ("pbsnodes -Y", "pbsnodes: unknown option -Y"),
        ("pbsnodes", "pbsnodes: which host? usage: pbsnodes"),
        ("pbsnodes -o ymp", "pbsnodes: -o is not offered here"),
    ],
)
def test_a_wrong_call_is_a_line_and_status_2(desk, screen, line, text):
    status, out, err = screen.run(line)
    assert (status, out) == (2, "")
    assert err.startswith(text)
    assert err.count("\n") == 1
    assert not desk.messages


def test_parts_that_came_once_are_put_where_they_belong(desk, screen):
    shared = [messages.escaped(each) for each in ('"a"\n', "\\", "")]
    out = [messages.escaped("x"), *map(messages.reference, (0, 1, 0, 2)), messages.escaped("y\n")]
    desk.answers["qstat"] = lambda id, m: messages.pieces_answer(
        id, 153, out, "Unknown Job Id 9.ymp\n", shared
    )
    assert screen.run("qstat -f") == (153, 'x"a"\n\\"a"\ny\n', "qstat: Unknown Job Id 9.ymp\n")


@pytest.mark.parametrize("between", ["\\", "=", "a", "n|", "|=", "\n"])
@pytest.mark.parametrize("command", ["qstat", "pbsnodes"])
def test_a_delimiter_that_could_stand_for_something_else_is_refused(desk, screen, command, between):
    status, out, err = screen.run([command, "-F", "dsv", "-D", between])
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert not desk.messages
