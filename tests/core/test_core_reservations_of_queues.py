"""Reservations in queues where no request passes, in several queues, beside shifts, and late reservations."""

import pytest
from core.harness import START
from core.story import Story

from nqspy.core import Gate
from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.model.requests import Reservation
from nqspy.shares import FairShare

STRICT = "machine 6; queue night order=sjf backfill=none reserve=2; run anne pes=6 wall=10:00"
UNITS = "create consumable/gpu units=(0); create consumable/matlab units=(0)"
TWO = f"{UNITS}; machine 6; queue front priority=1 order=fcfs; queue behind order=fcfs reserve=all"
SUSPENDS = """machine 8; limit memory_limit=100mb; queue night order=fcfs reserve=1
    queue day order=fcfs reserve=all; closes night 4; stops night 4 suspend"""

BLOCKED = {
    "none passes the blocker, except a limit of its owner holds it": """machine 8
        queue night order=fcfs backfill=none user_limit=2; run anne pes=3, anne pes=3
        submit anne, ben pes=3, cleo; starts -; why anne3 LIMIT; why ben NO_PES; why cleo in_line 4.ymp night
        end anne; starts anne3 ben cleo""",
    "the shortest blocks": """machine 4; queue night order=sjf backfill=none max_wall=8:00:00
        run anne pes=2 wall=1:00; submit ben, ben wall=2:00:00, cleo pes=4 wall=10:00; starts -; end anne
        starts cleo""",
    "one in front later does not keep it from its start": f"""{STRICT}; run ben pes=6 wall=5:00
        run cleo pes=6 wall=1:00; reserved ben 10 cleo -; later 10; end anne; starts ben""",
    "none passes a reservation that waits for its time": f"""{STRICT}; end anne; run dora pes=4 wall=10:00
        run ben pes=6 wall=5:00; submit cleo wall=1:00; starts -""",
    "one put first waits for the reserved room": f"""{STRICT}; run ben pes=6 wall=5:00
        submit cleo pes=6 wall=1:00; schedule cleo next; go; later 10; end anne; starts ben
        why cleo NO_PES""",
    "one that a limit of its owner holds too lets others pass": """machine 8; set global/user_limit 1
        queue night order=fcfs backfill=none reserve=all pe_limit=6; run anne pes=4 wall=10:00
        submit anne pes=3 wall=1:00, ben pes=2 wall=20:00; starts ben; reserved anne2 10""",
    "the next index of an array does not pass the blocker": """machine 4
        queue night backfill=none reserve=1 time=1; run anne pes=4 wall=10:00; array ben 2 pes=2 wall=20:00
        go
        reserved ben 10; submit cleo pes=4 wall=5:00; schedule cleo first; at 10; end anne; starts ben[1]
        reserved cleo 30""",
    "one that blocks by a limit of all stands in front": """machine 6
        queue night order=fcfs backfill=none pe_limit=5; run anne pes=4 wall=10:00
        submit ben pes=2 wall=1:00, cleo wall=1:00; starts -; why cleo in_line 2.ymp night
        line night ben cleo""",
    "one with a reservation stands before a shorter one": f"""{STRICT}; run ben pes=6 wall=5:00
        run cleo pes=6 wall=1:00; line night ben cleo; schedule cleo next; line night cleo ben""",
    "the reason behind a blocker with a reservation": """machine 6
        queue night order=fcfs backfill=none reserve=1; run anne pes=5 wall=10:00; run ben pes=6 wall=5:00
        run cleo wall=1:00:00; why cleo in_line 2.ymp night""",
} | {
    f"only the blocker gets a reservation: {most}": f"""machine 6
        queue night order=fcfs backfill=none reserve={most}; run anne pes=4 wall=10:00
        submit ben pes=6 wall=5:00, cleo pes=6 wall=1:00, dora wall=1:00; starts -; starts -; starts -
        reserved ben 10 cleo - dora -; later 10; end anne; starts ben; reserved cleo 15 dora -"""
    for most in (1, 3)
} | {
    f"one put in front gets one if one more may have it: {most}": f"""machine 6
        queue night order=fcfs backfill=none reserve={most}; run anne pes=6 wall=10:00
        run ben pes=6 wall=5:00, cleo pes=6 wall=1:00; schedule cleo next; go; reserved ben 10 cleo {second}
        later 10; end anne; starts ben; why cleo NO_PES"""
    for most, second in ((1, "-"), (2, "15"))
} | {
    f"the next one blocks once a limit of its owner holds the first: {most}": f"""machine 6
        queue other priority=9; queue night order=fcfs backfill=none reserve={most}
        run anne pes=3 wall=10:00 queue=other; run ben pes=6 wall=5:00, cleo pes=5 wall=1:00, eve wall=1:00
        reserved ben 10 cleo - eve -; set global/user_limit 1; submit ben wall=1:00 queue=other; starts ben2
        reserved ben 10 cleo {second} eve -"""
    for most, second in ((1, "-"), (2, "15"))
} | {
    f"a blocked queue blocks others by its reservations alone: {most}": f"""machine 6; queue other
        queue night priority=9 backfill=none reserve={most}; run anne pes=4 wall=10:00
        run ben pes=6 wall=5:00
        submit eve wall=1:00:00 queue=other, eve wall=10:00 queue=other; starts {started}"""
    for most, started in ((0, "eve eve2"), (1, "eve2"))
}  # fmt: skip

SEVERAL_QUEUES = {
    "one in front starts before the second that could come early": f"""{TWO}; run anne pes=5 wall=5:00
        submit anne pes=2 wall=3:00, anne pes=4 wall=1:00; starts -; reserved anne2 5 anne3 5; later 1
        end anne; submit ben wall=5:00 queue=front; starts anne2 ben; reserved anne3 4""",
    "none is left beside free PEs": f"""{TWO}; run anne gpu=1 wall=5:00; starts -; run anne pes=5 wall=5:00
        submit anne pes=2 wall=3:00, anne pes=4 gpu=1 wall=1:00; starts -; later 1; end anne2
        submit ben wall=5:00 queue=front; starts anne3 ben; reserved anne4 5""",
    "one in front with a reservation of its own": f"""{TWO}; set queue/front/reserve all
        run anne gpu=1 wall=20:00; starts -; run anne pes=4 wall=5:00
        submit anne pes=2 wall=3:00, anne pes=3 wall=1:00; starts -; run ben pes=2 gpu=1 wall=5:00 queue=front
        reserved anne3 5 anne4 5 ben 20; later 1; end anne anne2; starts anne3 ben; reserved anne4 4""",
    "a reservation that only moves leaves something too": f"""{TWO}
        run anne pes=3 wall=4:00, anne gpu=1 wall=9:00, anne matlab=1 wall=9:00
        run anne pes=3 gpu=1 wall=2:00, anne pes=2 matlab=1 wall=2:00; submit ben pes=2 wall=20:00 queue=front
        starts -; reserved anne4 9 anne5 9; later 1; end anne2; starts ben; reserved anne4 4 anne5 9""",
    "one behind another that it leaves nothing has its turn": f"""{TWO}
        run anne pes=3 wall=4:00, anne gpu=1 wall=9:00, anne matlab=1 wall=9:00
        run anne pes=3 gpu=1 wall=2:00, anne pes=2 matlab=1 wall=2:00
        submit ben pes=2 gpu=1 wall=20:00 queue=front, ben pes=2 wall=20:00 queue=front; starts -; later 1
        end anne2; starts ben2; why ben NO_PES""",
    "a blocker lets others pass once it starts": f"""{TWO}; set queue/front/backfill none
        run anne pes=5 wall=5:00; submit anne pes=2 wall=3:00, anne pes=4 wall=1:00; starts -; later 1
        end anne
        submit ben wall=5:00 queue=front, ben wall=1:00 queue=front, ben pes=4 queue=front
        starts anne2 ben ben2; why anne3 NO_PES; why ben3 NO_PES""",
    "with exits the next pass comes at once": f"""{TWO}; run anne gpu=1 wall=5:00; starts -
        run anne pes=5 wall=5:00; submit anne pes=2 wall=3:00, anne pes=4 gpu=1 wall=1:00; starts -; later 1
        end anne2; asks forcing; submit ben wall=5:00 queue=front; starts anne3; wake +1; later 1ms
        starts ben""",
    "in a queue reservations are gone through once in its order": f"""{TWO}
        run anne gpu=1 wall=12:00, anne pes=3 wall=5:00, anne pes=2 wall=5:00
        run anne pes=2 gpu=1 wall=7:00, anne pes=4 wall=3:00, anne wall=2:00
        reserved anne4 12 anne5 5 anne6 5
        later 1; end anne anne3; starts anne6; reserved anne4 7 anne5 5""",
    "a blocker that a start of another queue brings to its owner's limit": """machine 6
        set global/user_limit 2; queue strict order=fcfs backfill=none priority=1; queue other order=fcfs
        run cleo, ben pes=2; submit ben pes=6 queue=strict, anne queue=strict, ben queue=other
        starts ben3 anne; why ben2 limit_reached who=global; submit dora pes=5 queue=strict; starts -""",
    "one moves at once for which another queue has left room": f"""{TWO}
        create consumable/barrier units=(0); set queue/front/reserve all
        submit anne pes=3 wall=4:00, anne gpu=1 wall=9:00, anne matlab=1 wall=9:00
        run anne barrier=1 wall=7:00
        run anne pes=3 gpu=1 wall=2:00, anne pes=2 matlab=1 wall=2:00
        run ben pes=2 barrier=1 wall=20:00 queue=front; reserved ben 11; later 1; end anne2; starts -; next -
        reserved ben 7""",
    "a start that waited for a reservation without a time": """machine 4; queue behind order=fcfs reserve=1
        queue front priority=1 order=fcfs reserve=all; run anne pes=3; starts -
        run cleo pes=2 wall=5:00 queue=behind; submit ben pes=4 wall=20:00, ben wall=1:00; starts -; later 1
        end anne; starts cleo; reserved ben ?; next ben2; reserved ben 6""",
    "one examined before has the reservation that a start has used": """machine 3
        queue night order=fcfs reserve=1; run anne pes=3 wall=10:00, ben wall=5:00
        submit cleo pes=3 wall=15:00, dora wall=60:00; schedule cleo next; go; later 10; end anne; starts ben
        reserved cleo 15; later 5; end ben; starts cleo; reserved dora 30""",
}  # fmt: skip

LATE = {
    "one that is late makes no other late": """create consumable/gpu units=(0); machine 6
        queue night order=fcfs reserve=all; run anne pes=3 wall=5:00, anne gpu=1 wall=16:00
        run ben pes=5 wall=11:00, cleo pes=5 gpu=1 wall=11:00; reserved ben 5 cleo 16; later 1
        submit dora wall=17:00; schedule dora now; starts dora; later 4; end anne; starts -; late ben
        later 11
        end anne2; starts cleo; later 11; end cleo; starts ben""",
    "one that runs beyond its limit is the cause once the moment is over": """machine 1
        queue night order=fcfs reserve=1; run anne wall=5:00, anne wall=5:00; later 5; go; late anne2 no
        wake +1001; later 1001ms; go; late anne2 = 1.ymp; wake -""",
    "those before it are named": """machine 1; queue night order=fcfs reserve=all
        run anne wall=5:00, anne wall=5:00, anne wall=5:00, anne wall=5:00; later 5; later 2s; end anne
        starts anne2; late anne3 = 2.ymp
        late anne4 = 3.ymp""",
    "the next index of an array is not late by the former one": """create consumable/gpu units=(0); machine 3
        queue night order=fcfs reserve=all; submit anne wall=60:00, anne wall=10:00
        array ben 3 gpu=1 wall=5:00; run cleo pes=2 wall=5:00; go; reserved cleo 10; at 10s; end ben[1]
        starts ben[2]; go; reserved ben 15""",
    "one that is known to be late wakes no pass": """machine 3; queue night order=fcfs reserve=1
        run anne pes=2 wall=10:00, ben pes=3 wall=5:00; submit cleo wall=unlimited; schedule cleo now; go
        later 10; later 100ms; end anne; go; late ben; set queue/night/reserve 2; later 500ms; go; wake -""",
    "each is kept beside the moments that starting takes": """machine 8; queue night order=fcfs reserve=all
        takes 90; run anne pes=8 wall=3:00
        run ben pes=4 wall=20:00, cleo pes=4 wall=8:00, dora pes=2 wall=30:00, eve pes=6 wall=10:00
        later 3; end anne; starts ben cleo; later 8; end cleo; starts dora; late eve no""",
    "a forced start that takes reserved PEs tells so at once": """machine 8
        queue night order=fcfs reserve=all
        run anne pes=6 wall=20:00, ben pes=8 wall=10:00; later 1; submit cleo pes=2 wall=40:00
        schedule cleo now; starts cleo; wake +1; later 1ms; go; late ben; wake -""",
    "a suspended request returns before what is reserved then": """machine 3; probe nfs ok running=suspend
        queue front order=fcfs priority=1; queue night order=fcfs reserve=all
        run anne pes=2 wall=10:00 needs=nfs, anne wall=60:00; run dora pes=3 wall=1:00; probe nfs broken; go
        submit ben wall=20:00 queue=front, cleo pes=2 wall=5:00; starts ben; reserved cleo 30; probe nfs ok
        later 10; go; late cleo no""",
    "a forced start does not put the first late one behind the next": """machine 6
        queue night order=fcfs reserve=all; run anne pes=6 wall=5:00
        run ben pes=2 wall=20:00, ben pes=3 wall=20:00
        later 5; later 2s; go; later 2; end anne; submit cleo pes=2 wall=60:00; schedule cleo now
        starts cleo ben""",
    "those that stay when a queue makes no more are late too": """machine 2; queue night order=fcfs reserve=1
        run anne wall=10:00, ben pes=2 wall=10:00; set queue/night/reserve 0; later 1; submit cleo wall=15:00
        schedule cleo now; starts cleo; later 1ms; go; late ben; later 9; end anne; later 6; end cleo
        starts ben""",
} | {
    f"one that takes its grace time to end: {late}": f"""machine 1; queue night order=fcfs reserve=all
        run anne wall=5:00, anne wall=5:00, anne wall=5:00; later 5; later {late}; end anne; starts {first}"""
    for late, first in (("9s", "anne2"), ("12s", "anne3"))
} | {
    f"a start that takes a moment leaves no PE idle: {takes} ms": f"""machine 8
        queue night order=fcfs reserve=1; takes {takes}; run anne pes=4 wall=20:00, ben pes=6 wall=10:00
        reserved ben 20; later 1; submit cleo pes=2 wall=30:00; starts cleo; late ben {late}"""
    for takes, late in ((100, "no"), (999, "no"), (1000, "no"), (5000, ""))
}  # fmt: skip

SHIFTS = {
    "memory of one that will be suspended is kept for ever": f"""{SUSPENDS}
        run anne pes=8 mem=50mb wall=10:00 queue=night
        run ben pes=8 mem=50mb wall=5:00, cleo mem=60mb wall=5:00; reserved ben 4 cleo ?""",
    "one that ends before the shift gives back its memory then": f"""{SUSPENDS}
        run anne mem=50mb wall=4:00 queue=night; run cleo mem=60mb wall=5:00; reserved cleo 4""",
    "memory of one with a reservation that will be suspended": f"""{SUSPENDS}
        run dora pes=8 wall=2:00 mem=1mb; run anne pes=8 mem=50mb wall=10:00 queue=night; reserved anne 2
        run cleo mem=60mb wall=5:00; reserved cleo ?""",
    "units and memory of one that is suspended": f"""{SUSPENDS}; create consumable/gpu units=(0)
        run anne gpu=1 mem=50mb wall=10:00 queue=night; at 4; opens; set queue/night/started off; suspend anne
        submit ben gpu=1 mem=1mb wall=1:00, cleo mem=60mb wall=1:00, dora pes=6 mem=1mb wall=1:00
        starts dora; reserved ben ? cleo ?; by cleo anne""",
    "none starts that will be suspended with memory that is reserved": f"""{SUSPENDS}
        run dora pes=7 wall=6:00 mem=10mb; run ben pes=8 mem=60mb wall=5:00; reserved ben 6
        submit anne mem=50mb wall=5:00 queue=night, anne mem=50mb wall=4:00 queue=night; starts anne2
        why anne LIMIT""",
    "a contract fills no hole in which a shift would suspend it": f"""{SUSPENDS}
        set queue/night/backfill contract; set queue/night/shortest_hole 60000
        run dora pes=7 wall=6:00 mem=10mb; run ben pes=8 mem=60mb wall=5:00; reserved ben 6
        submit anne mem=50mb wall=9:00 contract=1 queue=night, anne mem=1mb wall=9:00 contract=1 queue=night
        starts anne2; reserved ben 6""",
}  # fmt: skip

STORIES = BLOCKED | SEVERAL_QUEUES | LATE | SHIFTS


@pytest.mark.parametrize("title", STORIES)
def test_reservations_of_queues(house, title):
    Story(house).play(STORIES[title])


def test_a_run_that_began_late_ends_at_the_first_of_the_times_reserved_within_a_moment(house):
    house.takes = 250
    house.machine(4).queue("night", order="fcfs", reserve=None, backfill="limit").run("anne pes=2 wall=10:00")
    first, second, passing = house.submit("ben pes=2 wall=10:00", "cleo wall=10:00", "dora wall=20:00")
    times = {first: START + 600_000, second: START + 600_100}
    house._event(ev.Reserved({seq: Reservation(Instant(at), turn=seq) for seq, at in times.items()}))
    gate = Gate(house.site, house.now, lambda: FairShare(house.site, house.now, {}))
    assert gate.reserved.delaying(house.request(passing)) is None
