"""Of several files that answer shrpri the first counts: who stands behind it is told."""

from pathlib import Path

from nqspy.userexit.seats import shadows
from nqspy.userexit.site_exits import SiteExits

ANSWERS = """\"\"\"Scales.\"\"\"
from nqspy.userexit import userexit

@userexit
def shrpri(owner, group, view):
    return 2 * view.stock_shrpri(owner, group)
"""


def test_the_load_names_files_whose_answer_is_shadowed(tmp_path: Path, house):
    for name in ("shrpri", "zz_mine"):
        (tmp_path / f"{name}.py").write_text(ANSWERS)
    exits = SiteExits(tmp_path)
    said = exits.reload().splitlines()
    assert said[0] == "2 exits loaded: shrpri, zz_mine"
    assert said[1].startswith("zz_mine: its shrpri is asked only where shrpri.py answers None")
    house.stock = {("anne", "d1"): 0.25}
    assert exits.shrpri("anne", "d1", house) == 0.5


def test_nothing_is_said_where_one_alone_answers_or_the_first_is_off():
    rows = [
        {"name": "a", "enabled": False, "hooks": ["shrpri"]},
        {"name": "b", "enabled": True, "hooks": ["shrpri", "submit"]},
        {"name": "c", "enabled": True, "hooks": ["jobselect"]},
    ]
    assert shadows(rows) == []
