"""The three ways out of the house: a shell command, a program like sendmail, a mail server."""

import contextlib
import smtplib
import socket
import time
from collections.abc import Sequence

from nqspy.daemon.letters import Letter, compose
from nqspy.daemon.timed import Command, Hand, NotRun, connection, cut_at, run
from nqspy.model.machine import Mail

TIMEOUT = 30
"""Longest time one mail may take, real seconds."""


class NotSent(Exception):
    """A mail could not be handed over: one line. ``for_good``: it would fail the same way again."""

    def __init__(self, text: str, for_good: bool = False) -> None:
        super().__init__(text)
        self.for_good = for_good


def carry(letter: Letter, mail: Mail, host: str, hand: Hand | None = None) -> None:
    """Hands a letter over; ``hand``: what runs commands, so that others may end them. Raises NotSent."""
    end, hand = time.monotonic() + TIMEOUT, hand or Hand()
    try:
        if mail.command:
            _run(["/bin/sh", "-c", mail.command], compose(letter, mail.sender, host), hand, end)
        elif mail.sendmail:
            sender = ["-f", mail.sender] if mail.sender else []
            words = [mail.sendmail, "-i", *sender, "--", letter.to]
            _run(words, compose(letter, mail.sender, host), hand, end)
        elif mail.smtp:
            _to_server(mail.smtp, letter, mail, host, end)
    except (OSError, ValueError, smtplib.SMTPException, NotRun) as error:
        late = f"it took longer than {TIMEOUT:g} s"
        raise NotSent(late if time.monotonic() >= end else _one_line(error)) from None


def _run(words: Sequence[str], data: bytes, hand: Hand, end: float) -> None:
    # A mail program may go on delivering in the background.
    status, said = run(Command(words, data, errors_only=True, leave_rest=True), hand, end)
    if status != 0:
        text = " ".join(said.decode(errors="replace").split())[-200:]
        raise NotSent(f"the mail command ended {status}" + (f": {text}" if text else ""))


class _Line(smtplib.SMTP):
    """A mail server whose addresses have together the time there is."""

    def __init__(self, end: float) -> None:
        self._end = end
        super().__init__(timeout=TIMEOUT)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return connection(host, port, self._end)


def _to_server(server: str, letter: Letter, mail: Mail, host: str, end: float) -> None:
    name, port = place_of(server)
    sender = mail.sender or f"nqspy@{host}"
    line = _Line(end)
    with cut_at(end, lambda: line.sock):
        try:
            line.connect(name, port)
            line.sendmail(sender, [letter.to], compose(letter, mail.sender, host, smtp=True))
        except smtplib.SMTPRecipientsRefused as refused:
            code, text = refused.recipients[letter.to]
            said = f"{code} {text.decode(errors='replace')}"
            raise NotSent(f"{letter.to} was refused: {said}", 500 <= code < 600) from None
        finally:
            with contextlib.suppress(OSError, smtplib.SMTPException):
                line.quit()


def place_of(server: str) -> tuple[str, int]:
    """Host and port (25 where none is named) of ``HOST:PORT``, ``[::1]:25`` or ``HOST``."""
    host, colon, port = server.rpartition(":") if not server.endswith("]") else (server, "", "")
    host = host if colon else server
    return host.removeprefix("[").removesuffix("]"), int(port) if colon else 25


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
