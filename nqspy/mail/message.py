"""Mails as they are sent: headers that no text of a user can break, text in UTF-8."""

import re
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import SMTP, default
from email.utils import formatdate
from uuid import uuid4

from msgspec import Struct

from nqspy.model.people import addresses_in, is_address

NIGHT = "night."
"""Prefix of the ids of the nights' mails, which may be queued twice."""
_LONGEST_SUBJECT = 200
_LONGEST_LINE = 900
_MOST_TEXT = 256 * 1024
"""Most characters of gathered texts in one mail; of further mails only the subjects are in it."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class MailMessage(Struct, frozen=True):
    """A mail to one address. ``id`` identifies it: a message with the same id is sent once."""

    to: str
    subject: str
    text: str
    id: str


def messages_to(to: str, subject: str, text: str) -> tuple[list[MailMessage], list[str]]:
    """Return a message for each address in ``to`` (commas between), and the words that are no addresses."""
    names = addresses_in(to)
    good = list(dict.fromkeys(name for name in names if is_address(name)))
    bad = [name for name in names if name not in good]
    return [MailMessage(name, subject, text, uuid4().hex) for name in good], bad


def one_line(text: str) -> str:
    """Return a text short enough for a header, without control characters or encoded words (RFC 2047)."""
    return " ".join(_CONTROLS.sub(" ", text).replace("=?", "= ?").split())[:_LONGEST_SUBJECT]


def compose(message: MailMessage, sender: str | None, host: str, smtp: bool = False) -> bytes:
    """Return the whole mail as bytes (RFC 5322, 3834); ``sender`` None: nqspy@``host``; ``smtp``: in ASCII
    for any server, else in UTF-8."""
    host = host if is_address(f"x@{host}") else "localhost"
    mail = EmailMessage(policy=SMTP if smtp else default)
    mail["From"] = sender or f"nqspy@{host}"
    mail["To"] = message.to
    mail["Subject"] = one_line(message.subject) or "nqspy"
    mail["Date"] = formatdate(localtime=True)
    mail["Message-ID"] = f"<{re.sub(r'[^A-Za-z0-9.-]', '-', message.id)}.nqspy@{host}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["Precedence"] = "bulk"
    text = _CONTROLS.sub("\ufffd", message.text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = []
    for line in text.split("\n"):  # in pieces short enough for every mail program (998 bytes)
        size = _LONGEST_LINE // 4 if len(line.encode()) > _LONGEST_LINE else len(line) or 1
        lines += [line[at : at + size] for at in range(0, len(line) or 1, size)]
    text = "\n".join(lines).rstrip("\n") + "\n"
    plain = text.isascii() and not smtp
    mail.set_content(text, charset="utf-8", cte="quoted-printable" if smtp else "7bit" if plain else "8bit")
    return mail.as_bytes()


def gathered(to: str, waiting: Sequence[MailMessage]) -> MailMessage:
    """Return one message with all waiting messages to one address."""
    if len(waiting) == 1:
        return waiting[0]
    parts, size = [f"The hourly limit of mails to you was reached; {len(waiting)} messages follow here.\n"], 0
    for number, each in enumerate(waiting, 1):
        size += len(each.text)
        text = each.text.strip() if size <= _MOST_TEXT else "(text omitted)"
        parts.append(f"--- {number}: {one_line(each.subject)}\n{text}\n")
    return MailMessage(to, f"nqspy: {len(waiting)} more messages", "\n".join(parts), uuid4().hex)
