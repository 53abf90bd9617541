"""Mail commands and servers that flood, hang, drip or cannot be reached: the daemon and other letters lose
nothing by them."""

import json
import os
import resource
import socketserver
import threading
import time

import pytest
from daemon.live import alive, until
from mail.conftest import letter
from mail.mail_server import serving
from msgspec.structs import asdict

from nqspy.mail import mail_queue, transport
from nqspy.mail.transport import NotSent, deliver
from nqspy.model.machine import Mail
from nqspy.system import run_with_timeout


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(transport, "TIMEOUT", 0.5)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_a_mail_command_that_floods_its_output_fills_no_memory(hasty):
    before = peak()
    with pytest.raises(NotSent, match=r"longer than 0\.5 s"):
        deliver(letter(), Mail(command="yes flood; :"), "ymp")
    with pytest.raises(NotSent, match=r"longer than 0\.5 s"):
        deliver(letter(), Mail(command="yes flood >&2; :"), "ymp")
    assert peak() - before < 20_000, "KiB"


def test_of_what_a_mail_command_says_of_its_failure_the_end_is_told():
    command = "cat > /dev/null; yes | head -c 300000 >&2; echo no such person >&2; exit 3"
    with pytest.raises(NotSent, match=r"ended 3: .*no such person$") as told:
        deliver(letter(), Mail(command=command), "ymp")
    assert len(str(told.value)) < 300


def test_a_mail_command_that_hangs_is_ended_with_its_pipeline(hasty, tmp_path):
    with pytest.raises(NotSent, match=r"longer than 0\.5 s"):
        deliver(letter(), Mail(command=f"cd {tmp_path}; sh -c 'echo $$ > pid; exec sleep 1000' | cat"), "ymp")
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not alive(pid), "the pipeline is ended")


def test_a_mail_program_may_go_on_delivering_in_the_background(tmp_path):
    (tmp_path / "go").touch()
    behind = "(while [ ! -e gone ]; do sleep 0.02; done; touch done) > /dev/null 2>&1 &"
    deliver(letter(), Mail(command=f"cd {tmp_path}; cat > mail; {behind}"), "ymp")
    (tmp_path / "gone").touch()
    until(lambda: (tmp_path / "done").exists(), "what it left running goes on")


def test_a_letter_larger_than_a_pipe_arrives_whole_and_one_that_nobody_reads_is_no_failure(tmp_path):
    text = "line\n" * 100_000
    deliver(letter(text=text), Mail(command=f"sleep 0.1; cat > {tmp_path}/mail"), "ymp")
    assert (tmp_path / "mail").read_text().count("line\n") == 100_000
    deliver(letter(text=text), Mail(command="exec < /dev/null; sleep 0.1"), "ymp")


def test_a_command_is_never_killed_by_a_number_that_is_no_longer_its_own():
    runner = run_with_timeout.CommandRunner()
    stop = threading.Event()

    def cut():
        while not stop.is_set():
            runner.cut()

    cutting = threading.Thread(target=cut)
    cutting.start()
    try:
        for _ in range(50):
            status, _ = run_with_timeout.run(
                run_with_timeout.TimedCommand(["sleep", "5"]), runner, time.monotonic() + 20
            )
            assert status == -9
            assert runner.process is None
    finally:
        stop.set()
        cutting.join()


# ---------------------------------------------------------------- mail servers
class RudeAtTheEnd(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            if line.upper().startswith(b"DATA"):
                self.wfile.write(b"354 go on\r\n")
                while self.rfile.readline() != b".\r\n":
                    pass
            self.wfile.write(b"421 no\r\n" if line.upper().startswith(b"QUIT") else b"250 fine\r\n")


def test_what_a_mail_server_has_taken_is_sent_whatever_it_says_to_goodbye():
    with serving(talk=RudeAtTheEnd) as server:
        deliver(letter(), Mail(smtp=f"127.0.0.1:{server.port}"), "ymp")


# ---------------------------------------------------------------- no letter for another
def test_letters_handed_in_while_one_is_being_tried_are_on_the_disk(here):
    post = here.open()
    pid = here.folder / "pid"
    here.mail = Mail(command=f"cd {here.folder}; echo $$ > new; mv new pid; exec sleep 1000")
    post.send([letter(id="1", subject="n1")], here.mail, "ymp")
    until(pid.exists, "the first is being tried")
    post.send([letter(id="2", subject="n2"), letter(id="3", subject="n3")], here.mail, "ymp")
    post.send([letter(id="4", subject="n4")], here.mail, "ymp")
    until(lambda: len(here.stored()) == 4, "all lie on the disk")
    post.close(0.1)
    until(lambda: not alive(int(pid.read_text())), "the command is ended with the post")
    assert len(here.stored()) == 4
    assert not here.troubles
    here.mail = Mail(command=f"cd {here.box}; cat > $$.eml")
    here.open()
    until(lambda: len(here.mails()) == 4 and not here.stored(), "the next daemon sends them")


def test_a_letter_that_cannot_be_handled_holds_up_none_that_a_former_daemon_left(here, monkeypatch):
    real = transport.deliver

    def fails(one, *more):
        if one.id == "0":
            raise RuntimeError("nobody thought of this")
        real(one, *more)

    monkeypatch.setattr(mail_queue, "deliver", fails)
    folder = here.folder / "mail"
    folder.mkdir()
    for n in range(3):
        (folder / f"{n:020d}.json").write_text(json.dumps(asdict(letter(id=str(n), subject=f"n{n}"))))
    here.open()
    until(lambda: len(here.mails()) == 2, "the others leave")
    left = [f"{0:020d}.json"]
    until(lambda: [path.name for path in here.stored()] == left, "sent mails are not stored")


def test_the_post_leaves_no_descriptors_behind(here):
    deliver(letter(), Mail(command="cat > /dev/null"), "ymp")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        deliver(letter(), Mail(command="cat > /dev/null"), "ymp")
        with pytest.raises(NotSent):
            deliver(letter(), Mail(command="exit 1"), "ymp")
    assert len(os.listdir("/proc/self/fd")) == before
