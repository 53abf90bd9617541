"""Settings of mail: addresses and servers that can be meant, and what was set before mail had an object."""

import pytest

from nqspy.engine import lifecycle
from nqspy.model.configure import apply_changes, dump, load, problems
from nqspy.model.events import Change, Recorded, SettingsChanged
from nqspy.model.people import is_address
from nqspy.model.site import Settings, Site


@pytest.mark.parametrize(
    "text", ["anne", "a.b-c_d", "chief@example.org", "x+y=z@sub.example.org", "anne@ymp"]
)
def test_addresses_are_local_users_or_have_a_domain(text):
    assert is_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        "a@",
        "@b",
        "a b",
        "a\nb",
        "a,b",
        "-oQ/tmp",
        "a@b@c",
        "<a@b>",
        '"a"@b',
        "a;b",
        "|/bin/sh",
        "|sh@b",
        "a|b@c",
        "/etc/passwd",
        "/tmp/x@b",
        ".forward",
        "`id`",
        "a!b",
        "a%b@c",
        "root$",
        "ä@b",
        "a" * 255,
    ],
)
def test_what_could_mean_something_else_is_no_address(text):
    assert not is_address(text)


@pytest.mark.parametrize(
    ("path", "value", "good"),
    [
        ("mail/smtp", "post.example.org", True),
        ("mail/smtp", "post.example.org:25", True),
        ("mail/smtp", "[::1]:2525", True),
        ("mail/smtp", "[::1]", True),
        ("mail/smtp", "post:0", False),
        ("mail/smtp", "post:99999", False),
        ("mail/smtp", ":25", False),
        ("mail/smtp", "a b", False),
        ("mail/user", "nqs", False),
        ("mail/password_file", "/etc/nqs", False),
        ("mail/sender", "nqs@example.org", True),
        ("mail/sender", "nqs@example.org\nBcc: eve", False),
        ("group/d1/mail", ["anne", "chief@example.org"], True),
        ("group/d1/mail", ["anne", "eve\n"], False),
    ],
)
def test_what_cannot_be_meant_is_told(path, value, good):
    settings = Settings()
    apply_changes(settings, (Change("create", "group/d1"), Change("set", path, value)))
    assert problems(settings) == [] if good else len(problems(settings)) == 1


def test_the_command_that_older_homes_keep_with_the_server_still_counts():
    old = {"server": {"name": "ymp", "mail": "/bin/post"}, "managers": {}}
    settings = load(old)
    assert settings.mail.command == "/bin/post"
    assert settings.mail.on
    assert settings.server.name == "ymp"
    assert load(dump(settings)).mail.command == "/bin/post"
    newer = load({**old, "mail": {"command": "/bin/new"}})
    assert newer.mail.command == "/bin/new"


def test_events_of_older_homes_set_the_same_command_and_touch_its_row():
    site = Site()
    lifecycle.apply(site, Recorded(1, 1, SettingsChanged((Change("set", "server/mail", "/bin/post"),))))
    assert site.settings.mail.command == "/bin/post"
    assert "mail" in site.touched.settings


def test_one_way_is_enough_and_none_is_no_mail():
    settings = Settings()
    assert not settings.mail.on
    for way in ("command", "sendmail", "smtp"):
        settings = Settings()
        setattr(settings.mail, way, "x")
        assert settings.mail.on
