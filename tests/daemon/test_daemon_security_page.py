"""The manual's page "security" lists the attacks that are tried, no more and no fewer."""

import re

from daemon.attacks import ATTACKS
from daemon.live import ROOT

PAGE = ROOT / "nqspy" / "manual" / "security.md"


def test_the_page_names_every_attack_and_no_other():
    table = re.search(r"<!-- attacks -->\n(.*?)<!-- end of attacks -->", PAGE.read_text(), re.DOTALL)
    assert table
    assert re.findall(r"^- (.*)$", table[1], re.MULTILINE) == list(ATTACKS)
    assert len(ATTACKS) >= 40
