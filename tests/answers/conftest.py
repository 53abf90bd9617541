"""Answers of a daemon: a process (``daemon/live.py``), or inside the test (``daemon/inner.py``)."""

from daemon import inner as inside
from daemon import live as stage

make_live, live, office = stage.make_live, stage.live, stage.office
inner, fresh = inside.inner, inside.fresh
open_folder = stage.open_folder
