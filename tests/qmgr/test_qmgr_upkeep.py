"""``set backup`` and ``set history``: what they take, what they refuse, and that they are printed as read."""

import pytest

from nqspy.model.configure import apply_changes
from nqspy.model.ids import DAY
from nqspy.model.site import Settings
from nqspy.qmgr.parser import ParseError, parse_text
from nqspy.qmgr.printer import print_settings
from nqspy.qmgr.show import show_parameters


def build(text: str) -> Settings:
    settings = Settings()
    for each in parse_text(text):
        apply_changes(settings, each.command.changes)
    return settings


def test_as_shipped_a_backup_a_day_seven_kept_and_ninety_days_in_the_database():
    site = Settings()
    assert (site.backup.every, site.backup.keep, site.history.keep) == (DAY, 7, 90 * DAY)
    assert "backup" not in print_settings(site)
    assert "history" not in print_settings(site)


@pytest.mark.parametrize(
    ("text", "every", "keep", "history"),
    [
        ("set backup every=12h keep=14", DAY // 2, 14, 90 * DAY),
        ("set backup every=off", None, 7, 90 * DAY),
        ("SET BACKUP EVERY = unlimited", None, 7, 90 * DAY),
        ("set history keep=20d\nset backup keep=1", DAY, 1, 20 * DAY),
        ("set history keep=unlimited", DAY, 7, None),
    ],
)
def test_what_is_set_is_printed_and_read_again_the_same(text, every, keep, history):
    site = build(text)
    assert (site.backup.every, site.backup.keep, site.history.keep) == (every, keep, history)
    assert build(print_settings(site)) == site
    shown = show_parameters(site)
    assert f"{'Backups kept':<30}{keep}" in shown
    assert ("every                 off" in shown) == (every is None)
    assert ("database       unlimited" in shown) == (history is None)
    assert "8mb" in show_parameters(build("set history size=8mb"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("set history keep=1d", "at least"),
        ("set history keep=off", "no time"),
        ("set backup keep=0", "from 1 to"),
        ("set backup every=1", "at least"),
        ("set backup kept=3", "keep"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(text, told):
    with pytest.raises(ParseError, match=told):
        parse_text(text)
