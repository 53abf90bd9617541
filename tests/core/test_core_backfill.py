"""Reservations: stories that need more than the words of `core.story`."""

import pytest
from core.story import Story
from msgspec.structs import replace

from nqspy.core.gate.gate import Gate
from nqspy.model import events as ev
from nqspy.model.ids import member
from nqspy.model.reasons import ReasonCode
from nqspy.model.site_checks import check_site

EASY = "machine 8; queue night order=fcfs reserve=1; run anne pes=6 wall=10:00"


@pytest.fixture
def easy(house):
    """Eight PEs, six of which are held for ten minutes; queue night reserves one start."""
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


STORIES = {
    "one that an exit refuses when its time has come keeps no room": f"""{EASY}; run ben pes=8 wall=5:00
        asks ben=refuse; submit cleo pes=8 wall=20:00; later 10; end anne; starts cleo; reserved ben -
        given_up ben exits/test: not now""",
    "one for more than a smaller machine has loses its reservation and blocks none": f"""{EASY}; queue other
        run ben pes=8 wall=5:00 queue=night; machine 7; submit cleo wall=11:00 queue=other; starts cleo
        reserved ben -; given_up ben as things are it can never start; why ben NEVER""",
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
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_reserved_starts_that_are_given_up_or_kept(house, title):
    Story(house).play(STORIES[title])


@pytest.mark.parametrize(
    ("path", "value", "asked"),
    [
        ("queue/night/pe_limit", 6, ""), ("global/pe_limit", 6, ""),
        ("queue/night/memory_limit", 1 << 20, " mem=20mb"), ("queue/night/run_limit", 0, ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("settings", [{"reserve": 1}, {"reserve": None}, {"backfill": "none", "reserve": 1}])
def test_a_request_that_can_never_start_blocks_none(house, path, value, asked, settings):
    house.machine(pes=12).queue("night", order="fcfs", **settings).queue("other", priority=5)
    (wide,) = house.set(path, value).submit(f"anne pes=12 wall=10:00{asked}", queue="night")
    behind = house.submit("ben pes=1 wall=1:00", queue="night" if value else "other")
    (other,) = house.submit("ben pes=1 wall=1:00", queue="other")
    assert set(house.go().starts) == {*behind, other}
    assert house.request(wide).reservation is None
    assert house.why(wide).code is (ReasonCode.NEVER if value else ReasonCode.LIMIT)


def test_the_reservation_of_the_next_index_of_an_array_is_kept_when_it_is_examined_again(house):
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
