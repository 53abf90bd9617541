"""The mail queue under a real daemon: see ``daemon/live.py``."""

from daemon import live as stage

make_live, live = stage.make_live, stage.live
