"""The date and time of ``qsub -a``. Only loaded when it is given."""

from nqspy.cli.values import Wrong
from nqspy.model.errors import BadValue
from nqspy.qmgr import dates


def parse_date(text: str, now_ms: int, zone: str) -> int:
    """The instant (ms) a text means, see `qmgr.dates.parse_date`. Raises Wrong."""
    try:
        return dates.parse_date(text, now_ms, zone)
    except BadValue as error:
        raise Wrong(str(error)) from None
