"""Every setting that is a text, and how it is guarded: whoever names a program or a path has the rights of
who runs or opens it. The page "security" tells the same."""

import re

from house.checkout import PACKAGE

from nqspy.core import features as features  # declares the features' settings
from nqspy.engine.handlers import requests
from nqspy.model import registry
from nqspy.model.tree import Declared

OWNERS = {
    "mail/command", "mail/sendmail", "mail/smtp", "mail/tls", "mail/user", "mail/password_file",
    "probe/command", "probe/file", "server/shell_strategy", "consumable/env",
}  # fmt: skip
"""Programs that are run, paths that are opened: root's and the home's owner's alone."""
WORDS = {
    "mail/sender", "probe/tcp", "probe/http", "server/name", "server/timezone", "default/queue",
    "group/parent", "queue/domain", "calendar/holidays", "server/user_spool",
    "probe/units", "gang/default_class", "default/mpprun_queue", "machine/shape",
}  # fmt: skip
"""Texts that are neither: names, addresses."""
OF_A_REQUEST = {"shell", "umask", "output/stdout", "output/stderr", "output/join"}
"""What `modify request` may change that is run or opened: as its owner, so for whom might submit as him."""


def texts() -> dict[str, Declared]:
    """All settings that take any text: lists hold names of users, queues, probes and times."""
    return {
        f"{kind.head}/{path}": info
        for kind in registry.objects()
        for path, info in kind.known.items()
        if info.unit in ("text", "name") and (info.guard or not info.words)
    }


def test_every_setting_that_is_a_text_is_known_and_programs_and_paths_are_the_owners():
    found = texts()
    assert set(found) == OWNERS | WORDS, "say of a new setting whether it names a program or a path"
    assert {path for path, info in found.items() if info.guard} == OWNERS


def test_lists_hold_no_paths():
    known = [(f"{kind.head}/{path}", of) for kind in registry.objects() for path, of in kind.known.items()]
    assert {path for path, info in known if info.unit == "names"} == {
        "queue/destinations", "queue/users", "queue/groups", "queue/needs", "complex/queues",
        "group/members", "group/mail", "calendar/extra", "calendar/workdays", "shift/lines", "domain/pes",
        "domain/features", "domain/users", "domain/groups", "domain/accounts", "machine/offline",
        "consumable/units", "consumable/offline", "class/users", "class/groups",
    }  # fmt: skip


def test_what_modify_changes_is_known():
    may = {path.removeprefix("array/") for path in requests.MODIFIABLE if not path.startswith("ask/")}
    assert {path for path in may if path.partition("/")[0] in requests.AS_OWNER} == OF_A_REQUEST
    mine = {"name", "priority", "eligible", "account", "rerunnable", "contract", "mold", "job_class"}
    assert may - OF_A_REQUEST == mine | {"queue", "limit", "layout"}


def test_the_page_says_the_same():
    page = (PACKAGE / "manual" / "security.md").read_text()
    rows = page.partition("<!-- programs -->")[2].partition("<!-- end of programs -->")[0].splitlines()
    told = {name: "the home's owner's" in row for row in rows for name in re.findall(r"`(\w+/\w+)`", row)}
    assert told == dict.fromkeys(OWNERS, True) | dict.fromkeys(WORDS, False)
