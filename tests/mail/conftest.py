"""The mail queue with a mail command, a mail server and a clock of the test's; and under a real daemon."""

import time
from email import message_from_bytes, policy

import pytest
from daemon import live as stage
from mail import mail_server as servers

from nqspy.mail.mail_queue import MailQueue
from nqspy.mail.message import MailMessage
from nqspy.model.machine import Mail

make_live, live = stage.make_live, stage.live
mail_server, tls_server = servers.mail_server, servers.tls_server


def letter(to="anne", subject="hello", text="text", id="1"):
    return MailMessage(to, subject, text, id)


def read(data):
    return message_from_bytes(data, policy=policy.default)


class StandingClock:
    """A clock that a test moves."""

    def __init__(self):
        self.at = 1_800_000_000_000

    def now(self):
        return self.at

    def real_of(self, at):
        return time.time() + 0.02 * (at > self.at)


class Office:
    """A mail queue whose command writes each mail into a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.box = folder / "box"
        self.box.mkdir(exist_ok=True)
        self.clock = StandingClock()
        self.troubles = []
        script = 'new=$(mktemp box/new.XXXXXX) && cat > "$new" && mv "$new" "$new.eml"'
        self.mail = Mail(command=f"cd {folder}; [ ! -e broken ] || exit 7; {script}", limit=20)
        self.posts = []

    def open(self):
        self.posts.append(MailQueue(self.folder / "mail", self.clock, self.troubles.append))
        self.posts[-1].start(self.mail, "ymp")
        return self.posts[-1]

    def mails(self):
        return [read(path.read_bytes()) for path in sorted(self.box.glob("*.eml"))]

    def stored(self):
        return list((self.folder / "mail").glob("*.json"))

    def close(self):
        for each in self.posts:
            each.close(10)


@pytest.fixture
def here(tmp_path):
    """Return an office whose queue is not started yet."""
    made = Office(tmp_path)
    yield made
    made.close()
