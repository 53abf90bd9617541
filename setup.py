"""The commands of ``[project.scripts]`` as scripts of ours.

The wrapper that pip 23 writes for an entry point imports `re`, which takes a third of the time of `qsub`.
pip puts the interpreter into the first line of our scripts, too. A first line cannot hold a path with a blank
or a very long one: there the entry points stay, and pip writes wrappers that begin with ``#!/bin/sh``.
"""

import sys
from pathlib import Path

from setuptools import Distribution, setup

SCRIPT = """#!python
import sys

from {module} import {function}

if __name__ == "__main__":
    sys.exit({function}())
"""
LONGEST = 120


class Commands(Distribution):
    """Turn entry points into scripts once they have been read."""

    def parse_config_files(self, *args: object, **options: object) -> None:
        """Read pyproject.toml, then write the scripts into the build folder."""
        super().parse_config_files(*args, **options)
        if " " in sys.executable or len(sys.executable) > LONGEST:
            return
        folder = Path("build", "commands")
        folder.mkdir(parents=True, exist_ok=True)
        self.scripts = []
        for line in self.entry_points.pop("console_scripts", []):
            name, _, place = line.partition("=")
            module, _, function = place.strip().partition(":")
            file = folder / name.strip()
            file.write_text(SCRIPT.format(module=module, function=function))
            self.scripts.append(file.as_posix())


setup(distclass=Commands)
