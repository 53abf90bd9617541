"""The shadow on queues that go by job classes."""

from shadow.judge import Shadow

from nqspy.model.site import Site
from nqspy.sim.gang import GangOrder, GangRun
from nqspy.sim.workloads.jobs import Wanted
from nqspy.sim.workloads.t3d import t3d


def test_of_queues_by_class_it_says_that_classes_decided():
    events = []

    class Told(GangRun):
        def _follow(self, recorded):
            events.extend(recorded)
            super()._follow(recorded)

    Told(t3d(Wanted(jobs=150)), GangOrder(True)).figures()
    verdict = Shadow(Site()).take_all(events)
    assert verdict.differences == []
    assert set(verdict.partly) == {"job classes decided which request was loaded"}
    assert verdict.whole > 0
