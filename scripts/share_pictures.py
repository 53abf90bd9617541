"""Draws the three scenarios of the manual's page `shares`: parts of departments against their targets, from
simulated histories.

    scripts/share_pictures.py       writes nqspy/manual/pictures/quotas-*.svg
"""

import sys
from pathlib import Path
from typing import Any

from nqspy.model.ids import HOUR, MINUTE
from nqspy.report.utilisation_svg import quota_svg

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from scenarios import quotas  # noqa: E402

FOLDER = ROOT / "nqspy" / "manual" / "pictures"
NAMES = ("after-nights-of-one", "comes-back", "share-changed")
STEP = 30 * MINUTE
BEFORE = 2 * HOUR
"""Time before the change at which the picture begins."""


def picture(course: quotas.Course) -> str:
    """Return the picture of a history as an SVG; hours count from the change."""
    history, rows = course.history, []
    begin = max(0, (history.since - BEFORE) // STEP * STEP)
    for at in range(begin, history.until - STEP + 1, STEP):
        used, due = (course.between(key, at, at + STEP) for key in ("used", "due"))
        groups = {
            name: {"part": used[name] / sum(used.values()), "target": due[name] / sum(due.values())}
            for name in history.shares
            if sum(used.values()) and sum(due.values()) and due[name]
        }
        minutes = (at - history.since // STEP * STEP) // MINUTE
        rows.append({"at": f"0000-00-00T{minutes // 60:2d}:{minutes % 60:02d}", "groups": groups})
    data: dict[str, Any] = {"groups": list(history.shares), "rows": rows}
    return quota_svg(data, f"{history.name}: hours from the change") + "\n"


def main() -> int:
    """Write the pictures; return the exit status."""
    FOLDER.mkdir(exist_ok=True)
    for name, scenario in zip(NAMES, quotas.SCENARIOS, strict=True):
        (FOLDER / f"quotas-{name}.svg").write_text(picture(quotas.run(scenario())))
        print(f"quotas-{name}.svg: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
