"""What one message, one forged answer, or a system that has nothing left to give could do to the daemon: it
says so and goes on."""

import contextlib
import errno
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import pytest
from daemon.inner import Inner
from daemon.live import alive, until

from nqspy.answers import dispatcher, output
from nqspy.daemon import notices
from nqspy.daemon.home import Home, HomeError
from nqspy.daemon.inbox import EngineCall
from nqspy.daemon.main import Daemon
from nqspy.daemon.memory import PressureWatch
from nqspy.daemon.starting import StartOptions
from nqspy.decider import process
from nqspy.model.errors import NqspyError
from nqspy.rpc.client import Client
from nqspy.store import restoring


# ---------------------------------------------------------------- one message
def test_a_field_that_nobody_reads_may_be_nested_as_deep_as_it_likes(live):
    pid = live.pid
    for depth in (10, 500, *range(900, 1000, 15), 5_000):
        [answer] = live.wire(b'{"v":1,"id":1,"cmd":"qstat","x":' + b"[" * depth + b"]" * depth + b"}")
        assert answer["ok"] or "recursion depth" in answer["error"]["text"], answer
    live.ended(live.submit("true"))
    assert live.pid == pid


def test_an_error_of_our_own_over_one_message_refuses_that_one_and_is_logged(fresh, monkeypatch, caplog):
    def fails(*_):
        raise LookupError("an error of our own")

    monkeypatch.setattr(dispatcher, "key_of", fails)
    monkeypatch.setattr(dispatcher, "_decode", fails)
    for cmd, fields in (("qstat", {}), ("hold", {"ids": ["1"]})):
        assert fresh.refusal("owner", cmd, **fields)[0] == "internal"
    assert sum(bool(each.exc_info) and each.exc_info[0] is LookupError for each in caplog.records) == 2
    monkeypatch.undo()
    fresh.submit("owner")
    assert len(fresh.result("owner", "list_requests")) == 1


def test_output_that_somebody_made_a_pipe_holds_nobody_up(tmp_path):
    (tmp_path / "17.1").mkdir()
    os.mkfifo(tmp_path / "17.1" / "stdout")
    with ThreadPoolExecutor(1) as pool:
        looks = pool.submit(output.read, tmp_path, "17.1/stdout", 0, os.getuid())
        assert isinstance(looks.exception(timeout=5), PermissionError)


# ---------------------------------------------------------------- one forged answer
FORGES = '''
"""It writes to the daemon by itself."""
import os, stat
from nqspy.userexit import refuse, userexit

def s(text):
    return bytes([0xa0 + len(text)]) + text.encode()

NOTHING = b"\\x90"
PLAN = (b"\\x89" + s("kind") + s("planned") + s("id") + b"\\0" + s("actions") + NOTHING + s("own") + b"\\x80"
        + s("closing") + b"\\x80" + s("wake_at") + b"\\xc0" + s("short") + b"\\xc2" + s("failures") + NOTHING
        + s("listing") + NOTHING)
ROWS = (b"\\x86" + s("kind") + s("loaded") + s("id") + b"\\0" + s("problems") + NOTHING + s("unfit") + NOTHING
        + s("listing") + b"\\x91\\x80" + s("units") + b"\\x80")

def forge(body):
    for fd in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, len(body).to_bytes(4, "big") + body)
        except OSError:
            pass

@userexit
def submit(request):
    if request.name in ("plan", "rows"):
        forge(PLAN if request.name == "plan" else ROWS)
        return refuse("it is not wanted")
'''


def test_a_plan_that_nobody_asked_for_and_rows_that_are_none_do_not_end_the_daemon(make_live):
    live = make_live().site(exits={"forger": FORGES}).start()
    pid = live.pid
    for name in ("before", "plan", "after", "rows", "after"):
        with contextlib.suppress(NqspyError):  # refused, or taken when its process was ended over it
            live.ended(live.submit("true", name=name))
    live.ended(live.submit("true", name="after"))
    assert live.run("nqspy", "exits", "list").ok()
    assert (live.pid, alive(pid)) == (pid, True)


# ---------------------------------------------------------------- nothing left to give
NOTICED = '''
"""It is told of ends."""
from nqspy.userexit import userexit
@userexit
def jobend(request):
    pass
'''


@pytest.fixture
def noticed(fresh):
    """One whose exit is told of ends."""
    (fresh.daemon.home.path / "exits" / "told.py").write_text(NOTICED)
    fresh.qmgr("reload exits")
    return fresh


def test_where_no_process_can_be_begun_a_notice_is_left_out_and_logged(noticed, monkeypatch, caplog):
    nothing_left = BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    monkeypatch.setattr(process.os, "fork", mock.Mock(side_effect=nothing_left))
    noticed.daemon.turn([EngineCall(noticed.daemon.notice_runner.ready)])
    assert str(nothing_left) in caplog.text
    monkeypatch.undo()
    noticed.daemon.turn([EngineCall(noticed.daemon.notice_runner.ready)])
    assert noticed.daemon.notice_runner._worker is not None


def _children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_where_no_thread_can_be_begun_the_child_is_ended_and_nothing_of_it_is_left(noticed, monkeypatch):
    decider = noticed.daemon.decider
    sources = decider.sources
    gc.collect()
    no_thread = mock.Mock(side_effect=RuntimeError("can't start new thread"))
    monkeypatch.setattr(process.threading.Thread, "start", no_thread)
    children, open_files = _children(), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(BlockingIOError, match="it cannot be listened to: can't start new thread"):
            decider.fork(sources)
    gc.collect()
    assert _children() == children
    until(lambda: len(os.listdir("/proc/self/fd")) <= open_files, "the descriptors of before")


def test_what_a_restore_has_left_is_kept_until_it_is_written(tmp_path):
    Inner(tmp_path).close()
    home = Home(tmp_path)
    restoring._write_note(home.database, restoring.Rewound("a backup was restored", 500, {3: 1}))
    daemon = Daemon(home, StartOptions())

    def full():
        daemon.journal.failpoint = None
        raise OSError(errno.ENOSPC, "No space left on device")

    daemon.journal.failpoint = full
    with pytest.raises(HomeError, match="after a restore could not be written"):
        daemon.start()
    daemon.close()
    assert restoring.rewound(home.database) is not None
    again = Daemon(home, StartOptions())
    again.start()
    assert again.engine.site.next_seq == 500
    assert restoring.rewound(home.database) is None
    again.close()


class _SlowToClear(threading.Event):
    """Its first `clear` stands still until the test says so."""

    def __init__(self):
        super().__init__()
        self.entered, self.go_on = threading.Event(), threading.Event()

    def clear(self):
        self.entered.set()
        self.go_on.wait(10)
        super().clear()


def test_the_memorys_watch_ends_whenever_it_is_told_to():
    watch = PressureWatch(lambda observation: None, lambda attempts: {})
    watch._wake = wake = _SlowToClear()
    watch._thread = threading.Thread(target=watch._run, daemon=True)
    watch._thread.start()
    wake.entered.wait(0.5)
    closes = threading.Thread(target=watch.close, daemon=True)
    closes.start()
    closes.join(0.1)
    wake.go_on.set()
    closes.join(5)
    assert not closes.is_alive()


def test_notices_of_exits_that_are_slow_do_not_fill_the_memory(fresh, monkeypatch, caplog):
    monkeypatch.setattr(notices, "MOST", 3)
    slow, given, told = threading.Event(), [], fresh.daemon.notices
    told.later(slow.wait)
    until(told._queue.empty, "the slow one to be under way")
    for number in range(10):
        told.later(lambda number=number: given.append(number))
    slow.set()
    until(lambda: given == [0, 1, 2], "those that waited")
    told.later(lambda: given.append(99))
    until(lambda: given[-1] == 99, "the one that comes when there is room")
    assert [each.args for each in caplog.records if "notices" in each.msg] == [(3,), (7,)]


def test_what_is_committed_last_of_all_is_told_as_well(tmp_path, caplog):
    caplog.set_level("INFO", "nqspy")
    inner = Inner(tmp_path / "home")
    inner.daemon.engine.transaction(inner.daemon.clock.now()).alarm("mail", "no way out", "letters stay here")
    told = [line for line in caplog.messages if line.startswith("notice to ")]
    inner.close()
    assert [line for line in caplog.messages if "no way out" in line] not in ([], told)


# ---------------------------------------------------------------- what somebody takes away
def test_a_socket_that_was_removed_is_bound_again(live):
    with Client(live.home) as before:
        before.call("ping")
        (live.home / "nqsd.sock").unlink()
        until((live.home / "nqsd.sock").exists, "the socket")
        assert live.ended(live.submit("exit 3"))["exit_status"] == 3
        assert before.call("ping")
    assert "the socket was removed; it is there again" in live.log
