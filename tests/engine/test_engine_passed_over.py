"""What could have been given to a request whose turn had come before a plan's starts (semantics.md 1)."""

from engine.harness import Centre
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.placement import POLICIES
from nqspy.engine.passed_over import passed_over
from nqspy.model.actions import Plan, Start
from nqspy.model.ids import Seq
from nqspy.model.reasons import ReasonCode

DIVIDED = """
create domain wide pes=7-11
create batch_queue batch priority=10 user_limit=1
create batch_queue other priority=20 user_limit=1
create batch_queue day priority=5 domain=wide user_limit=1
enable queue batch, other, day
start queue batch, other, day
set default batch_request queue batch
set managers = (max:m, olga:o)
"""
REQUESTS = st.tuples(st.sampled_from(("batch", "other", "day")), st.integers(1, 4), st.booleans())


def given_beside(site, starts, request):
    """The PEs of a request's domain that are free beside the starts, those of its list behind it left out:
    counted start by start."""
    board = site.board(site.domain_of(request.queue).name)
    left = board.free
    for each in (site.requests[seq] for seq in starts):
        alike = (each.queue, each.group) == (request.queue, request.group)
        behind = alike and (each.date_in_queue, each.seq) > (request.date_in_queue, request.seq)
        if site.domain_of(each.queue) == site.domain_of(request.queue) and not behind:
            left -= each.spec.ask.pes
    return min(POLICIES[board.domain.placement].room(board), max(0, left))


@settings(max_examples=50, deadline=None)
@given(st.lists(REQUESTS, min_size=2, max_size=14))
def test_who_is_too_wide_beside_those_before_it_lacks_pes_and_all_others_their_limit(requests):
    centre = Centre(DIVIDED, pes=12)
    centre.submit(*(f"anne pes=1 queue={queue}" for queue in ("batch", "other", "day")))
    first = len(centre.site.requests)
    for queue, pes, _ in requests:
        centre.submit(f"anne pes={pes} queue={queue}")
    site = centre.site
    chosen = {Seq(first + n): each for n, each in enumerate(requests, start=1) if each[2]}
    plan = Plan(tuple(Start(seq, 1, ()) for seq in chosen))
    found = {seq: (code, text) for seq, code, _, text in passed_over(site, plan)}
    for seq, (code, text) in found.items():
        request = site.requests[seq]
        room = given_beside(site, chosen, request)
        assert (code == ReasonCode.NO_PES.value) == (request.spec.ask.pes > room), (seq, text)
        if code == ReasonCode.NO_PES.value:
            assert text == f"it asks for {request.spec.ask.pes} PEs, {room} could be given"
    assert found or not any(later[2] and not one[2] and one[0] == later[0]
                            for n, one in enumerate(requests) for later in requests[n + 1:])  # fmt: skip
