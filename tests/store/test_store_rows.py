"""Rows: all of a request is kept, whatever fields it has; events with anything in them are read or refused by
a StoreError that names the event."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import NODEFAULT, structs

from nqspy.model.arrays import ArrayState, HeldIndices
from nqspy.model.cause import Cause
from nqspy.model.events import KINDS, Recorded
from nqspy.model.ids import Instant
from nqspy.model.requests import (
    Attempt,
    AttemptOutput,
    Dependency,
    EndOrder,
    MovesMade,
    Pause,
    Prerequisite,
    Redating,
    Request,
    Reservation,
    Retry,
    Spec,
    State,
    Used,
)
from nqspy.store import history, rows
from nqspy.store.errors import StoreError
from nqspy.store.history import EventHistory
from nqspy.store.schema import ArchiveRow

SPEC = Spec("anne", 1000, "job", "batch", "s", "e", "/", group="d1")
RUN = Attempt(
    number=3, pes=(1, 2), started=Instant(4), starting=False, used=Used(5, 6, 7), charged=8, rate=17,
    charged_at=Instant(18), pause=Pause(Cause("operator", "swap"), Instant(10), "for a while", True),
    resumed=Instant(9), resumed_by_person=Instant(16), ending=EndOrder(Cause("owner", "anne"), True, "once"),
    preempted_times=11, preempted_bytes=12, units=(("gpu", ("0", "3")),), suspended_time=13, adjusted=True,
    until=Instant(19), passing=True, lacked=((8, "NO_PES"),), moved=MovesMade(2, 20, 21),
    undelivered="no user", migrated=Instant(26),
)  # fmt: skip
ARRAY = ArrayState(
    left=((1, 9, 2),), ready=((3, 9, 2),), awaiting=((18, ((1, 1, 1),)),), begun=True, well=((10, 12, 1),),
    held=(HeldIndices(((1, 1, 1),), "us", "held by olga", "16[1].ymp ended 1"),), badly=((13, 13, 1),),
    dropped=((15, 15, 1),), worst=3, cpu=19, wall=20, memory=21,
)  # fmt: skip
FULL = Request(
    seq=17, spec=SPEC, queue="night", state=State.SUSPENDED, submitted=Instant(1), date_in_queue=Instant(2),
    attempts=3, attempt=RUN, holds="ou", hold_text="held by olga", rank=2, unmet=(Dependency(13, "any"),),
    never="16.ymp ended 1", redated=Redating(Instant(14), "linked", 15), losses=2, array=ARRAY,
    prerequisites=(Prerequisite(3, "deleted", False), Prerequisite(4)), retry=Retry(Instant(24), 25, "why"),
    former=(AttemptOutput(1, "/out", None), AttemptOutput(2, "", "/err")),
    reservation=Reservation(Instant(22), (23,), "held by 23.ymp", 2, 4),
)  # fmt: skip


def read_back(request: Request) -> Request:
    seq, state, queue, _, _, _, submitted, _, spec, live, _ = rows.request_row(request)
    return rows.request_of((seq, state, queue, submitted, spec, live), rows.SharedSpecs())


def test_a_row_keeps_every_field_of_a_request():
    bare = Request(17, SPEC, "night", State.QUEUED, Instant(1), Instant(2))
    same = {name for name in Request.__struct_fields__ if getattr(FULL, name) == getattr(bare, name)}
    assert same == {"seq", "spec", "queue", "submitted", "date_in_queue", "slot"}, (
        "all others are put to the test"
    )
    fresh = Attempt(3, (), Instant(0))
    names = Attempt.__struct_fields__
    assert {name for name in names if getattr(RUN, name) == getattr(fresh, name)} == {"number"}
    assert read_back(FULL) == FULL
    assert read_back(bare) == bare


def test_what_a_request_has_not_takes_no_room():
    bare = Request(17, SPEC, "night", State.QUEUED, Instant(1), Instant(2))
    assert rows.request_row(bare)[9] == '{"date_in_queue":2}'
    assert [f.name for f in structs.fields(Request) if f.default is NODEFAULT] == [
        "seq", "spec", "queue", "state", "submitted", "date_in_queue"
    ]  # fmt: skip


def test_a_request_that_an_old_file_of_the_history_holds_is_refused():
    with pytest.raises(StoreError, match=r"request 17 .*e13b55b9"):
        history._row_of(b'{"seq":17,"live":"{\\"date_in_queue\\":2,\\"attempt\\":3}"}')


BODIES = (
    st.binary(max_size=60)
    | st.sampled_from((b"{}", b"[]", b"null", b'{"seq":1}', b'{"seq":"x"}', b"[" * 2000, b'{"seqs":[1,2]}'))
    | st.dictionaries(st.text(max_size=6), st.integers() | st.text(max_size=5)).map(
        lambda each: repr(each).replace("'", '"').encode("utf-8", "replace")
    )
)


def read(*rows):
    def fetch(query):
        return [] if query.model is ArchiveRow else list(rows)

    return list(EventHistory(fetch, Path("nqs.db")).events(limit=len(rows)))


@given(st.sampled_from(sorted(KINDS)) | st.text(max_size=10), BODIES)
def test_any_row_is_an_event_or_a_clear_refusal(kind, body):
    try:
        [found] = read((7, 1000, kind, body))
    except StoreError as error:
        told = str(error)
    else:
        told = "event 7" * isinstance(found, Recorded)
    assert "event 7" in told
    assert len(told.splitlines()) == 1


def test_an_event_of_a_newer_version_is_named():
    with pytest.raises(StoreError, match=r"event 3 .* cannot be read: .*telepathy"):
        read((3, 0, "telepathy", b"{}"))
