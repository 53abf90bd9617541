"""Rows of the journal with anything in them: read, or refused by a StoreError that names the event."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model.events import KINDS, Recorded
from nqspy.store.errors import StoreError
from nqspy.store.history import EventHistory
from nqspy.store.schema import ArchiveRow

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
