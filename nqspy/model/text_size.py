"""Bytes of the database that a request takes by its own text: arguments, notes, paths, indices."""

import msgspec

from nqspy.model.arrays import counted
from nqspy.model.requests import Spec

LITTLE = 2_048
"""Bytes of a specification that count for nothing: as many as any request takes."""

_encode = msgspec.json.Encoder().encode


def text_size(spec: Spec) -> int:
    """Return the bytes of a specification that is large, else 0. They stand in the event of its submission,
    in its row, and in the row of each index of an array."""
    size = len(_encode(spec))
    return size * (1 + counted(spec.array)) if size > LITTLE else 0
