"""Who did something is known by more than a name; what cannot have happened is told."""

from engine.harness import MAX, PLAIN, Centre
from engine.test_engine_swap import Prime

from nqspy.model import events as ev
from nqspy.model.cause import Cause
from nqspy.model.people import Caller
from nqspy.model.reasons import ReasonCode


def test_an_operator_who_is_called_swap_is_no_swap_control():
    centre = Prime((60, 60), (120, 10))
    centre.qmgr("add managers swap:o", MAX)
    [mine] = centre.submit("anne mem=40mw")
    centre.qmgr(f"suspend request {mine}", Caller("swap", 1107, 100, ()))
    centre.until("2026-03-02T13:00:00+01:00")
    assert centre.state(mine) == "suspended"
    assert centre.request(mine).pause.cause == Cause("operator", "swap")
    assert (centre.away(), centre.back()) == ([], [])
    assert centre.why(mine).code is ReasonCode.SUSPENDED


def test_an_event_that_does_not_fit_is_logged_and_changes_nothing(lenient):
    centre = Centre(PLAIN)
    [seq] = centre.submit("anne held")
    said = []
    centre.engine.log = said.append
    tx = centre.engine.transaction(centre.sim.now)
    tx.emit(ev.Suspended(seq, 1, "max"))
    centre.engine.flush(centre.sim.now)
    assert centre.state(seq) == "held"
    assert f"request {seq} is held: event suspended" in said[0]
