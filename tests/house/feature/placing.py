"""Puts the worked example into a copy of nqspy, and says which files that takes."""

import shutil
from pathlib import Path

FILE = Path(__file__).with_name("rest.py")
LINE = '    "preemption.rest": "they have worked for a while",\n'
AFTER = '    "choose": "",  # choose the requests that start, and their PEs\n'


def add_to(core: Path) -> tuple[Path, ...]:
    """Adds the feature to the folder ``core`` of a copy: the files that are new or changed."""
    listed = core / "features.py"
    text = listed.read_text()
    assert AFTER in text
    listed.write_text(text.replace(AFTER, AFTER + LINE))
    return Path(shutil.copy(FILE, core / "preemption")), listed
