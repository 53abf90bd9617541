"""Mail by a server that wants TLS and a password: nothing of it is sent in clear, nor to anybody else."""

import contextlib
import os
import socket
import threading

import pytest
from daemon.live import until
from mail.conftest import letter

from nqspy.mail import transport
from nqspy.mail.transport import NotSent, deliver
from nqspy.model.machine import Mail

TLS = pytest.mark.parametrize("tls", ["starttls", "implicit"])


@pytest.fixture
def password(tmp_path):
    path = tmp_path / "password"
    path.write_text("secret\n")
    path.chmod(0o600)
    return path


def mail_for(server, tls, password, host="localhost"):
    return Mail(smtp=f"{host}:{server.port}", tls=tls, user="nqs", password_file=str(password))


@TLS
def test_a_mail_goes_by_tls_and_with_the_password(tls_server, tls, password, monkeypatch):
    server = tls_server(tls == "implicit")
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    deliver(letter(), mail_for(server, tls, password), "ymp")
    assert server.told == [("nqs", "secret", True)]
    assert len(server.mails) == 1
    password.write_text("wrong\n")
    with pytest.raises(NotSent, match="535"):
        deliver(letter(), mail_for(server, tls, password), "ymp")


@TLS
def test_nothing_is_told_to_a_server_that_is_not_who_it_should_be(tls_server, tls, password, monkeypatch):
    server = tls_server(tls == "implicit")
    with pytest.raises(NotSent, match=r"(?i)certificate"):
        deliver(letter(), mail_for(server, tls, password), "ymp")
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    with pytest.raises(NotSent, match=r"(?i)certificate"):
        deliver(letter(), mail_for(server, tls, password, host="127.0.0.1"), "ymp")
    assert (server.told, server.mails, server.said) == ([], [], [])


def test_nothing_is_told_to_a_server_without_tls(mail_server, password):
    with pytest.raises(NotSent):
        deliver(letter(), mail_for(mail_server, "starttls", password), "ymp")
    assert (mail_server.told, mail_server.mails, mail_server.said) == ([], [], [])


def test_a_password_that_others_may_read_or_change_is_not_sent(tls_server, tmp_path, password, monkeypatch):
    server = tls_server(True)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    for mode in (0o640, 0o604, 0o620, 0o602):
        password.chmod(mode)
        with pytest.raises(NotSent, match="chmod 600"):
            deliver(letter(), mail_for(server, "implicit", password), "ymp")
    assert (server.told, server.mails) == ([], [])
    password.chmod(0o600)
    password.write_text("\nlate\n")
    os.mkfifo(tmp_path / "fifo", 0o600)
    for path, message in (
        (password, "has no password"),
        (tmp_path / "fifo", "is not a file"),
        ("/no", "No such"),
    ):
        with pytest.raises(NotSent, match=message):
            deliver(letter(), mail_for(server, "implicit", path), "ymp")


@pytest.mark.parametrize("tls", ["none", "starttls", "implicit"])
def test_a_server_that_drips_ends_in_time(tls, password, monkeypatch):
    monkeypatch.setattr(transport, "TIMEOUT", 0.5)
    over = threading.Event()

    def drip():
        with contextlib.suppress(OSError), listener.accept()[0] as talk:
            if tls == "starttls":
                talk.sendall(b"220 here\r\n250-here\r\n250 STARTTLS\r\n220 go on\r\n")
            while not over.wait(0.05):
                talk.sendall(b"2" if tls == "none" else b"\x16")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip)
        thread.start()
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        mail = Mail(smtp=where, tls=tls, user="n", password_file=str(password))
        with pytest.raises(NotSent):
            deliver(letter(), mail, "ymp")
        over.set()
        listener.shutdown(socket.SHUT_RDWR)  # where the time was over before it was reached
        thread.join()


def test_the_daemon_mails_by_tls(make_live, tls_server, password):
    live, server = make_live(), tls_server(False)
    live.environment["SSL_CERT_FILE"] = str(server.certificate)
    live.site().start()
    way = f"smtp=localhost:{server.port} tls=starttls user=nqs password_file={password}"
    live.qmgr(f"set mail {way} from=n@example.org").ok()
    assert "starttls, as nqs" in live.run("qmgr", "-c", "show parameters").ok().out
    live.ended(live.qsub("exit 0\n", "-me"))
    until(lambda: server.mails, "a mail has come")
    assert server.told[0] == ("nqs", "secret", True)
    live.qmgr("set mail tls=none").refused("needs encryption")
    live.qmgr("set mail user=none").refused("user and password_file")
