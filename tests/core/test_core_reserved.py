"""The rule of reservations, asked directly."""

from core.harness import House, spec_of
from msgspec.structs import replace

from nqspy.core.gate.gate import Gate
from nqspy.model import events as ev
from nqspy.model.arrays import ArraySpec
from nqspy.model.ids import Seq, array_key, member

MINUTE = 60_000


def test_the_reservation_of_the_next_index_of_an_array_is_kept_when_it_is_examined_again():
    house = House().machine(pes=3)
    house.queue("night", order="fcfs", reserve=None)
    spec = replace(spec_of("ben", pes="2", wall="10:00"), queue="night", array=ArraySpec(((1, 2, 1),)))
    seq = Seq(array_key(house.site.next_seq))
    house._event(ev.Submitted(seq, spec, "night", "queued"))
    (long,) = house.submit("anne pes=2 wall=60:00")
    array, gate = house.request(seq), Gate(house.site, house.now)
    reserved = gate.reserved
    reserved.reserve(array)
    reserved.start(house.site.to_be(member(seq, 1)), array)
    reserved.reserve(array)
    kept = reserved.reservation_of(array)
    assert kept is not None
    assert kept.at == house.now + 10 * MINUTE
    reserved.delaying(array)
    reserved.reserve(house.request(long))
    assert reserved.changes[long].at == house.now + 20 * MINUTE
