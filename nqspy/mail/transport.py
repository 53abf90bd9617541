"""Three ways to send a mail: by a shell command, by a program like sendmail, to a mail server."""

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
from nqspy.system.run_with_timeout import (
    CommandRunner,
    NotRun,
    TimedCommand,
    connection,
    cut_at,
    run,
    seconds_until,
)

TIMEOUT = 30
"""Real seconds that one mail may take."""

_PORTS = {"none": 25, "starttls": 587, "implicit": 465}
_LONGEST = 1024
"""Most characters of a password."""


class NotSent(Exception):
    """A mail could not be sent; the text is one line. ``for_good``: True if another try would fail too."""

    def __init__(self, text: str, for_good: bool = False) -> None:
        super().__init__(text)
        self.for_good = for_good


def deliver(message: MailMessage, mail: Mail, host: str, runner: CommandRunner | None = None) -> None:
    """Send a message the way that ``mail`` configures, within 30 s; ``host``: for the sender's address;
    ``runner``: runs commands and can be stopped. Raises NotSent."""
    end, runner = time.monotonic() + TIMEOUT, runner or CommandRunner()
    try:
        if mail.command:
            _run(["/bin/sh", "-c", mail.command], compose(message, mail.sender, host), runner, end)
        elif mail.sendmail:
            sender = ["-f", mail.sender] if mail.sender else []
            words = [mail.sendmail, "-i", *sender, "--", message.to]
            _run(words, compose(message, mail.sender, host), runner, end)
        elif mail.smtp:
            _to_server(mail.smtp, message, mail, host, end)
    except (OSError, ValueError, smtplib.SMTPException, NotRun) as error:
        late = f"it took longer than {TIMEOUT:g} s"
        text = " ".join(str(error).split())[:300] or type(error).__name__
        raise NotSent(late if time.monotonic() >= end else text) from None


def _run(words: Sequence[str], data: bytes, runner: CommandRunner, end: float) -> None:
    # A mail program may go on delivering in the background.
    status, reply = run(TimedCommand(words, data, errors_only=True, leave_rest=True), runner, end)
    if status != 0:
        text = " ".join(reply.decode(errors="replace").split())[-200:]
        raise NotSent(f"the mail command ended {status}" + (f": {text}" if text else ""))


class _Server(smtplib.SMTP):
    """A connection to a mail server; all its addresses together have the time until ``end``."""

    end = 0.0

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        sock = connection(host, port, self.end)
        sock.settimeout(seconds_until(self.end))  # time for the whole TLS handshake, which follows
        self._host = host  # name that the server's certificate must have
        return sock


class _TLSServer(smtplib.SMTP_SSL, _Server):
    """A connection to a mail server that speaks TLS from the start."""


def _to_server(place: str, message: MailMessage, mail: Mail, host: str, end: float) -> None:
    password = password_of(mail.password_file) if mail.user and mail.password_file else ""
    trust = ssl.create_default_context()
    implicit = mail.tls == "implicit"
    server = _TLSServer(timeout=TIMEOUT, context=trust) if implicit else _Server(timeout=TIMEOUT)
    server.end = end
    name, port = place_of(place, _PORTS[mail.tls])
    with cut_at(end, lambda: server.sock):
        try:
            server.connect(name, port)
            if mail.tls == "starttls" and server.sock is not None:
                server.sock.settimeout(seconds_until(end))
                server.starttls(context=trust)
                seconds_until(end)
            if mail.user and password and mail.tls != "none":
                server.login(mail.user, password)
            data = compose(message, mail.sender, host, smtp=True)
            server.sendmail(mail.sender or f"nqspy@{host}", [message.to], data)
        except smtplib.SMTPRecipientsRefused as refused:
            code, text = refused.recipients[message.to]
            reply = f"{code} {text.decode(errors='replace')}"
            raise NotSent(f"{message.to} was refused: {reply}", 500 <= code < 600) from None
        finally:
            with contextlib.suppress(OSError, smtplib.SMTPException):
                server.quit()


def password_of(path: str) -> str:
    """Return the first line of a password file. Raises NotSent if it is empty or others may read the file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, encoding="utf-8", errors="replace") as file:
        of = os.fstat(fd)
        if not stat.S_ISREG(of.st_mode):
            raise NotSent(f"password file {path} is not a file")
        if of.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(of.st_mode) & 0o077:
            raise NotSent(f"password file {path} can be read by other users: chmod 600")
        password = file.readline(_LONGEST).rstrip("\r\n")
    if not password:
        raise NotSent(f"password file {path} has no password in its first line")
    return password


def place_of(server: str, usual: int = 25) -> tuple[str, int]:
    """Return host and port (default: ``usual``) of ``HOST:PORT``, ``[::1]:25`` or ``HOST``."""
    host, colon, port = server.rpartition(":") if not server.endswith("]") else (server, "", "")
    host = host if colon else server
    return host.removeprefix("[").removesuffix("]"), int(port) if colon else usual
