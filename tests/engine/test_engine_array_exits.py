"""User exits and arrays: one view with its multiplicity, asked anew for each next index."""

from engine.harness import PLAIN, Centre, exits_of

from nqspy.model import events as ev
from nqspy.model.ids import index_of


def test_an_elected_index_makes_the_rest_of_its_array_young(tmp_path):
    """As with a burst of single requests: who shoots many at once waits with the rest behind others."""
    centre = Centre(PLAIN, exits=exits_of(tmp_path / "exits", "machine_gun"), pes=1, length=60)
    (array,) = centre.submit("anne array=1-5")
    centre.later(seconds=10)
    others = centre.submit("ben", "carl")
    centre.later(minutes=10)
    order = [index_of(seq) or seq for seq in centre.starts()]
    assert order == [1, 2, *others, 3, 4, 5], "the rest was as old as index 1 until index 2 was chosen"
    redated = [event for event in centre.events(ev.Redated) if array in event.seqs]
    assert len(redated) == 4, "the last index leaves nothing to be made younger"
    centre.is_sound()


def test_indices_of_one_array_are_no_equal_names(tmp_path):
    centre = Centre(PLAIN, exits=exits_of(tmp_path / "exits", "dependency"), pes=4, length=60)
    centre.qmgr("set exit dependency queues=batch")
    centre.submit("anne array=1-3 name=step")
    (later,) = centre.submit("anne name=step")
    assert sorted(index_of(seq) or 0 for seq in centre.starts()) == [1, 2, 3]
    assert centre.state(later) == "queued"
    assert centre.engine.plan.reasons.own[later].matches(code="EXIT", who="dependency")
    centre.later(minutes=2)
    assert centre.state(later) == "ended"


def test_jobselect_sees_how_many_are_left_and_is_asked_for_each(tmp_path):
    """At most two indices of an array of more than three run, and the last ones wait for nobody."""
    text = '''"""Counts."""
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request, view):
    mine = [each for each in view.running(owner=request.owner) if each.array == request.array]
    if request.array and request.count > 3 and len(mine) >= 2:
        return refuse(f"{request.count} left, {len(mine)} run")
    return None
'''
    centre = Centre(PLAIN, exits=exits_of(tmp_path / "exits", count=text), pes=8, length=60)
    (array,) = centre.submit("anne array=1-7")
    assert [index_of(seq) for seq in centre.starts()] == [1, 2]
    assert centre.engine.plan.reasons.own[array].text == "5 left, 2 run"
    centre.later(seconds=61)
    assert [index_of(seq) for seq in centre.starts()] == [1, 2, 3, 4, 5, 6, 7]
    centre.is_sound()
