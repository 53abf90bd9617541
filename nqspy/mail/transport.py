"""The three ways out of the house: a shell command, a program like sendmail, a mail server."""

import contextlib
import os
import smtplib
import socket
import ssl
import stat
import time
from collections.abc import Sequence

from nqspy.mail.message import MailMessage, compose
from nqspy.model.machine import Mail
from nqspy.system.run_with_timeout import Hand, NotRun, TimedCommand, connection, cut_at, run

TIMEOUT = 30
"""Longest time one mail may take, real seconds."""


_PORTS = {"none": 25, "starttls": 587, "implicit": 465}
_LONGEST = 1024
"""Characters of a password."""


class NotSent(Exception):
    """A mail could not be handed over: one line. ``for_good``: it would fail the same way again."""

    def __init__(self, text: str, for_good: bool = False) -> None:
        super().__init__(text)
        self.for_good = for_good


def deliver(message: MailMessage, mail: Mail, host: str, hand: Hand | None = None) -> None:
    """Hands a message over; ``hand``: what runs commands, so that others may end them. Raises NotSent."""
    end, hand = time.monotonic() + TIMEOUT, hand or Hand()
    try:
        if mail.command:
            _run(["/bin/sh", "-c", mail.command], compose(message, mail.sender, host), hand, end)
        elif mail.sendmail:
            sender = ["-f", mail.sender] if mail.sender else []
            words = [mail.sendmail, "-i", *sender, "--", message.to]
            _run(words, compose(message, mail.sender, host), hand, end)
        elif mail.smtp:
            _to_server(mail.smtp, message, mail, host, end)
    except (OSError, ValueError, smtplib.SMTPException, NotRun) as error:
        late = f"it took longer than {TIMEOUT:g} s"
        raise NotSent(late if time.monotonic() >= end else _one_line(error)) from None


def _run(words: Sequence[str], data: bytes, hand: Hand, end: float) -> None:
    # A mail program may go on delivering in the background.
    status, said = run(TimedCommand(words, data, errors_only=True, leave_rest=True), hand, end)
    if status != 0:
        text = " ".join(said.decode(errors="replace").split())[-200:]
        raise NotSent(f"the mail command ended {status}" + (f": {text}" if text else ""))


class _Line(smtplib.SMTP):
    """A mail server whose addresses have together the time there is; spoken to as ``tls`` says."""

    def __init__(self, end: float, tls: str) -> None:
        self._end, self._tls = end, tls
        super().__init__(timeout=TIMEOUT)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        self.sock = connection(host, port, self._end)
        return self._encrypt(self.sock, host) if self._tls == "implicit" else self.sock

    def _encrypt(self, plain: socket.socket, host: str) -> ssl.SSLSocket:
        """From here on by TLS; the server's certificate must be good and be that host's. Our socket is in
        place before a handshake that may be endless, so that it can be cut. Raises OSError."""
        context = ssl.create_default_context()
        sock = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        self.sock = sock
        sock.do_handshake()
        return sock

    def open(self, host: str, port: int) -> None:
        """Connects; encrypted, where that was asked for, or not at all. Raises OSError, SMTPException."""
        self.connect(host, port)
        if self._tls == "starttls":
            self.ehlo_or_helo_if_needed()
            code, said = self.docmd("STARTTLS")
            if code != 220:
                raise smtplib.SMTPResponseException(code, f"no STARTTLS: {said.decode(errors='replace')}")
            assert self.sock is not None
            self._encrypt(self.sock, host)
            # What was said in clear counts no more (RFC 3207).
            self.file = self.ehlo_resp = self.helo_resp = None
            self.esmtp_features, self.does_esmtp = {}, False


def password_of(path: str) -> str:
    """First line of a password file. Raises NotSent where others than its owner could read or change it."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, encoding="utf-8", errors="replace") as file:
        of = os.fstat(fd)
        if not stat.S_ISREG(of.st_mode):
            raise NotSent(f"password file {path} is no file")
        if of.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(of.st_mode) & 0o077:
            raise NotSent(f"password file {path} may be read by others than its owner (chmod 600)")
        password = file.readline(_LONGEST).rstrip("\r\n")
    if not password:
        raise NotSent(f"password file {path} holds no password in its first line")
    return password


def _to_server(server: str, message: MailMessage, mail: Mail, host: str, end: float) -> None:
    name, port = place_of(server, _PORTS[mail.tls])
    sender = mail.sender or f"nqspy@{host}"
    password = password_of(mail.password_file) if mail.user and mail.password_file else ""
    line = _Line(end, mail.tls)
    with cut_at(end, lambda: line.sock):
        try:
            line.open(name, port)
            if mail.user and password and mail.tls != "none":
                line.login(mail.user, password)
            line.sendmail(sender, [message.to], compose(message, mail.sender, host, smtp=True))
        except smtplib.SMTPRecipientsRefused as refused:
            code, text = refused.recipients[message.to]
            said = f"{code} {text.decode(errors='replace')}"
            raise NotSent(f"{message.to} was refused: {said}", 500 <= code < 600) from None
        finally:
            with contextlib.suppress(OSError, smtplib.SMTPException):
                line.quit()


def place_of(server: str, usual: int = 25) -> tuple[str, int]:
    """Host and port (the usual where none is named) of ``HOST:PORT``, ``[::1]:25`` or ``HOST``."""
    host, colon, port = server.rpartition(":") if not server.endswith("]") else (server, "", "")
    host = host if colon else server
    return host.removeprefix("[").removesuffix("]"), int(port) if colon else usual


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
