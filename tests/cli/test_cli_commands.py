"""The other commands, the way to the daemon, what a fast start may not import, and closed outputs."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from daemon.live import program

from nqspy.cli import fast
from nqspy.cli import qmgr as qmgr_command
from nqspy.cli.request_commands import signal_number
from nqspy.rpc import messages

HEAVY = [
    "re", "json", "socket", "argparse", "typing", "dataclasses", "enum", "pathlib", "subprocess", "typer",
    "rich", "msgspec", "numpy", "peewee", "collections", "struct", "datetime", "__future__", "functools",
]  # fmt: skip


def in_a_process(line: str | list[str], home: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as its console script does, outside of any request, and print what it has imported."""
    command, *words = line.split() if isinstance(line, str) else line
    code = (
        f"import os, sys; sys.argv[1:] = {words!r}\nleave = os._exit\n"
        "os._exit = lambda status: (print(*sys.modules, file=sys.stderr, flush=True), leave(status))\n"
        + program(command)
    )
    env = {name: value for name, value in os.environ.items() if name not in ("QSUB_REQID", "NQSPY_PES")}
    env |= {"NQSPY_HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2]), **more}
    return subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, encoding="utf-8",
        errors="surrogateescape", env=env, input="",
    )  # fmt: skip


FAST = """\
qsub -q night -lT 600 -lM 32mw -x -l pes=3 job.sh
qsub --list d.list
qsub -J 1-100000 job.sh
qsub -J 1-9:2,12%3 job.sh
qsub --array 1-10 job.sh
qstat
qstat -f -F json 17
qselect -s Q
pbsnodes -a
qdel 17
qhold 17
qmove night 17
qcat 17
qalter -l walltime=1:00:00 -N x 17
qsig -s USR1 17
qlimit"""


@pytest.mark.parametrize("line", FAST.splitlines())
def test_a_fast_start_imports_nothing_heavy(desk, line):
    Path("job.sh").write_text("#!/bin/sh\n#QSUB -r NAME -eo\ntrue\n")
    Path("d.list").write_text("-q night job.sh 'a b'\n")
    done = in_a_process(line, desk.home)
    assert done.returncode == 0, done.stderr
    loaded = done.stderr.splitlines()[-1].split()
    assert "nqspy.cli.fast" in loaded
    assert sorted(set(HEAVY) & set(loaded)) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("qstat", {"text": "table", "operands": [], "ended": False, "json": False, "width": 0, "tty": False}),
        ("qstat -f 17 18.ymp", {"text": "full", "operands": ["17", "18.ymp"]}),
        ("qstat -x --limit 5", {"history": True, "limit": 5}),
        ("qstat --ended --limit unlimited", {"ended": True, "limit": None}),
        ("qstat -H --since 2h", {"limit": 1_000, "since": 1772449200000 - 7_200_000}),
        ("qstat -b", {"text": "queues", "posix": False}),
        ("qstat -Q", {"text": "queues", "posix": True}),
        ("qstat -m", {"text": "queues", "mpp": True}),
        ("qstat -p", {"text": "pipes"}),
        ("qstat -c", {"text": "complexes"}),
        ("qstat -l", {"text": "limits"}),
        ("qstat -B", {"text": "server"}),
        ("qstat --json --state held --queue night --ended", {"text": "json", "state": "held", "ended": True}),
        ("qstat --why 17 --json", {"text": "why", "operands": ["17"], "json": True}),
        ("qdel 17 8.a", {"cmd": "delete", "ids": ["17", "8.a"], "force": True, "kill": False}),
        ("qdel -k -u anne 17", {"kill": True, "owner": "anne"}),
        ("qdel -9 17", {"signal": 9}),
        ("qdel -SIGUSR1 17", {"signal": 10}),
        ("qdel --dialect nqs 17", {"force": False}),
        ("qhold -h o 17", {"cmd": "hold", "letter": "o", "ids": ["17"]}),
        ("qhold -huo 17", {"cmd": "hold", "letter": "uo"}),
        ("qrls -h n 17", {"cmd": "release", "letter": "n", "lenient": True}),
        ("qdel -W force -Wsuppress_email=-1 17", {"kill": True, "mails": 0}),
        ("qdel -W suppress_email=3,force 17", {"kill": True, "mails": 3}),
        ("qdel --cascade -x 17", {"cascade": True, "history": True, "lenient": False}),
        ("qdel -W suppress_email 17", {"kill": False, "mails": 0}),
        ("qrerun 17 18", {"cmd": "rerun", "ids": ["17", "18"], "force": False}),
        ("qrerun -W force 17", {"cmd": "rerun", "force": True}),
        ("qsig 17", {"cmd": "signal", "signal": 15}),
        ("qsig -s 0 17", {"cmd": "signal", "signal": 0}),
        ("qsig -s usr1 17 18", {"cmd": "signal", "signal": 10, "ids": ["17", "18"]}),
        ("qsig -s suspend 17", {"cmd": "suspend", "resume": False}),
        ("qsig -s resume 17", {"cmd": "suspend", "resume": True}),
        ("qmsg hi 17 18", {"cmd": "message", "message": "hi", "streams": ["stderr"], "ids": ["17", "18"]}),
        ("qmsg -EO hello 17", {"cmd": "message", "streams": ["stdout", "stderr"]}),
        ("qorder 17 18", {"cmd": "exchange", "ids": ["17", "18"]}),
        ("qlimit -v", {"cmd": "limits", "verbose": True, "hosts": []}),
        ("qping ymp", {"cmd": "limits", "text": "qping", "hosts": ["ymp"]}),
        ("qmove night@ymp 17", {"cmd": "move", "queue": "night", "ids": ["17"]}),
        ("qstat -a -u a q", {"text": "alternate", "letters": "a", "user": "a", "operands": ["q"]}),
        ("qstat --user anne", {"text": "table", "letters": "", "user": "anne"}),
        ("qstat --dialect nqs -a -u anne", {"text": "table", "user": "anne"}),
        ("qstat -i -w @ymp", {"text": "alternate", "letters": "iw", "operands": ["@ymp"]}),
        ("qstat -ns1", {"text": "alternate", "letters": "1ns"}),
        ("qstat -xfFjson 17", {"text": "full", "format": "json", "letters": "fx", "operands": ["17"]}),
        ("qstat -f -F dsv -D ; 17", {"text": "full", "format": "dsv", "delimiter": ";"}),
        ("qstat -t --json", {"text": "json", "expand": True}),
        ("qstat -Q -f", {"text": "queues", "posix": True, "letters": "f"}),
        ("qstat -Bf -F json", {"text": "server", "letters": "f", "format": "json"}),
        ("qstat -q batch", {"text": "queue_limits", "operands": ["batch"]}),
        ("qstat --dialect pbs -p", {"text": "table", "letters": "p"}),
        ("qselect -s QR -l mem.ge.1gb -x", {"criteria": [["s", "QR"], ["l", "mem.ge.1gb"]], "letters": "x"}),
        ("qselect -ts.gt.1200 -p.gt.5 -q@a", {"criteria": [["t", "s.gt.1200"], ["p", ".gt.5"], ["q", "@a"]]}),
        ("pbsnodes -a", {"cmd": "pbsnodes", "operands": [], "format": None, "letters": ""}),
        ("pbsnodes -l", {"letters": "l"}),
    ],
)  # fmt: skip
def test_messages(desk, screen, line, expected):
    status, out, err = screen.run(line)
    assert (status, err) == (0, "")
    assert out.endswith("done\n")
    message = desk.messages[-1]
    assert {name: message[name] for name in expected} == expected


def test_the_dialect_of_qdel_may_come_from_the_environment(desk, screen, monkeypatch):
    monkeypatch.setenv("NQSPY_DIALECT", "nqs")
    screen.run("qdel 17")
    assert desk.messages[-1]["force"] is False


ALTERED = [
    ("-l walltime=0:3:0,mem=1gb", {"ask/wall": 180_000, "ask/memory": 1 << 30}),
    ("-l gpus=2,matlab=0", {"units/gpus": 2, "units/matlab": 0}),
    ("-l select=2:ncpus=1:ngpus=1", {
        "ask/pes": 2, "ask/memory": None, "ask/consumables": [["ngpus", 2]], "layout": {
            "text": "select=2:ncpus=1:ngpus=1", "chunks": 2, "ranks": 2, "cpus": 1}}),
    ("-l nodes=1:ppn=2:mem=1mb", {
        "ask/pes": 2, "ask/memory": 1 << 20, "ask/consumables": None, "layout": {
        "text": "nodes=1:ppn=2:mem=1mb", "chunks": 1, "ranks": 2, "cpus": 2}}),
    ("-l ncpus=4", {"ask/pes": 4, "layout": None}),
    ("-N new -p -3 -r n -A d1", {"name": "new", "priority": -3, "rerunnable": False, "account": "d1"}),
    ("-W max_run_subjobs=5,umask=77", {"array/limit": 5, "umask": 0o77}),
    ("-m be -M ben,eva", {"mail/abort": False, "mail/begin": True, "mail/end": True, "mail/to": "ben,eva"}),
    ("-j oe -k n", {"output/join": True, "output/keep_stdout": False, "output/keep_stderr": False}),
    ("-o /tmp/ -e host:/x/y", {"output/stdout": "/tmp/", "output/stderr": "/x/y",
                               "attributes/output_host": ["host"]}),
    ("-a 203703022100", {"eligible": 2119636800000}),
    ("-h uo -u anne@host", {"holds": "uo", "owner": "anne@host"}),
    ("-c n -P p1", {"attributes/checkpoint": ["n"], "attributes/project": ["p1"]}),
]  # fmt: skip


@pytest.mark.parametrize(("options", "values"), ALTERED, ids=[options for options, _ in ALTERED])
def test_what_qalter_changes(desk, screen, options, values):
    assert screen.run(f"qalter {options} 17 18.ymp") == (0, "modify done\n", "")
    message = desk.messages[-1]
    assert (message["ids"], message["values"]) == (["17", "18.ymp"], values)


def test_every_command_tells_its_version_and_nothing_else(desk, screen):
    for command in ("qsub", "qdel", "qalter", "qhold", "qrls", "qmove", "qmsg", "qrerun", "qsig", "qcat"):
        status, out, err = screen.run(f"{command} --version")
        assert (status, err) == (0, "")
        name, equals, version = out.split()
        assert (name, equals, version.replace(".", "").isdigit(), out[-1]) == ("pbs_version", "=", True, "\n")
    assert not desk.messages


def test_signal_names():
    assert [signal_number(text) for text in ("9", "TERM", "sigkill")] == [9, 15, 9]
    assert {signal_number(text) for text in ("0", "_SETMASK", "NOSUCH", "9999")} == {None}


def test_failures_of_several_are_each_a_line_with_the_commands_name(desk, screen):
    desk.answers["delete"] = lambda id, m: messages.text_answer(
        id, 153, "", "qdel: no 98.ymp\nno 99.ymp")  # fmt: skip
    assert screen.run("qdel 98 99") == (153, "", "qdel: no 98.ymp\nqdel: no 99.ymp\n")


def test_qcat_goes_on_until_nothing_is_left_and_follows_until_the_end(desk):
    pieces = {0: ("one \xff\n", 6), 6: ("two\n", 10), 10: ("", 10)}

    def cat(id, message):
        out, following = pieces[message["offset"]]
        return messages.text_answer(
            id, 0, out, "", next=following, done=message["offset"] == 6 and message["follow"]
        )

    desk.answers["cat"] = cat
    done = in_a_process("qcat -e 17", desk.home)
    assert done.stdout.encode("utf-8", "surrogateescape") == b"one \xff\ntwo\n"
    assert [message["offset"] for message in desk.messages] == [0, 6, 10]
    assert desk.messages[0]["stream"] == "stderr"
    desk.messages.clear()
    in_a_process("qcat -f 17", desk.home)
    assert [message["offset"] for message in desk.messages] == [0, 6]


def test_qmgr_sends_commands_files_and_standard_input(desk, screen):
    screen.run(["qmgr", "-c", "show all", "-c", "start queue all", "--json"])
    assert desk.messages[-1]["script"] == "show all\nstart queue all\n"
    assert [desk.messages[-1][name] for name in ("source", "json", "atomic")] == ["-c", True, False]
    Path("night.qmgr").write_text("create batch_queue night\n")
    screen.run("qmgr -n night.qmgr")
    assert (desk.messages[-1]["source"], desk.messages[-1]["check"]) == ("night.qmgr", True)
    screen.run("qmgr plan night.qmgr")
    assert (desk.messages[-1]["plan"], desk.messages[-1]["atomic"]) == (True, False)
    screen.run("qmgr apply night.qmgr")
    assert (desk.messages[-1]["plan"], desk.messages[-1]["atomic"]) == (False, True)
    Path("latin.qmgr").write_bytes(b"# ok\n# \xe9\n")
    assert screen.run("qmgr latin.qmgr")[2] == "qmgr: latin.qmgr line 2: the file is not UTF-8 text\n"
    assert screen.run("qmgr none.qmgr")[2] == f"qmgr: none.qmgr: {os.strerror(errno.ENOENT)}\n"


def test_qmgr_writes_only_files_that_its_commands_named(desk, screen):
    desk.answers["qmgr"] = lambda id, m: messages.text_answer(
        id, 0, "", "", files=[{"name": "saved.qmgr", "text": "# caf\u00e9\n"}])  # fmt: skip
    assert screen.run(["qmgr", "-c", "snap saved.qmgr"])[0] == 0
    assert Path("saved.qmgr").read_text() == "# caf\u00e9\n"
    Path("saved.qmgr").unlink()
    status, _, err = screen.run(["qmgr", "-c", "show all"])
    assert status == 1
    assert "which no command named" in err
    assert not Path("saved.qmgr").exists()


def test_a_conversation_sends_blocks_and_continued_lines_as_one(desk, capfd):
    typed = iter(
        ["show all", "", 'define shift day when=("0 8 * * *")', "stop queue night", "end",
         "set run_limit=4 \\", "  night", "EXIT", "never sent"]
    )  # fmt: skip
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return next(typed)

    assert qmgr_command.converse(qmgr_command.Manager([]), ask) == 0
    assert [message["script"].count("\n") for message in desk.messages] == [1, 3, 2]
    assert prompts.count(qmgr_command.MORE) == 3
    assert capfd.readouterr().out == "qmgr done\n" * 3


def test_without_a_daemon_the_line_comes_at_once(tmp_path, screen, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fast, "PATIENCE", 0)
    Path("job.sh").write_text("true\n")
    none = f"{tmp_path}/none"
    for command, rest in {"qstat": "", "qdel": "17", "qsub": "job.sh", "qmgr": "-c x", "qcat": "17"}.items():
        expected = f"{command}: no nqsd answers in {none}; start it with `nqsd start --home {none}`\n"
        assert screen.run(f"{command} --home {none} {rest}") == (1, "", expected)


def test_a_lost_answer_is_asked_for_again_with_the_same_key(desk, screen):
    seen: list[str] = []

    def submit(id, message):
        seen.append(message["key"])
        if len(seen) == 1:
            for connection in tuple(desk.server.connections):
                desk.server._loop.call_soon_threadsafe(connection.cut_off)
            return b"\n"
        return messages.text_answer(id, 0, "1.ymp\n")

    desk.answers["submit"] = submit
    assert screen.run("qsub job.sh") == (0, "1.ymp\n", "")
    assert len(seen) == 2
    assert len(set(seen)) == 1


def test_who_submits_in_slurms_words_asks_as_others_do(desk, screen, monkeypatch):
    monkeypatch.setenv("NQSPY_DIALECT", "slurm")
    assert screen.run("qstat")[0] == 0
    assert desk.messages[-1]["text"] == "table"
    monkeypatch.setenv("NQSPY_DIALECT", "vms")
    assert screen.run("qstat")[0] == 2
    monkeypatch.delenv("NQSPY_DIALECT")
    assert screen.run("qstat --dialect slurm")[0] == 2


def test_parts_that_came_once_are_put_where_they_belong(desk, screen):
    shared = [messages.escaped(each) for each in ('"a"\n', "\\", "")]
    out = [messages.escaped("x"), *map(messages.reference, (0, 1, 0, 2)), messages.escaped("y\n")]
    desk.answers["qstat"] = lambda id, m: messages.pieces_answer(id, 153, out, "no 9.ymp\n", shared)
    assert screen.run("qstat -f") == (153, 'x"a"\n\\"a"\ny\n', "qstat: no 9.ymp\n")


@pytest.mark.parametrize("between", ["\\", "n|", "|=", "\n"])
@pytest.mark.parametrize("command", ["qstat", "pbsnodes"])
def test_a_delimiter_that_could_stand_for_something_else_is_refused(desk, screen, command, between):
    status, out, err = screen.run([command, "-F", "dsv", "-D", between])
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert not desk.messages


class Busy:
    """Refuses as busy a number of times, then answers."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, id, message):
        self.left -= 1
        if self.left >= 0:
            return messages.error_answer(id, "this nqsd is busy: too many messages wait; try again", "busy")
        return messages.text_answer(id, 0, "17.ymp\n")


@pytest.mark.parametrize("line", ["qdel 17", "qstat 17", "qmove night 17", "qsub -q night job.sh"])
def test_a_command_comes_again_until_the_daemon_has_time(desk, screen, line):
    for cmd in ("delete", "qstat", "move", "submit"):
        desk.answers[cmd] = Busy(3)
    assert screen.run(line) == (0, "17.ymp\n", "")
    assert len(desk.messages) == 4
    assert len({str(each) for each in desk.messages}) == 1, "the same message, the same key"


def test_it_says_so_when_the_daemon_stays_busy(desk, screen, monkeypatch):
    monkeypatch.setattr(fast, "PATIENCE", 0.1)
    desk.answers["delete"] = Busy(1000)
    assert screen.run("qdel 17") == (1, "", "qdel: this nqsd is busy: too many messages wait; try again\n")


@pytest.mark.parametrize("words", ["cli.qstat --help", "cli.nqspy --help", "cli.qmgr --version"])
@pytest.mark.parametrize("outcome", ["full", "closed"])
def test_an_output_that_is_full_or_closed_is_no_traceback(words, outcome, tmp_path):
    module, *after = words.split()
    name = module.rpartition(".")[2]
    code = f"import sys; sys.argv[1:] = {after!r}; from nqspy.{module} import main; main()"
    line = f'"$@" {">/dev/full" if outcome == "full" else ">&-"}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", sys.executable, "-c", code], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "NQSPY_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert len(done.stderr.splitlines()) <= 1, done.stderr
    if outcome == "full":
        assert done.returncode == 1
        assert done.stderr.startswith(f"{name}: ")
        assert done.stderr.endswith(f"{os.strerror(errno.ENOSPC)}\n")
