"""Whatever people do to arrays, and whenever commits fail: each index is in one place, none is lost, and none
runs twice but by order."""

from collections import Counter

from engine.harness import ANNE, PLAIN, ROOT, Centre, Failpoint
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.ids import index_of
from nqspy.model.site_checks import check_site

SITE = PLAIN + "create batch_queue other priority=5 user_limit=3\nenable queue other\nstart queue other\n"
_PARTS = st.one_of(
    st.just("[]"), st.just(""), st.integers(1, 6).map(lambda n: f"[{n}]"),
    st.tuples(st.integers(1, 6), st.integers(0, 5)).map(lambda each: f"[{each[0]}-{min(6, sum(each))}]"),
)  # fmt: skip
_ACTS = st.sampled_from(
    ("hold", "release", "delete", "move", "modify", "rerun", "first", "suspend", "resume", "later", "later")
)
_STEPS = st.lists(st.tuples(_ACTS, st.integers(1, 3), _PARTS), max_size=14)
_LINES = st.lists(
    st.tuples(st.sampled_from(("1-6", "1-6%2", "2-6:2,1,3,5%1")), st.booleans()), min_size=1, max_size=3
)


def _command(act: str, id: str) -> cm.Command | None:
    made: dict[str, cm.Command] = {
        "hold": cm.HoldRequests((id,)),
        "release": cm.ReleaseRequests((id,)),
        "delete": cm.Delete((id,), force=True),
        "move": cm.MoveRequests((id,), "other"),
        "modify": cm.ModifyRequest((id,), {"priority": 5}),
        "rerun": cm.RerunRequests((id,)),
        "first": cm.ScheduleRequest((id,), "first"),
        "suspend": cm.SuspendRequests((id,)),
        "resume": cm.SuspendRequests((id,), resume=True),
    }
    return made.get(act)


def _insist(centre: Centre, command: cm.Command) -> None:
    """Asks again where a commit failed."""
    for _ in range(3):
        try:
            centre.ask(command, ROOT)
            return
        except Refusal:
            centre.later(seconds=3)


@settings(max_examples=examples(60), deadline=None)
@given(_LINES, _STEPS, st.integers(1, 40))
def test_no_index_is_lost_or_run_twice(lines: list[tuple[str, bool]], steps: list[tuple[str, int, str]],
                                       failing: int) -> None:  # fmt: skip
    centre = Centre(SITE, pes=3, length=90)
    handed_in = 0
    for array, each in lines:
        after = f" after={handed_in}:each" if each and handed_in else ""
        centre.submit(f"anne array={array}{after}")
        handed_in += 1
    Failpoint(centre.journal, failing)
    reruns = Counter[int]()
    for act, number, part in steps:
        command = _command(act, f"{number}{part}")
        try:
            if command is None:
                centre.later(seconds=70)
            else:
                centre.ask(command, ROOT if act in ("first", "suspend", "resume") else ANNE)
        except Refusal:
            centre.later(seconds=3)
        check_site(centre.site)
    centre.later(seconds=5)
    for number in range(1, handed_in + 1):
        for act in ("resume", "release"):
            command = _command(act, f"{number}[]")
            assert command is not None
            _insist(centre, command)
    centre.later(hours=6)
    _insist(centre, cm.ReleaseRequests(tuple(f"{n}[]" for n in range(1, handed_in + 1)), "s"))
    centre.later(hours=6)
    assert centre.site.requests == {}, {seq: (r.state, r.array) for seq, r in centre.site.requests.items()}
    centre.is_sound()
    for requeued in centre.events(ev.Requeued):
        reruns[requeued.seq] += 1
    starts = Counter(centre.starts())
    dropped = {seq for seq in starts if index_of(seq) is None}
    assert not dropped, "an array itself was started"
    assert all(count <= 1 + reruns[seq] for seq, count in starts.items())
    ended = [event for event in centre.events(ev.Ended) if index_of(event.seq) is not None]
    assert len(ended) == len({event.seq for event in ended})
