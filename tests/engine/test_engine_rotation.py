"""Requests that share PEs take turns in slots (seed 002, section 4), in the simulator."""

import pytest
from engine.harness import Centre
from engine.story import Story, play
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core import features
from nqspy.engine.virtual.attempts import Run
from nqspy.model import events as ev
from nqspy.model import slots
from nqspy.model.actions import TakeTurns
from nqspy.model.facts import Promise

SHARED = """
create batch_queue batch priority=10
enable queue batch
start queue batch
set default batch_request queue batch
set domain application depth=3 heartbeat=10 placement=slots
"""
FIGURE_4 = """submit anne pes=5, ben pes=5; pes 1 0-4 2 5-9
    qmgr set machine offline=(0-1, 7-9); submit anne pes=5; pes 3 2-6
    qmgr set machine offline=(0-4); submit ben pes=5; pes 4 5-9; qmgr set machine offline=()"""
STORIES = {
    "figure 4: A runs in two slots of three, the others in one": f"""{FIGURE_4}
        later 899s; known 4; later 1s; end 1 exit; ran 1 600
        later 899s; known 3; later 1s; end 2 exit; end 3 exit; end 4 exit; ran 2 600; ran 3 600; ran 4 600""",
    "one alone runs all the time again": """submit anne pes=10, ben pes=10; later 20m; end 1 exit; end 2 exit
        submit anne pes=10; later 10m; end 3 exit; ran 3 600""",
    "a wall limit counts the time in its slots": """submit anne pes=10 wall=5:00, ben pes=10
        later 599s; known 2; later 1s; end 1 wall_limit; ran 1 300
        later 299s; known 1; later 1s; end 2 exit""",
    "a suspended request has no slot": """submit anne pes=10, ben pes=10; later 100s; suspend 1
        later 550s; end 2 exit; ran 2 600; resume 1; later 550s; end 1 exit; ran 1 600""",
    "without a slot length all run at once": """submit anne pes=10, ben pes=10; later 100s
        qmgr set domain application heartbeat=none; later 550s; end 1 exit; end 2 exit; ran 2 600""",
    "a new slot length, and one more holder": """submit anne pes=10, ben pes=10; later 200s
        qmgr set domain application heartbeat=60; later 200s; submit anne pes=10
        later 1200s; end 1 exit; end 2 exit; known 1; later 200s; end 3 exit; ran 3 600""",
    "an array's indices take turns": """submit anne pes=10 array=1-3; later 30m; empty""",
}


@pytest.mark.parametrize("title", STORIES)
def test_stories(title):
    play(STORIES[title], settings=SHARED, pes=10)


def test_slots_vary_in_length_by_the_share_values_of_their_requests():
    groups = "create group rich share=90 members=(anne)\ncreate group poor share=10 members=(ben)\n"
    site = f"{SHARED}set domain application variation=400%\n{groups}"
    work = "submit anne pes=10, ben pes=10, ben pes=10, anne pes=10, anne pes=10; later 1s"
    story = play(work, settings=site, pes=10, lengths=lambda _: Run(36_000_000, cpu=360_000_000))
    assert story.centre.site.promises["rotate"]["application"]["lengths"] == [10_000] * 3
    story.play("later 3h")
    table = story.centre.site.promises["rotate"]["application"]
    first, second, third = table["lengths"]
    assert table["slots"] == [[1], [2], [3]]
    assert 2_500 <= second == third < 10_000 < first <= 40_000
    story.play("later 60h; empty; ran 1 36000; ran 3 36000")


def test_an_event_records_a_table_only_when_it_changes_and_it_survives_a_restart():
    story = play(FIGURE_4, settings=SHARED, pes=10)
    tables = [e for e in story.centre.events() if isinstance(e, ev.Promised) and e.feature == "rotate"]
    assert [len(each.value["slots"]) for each in tables] == [2, 3]
    assert tables[-1].value == {
        "slots": [[1, 2], [3], [4, 1]],
        "lengths": [10_000] * 3,
        "partial": False,
        "stopped": [],
    }
    story.play("restart now; later 900s; end 1 exit; ran 1 600; later 15m; empty")
    tables = [e for e in story.centre.events() if isinstance(e, ev.Promised) and e.feature == "rotate"]
    assert tables[-1].value is None


def test_an_adopted_attempt_is_told_its_turns_again():
    story = play("submit anne pes=10, ben pes=10; later 10s", settings=SHARED, pes=10)
    orders = []
    before = story.centre.sim.executor.do
    story.centre.sim.executor.do = lambda action, *more: (orders.append(action), before(action, *more))[1]
    story.centre.sim.restart()
    assert [each.seq for each in orders if isinstance(each, TakeTurns)] == [1, 2]


def is_right(centre):
    """Check the slot table against the requests that run, from their PEs alone."""
    site = centre.site
    running = {r.seq: set(r.pes) for r in site.started.values() if r.state == "running"}
    table = slots.table_of(site, "application")
    if table is None:
        assert sum(map(len, running.values())) == len(set().union(*running.values())), "two share a PE"
        return
    assert set().union(*table.slots) == set(running)
    for slot in table.slots:
        pes = [pe for seq in slot for pe in running[seq]]
        assert len(pes) == len(set(pes)), "two in a slot share a PE"
    assert max(map(len, site.holders.values())) <= len(table.slots)


steps = st.lists(
    st.one_of(
        st.builds("submit anne pes={} wall={}:00".format, st.integers(1, 10), st.integers(1, 20)),
        st.builds("later {}s".format, st.integers(1, 900)),
        st.builds("suspend {} -> ?".format, st.integers(1, 8)),
        st.builds("resume {} -> ?".format, st.integers(1, 8)),
        st.builds("delete {} -> ?".format, st.integers(1, 8)),
        st.just("restart now"),
        st.builds("qmgr set domain application heartbeat={}".format, st.sampled_from([5, 10, 60])),
        st.builds("qmgr set domain application placement={}".format, st.sampled_from(["slots", "lowest"])),
    ),
    max_size=14,
)


@given(steps)
@settings(max_examples=60)
def test_the_table_is_right_after_each_step_and_all_end(words):
    story = Story(Centre(SHARED, pes=10))
    for step in words:
        story.play(step)
        is_right(story.centre)
    for seq in range(1, len(words) + 1):
        story.play(f"resume {seq} -> ?")
    story.play("later 2d; empty")
    assert not story.centre.site.promises


PRIME = {
    "a prime request starts first, past limits, and shuts others out until it ends": """
        qmgr set queue batch run_limit=1; submit anne pes=4, ben pes=4, anne pes=2 name=urgent; starts 1
        qmgr set request 3 prime; starts 3; why 2 STOPPED operator; later 599s; starts -
        later 1s; end 1 exit; end 3 exit; starts 2""",
    "it waits for room, and nothing takes it": """
        submit anne pes=8; submit ben pes=10; submit anne pes=1; starts 1 3; qmgr set request 2 prime
        submit ben pes=1; starts -; why 4 STOPPED operator; later 10m; starts 2; later 10m; starts 4""",
    "several primes share, and all others wait": """
        submit anne pes=10, ben pes=5, anne pes=5, ben pes=5; qmgr set request 2 3 prime; later 10m
        starts 1 2 3; why 4 STOPPED operator; later 10m; starts 4""",
    "taken back, others go on": """submit anne pes=10, ben pes=10; qmgr set request 2 prime; submit anne pes=1
        qmgr schedule request 2 system; why 3 NO_PES machine""",
    "only operators": "submit anne pes=1; deny set request 1 prime by anne -> not_permitted",
    "a request that was rerun is prime still": """submit anne pes=10; qmgr set request 1 prime
        submit ben pes=1; rerun 1 force=true; starts 1 1; later 10m; end 1 exit; state 2 running""",
}


@pytest.mark.parametrize("title", PRIME)
def test_prime(title):
    play(PRIME[title], pes=10)


def test_a_prime_request_has_the_slots_of_its_domain_alone():
    story = play("submit anne pes=10, ben pes=10; later 100s", settings=SHARED, pes=10)
    story.play("qmgr set request 2 prime")
    table = slots.table_of(story.centre.site, "application")
    assert (table.slots, table.stopped) == (((2,),), (1,))
    story.play("later 549s; known 2; later 1s; end 2 exit; ran 2 600; known 1")
    assert not story.centre.site.promises
    story.play("later 549s; known 1; later 1s; end 1 exit; ran 1 600")


@pytest.mark.parametrize(
    ("table", "stands"),
    [
        ({"slots": [[1], [2]], "lengths": [10_000, 10_000]}, True),
        ({"slots": [[2]], "lengths": [10_000], "stopped": [1]}, True),  # of a prime request
        (None, True),
        ({"slots": [[2]], "lengths": [10_000]}, False),
        ({"slots": [[1], [2]], "lengths": [10_000]}, False),
        ({"slots": [[1], [2]], "lengths": [10_000, 20_000]}, False),
        ({"slots": [[1], [2]], "lengths": [10_000, 0]}, False),
        ({"slots": "all"}, False),
    ],
)
def test_the_recheck_lets_only_sound_tables_stand(table, stands):
    site = play("submit anne pes=10, ben pes=10", settings=SHARED, pes=10).centre.site
    assert features.stands(site, Promise("application", table, by="rotate")) is stands
    assert features.stands(site, Promise("elsewhere", table, by="rotate")) is (table is None)
