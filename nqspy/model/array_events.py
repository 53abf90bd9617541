"""What happens to arrays alone."""

from typing import ClassVar

from nqspy.model.event import Event
from nqspy.model.ids import Seq
from nqspy.model.indices import Runs


class Parted(Event, frozen=True):
    """These indices of an array became requests of their own, without having begun: something concerns them
    that does not concern the others."""

    kind: ClassVar[str] = "parted"
    seq: Seq
    indices: Runs
