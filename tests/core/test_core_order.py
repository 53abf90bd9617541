"""Order of requests: the formula, ties, ranks, queues, `qsub -p`; and the factors that qstat shows."""

import numpy as np
import pytest
from core.story import Story
from hypothesis import given
from hypothesis import strategies as st

from nqspy.core.order.own_priority import behind_their_own
from nqspy.model.actions import Redate
from nqspy.model.columns import Columns, Dictionary
from nqspy.model.requests import Ask, Request, Spec, State

STORIES = {
    "first come, first served": """machine 1; queue night; submit anne; later 5s; submit ben, cleo; later 5s
        line night anne ben cleo; starts anne; end anne; starts ben; end ben; starts cleo""",
    "at the instant of submission the lower number goes first": """machine 3
        queue night share=0 cpu=0 memory=0 time=0; starts -; submit cleo, anne, ben; starts cleo anne ben""",
    "ties go to the earlier date, then to the lower number": """machine 4; queue night cpu=1
        submit anne cpu=60, ben cpu=60; later 1s; submit cleo cpu=60, dora cpu=60; hold anne; release anne
        starts anne ben cleo dora""",
    "queues by priority, then by name": """machine 3; queue low priority=1; queue b priority=9
        queue a priority=9; submit anne queue=low, ben queue=b, cleo queue=a; starts cleo ben anne""",
    "next is ahead of all queues, first in its own": """machine 5; queue low priority=1; queue high priority=9
        submit anne queue=low, ben queue=low, cleo queue=low; later 1s; submit dora, emil
        schedule cleo next; schedule ben first; schedule emil first; picks cleo emil dora ben anne
        line low cleo ben anne""",
    "a stopped queue starts nothing and has an order": """machine 4; queue night started=off
        submit anne, ben; schedule ben now; starts -; why anne STOPPED; line night ben anne""",
    "one that waited 10 s overtakes one of 5.2 min, not one of 10 min": """machine 1
        queue normal cpu=6 memory=1 time=10; submit anne cpu=600 mem=32mw; at 288s
        submit ben cpu=600 mem=32mw; at 590s; submit cleo cpu=1 mem=1b; at 600s; line normal anne cleo ben""",
    "by class without classes": """machine 1; queue apps order=class time=1; submit anne, ben
        line apps anne ben""",
    "a higher -p goes first among those of its owner": """machine 1; queue night; submit anne p=-5; later 5s
        submit anne, anne p=10; later 5s; line night anne3 anne2 anne; starts anne3; end anne3; starts anne2
        end anne2; starts anne""",
    "others keep their places": """machine 1; queue night; submit anne; later 5s; submit ben p=-1000; later 5s
        submit anne p=1000; later 5s; line night ben anne2 anne""",
    "ties of one instant": """machine 1; queue night share=0 cpu=0 memory=0 time=0
        submit anne, anne p=1, ben; line night anne2 ben anne; starts anne2""",
    "one behind a better one of its owner already": """machine 1; queue night order=fcfs
        submit anne, anne p=-3, cleo; later 1; line night anne anne2 cleo""",
    "with shares": "machine 1; queue night share=20 time=1; submit anne p=1, anne p=2; line night anne2 anne",
    "an operator's word counts more": """machine 1; queue night; submit anne p=1, anne p=2
        schedule anne next; line night anne anne2""",
    "prime goes before now, and now before what a limit of one user lets start": """machine 1
        queue night share=20 user_limit=1; submit anne, anne, ben, anne, anne; schedule anne3 now
        schedule anne4 prime; line night anne4 anne3 ben anne anne2""",
    "scheduled now it starts in spite of limits, not without PEs": """machine 3
        queue night run_limit=1 user_limit=1; submit anne, anne, anne pes=2; starts anne; schedule anne2 now
        picks anne2; schedule anne3 now; machine 2; picks anne2""",
    "the factors are the paper's": """queue normal cpu=6 memory=1 time=10; submit anne cpu=600 mem=32mw
        later 60s; submit ben cpu=60 mem=8mw; later 40s
        factors anne cpu=0 memory=0 time=1 total=10 position=2
        factors ben cpu=0.9 memory=0.75 time=0.4 total=10.15 position=1""",
    "a request without a limit counts as its queue's limit": """queue limited cpu=1 max_cpu=20:00
        submit anne cpu=10:00, ben, cleo cpu=unlimited; factors anne cpu=0.5; factors ben cpu=0
        factors cleo cpu=0""",
    "a request without a limit counts as the largest that waits": """queue free cpu=1
        submit anne cpu=10:00, ben cpu=2:30, cleo; factors anne cpu=0; factors ben cpu=0.75
        factors cleo cpu=0""",
    "a factor with the divisor 0 is 0 for all": """queue night share=0 cpu=3 memory=2 time=1
        submit anne, ben mem=unlimited; factors anne total=0; factors ben total=0""",
    "a date in the future counts as no wait": "queue night; later 60; submit anne; at 0; factors anne time=0",
    "one that is held counts for nothing": """queue normal cpu=1; submit anne cpu=1:00:00, ben cpu=10:00
        hold anne; factors ben cpu=0; picks ben""",
    "one of a group of share 0 starts where others leave room": """machine 1; create group/idle share=0
        queue night share=20 time=1; submit anne group=idle; starts anne""",
    "one that cannot start holds no other": """machine 2; queue night; submit anne pes=3 p=9, anne
        starts anne2""",
} | {
    f"behind one that cannot start, before those that came later: {order}": f"""machine 2; queue night {order}
        run cleo, cleo; later 1; submit anne wall=10:00; later 1; submit anne p=3 pes=2 wall=10:00; later 1
        submit ben wall=11:00; later 1; line night anne2 anne ben; end cleo; starts anne"""
    for order in ("order=fcfs", "time=0", "time=1", "order=sjf")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_orders(house, title):
    Story(house).play(STORIES[title])


def test_positions_are_the_order_in_which_one_pass_then_starts_them(house):
    house.machine(pes=30).queue("night", share=20, cpu=3, memory=2, time=10, started=False, user_limit=3)
    house.group("d1", 29).group("d2", 24).group("d3", 16)
    for i in range(30):
        line = f"u{i % 7} group=d{i % 3 + 1} cpu={60 + 37 * i % 400} mem={1 + i * 13 % 9}mw"
        house.later(seconds=i % 4).submit(line)
    standing = house.later(minutes=1).standing()
    starts = house.set("queue/night/started", True).run_pass().starts
    assert len(starts) == 21
    assert standing.line()[:21] == starts


def test_positions_include_what_elected_exits_will_do(house):
    house.machine(pes=4).queue("normal", time=1)
    burst = house.submit("anne", "anne", "anne")
    ben = house.later(seconds=1).submit("ben")[0]
    house.later(seconds=1).exits(elected=lambda request, view: [
        Redate(view.waiting(owner=request.owner).seqs(), view.now, request.seq, "exits/gun")])  # fmt: skip
    assert house.standing().line() == [burst[0], ben, *burst[1:]]
    assert house.run_pass().starts == [burst[0], ben, *burst[1:]]


def test_requests_an_exit_refused_keep_their_place_and_are_not_debited(house):
    house.machine(pes=8).queue("night", share=20, time=1).group("d1", 50).group("d2", 50)
    one, two = house.submit("anne group=d1 cpu=600", "anne group=d1 cpu=600")
    three = house.submit("ben group=d2 cpu=600")[0]
    assert house.standing().line() == [one, three, two]
    assert house.standing(refused=[one]).line() == [one, two, three]


def test_an_empty_queue_has_an_empty_line(house):
    (held,) = house.queue("night").submit("anne")
    house.hold(held)
    assert len(house.standing()) == 0
    with pytest.raises(KeyError):
        house.standing().of(house.request(held))
    with pytest.raises(KeyError):
        house.standing("nowhere")


def test_only_the_beginning_of_a_long_line_is_simulated(house):
    house.queue("night", share=20, time=1, user_limit=1).group("d1", 1)
    seqs = house.submit(*["anne group=d1"] * 3, "ben group=d1")
    assert sorted(house.standing(simulate=2).line()) == seqs
    assert house.standing(simulate=2).line()[:2] == [seqs[0], seqs[3]]


ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-3, 3), st.floats(0, 100), st.booleans()), max_size=40
)


@given(ROWS)
def test_values_only_sink_and_those_of_each_owner_are_in_their_order(rows):
    columns, numbers = Columns(), Dictionary()
    for seq, (owner, priority, _, _) in enumerate(rows, 1):
        spec = Spec(owner, 1, "n", "q", "s", "e", "/", ask=Ask(), priority=priority)
        columns.add(Request(seq, spec, "q", State.QUEUED, 0, 0), numbers)
    before = np.array([value if there else -np.inf for *_, value, there in rows], dtype=np.float64)
    base = before.copy()
    behind_their_own(base, columns, columns.date, columns.turn)
    assert (base <= before).all()
    assert ((base == -np.inf) == (before == -np.inf)).all()
    for one, (owner, high, _, there) in enumerate(rows):
        for other, (whose, low, _, also) in enumerate(rows):
            if owner == whose and high > low and there and also:
                assert base[one] > base[other] or (base[one] == base[other] and one < other)
    again = base.copy()
    behind_their_own(again, columns, columns.date, columns.turn)
    assert again == pytest.approx(base, abs=1e-6)
