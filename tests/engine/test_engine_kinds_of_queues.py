"""What has no effect in a queue of its kind: refused when typed, loaded from old files, not printed."""

import pytest
from engine.harness import PLAIN, Centre

from nqspy.model import commands as cm
from nqspy.model.events import Change
from nqspy.model.queues import Queue, is_heeded, without_effect
from nqspy.model.tree import declared
from nqspy.qmgr import show
from nqspy.qmgr.printer import print_settings

PIPE = f"{PLAIN}create pipe_queue pp destination=(batch)\n"


@pytest.mark.parametrize(
    "line",
    ["set queue pp queued_limit=5", "set queue pp queued_limit user=5", "set queue pp priority=9",
     "set users = (anne) pp", "set queue pp age_from=submitted", "set queue * user_limit=2",
     "set queue pp user_limit=unlimited", "start queue pp", "enable queue pp"],
)  # fmt: skip
def test_what_has_one_is_taken(line: str) -> None:
    Centre(PIPE).qmgr(line)


def test_of_all_queues_it_is_set_where_it_has_an_effect() -> None:
    centre = Centre(PIPE)
    queues = centre.site.settings.queues
    centre.ask(cm.Configure((Change("set", "queue/pp/run_limit", 3),), upsert=True))
    assert [line.split()[0] for line in without_effect(queues.values())] == ["run_limit"]
    assert "run_limit" not in show.show_queue(centre.site.settings, ("pp",), long=True)
    centre.qmgr("set queue * user_limit=2")
    assert (queues["batch"].user_limit, queues["pp"].user_limit) == (2, None)
    centre.qmgr("set queue * run_limit=unlimited")
    assert list(without_effect(queues.values())) == []
    centre.qmgr('define shift s when="0 6 * * *"\nset queue * user_limit=2\nend')
    centre.is_sound()


def test_each_setting_of_a_queue_is_heeded_by_one_kind_at_least() -> None:
    assert all(is_heeded("batch", path) or is_heeded("pipe", path) for path in declared(Queue))
    assert not is_heeded("batch", "destinations")
    assert not is_heeded("pipe", "per_request/cpu_limit")


def test_old_settings_load_and_are_not_printed() -> None:
    centre = Centre(PIPE)
    centre.ask(cm.Configure((Change("set", "queue/pp/user_limit", 2),), upsert=True))
    assert centre.site.settings.queues["pp"].user_limit == 2
    centre.is_sound()
    assert "user_limit" not in print_settings(centre.site.settings)
    Centre(print_settings(centre.site.settings))
    centre.qmgr("set queue pp user_limit=unlimited")
