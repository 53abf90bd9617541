"""The post: real commands and a real mail server, rations, outages, and nothing in a mail that breaks it."""

import os
import re
from email.utils import parsedate_to_datetime

import pytest
from daemon.live import until
from mail.conftest import letter, read

from nqspy.mail import mail_queue
from nqspy.mail.mail_queue import RateLimit
from nqspy.mail.message import compose, gathered, messages_to
from nqspy.mail.transport import NotSent, deliver, place_of
from nqspy.model.ids import HOUR, MINUTE
from nqspy.model.machine import Mail


# ---------------------------------------------------------------- rations
def test_two_hundred_mails_become_twenty_and_one_with_all_the_rest(here):
    post = here.open()
    many = [letter(subject=f"number {n}", text=f"text {n}\n", id=str(n)) for n in range(200)]
    post.send([*many, letter("ben", id="b")], here.mail, "ymp")
    until(lambda: len(here.mails()) == 21, "twenty for anne, one for ben")
    until(lambda: len(here.stored()) == 180, "the others wait")
    here.clock.at += HOUR
    until(lambda: len(here.mails()) == 22, "then one with the rest")
    singly = [
        each for each in here.mails() if each["To"] == "anne" and "more messages" not in each["Subject"]
    ]
    [rest] = [each for each in here.mails() if "more messages" in each["Subject"]]
    assert len(singly) == 20
    assert rest["Subject"] == "nqspy: 180 more messages"
    told = set(
        re.findall(r"number (\d+)", "".join(each["Subject"] + "\n" for each in singly) + rest.get_content())
    )
    assert told == {str(n) for n in range(200)}, "none is lost"
    assert "text 199" in rest.get_content()
    until(lambda: not here.stored(), "nothing is left")
    [*_, sent] = (here.folder / "mail" / "sent").read_text().splitlines()
    assert len(sent.split()[2].split(",")) == 180, "a restart sends none of them again"


def test_the_rate_limit_is_counted_over_any_hour():
    ration = RateLimit()
    for at in (0, MINUTE, 2 * MINUTE):
        assert not ration.full("anne", at, 3)
        ration.note("anne", at)
    assert ration.full("anne", HOUR - 1, 3)
    assert not ration.full("ben", HOUR - 1, 3)
    assert ration.next({"anne", "ben"}) == HOUR
    assert not ration.full("anne", HOUR, 3), "the first was an hour ago"
    assert ration.next({"anne"}) == HOUR + MINUTE
    assert ration.full("anne", HOUR, 2)
    assert not ration.full("anne", HOUR, None), "a limit that is taken off counts at once"
    assert not ration.full("anne", 0, 1), "a clock set back keeps no mail waiting"


def test_one_that_waits_alone_comes_as_it_is_and_endless_texts_are_cut():
    assert gathered("anne", [letter()]) == letter()
    long = gathered("anne", [letter(text="x" * 200_000, subject=f"s{n}") for n in range(3)])
    assert len(long.text) < 300_000
    assert all(f"s{n}" in long.text for n in range(3))


def test_a_restart_keeps_the_rate_limit_and_what_waits(here):
    here.mail.limit = 2
    here.open().send([letter(id=str(n), subject=f"n{n}") for n in range(5)], here.mail, "ymp")
    until(lambda: len(here.mails()) == 2 and len(here.stored()) == 3, "two sent, three stored")
    here.close()
    here.mail.limit = 3
    here.open()
    until(lambda: len(here.mails()) == 3 and len(here.stored()) == 2, "one more")
    assert sorted(each["Subject"] for each in here.mails()) == ["n0", "n1", "n2"]


# ---------------------------------------------------------------- outages
def test_an_outage_is_told_once_and_all_mails_come_when_it_is_over(here, monkeypatch):
    monkeypatch.setattr(mail_queue, "PAUSES", (0.02, 0.04))
    monkeypatch.setattr(mail_queue, "TRIAL", 0.1)
    (here.folder / "broken").touch()
    post = here.open()
    for n in range(4):
        post.send([letter(id=str(n), subject=f"n{n}")], here.mail, "ymp")
    until(lambda: here.troubles, "an alarm")
    post.send([letter(id="9", subject="n9")], here.mail, "ymp")
    until(lambda: len(here.stored()) == 5, "all are stored")
    assert len(here.troubles) == 1
    assert "the mail command ended 7" in here.troubles[0]
    (here.folder / "broken").unlink()
    until(lambda: len(here.mails()) == 5 and not here.stored(), "five mails")
    assert sorted(each["Subject"] for each in here.mails()) == ["n0", "n1", "n2", "n3", "n9"]
    assert len(here.troubles) == 1


def test_letters_of_a_file_are_sent_once_however_often_it_is_handed_in(here):
    post, path = here.open(), here.folder / "mails.json"
    rows = '[{"to": "anne", "subject": "s", "text": "t", "id": "night.1"}]'
    for _ in range(3):
        path.write_text(rows)
        post.send_file(path, here.mail, "ymp")
        until(lambda: not path.exists(), "the file is taken")
    post.send([letter(id="last", subject="last")], here.mail, "ymp")
    until(lambda: any(each["Subject"] == "last" for each in here.mails()), "the last")
    assert sorted(each["Subject"] for each in here.mails()) == ["last", "s"]


def test_what_was_sent_long_ago_is_forgotten(here, monkeypatch):
    monkeypatch.setattr(mail_queue, "SENT_LINES", 2)
    sent, now = here.folder / "mail" / "sent", here.clock.now()
    sent.parent.mkdir()
    old = [
        f"{now - 2 * HOUR} anne a",
        f"{now - 30 * HOUR} anne night.1",
        f"{now - 200 * HOUR} anne night.2",
        "torn",
    ]
    sent.write_text("\n".join(old))
    here.open().send([letter(id="b"), letter(id="c")], here.mail, "ymp")
    until(lambda: len(here.mails()) == 2 and not here.stored(), "two mails")
    assert [line.split()[2] for line in sent.read_text().splitlines()] == ["night.1", "b", "c"]


def test_without_a_way_out_mails_are_dropped(here):
    here.mail = Mail()
    post = here.open()
    post.send([letter()], here.mail, "ymp")
    post.close(10)
    assert not here.stored()


# ---------------------------------------------------------------- what a mail holds
NASTY = (
    "a\nBcc: eve@example.org", "a\r\n\r\nbody", "a\x00b\x1b[31m", "a\u2028Bcc: eve",
    "=?utf-8?q?=0ABcc:_eve?=", "\ud800", "x" * 5000, "Grüße \U0001f600", "",
)  # fmt: skip


@pytest.mark.parametrize("smtp", [False, True])
@pytest.mark.parametrize("text", NASTY)
def test_names_and_texts_never_become_headers(text, smtp):
    mail = read(compose(letter(subject=f"nqspy: {text}", text=f"{text}\n.\nFrom me\n"), None, "ymp", smtp))
    assert set(mail.keys()) == {
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Precedence", "MIME-Version",
        "Content-Type", "Content-Transfer-Encoding",
    }  # fmt: skip
    assert (mail["To"], mail["From"], mail["Auto-Submitted"]) == ("anne", "nqspy@ymp", "auto-generated")
    assert mail["Message-ID"] == "<1.nqspy@ymp>"
    assert parsedate_to_datetime(mail["Date"]).tzinfo is not None
    assert mail.get_content_charset() == "utf-8"
    assert not any(ord(char) < 32 for char in mail["Subject"])


@pytest.mark.parametrize("smtp", [False, True])
def test_the_text_arrives_as_it_was_written_and_lines_are_never_too_long(smtp):
    text = "Grüße an Dörte\n" + "ä" * 3000 + "\nend\n"
    data = compose(letter(text=text), "nqs@example.org", "ymp", smtp)
    assert max(map(len, data.splitlines())) <= 998
    assert read(data).get_content().replace("\n", "").replace("\r", "") == text.replace("\n", "")
    assert read(data)["From"] == "nqs@example.org"


def test_addresses_are_checked_one_by_one():
    good, bad = messages_to("anne, chief@example.org,anne, -oQ/tmp, a b@c, x\n@y, eve@a@b", "s", "t")
    assert [each.to for each in good] == ["anne", "chief@example.org"]
    assert bad == ["-oQ/tmp", "a b@c", "x\n@y", "eve@a@b"]
    assert len({each.id for each in good}) == 2


# ---------------------------------------------------------------- ways out
def test_a_program_like_sendmail_gets_the_address_as_its_argument(tmp_path):
    program = tmp_path / "sendmail"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/args\ncat > {tmp_path}/mail\n')
    os.chmod(program, 0o755)
    deliver(letter(), Mail(sendmail=str(program), sender="nqs@example.org"), "ymp")
    assert (tmp_path / "args").read_text() == "-i -f nqs@example.org -- anne\n"
    assert read((tmp_path / "mail").read_bytes())["To"] == "anne"
    with pytest.raises(NotSent, match="No such file"):
        deliver(letter(), Mail(sendmail=str(tmp_path / "none")), "ymp")


def test_a_mail_server_takes_a_mail(mail_server):
    host, port = mail_server.server_address
    mail = Mail(smtp=f"{host}:{port}", sender="nqs@example.org")
    deliver(letter(subject="Grüße", text="äöü\n.\n..x\n"), mail, "ymp")
    assert mail_server.said == ["mail FROM:<nqs@example.org>", "rcpt TO:<anne>"]
    [data] = mail_server.mails
    assert data.isascii()
    found = read(data)
    assert found["Subject"] == "Grüße"
    assert found.get_content().splitlines()[0] == "äöü"
    with pytest.raises(NotSent, match="550 no such user") as refused:
        deliver(letter("nobody"), mail, "ymp")
    assert refused.value.for_good


def test_what_a_mail_server_refuses_for_good_is_dropped(here, mail_server):
    here.mail = Mail(smtp=f"127.0.0.1:{mail_server.port}")
    post = here.open()
    post.send([letter("nobody", id="1"), letter("anne", id="2")], here.mail, "ymp")
    until(lambda: len(mail_server.mails) == 1 and not here.stored(), "one mail, nothing left")
    assert not here.troubles


def test_servers_are_named_with_or_without_a_port_and_one_that_is_not_there_is_told_in_a_line():
    with pytest.raises(NotSent, match="refused"):
        deliver(letter(), Mail(smtp="127.0.0.1:1"), "ymp")
    with pytest.raises(NotSent, match="label"):
        deliver(letter(), Mail(smtp="mail..example.org"), "ymp")
    assert place_of("post") == ("post", 25)
    assert place_of("post.example.org:2525") == ("post.example.org", 2525)
    assert place_of("[::1]:26") == ("::1", 26)
    assert place_of("[::1]") == ("::1", 25)


def test_what_could_not_be_sent_waits_for_another_way_and_the_trouble_goes(here):
    way, here.mail = here.mail, Mail(sendmail="/nope/sendmail")
    post = here.open()
    post.send([letter()], here.mail, "ymp")
    until(lambda: post.failing, "it fails")
    post.follow(Mail(), "ymp")
    until(lambda: not post.failing, "nothing is tried any more")
    assert len(here.stored()) == 1
    post.close()
    here.mail = Mail()
    post = here.open()  # what a daemon left waits for a way too
    post.follow(way, "ymp")
    until(lambda: len(here.mails()) == 1, "it goes by the new way")
    until(lambda: not here.stored(), "it is removed")
    assert not post.failing
