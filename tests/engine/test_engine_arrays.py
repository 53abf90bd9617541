"""Arrays of requests: one submission, one row and one event; an index becomes a request when it starts."""

from collections import Counter

import pytest
from engine.harness import ANNE, PLAIN, ROOT, Centre, Failpoint, item
from engine.story import ACTS, play
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nqspy.engine.explain import reasons_of
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.ids import index_of, member
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import Output
from nqspy.model.site_checks import check_site

OTHER = "qmgr create batch_queue other priority=5 | enable queue other"
STORIES = {
    "indices count as requests": """site pes=8
        qmgr set queue batch queued_limit=10 user=8 | set queue batch user_limit=2
        submit anne array=1-6; runs 1[] 1-2; refuse anne array=1-3 -> queued_limit
        submit anne array=1-2; refuse ben array=5-7 -> queued_limit""",
    "a limit of its own": """site pes=8; submit anne array=1-9%2, ben; runs 1[] 1-2; state 2 running
        why 1[] LIMIT 1[].sim; later 10m; runs 1[] 3-4; later 2h; empty""",
    "its limit is changed and taken back": """site pes=8; submit anne array=1-20%2, ben
        modify 1[] array.limit=4 by anne; runs 1[] 1-4; events modified 1
        modify 1[] array.limit=1 by anne; runs 1[] 1-4; rerun 1[2-4] by anne; later 1m; runs 1[] 1
        modify 1[] array.limit=0 by anne; runs 1[] 1-7
        modify 1[] array.limit=3 by anne; modify 1[] array.limit=null by anne
        modify 1[] array.limit=-1 -> 1[]:bad_array; modify 1[] array.limit=x -> 1[]:bad_value
        modify 1[1] array.limit=3 -> 1[1]:bad_array; modify 2 array.limit=3 -> 2:bad_array""",
    "it is one row, and its indices start one by one": """site pes=3; submit anne name=sweep array=1-10
        events submitted 1; starts 1[1] 1[2] 1[3]; left 1[] 4-10; has 1[] shown_state=running; later 1h; empty
        starts 1[4] 1[5] 1[6] 1[7] 1[8] 1[9] 1[10]; end 1[] exit 0; used 1[] 6000""",
    "others take their turn between indices": """site pes=1 length=60; submit anne array=1-3, ben
        schedule 2 place=first; later 10m; starts 1[1] 2 1[2] 1[3]""",
    "a range is held and released in one event": """site pes=1; submit anne array=1-1000
        hold 1[3-9,20-30:5] by anne -> 1[3-9,20-30:5]; events held 1; has 1[] multiplicity=989
        later 1h; starts 1[1] 1[2] 1[10] 1[11] 1[12] 1[13] 1[14]
        release 1[5] by anne; later 10m; starts 1[5]; release 1 by anne; has 1[] array.held=[]""",
    "the whole is held and what runs goes on": """site pes=2; submit anne array=1-5; hold 1[] by anne
        later 1h; left 1[] 3-5; runs 1[] -; has 1[] shown_state=running; release 1[] by anne; later 1h
        empty""",
    "deleted in part": """site pes=2; submit anne array=1-6; delete 1[5-6]+1[2] force by anne; left 1[] 4
        later 1h; starts 1[1] 1[2] 1[3] 1[4]
        end 1[] exit 143 indices: 3 ended well, 1 failed, 2 were deleted""",
    "deleted whole before and after it began": """site pes=1; submit anne array=1-4, anne array=1-4
        delete 1[]+2 force by anne; end 2[] dropped anne; later 20s; empty""",
    "indices that go their own way become requests": f"""site pes=1; {OTHER}; submit anne array=1-6
        move 1[4-5] to=other by anne; queue 1[4] other 1[5] other; left 1[] 2-3,6
        modify 1[6] ask.pes=1 name=last by anne; has 1[6] name=last; qmgr start queue other; later 2h
        starts 1[1] 1[2] 1[3] 1[6] 1[4] 1[5]; end 1[] exit 0""",
    "in ascending order, requests of their own too": """site pes=2; submit ben pes=2, anne array=1-6
        modify 2[2,5] name=mine by anne; later 2h; starts 1 2[1] 2[2] 2[3] 2[4] 2[5] 2[6]""",
    "what waits for the whole waits for the last index": """site pes=4
        submit anne array=1-6, anne after=1[]:ok, anne after=1:start, anne after=1[]:fail
        state 3 queued; later 15m; state 2 held; later 10m; state 1[] ended 2 running; never 4""",
    "each index waits for its own": """site pes=2; submit anne array=1-6, anne array=1-6 after=1[]:each
        has 2[] shown_state=held; later 10m; starts 1[1] 1[2] 1[3] 1[4]; has 2[] multiplicity=2
        schedule 2[] place=first; later 10m; starts 2[1] 2[2]; later 3h; empty""",
    "one whose own index failed is held": """site pes=6; submit anne array=1-4, anne array=1-4 after=1[]:each
        delete 1[2] force by anne; later 1h; starts 1[1] 1[2] 1[3] 1[4] 2[1] 2[3] 2[4]; left 2[] 2
        why 2[] DEPENDENCY; says 2[] can never start; release 2[2] letter=s; later 1h; empty""",
    "an array that has ended is judged index by index": """site pes=4; submit anne array=1-3
        delete 1[3] force by anne; later 1h; submit anne array=1-3 after=1:each; runs 2[] 1-2; left 2[] 3""",
    "one index can be waited for": """site pes=1; submit anne array=1-3, anne after=1[2]:ok
        schedule 2 place=first; later 15m; state 2 held; later 10m; state 2 running""",
    "indices that have no fellows": """site pes=1; submit anne array=1-3, anne
        refuse anne array=1-4 after=1:each -> unequal_indices; refuse anne after=1:each -> each_of_arrays
        refuse anne array=1-3 after=2:each -> each_of_arrays; refuse anne after=1[9] -> unknown_prerequisite
        refuse anne array=1-3%0 -> bad_array""",
}
WAITING = "submit anne after=1[]:ok, anne after=1[]:fail, anne after=1[]"
STORIES |= {
    f"one with a deleted index has not ended well, {when}": f"""site pes=1; submit anne array=1-3; {early}
        delete 1[3] by anne; later 20m; end 1[] exit 3; {late}
        never 2; says 2 ended without index 3, deleted before it began; state 3 running 4 held"""
    for when, early, late in (("named before", WAITING, ""), ("named after", "", WAITING))
}
STORIES |= {
    f"{policy} one without its own": f"""site pes=6; qmgr set dependency_failed {policy}
        submit anne array=1-4, anne array=1-4 after=1[]:each; delete 1[2] force by anne; {starts}
        later 1h; state 2[] ended"""
    for policy, starts in (("delete", "left 2[] 1,3-4"), ("run", "left 2[] 1,3-4"))
}
STORIES |= {
    f"done by whoever may not: {act}": f"site pes=2; submit anne array=1-6; {act} -> ?; left 1[] 3-6; known 3"
    for act in (
        "rerun 1[4-5] by ben", "rerun 1[1-5] by anne", "suspend 1[1-5]", "move 1[4-5] to=batch by anne",
        "modify 1[3-5] ask.pes=9 by anne", "modify 1[3-5] name=mine by ben",
    )
}  # fmt: skip
STORIES |= {
    f"it has no {text[:9]}": f"site pes=1; submit anne array=1-3; hold {text} by anne -> {text}:{code}"
    for text, code in (
        ("1[7]", "unknown_request"), ("1[2-9]", "unknown_request"), ("1[x]", "bad_id"),
        ("1[\u00b2]", "bad_id"), ("1[\u0663]", "bad_id"), (f"1[{'9' * 5000}]", "bad_id"), ("1[3", "bad_id"),
        ("9[]", "unknown_request"),
    )
}  # fmt: skip
GONE = {
    "held whole": ("held array=1-3", "delete 1[] by anne"),
    "whole, after an index began": ("array=1-3", "delete 1[] by anne -> ?"),
    "the index alone": ("held array=1-3", "delete 1[3] by anne"),
    "a part": ("held array=1-3", "delete 1[2-3] by anne"),
    "index by index": ("held array=1-3", "delete 1[1]+1[2]+1[3] by anne"),
    "a part, then the rest": ("held array=1-3", "delete 1[1]+1[] by anne"),
    "with its queue": ("held array=1-3", "qmgr purge queue batch"),
}
STORIES |= {
    f"dependants learn that it was deleted {how}, and the site says {policy}": f"""site pes=1
        qmgr create batch_queue q2 | enable queue q2 | set dependency_failed {policy}; submit anne {array}
        submit {", ".join(f"anne queue=q2 after=1[3]:{word}" for word in ("any", "fail", "ok", "start"))}
        {gone}; state 2 queued 3 queued 4 {state} 5 {state}; {"never 4 5" if policy == "hold" else ""}"""
    for how, (array, gone) in GONE.items()
    for policy, state in (("hold", "held"), ("delete", "ended"), ("run", "queued"))
}  # fmt: skip
PIPE = """qmgr create batch_queue small priority=5 | enable queue small | start queue small
    qmgr create pipe_queue pipe destination=(small, batch) | enable queue pipe"""
STORIES |= {
    "a range is released of an array that is held": """site pes=4; submit anne array=1-9 held
        hold 1[] letter=o; release 1[3-5] by anne -> 1[3-5]; runs 1[] -; release 1[2-4] letter=uo
        runs 1[] 2-4
        has 1[2] holds=""; left 1[] 1,5-9; release 1[5] by anne -> 1[5]:not_permitted; release 1[5] letter=o
        runs 1[] 2-5""",
    "an index is let go that waits with its array": """site pes=2; submit ben, anne array=1-3 after=1:ok
        release 2[2] letter=s; runs 2[] 2; left 2[] 1,3""",
    "what was not held keeps its date": """site pes=1; submit ben, anne array=1-3; hold 2[3] by anne
        later 5m; release 2[] by anne; moved 2[] 300""",
    "one of which nothing could start gathers no age": """site pes=1; submit anne array=1-2
        submit anne, anne array=1-2 after=1[]:each, ben array=1-2, anne; hold 4[1]; hold 4[2]; later 1m
        release 4[1]; moved 4[] 0; later 3h; starts 1[1] 1[2] 2 5 4[1] 3[1] 3[2]; state 3[] ended""",
    "all indices of one that is put ahead go ahead": """site pes=3
        qmgr create batch_queue fast priority=20 user_limit=1 | enable queue fast | start queue fast
        submit ben pes=3, anne array=1-3, carl queue=fast, dora queue=fast; schedule 2[] place=next
        later 10m; starts 1 2[1] 2[2] 2[3]""",
    "a queue that is moved takes no index along that waits elsewhere": """qmgr create batch_queue other
        qmgr enable queue other | create batch_queue third | enable queue third | stop queue batch
        submit anne array=1-5; move 1[4] to=other by anne; qmgr move queue batch third
        queue 1[] third 1[4] other""",
}
STORIES |= {
    f"routed to where there is room for its indices: {limit}": f"""site pes=1; {PIPE}
        qmgr set queue small {limit}; submit anne array=1-6 queue=pipe, anne array=1-3 queue=pipe
        qmgr start queue pipe; submit anne array=1-6 queue=pipe, anne array=1-3 queue=pipe
        queue 1[] batch 2[] small 3[] batch 4[] batch; refuse anne array=1-6 queue=small -> {kind}
        submit anne array=1-2 queue=small; refuse anne queue=small -> {kind}"""
    for limit, kind in (
        ("queued_limit=5", "queued_limit"),
        ("user_queued_limit=5", "user_queued_limit"),
        ("run_limit=5 loadonly=on", "queue_full"),
    )
}
STORIES |= {
    f"one that never has room is refused: {never}, {passing}": f"""site pes=2; {PIPE}
        qmgr set queue small {never} | set destination=(small) pipe | start queue pipe
        submit anne array=1-2 queue=small; qmgr {passing}
        refuse anne array=1-4 queue=pipe -> no_destination"""
    for passing in ("set queue small queued_limit=5", "disable queue small")
    for never in ("queued_limit user=3", "run_limit=3 loadonly=on")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_arrays(title: str) -> None:
    play(STORIES[title])


@pytest.mark.parametrize(("status", "whole"), [(0, 3), (1, 3), (2, 3), (7, 7)])
def test_an_index_deleted_before_it_began_counts_among_the_statuses(status: int, whole: int) -> None:
    centre = Centre(pes=1, lengths=lambda request: Run(wall=60_000, status=status))
    (seq,) = centre.submit("anne array=1-3")
    centre.ask(cm.Delete(("1[3]",)), ANNE)
    centre.later(minutes=20)
    assert centre.end_of(seq).exit_status == whole


@pytest.mark.parametrize(
    ("way", "path", "warned"), [("number", "/o", 0), ("overwrite", "/o", 1), ("overwrite", "/o.%a", 0)]
)
def test_indices_that_overwrite_one_file_are_warned_of(way: str, path: str, warned: int) -> None:
    centre = Centre(pes=1)
    centre.qmgr(f"set output_clash {way}")
    wish = item("anne array=1-3", centre.sim.now)
    wish = replace(wish, spec=replace(wish.spec, output=Output(stdout=path)))
    answer = centre.ask(cm.Submit((wish,)), by=ANNE)
    assert len(answer.get("warnings", ())) == warned


def test_the_owner_of_an_array_gets_mail_about_indices_that_others_delete() -> None:
    centre = Centre()
    centre.qmgr("stop queue batch")
    centre.submit("anne array=1-5 mail=abort", "anne array=1-5", "anne array=7-8 mail=abort")
    centre.ask(cm.Delete(("1[3-4]", "2[3-4]")), ROOT)
    centre.ask(cm.Delete(("1[5]",)), ANNE)
    centre.ask(cm.Delete(("1[]",)), ROOT)
    centre.qmgr("purge queue batch")
    subjects = [each.subject.split()[1] for each in centre.sim.notices]
    assert subjects == ["1[3-4].sim", "1[].sim", "3[].sim"]


# ---------------------------------------------------------------- whatever people do
SITE = PLAIN + "create batch_queue other priority=5 user_limit=3\nenable queue other\nstart queue other\n"
_PARTS = st.one_of(
    st.just("[]"), st.just(""), st.integers(1, 6).map(lambda n: f"[{n}]"),
    st.tuples(st.integers(1, 6), st.integers(0, 5)).map(lambda each: f"[{each[0]}-{min(6, sum(each))}]"),
)  # fmt: skip
_ACTS = st.sampled_from(
    (
        "hold", "release", "delete", "move", "modify", "rerun", "schedule", "suspend", "resume", "later",
        "later",
    )
)  # fmt: skip
_STEPS = st.lists(st.tuples(_ACTS, st.integers(1, 3), _PARTS), max_size=14)
_LINES = st.lists(
    st.tuples(st.sampled_from(("1-6", "1-6%2", "2-6:2,1,3,5%1")), st.booleans()), min_size=1, max_size=3
)


WORDS: dict[str, dict[str, object]] = {
    "delete": {"force": True}, "move": {"to": "other"}, "modify": {"priority": 5},
    "schedule": {"place": "first"},
}  # fmt: skip
"""Further arguments of commands."""


def _command(act: str, id: str) -> cm.Command:
    command: cm.Command = ACTS[act]((id,), **WORDS.get(act, {}))
    return command


def _insist(centre: Centre, command: cm.Command) -> None:
    """Give a command again each time its commit fails."""
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
        by = ROOT if act in ("schedule", "suspend", "resume") else ANNE
        try:
            if act == "later":
                centre.later(seconds=70)
            else:
                centre.ask(_command(act, f"{number}{part}"), by)
        except Refusal:
            centre.later(seconds=3)
        check_site(centre.site)
    centre.later(seconds=5)
    for number in range(1, handed_in + 1):
        for act in ("resume", "release"):
            _insist(centre, _command(act, f"{number}[]"))
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


def test_an_index_whose_own_prerequisite_failed_has_the_reason_of_that():
    story = play("""site pes=6; submit anne array=1-4, anne array=1-4 after=1[]:each
        delete 1[2] force by anne; later 1h; left 2[] 2""")
    index = member(2, 2)
    reason = reasons_of(story.centre.engine, (index,))[index]
    assert (reason.code, reason.who) == (ReasonCode.DEPENDENCY, "dependency")
