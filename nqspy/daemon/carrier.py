"""The three ways out of the house: a shell command, a program like sendmail, a mail server."""

import smtplib
import subprocess
from collections.abc import Sequence

from nqspy.daemon.letters import Letter, compose
from nqspy.executors import urgency
from nqspy.model.machine import Mail

TIMEOUT = 30
"""Longest time one mail may take, real seconds."""


class NotSent(Exception):
    """A mail could not be handed over: one line. ``for_good``: it would fail the same way again."""

    def __init__(self, text: str, for_good: bool = False) -> None:
        super().__init__(text)
        self.for_good = for_good


def carry(letter: Letter, mail: Mail, host: str) -> None:
    """Hands a letter over. Raises NotSent."""
    try:
        if mail.command:
            _run(mail.command, letter, mail, host)
        elif mail.sendmail:
            sender = ["-f", mail.sender] if mail.sender else []
            _run([mail.sendmail, "-i", *sender, "--", letter.to], letter, mail, host)
        elif mail.smtp:
            _to_server(mail.smtp, letter, mail, host)
    except (OSError, subprocess.SubprocessError, smtplib.SMTPException) as error:
        raise NotSent(_one_line(error)) from None


def _run(command: str | Sequence[str], letter: Letter, mail: Mail, host: str) -> None:
    urgency.ordinary_children()
    done = subprocess.run(
        command,
        shell=isinstance(command, str),
        input=compose(letter, mail.sender, host),
        timeout=TIMEOUT,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[:200]
        raise NotSent(f"the mail command ended {done.returncode}" + (f": {said}" if said else ""))


def _to_server(server: str, letter: Letter, mail: Mail, host: str) -> None:
    name, port = place_of(server)
    sender = mail.sender or f"nqspy@{host}"
    with smtplib.SMTP(name, port, timeout=TIMEOUT) as line:
        try:
            line.sendmail(sender, [letter.to], compose(letter, mail.sender, host, smtp=True))
        except smtplib.SMTPRecipientsRefused as refused:
            code, text = refused.recipients[letter.to]
            said = f"{code} {text.decode(errors='replace')}"
            raise NotSent(f"{letter.to} was refused: {said}", 500 <= code < 600) from None


def place_of(server: str) -> tuple[str, int]:
    """Host and port (25 where none is named) of ``HOST:PORT``, ``[::1]:25`` or ``HOST``."""
    host, colon, port = server.rpartition(":") if not server.endswith("]") else (server, "", "")
    host = host if colon else server
    return host.removeprefix("[").removesuffix("]"), int(port) if colon else 25


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
