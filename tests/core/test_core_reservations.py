"""Reservations: which start is reserved, which requests may pass it, and reasons of both (`core.story`)."""

import pytest
from core.story import Story
from msgspec.structs import replace

from nqspy.core.gate.gate import Gate
from nqspy.model import events as ev
from nqspy.model.ids import member
from nqspy.model.site_checks import check_site

EASY = "machine 8; queue night order=fcfs reserve=1; run anne pes=6 wall=10:00"
WIDE = f"{EASY}; run ben pes=8 wall=5:00"
CONTRACT = "machine 8; queue night order=fcfs reserve=1 backfill=contract; run anne pes=6 wall=10:00"
UNITS = "create consumable/gpu units=(0); create consumable/matlab units=(0)"
NO_LIMIT = "machine 8; queue night order=fcfs reserve=1; run anne pes=4; run ben pes=6 wall=5:00"
DUE = """machine 8; queue night order=fcfs reserve=1 priority=9; queue other
    run anne pes=6 wall=10:00 queue=night, ben pes=8 wall=5:00 queue=night; reserved ben 10"""
COMMAND = "machine 4; create domain/front kind=command; queue front domain=front order=fcfs"

PASSING = {
    "what ends before the reserved start passes": f"""{EASY}
        submit ben pes=4 wall=5:00, cleo pes=2 wall=11:00, dora pes=2 wall=9:00
        starts cleo; reserved ben 10; by ben anne; why dora no_pe_free 2 8 - -""",
    "the reason names the reservation that would be delayed": f"""{EASY}
        submit ben pes=8 wall=5:00, cleo pes=2 wall=11:00, dora; starts -; why ben NO_PES
        why cleo would_delay 660000 2.ymp until=10; why dora would_delay_for_ever 2.ymp""",
    "those behind it are not told its wall time": f"""{WIDE}
        submit cleo pes=2 wall=11:00, dora pes=4 wall=1:00; starts -
        why dora few_pes_free 4 2 8 - - - ahead=2""",
    "one that fits behind one that would delay": f"""{WIDE}; queue front order=fcfs backfill=none
        submit cleo pes=2 wall=11:00, dora wall=1:00; starts -; why dora kept_ahead 2.ymp ahead=1""",
    "none is ahead of one with a reservation": f"""{EASY}; run ben pes=8 wall=5:00, cleo pes=2 wall=1:00
        run dora wall=1:00, dora wall=1:00; why ben no_pe_free 8 8 - - ahead=0""",
    "without a reservation what fits starts": f"""{EASY}; set queue/night/reserve 0
        submit ben pes=8 wall=5:00, cleo pes=2 wall=11:00; starts cleo; reserved ben -""",
    "it binds all queues of its domain and no other": f"""{EASY}; create domain/fast pes=(7)
        queue front priority=9; queue apart priority=9 domain=fast; run ben pes=7 wall=5:00 queue=night
        reserved ben 10; submit cleo wall=11:00 queue=front, dora wall=11:00 queue=apart
        starts dora; why cleo RESERVED""",
    "the shortest may be the first to pass": f"""{EASY}; set queue/night/backfill_order shortest
        submit ben pes=8 wall=5:00, cleo pes=2 wall=9:00, dora pes=2 wall=1:00; starts dora""",
    "an operator's word and an owner's count more": """machine 8
        queue night order=fcfs reserve=0 backfill_order=shortest
        run anne pes=6 wall=10:00, ben pes=8 wall=5:00
        submit cleo wall=1:00, cleo wall=9:00 p=1, dora wall=20:00; schedule dora first; starts dora cleo2""",
    "with exits reservations are made and kept": f"""{EASY}; asks
        submit ben pes=8 wall=5:00, cleo pes=2 wall=11:00, dora pes=2 wall=9:00; starts dora
        reserved ben 10; later 9; end dora; starts -; later 1; end anne; starts ben""",
    "a reason after others have passed": """machine 8; queue night order=fcfs reserve=1
        run anne pes=6 wall=20:00; run ben pes=8 wall=30:00; submit cleo wall=10:00; starts cleo
        why ben few_pes_free 8 1 8 - - -""",
    "a reason once the reserved start has come": """machine 2
        queue night order=fcfs reserve=1 priority=10; queue late priority=20; run anne wall=10:00 queue=night
        run ben pes=2 wall=10:00 queue=night; run cleo wall=1:00:00 queue=late; why cleo RESERVED
        later 10; end anne; starts ben; why cleo NO_PES""",
    "a contract fills a hole and is ended with it": f"""{CONTRACT}
        submit ben pes=8 wall=5:00, cleo wall=60:00, dora pes=2 wall=60:00 contract=yes
        starts dora; ends dora 10; at 10; end anne dora; starts ben""",
    "a hole that is too short is not filled": f"""{CONTRACT}; set queue/night/shortest_hole 480000
        run ben pes=8 wall=5:00; at 3
        submit dora pes=2 wall=60:00 contract=yes, eve pes=2 wall=6:00 contract=yes
        starts eve; ends eve -""",
    "elsewhere a contract means nothing": f"""{EASY}; set queue/night/backfill probable
        submit ben pes=8 wall=5:00, dora pes=2 wall=60:00 contract=yes; starts -""",
    "a contract that delays none runs as long as it may": f"""{CONTRACT}
        submit dora pes=2 wall=60:00 contract=yes; starts dora; ends dora -""",
    "a hole with an unknown end is not filled": """machine 8
        queue night order=fcfs reserve=1 backfill=contract; run anne pes=6
        submit ben pes=8 wall=5:00, dora pes=2 wall=60:00 contract=yes; starts -""",
    "a request of a command domain delays no PEs": f"""{COMMAND}; queue batch reserve=1
        run anne pes=4 wall=1:00:00, ben pes=4 wall=1:00:00; reserved ben 60
        submit cleo pes=4 wall=2:00:00 queue=front; starts cleo""",
    "memory is reserved in a command domain": f"""{COMMAND}
        queue line domain=front order=fcfs reserve=1 memory_limit=100mb
        submit anne pes=4 wall=1:00:00 mem=70mb, ben pes=4 wall=1:00:00 mem=80mb; starts anne
        reserved ben 60; submit cleo pes=4 wall=2:00:00 mem=30mb; starts -; why cleo would_delay""",
    "a command domain has so many requests at a time": f"""{COMMAND}; set domain/front/requests 2
        submit anne, anne, anne; starts anne anne2; end anne; starts anne3""",
    "the blocker of a command domain": f"""{COMMAND}
        queue line domain=front order=fcfs backfill=none pe_limit=4; run anne pes=3; submit ben pes=4, cleo
        starts -; why ben pes_short; why cleo in_line 2.ymp line""",
} | {
    f"the shortest passes the first that does not fit; {asks}": f"""machine 8
        queue night order=fcfs reserve=0 backfill_order=shortest; {asks}; run anne pes=4 wall=10:00
        submit ben pes=2 wall=50:00, cleo pes=8 wall=9:00, dora pes=2 wall=5:00, eva wall=1:00
        starts ben eva; why dora NO_PES"""
    for asks in ("", "asks")
}  # fmt: skip

KEEPING = {
    "it stays until the start and moves to an earlier one": f"""{WIDE}; later 4; submit cleo pes=8 wall=7:00
        schedule cleo next; go; reserved ben 10 cleo -; end anne; starts ben; reserved ben -; go
        reserved cleo 9""",
    "an early end brings it forward": f"""{EASY}; run ben pes=2 wall=20:00; run cleo pes=8 wall=5:00
        reserved cleo 20; later 3; end ben; go; reserved cleo 10""",
    "all have a start reserved": f"""{EASY}; set queue/night/reserve all
        run ben pes=8 wall=5:00, cleo pes=8 wall=5:00, dora wall=20:00; reserved ben 10 cleo 15 dora 20""",
    "behind a request without a wall limit room is kept all the time": """machine 9
        queue night order=fcfs reserve=1; run anne pes=4, anne pes=2 wall=1:00
        submit ben pes=8 wall=5:00, cleo pes=2 wall=1:00, dora pes=2 wall=1:00, eva; starts eva
        reserved ben ?; by ben anne; why cleo would_delay 60000 3.ymp""",
    "the site's default wall limit counts": """machine 8; queue night order=fcfs reserve=1
        set default/wall_limit 600000; run anne pes=6; submit ben pes=8, cleo wall=9:00, dora
        starts cleo dora; reserved ben 10""",
    "units are kept": """machine 8; queue night order=fcfs reserve=1; create consumable/gpu units=(0,1,2,3)
        run anne gpu=2 wall=10:00
        submit ben gpu=4 wall=5:00, cleo gpu=1 wall=11:00, dora gpu=1 wall=9:00, eva wall=30:00
        starts dora eva; reserved ben 10; why cleo RESERVED""",
    "memory is kept": """machine 8; queue night order=fcfs reserve=1 memory_limit=100mb
        run anne mem=60mb wall=10:00
        submit ben mem=90mb wall=5:00, cleo mem=30mb wall=11:00, dora mem=30mb wall=9:00
        starts dora; reserved ben 10; why cleo LIMIT""",
    "one held by its owner's limit takes no reservation from others": """machine 4
        queue night order=fcfs reserve=1 user_limit=1; run anne pes=2 wall=10:00
        submit anne wall=1:00, ben pes=4 wall=1:00, cleo wall=11:00; starts -; reserved anne2 - ben 10""",
    "with reservations for all the limits of owners count": """machine 4
        queue night order=fcfs reserve=all user_limit=1; run anne pes=2 wall=10:00
        run anne wall=1:00, anne wall=1:00; reserved anne2 10 anne3 11""",
    "a forced start delays it and is named": f"""{WIDE}; submit cleo pes=2 wall=30:00; schedule cleo now
        starts cleo; later 10; end anne; go; reserved ben 10; late ben = 3.ymp""",
    "the moment that starting takes is no delay": f"""{WIDE}; later 50ms; submit cleo pes=2 wall=10:00
        schedule cleo now; starts cleo; later 1; end anne; go; reserved ben 10; late ben no""",
    "one that runs beyond its limit is named": f"""{WIDE}; later 12; go
        late ben = 1.ymp""",
    "none where a shift will have stopped the queue": f"""{EASY}
        submit ben pes=8 wall=5:00, cleo pes=2 wall=11:00; closes night 10; starts cleo; reserved ben -""",
    "before a shift that drains the run must end": f"""{EASY}; closes night 14; stops night 14 drain
        run ben pes=8 wall=5:00, cleo pes=8 wall=4:00; reserved ben - cleo 10""",
    "PEs of one that a shift will suspend": f"""{EASY}; queue day reserve=1; stops night 4 suspend
        run ben pes=8 wall=5:00; reserved ben 4""",
    "one that goes on in this pass has its PEs until its end": """machine 4; queue night order=fcfs reserve=1
        queue other; run anne pes=2 wall=10:00; later 4; suspend anne; later 30
        submit ben pes=4 wall=5:00 queue=night; starts -; reserved ben 40; later 6; end anne; starts ben""",
    "the next index of an array": f"""{EASY}; array ben 3 pes=8 wall=5:00; go; reserved ben 10; later 10
        end anne; starts ben[1]; reserved ben 15""",
    "a limit makes it impossible": f"""{WIDE}; reserved ben 10; set queue/night/pe_limit 7
        submit cleo wall=30:00; end anne; starts cleo; reserved ben -""",
    "those behind one without a time have their turn when it starts": """machine 4
        queue night order=sjf reserve=all; run cleo pes=4; later 1; run anne wall=15:00; later 1
        run anne pes=3 wall=10:00; later 1; run ben wall=5:00; reserved anne ? anne2 ? ben ?
        later 1; end cleo; starts anne anne2; reserved ben 14""",
    "a queue whose resource breaks holds nothing in others": """machine 8
        queue night order=fcfs reserve=1 priority=20; queue day reserve=1; probe licence ok
        set queue/night/needs (licence); run anne pes=6 wall=8:00; run ben pes=8 wall=60:00 queue=night
        reserved ben 8; probe licence broken; submit cleo pes=4 wall=60:00; at 8; end anne; starts cleo
        reserved ben -""",
    "what was kept for one that is given up is used by the next pass": f"""{UNITS}; machine 6
        queue night order=fcfs reserve=all; run anne pes=4 wall=10:00, anne gpu=1 wall=30:00
        run ben pes=5 gpu=1 wall=60:00, cleo pes=4 matlab=1 wall=20:00; reserved ben 30 cleo 10
        set consumable/matlab/units (); later 1; end anne anne2; starts -; reserved cleo -; wake +1
        later 1ms; starts ben; wake -""",
    "one that asks for offline PEs blocks no queue": """machine 3; set machine/offline (2)
        queue night order=fcfs backfill=none; submit anne pes=3 wall=10:00, ben wall=1:00:00; starts ben
        why anne pes_offline; queue day order=fcfs backfill=none reserve=1
        submit cleo pes=3 wall=10:00 queue=day, dora wall=1:00:00 queue=day; starts dora; reserved cleo -""",
    "a held PE that is offline is not missing twice later": """machine 3; queue night order=fcfs reserve=1
        run anne pes=2 wall=20:00; set machine/offline (0); run ben pes=2 wall=10:00; submit cleo wall=1:00
        starts cleo; reserved ben 20""",
    "a held unit that is offline is not missing twice later": """machine 3; queue night order=fcfs reserve=1
        create consumable/gpu units=(g0,g1); run anne wall=20:00 gpu=1; set consumable/gpu/offline (g0)
        run ben pes=3 wall=10:00; submit cleo wall=1:00 gpu=1; starts cleo""",
    "one that runs beyond its limit is not expected to have ended": """machine 2
        queue easy order=fcfs reserve=1; run anne pes=2 wall=1:00, ben pes=2 wall=1:00; run cleo wall=5:00
        reserved cleo -; later 2; submit cleo wall=5:00; starts -; late ben""",
    "it names a request of the same pass that it waits for": """machine 6; queue night order=fcfs reserve=1
        run anne pes=5 wall=1:00; submit ben pes=4 wall=10:00, cleo pes=4 wall=1:00; later 1; end anne
        starts ben; by cleo ben""",
    "nothing is kept for a stopped queue, and its reservation stays": f"""{DUE}; set queue/night/started off
        submit cleo pes=2 wall=11:00; starts cleo; reserved ben 10; set queue/night/started on
        submit dora wall=30:00; starts -; later 10; end anne; starts -
        late ben = 3.ymp; why dora RESERVED""",
    "a queue that is stopped when it is due is the cause": f"""{DUE}; set queue/night/started off; go; wake 10
        later 10; end anne; starts -; late ben = queue night is stopped; later 60
        set queue/night/started on; starts ben""",
} | {
    f"a lower limit that closes its queue: {path}": f"""machine 8; queue night order=fcfs reserve=1
        create complex/both queues=(night)
        run anne pes=4 wall=10:00, cleo pes=2 wall=30:00, ben pes=6 wall=5:00; reserved ben 10
        set {path} 1; later 10; end anne; starts -; late ben = 2.ymp
        later 20; end cleo; starts ben"""
    for path in ("queue/night/run_limit", "complex/both/run_limit")
} | {
    f"other rules change nothing for one with a reservation: {rule}": f"""{DUE}; set queue/night/{rule}
        submit cleo pes=2 wall=11:00; starts -; why cleo RESERVED; later 10; end anne; starts ben
        reserved ben -"""
    for rule in ("reserve 0", "reserve all", "backfill none", "backfill contract")
} | {
    f"it is given up when its resource breaks, and others run: reserve={most}": f"""machine 8
        queue night order=fcfs reserve={most}; probe licence ok; run anne pes=6 wall=8:00
        run ben pes=8 wall=60:00 needs=licence; reserved ben 8; probe licence broken
        submit cleo pes=4 wall=60:00, dora pes=8 wall=5:00; at 8; end anne; starts cleo
        reserved ben - dora 68; probe licence ok; go; reserved ben {again}"""
    for most, again in (("1", "-"), ("all", "73"))
}  # fmt: skip

WITHOUT_A_TIME = {
    "those that pass at once hold no more than is spare": f"""{NO_LIMIT}
        submit cleo wall=10:00, cleo wall=10:00, cleo wall=10:00; starts cleo cleo2""",
    "when one that passed has ended the next one may": f"""{NO_LIMIT}
        submit cleo pes=2 wall=10:00, dora pes=2 wall=1:00; starts cleo; later 10; end cleo; starts dora""",
    "no other is reserved at its cost": f"""{NO_LIMIT}; set queue/night/reserve all
        submit cleo pes=3 wall=10:00, dora pes=2 wall=10:00; starts -; reserved cleo ? dora ?; later 1
        starts -; reserved cleo ? dora ?; later 1; end anne; starts ben dora""",
    "a time reserved behind it is one for what is spare": f"""{NO_LIMIT}; set queue/night/reserve all
        submit cleo pes=2 wall=10:00, dora pes=2 wall=5:00; starts cleo; reserved dora 10
        run eva wall=10:00; reserved eva 15; later 10; end cleo; starts dora; end anne; starts ben""",
    "one that is forced past it counts too": f"""{NO_LIMIT}; submit cleo pes=2 wall=10:00, dora wall=1:00
        schedule cleo now; starts cleo; why dora RESERVED""",
    "units that it needs are kept so too": """machine 8; queue night order=fcfs reserve=1
        create consumable/gpu units=(0,1,2,3); run anne gpu=2; run ben gpu=3 wall=5:00
        submit cleo gpu=1 wall=10:00, cleo gpu=1 wall=10:00, dora pes=2 wall=10:00; starts cleo dora
        starts -; why cleo2 RESERVED""",
} | {
    f"those that pass one after the other hold what is spare{wall}": f"""{NO_LIMIT}; submit cleo pes=2{wall}
        starts cleo; submit dora pes=2{wall}; starts -; why dora RESERVED; end anne; starts ben"""
    for wall in (" wall=10:00", "")
}  # fmt: skip

GIVEN_UP = {
    "one that an exit refuses when its time has come keeps no room": f"""{EASY}; run ben pes=8 wall=5:00
        asks ben=refuse; submit cleo pes=8 wall=20:00; later 10; end anne; starts cleo; reserved ben -
        given_up ben exits/test: not now""",
    "one for more than a smaller machine has loses its reservation and blocks none": f"""{EASY}; queue other
        run ben pes=8 wall=5:00 queue=night; machine 7; submit cleo wall=11:00 queue=other; starts cleo
        reserved ben -; given_up ben never; why ben NEVER""",
    "a hole a moment too short before its time is no room at that time": """machine 6
        queue wide order=fcfs reserve=0 priority=5; queue night order=fcfs reserve=all pe_limit=4 priority=1
        run anne pes=4 wall=3:23, cleo pes=6 wall=9:13 queue=wide; later 5; run ben sizes=1,4 walls=5:00,1:00
        later 3; run anne sizes=1,4 walls=11:00,6:00; later 1; run anne p=5; later 13s; end cleo; go
        later 107s; run anne sizes=2,4 walls=7:00,1:00; later 96s; end anne; go; later 1s; end ben
        starts anne2; later 287s; end anne2; go; late anne3 no""",
} | {
    f"the moments that starting takes change no order: {wall}": f"""machine 1
        queue night order=fcfs reserve=all; run anne wall=5:00, ben wall=5:00, cleo wall=5:00, dora {wall}
        reserved ben 5 cleo 10 dora 15; later 5; later 50ms; starts -; late ben no; end anne; starts ben
        later 5; later 50ms; starts -; late cleo no; end ben; starts cleo
        later 5; later 50ms; starts -; late dora no; end cleo; starts dora"""
    for wall in ("wall=5:00", "")
} | {
    f"one that can never start blocks none: {path} {settings}": f"""machine 12
        queue night order=fcfs {settings}; queue other priority=5; set {path} {most}
        submit anne pes=12 wall=10:00 mem=20mb queue=night, ben wall=1:00 queue={behind}
        submit ben wall=1:00 queue=other; starts {starts}; reserved anne -; why anne {why}"""
    for path, most, behind, starts, why in (
        ("queue/night/pe_limit", 6, "night", "ben2 ben", "NEVER"),
        ("global/pe_limit", 6, "night", "ben2 ben", "NEVER"),
        ("queue/night/memory_limit", 1 << 20, "night", "ben2 ben", "NEVER"),
        ("queue/night/run_limit", 0, "other", "ben ben2", "LIMIT"),
    )
    for settings in ("reserve=1", "reserve=all", "backfill=none reserve=1")
}  # fmt: skip

STORIES = PASSING | KEEPING | WITHOUT_A_TIME | GIVEN_UP


@pytest.mark.parametrize("title", STORIES)
def test_reserved_starts(house, title):
    Story(house).play(STORIES[title])


@pytest.fixture
def easy(house):
    """Return a site of eight PEs, six of them held for ten minutes; queue night has one reservation."""
    Story(house).play(EASY)
    return house


@pytest.mark.parametrize("act", ["hold", "move", "delete", "modify"])
def test_the_reservation_is_over_when_the_request_waits_no_more_as_it_did(easy, act):
    easy.queue("other", reserve=0)
    wide, long = easy.submit("ben pes=8 wall=5:00", "cleo pes=2 wall=11:00", queue="night")
    assert easy.go().starts == []
    request = easy.request(wide)
    if act == "hold":
        easy.hold(wide)
    elif act == "move":
        easy._event(ev.Moved((wide,), "other", "op"))
    elif act == "delete":
        easy._event(ev.Deleted(wide, "ben"))
    else:
        spec = replace(request.spec, ask=replace(request.spec.ask, pes=2, wall=720_000))
        easy._event(ev.Modified(wide, spec, "ben"))
    assert not easy.site.reserved
    check_site(easy.site)
    assert easy.go().starts in ([long], [wide])


def test_the_reservation_of_the_next_index_of_an_array_stays_when_it_is_examined_again(house):
    house.machine(pes=3).queue("night", order="fcfs", reserve=None)
    seq = house.array("ben pes=2 wall=10:00", 2)
    (long,) = house.submit("anne pes=2 wall=60:00")
    array, gate = house.request(seq), Gate(house.site, house.now)
    reserved = gate.reserved
    reserved.reserve(array)
    reserved.start(house.site.to_be(member(seq, 1)), array)
    reserved.reserve(array)
    assert reserved.reservation_of(array).at == house.now + 600_000
    reserved.delaying(array)
    reserved.reserve(house.request(long))
    assert reserved.changes[long].at == house.now + 1_200_000
