"""The daemon under test: see ``live.py`` (a process) and ``inner.py`` (inside the test)."""

from daemon import inner as inside
from daemon import live as stage

make_live, live, office, shared = stage.make_live, stage.live, stage.office, stage.shared
inner, fresh = inside.inner, inside.fresh
open_folder = stage.open_folder
