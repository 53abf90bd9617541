"""The reserve of a full disk, bit by bit."""

import errno
import os
from unittest.mock import Mock

import pytest

from nqspy.store.errors import StoreError
from nqspy.store.reserve import PIECE, Reserve


@pytest.fixture
def reserve(tmp_path):
    kept = Reserve(tmp_path / "reserve", lambda: 0.0)
    kept.fill()
    return kept


def no_room(reserve, left):
    """Return a step that fails for lack of room until only so many bytes are held."""

    def step():
        if reserve.held > left:
            raise OSError(errno.ENOSPC, "No space left on device")
        return "done"

    return step


def test_it_is_given_up_in_small_pieces_until_there_is_room_and_not_for_another_reason(reserve):
    before = reserve.held
    with pytest.raises(PermissionError):
        reserve.let(Mock(side_effect=PermissionError(errno.EACCES, os.strerror(errno.EACCES))))
    assert reserve.held == before
    assert reserve.let(no_room(reserve, before - 3 * PIECE)) == "done"
    assert reserve.held == before - 3 * PIECE


def test_when_all_is_given_up_in_vain_the_disk_is_named(reserve, tmp_path):
    with pytest.raises(StoreError, match=f"the disk that holds {tmp_path} is full; make room and try again"):
        reserve.let(no_room(reserve, -1))
    assert reserve.held == 0
