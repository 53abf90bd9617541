"""What a row keeps of a request: all of it, whatever fields it has."""

from dataclasses import MISSING, fields

from nqspy.model.ids import Instant
from nqspy.model.requests import Dependency, Redating, Request, Spec, State, Used
from nqspy.store import rows

SPEC = Spec("anne", 1000, "job", "batch", "s", "e", "/", group="d1")
FULL = Request(
    seq=17,
    spec=SPEC,
    queue="night",
    state=State.SUSPENDED,
    submitted=Instant(1),
    date_in_queue=Instant(2),
    attempt=3,
    holds="ou",
    hold_text="held by olga",
    rank=2,
    pes=(1, 2),
    started=Instant(4),
    starting=True,
    ending="rerun by olga",
    used=Used(5, 6, 7),
    charged=8,
    suspended_by="shift day",
    parked=True,
    resumed=Instant(9),
    suspended=Instant(10),
    gave_way=11,
    gave=12,
    unmet=(Dependency(13, "any"),),
    never="16.ymp ended 1",
    redated=Redating(Instant(14), "linked", 15),
    let_go=Instant(16),
    rate=17,
    charged_at=Instant(18),
    losses=2,
)


def read_back(request: Request) -> Request:
    seq, state, queue, _, _, _, submitted, _, spec, live, _ = rows.request_row(request)
    return rows.request_of((seq, state, queue, submitted, spec, live), rows.SharedSpecs())


def test_a_row_keeps_every_field_of_a_request():
    bare = Request(17, SPEC, "night", State.QUEUED, Instant(1), Instant(2))
    same = {f.name for f in fields(Request) if getattr(FULL, f.name) == getattr(bare, f.name)}
    assert same == {"seq", "spec", "queue", "submitted", "date_in_queue", "slot"}, (
        "all others are put to the test"
    )
    assert read_back(FULL) == FULL
    assert read_back(bare) == bare


def test_what_a_request_has_not_takes_no_room():
    bare = Request(17, SPEC, "night", State.QUEUED, Instant(1), Instant(2))
    bare.used = Used()
    assert rows.request_row(bare)[9] == '{"date_in_queue":2}'
    assert [f.name for f in fields(Request) if f.default is MISSING and f.default_factory is MISSING] == [
        "seq", "spec", "queue", "state", "submitted", "date_in_queue"
    ]  # fmt: skip
