"""Folder of the site that comes with nqspy: settings (``queues.d``) and user exits (``exits``)."""

import sysconfig
from pathlib import Path


def shipped() -> Path:
    """Return the folder with the shipped ``queues.d`` and ``exits``: of the installation or checkout."""
    installed = Path(sysconfig.get_path("data")) / "share" / "nqspy"
    checkout = Path(__file__).resolve().parents[2]
    return installed if (installed / "queues.d").is_dir() else checkout
