"""Loading user exits: the journal says which files hold from when on, and keeps a copy of each."""

import pytest
from engine.harness import OLGA, PLAIN, Centre

from nqspy.core.no_exits import NoExits
from nqspy.engine.handlers import exits as exits_desk
from nqspy.model import commands as cm
from nqspy.model import events as ev


class Loaded(NoExits):
    """Exits of these files; ``told``: what a reload answers."""

    def __init__(self, **files: bytes) -> None:
        self.known, self.told = files, "loaded"

    def files(self):
        return self.known

    def reload(self):
        return self.told


@pytest.fixture
def centre() -> Centre:
    return Centre(PLAIN + "set managers = (olga:m)\n", exits=Loaded(quiet=b"first"))


def test_each_reload_is_journaled_with_a_copy_of_each_file(centre: Centre) -> None:
    centre.ask(cm.ReloadExits(), OLGA)
    centre.engine.exits.known = {"quiet": b"second", "huge": b"x" * (exits_desk.LONGEST_COPY + 1)}
    centre.ask(cm.ReloadExits(), OLGA)
    first, second = (dict(each.files) for each in centre.events(ev.LoadedExits))
    assert centre.journal.blob(first["quiet"]) == b"first"
    assert centre.journal.blob(second["quiet"]) == b"second"
    with pytest.raises(KeyError):
        centre.journal.blob(second["huge"])
    assert centre.site.loaded_exits == second == centre.journal.load().loaded_exits


def test_exits_that_are_still_being_loaded_are_not_journaled(centre: Centre) -> None:
    centre.engine.exits.told = ""
    assert "as soon as they are" in centre.ask(cm.ReloadExits(), OLGA)["text"]
    assert not centre.events(ev.LoadedExits)


def test_a_start_journals_only_exits_that_the_journal_does_not_know(centre: Centre) -> None:
    for _ in range(2):
        exits_desk.loaded_at_start(centre.engine.transaction(centre.sim.now))
        centre.engine.flush(centre.sim.now)
    assert len(centre.events(ev.LoadedExits)) == 1
