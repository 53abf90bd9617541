"""The daemon under test: see ``live.py``."""

from daemon import live as stage

make_live, live, office = stage.make_live, stage.live, stage.office
open_folder = stage.open_folder
