"""Arrays among other requests: holds of a part, from when they age, and their place in the line, as if each
index were a request of its own."""

import pytest
from engine.harness import ANNE, ROOT, Centre
from engine.story import play

from nqspy.model import commands as cm

PIPE = """qmgr create batch_queue small priority=5 | enable queue small | start queue small
    qmgr create pipe_queue pipe destination=(small, batch) | enable queue pipe"""
STORIES = {
    "a range is released of an array that is held": """site pes=4; submit anne array=1-9 held
        hold 1[] letter=o; release 1[3-5] by anne -> 1[3-5]; runs 1[] -; release 1[2-4] letter=uo
        runs 1[] 2-4
        has 1[2] holds=""; left 1[] 1,5-9; release 1[5] by anne -> 1[5]:not_permitted; release 1[5] letter=o
        runs 1[] 2-5""",
    "an index is let go that waits with its array": """site pes=2; submit ben, anne array=1-3 after=1:ok
        release 2[2] letter=s; runs 2[] 2; left 2[] 1,3""",
    "what was not held keeps its date": """site pes=1; submit ben, anne array=1-3; hold 2[3] by anne
        later 5m; release 2[] by anne; moved 2[] 300""",
    "one of which nothing could start gathers no age": """site pes=1; submit anne array=1-2
        submit anne, anne array=1-2 after=1[]:each, ben array=1-2, anne; hold 4[1]; hold 4[2]; later 1m
        release 4[1]; moved 4[] 0; later 3h; starts 1[1] 1[2] 2 5 4[1] 3[1] 3[2]; state 3[] ended""",
    "all indices of one that is put ahead go ahead": """site pes=3
        qmgr create batch_queue fast priority=20 user_limit=1 | enable queue fast | start queue fast
        submit ben pes=3, anne array=1-3, carl queue=fast, dora queue=fast; schedule 2[] place=next
        later 10m; starts 1 2[1] 2[2] 2[3]""",
    "a queue that is moved takes no index along that waits elsewhere": """qmgr create batch_queue other
        qmgr enable queue other | create batch_queue third | enable queue third | stop queue batch
        submit anne array=1-5; move 1[4] to=other by anne; qmgr move queue batch third
        queue 1[] third 1[4] other""",
}
STORIES |= {
    f"routed to where there is room for its indices: {limit}": f"""site pes=1; {PIPE}
        qmgr set queue small {limit}; submit anne array=1-6 queue=pipe, anne array=1-3 queue=pipe
        qmgr start queue pipe; submit anne array=1-6 queue=pipe, anne array=1-3 queue=pipe
        queue 1[] batch 2[] small 3[] batch 4[] batch; refuse anne array=1-6 queue=small -> {kind}
        submit anne array=1-2 queue=small; refuse anne queue=small -> {kind}"""
    for limit, kind in (
        ("queued_limit=5", "queued_limit"),
        ("user_queued_limit=5", "user_queued_limit"),
        ("run_limit=5 loadonly=on", "queue_full"),
    )
}
STORIES |= {
    f"one that never has room is refused: {never}, {passing}": f"""site pes=2; {PIPE}
        qmgr set queue small {never} | set destination=(small) pipe | start queue pipe
        submit anne array=1-2 queue=small; qmgr {passing}
        refuse anne array=1-4 queue=pipe -> no_destination"""
    for passing in ("set queue small queued_limit=5", "disable queue small")
    for never in ("queued_limit user=3", "run_limit=3 loadonly=on")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_places(title: str) -> None:
    play(STORIES[title])


# ---------------------------------------------------------------- queues that are full


def test_who_owns_an_array_is_told_that_somebody_deleted_of_it() -> None:
    centre = Centre()
    centre.qmgr("stop queue batch")
    centre.submit("anne array=1-5 mail=abort", "anne array=1-5", "anne array=7-8 mail=abort")
    centre.ask(cm.Delete(("1[3-4]", "2[3-4]")), ROOT)
    centre.ask(cm.Delete(("1[5]",)), ANNE)
    centre.ask(cm.Delete(("1[]",)), ROOT)
    centre.qmgr("purge queue batch")
    assert [each.subject for each in centre.sim.notices] == [
        "nqspy: 1[3-4].sim deleted", "nqspy: 1[].sim deleted", "nqspy: 3[].sim deleted",
    ]  # fmt: skip
