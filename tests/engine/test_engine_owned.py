"""What the home's owner alone may set: where a mail server is told his password."""

import pytest
from engine.harness import Centre

from nqspy.model.people import Caller

MIA = Caller("mia", 1007)
MAIL = "set mail smtp=post tls=implicit user=nqs password_file=/etc/nqs.password"


@pytest.fixture
def centre():
    return Centre().qmgr("add managers = (mia:m)")


@pytest.mark.parametrize(
    "text",
    [
        "set mail smtp=evil",
        "set mail tls=starttls",
        "set mail password_file=/etc/shadow",
        'set mail command="cat > /tmp/x"',
    ],
)
def test_a_manager_does_not_say_who_is_told_the_password(centre, text):
    centre.qmgr(MAIL)
    assert "the home's owner alone" in str(centre.refused(centre.command(text), MIA))
    assert centre.site.settings.mail.smtp == "post"
    centre.ask(centre.command("set mail limit=3"), MIA)


def test_nor_which_file_it_is_read_from(centre):
    assert "the home's owner alone" in str(centre.refused(centre.command(MAIL), MIA))
    centre.ask(centre.command("set mail limit=3 from=nqs@example.org"), MIA)


def test_nor_by_way_of_a_shift(centre):
    shift = f'define shift day when=("30 8 * * *")\n{MAIL}\nend'
    assert "the home's owner alone" in str(centre.refused(centre.command(shift), MIA))
    centre.qmgr(shift)
    centre.ask(centre.command("set shift day spill=leave"), MIA)
