"""The decider under a real daemon: see ``daemon/live.py``."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon import live as stage
from decider.wild import Wild

make_live, live = stage.make_live, stage.live
open_folder = stage.open_folder


@pytest.fixture
def make_wild(tmp_path: Path) -> Iterator[Callable[..., Wild]]:
    """Return a function that makes homes with any exits, which may fail unless they are ``calm``."""
    made: list[Wild] = []

    def make(folder: Path = tmp_path, calm: bool = False) -> Wild:
        made.append(Wild(folder / f"home{len(made)}", folder / f"work{len(made)}"))
        made[-1].accepts_trouble = not calm
        return made[-1]

    yield make
    for each in made:
        each.close()
