"""Which night was reported last: so that no report is made or mailed twice, and none is left out."""

from nqspy.model.events import Reported
from nqspy.model.ids import Instant
from nqspy.model.site import Site


def reported(site: Site, event: Reported, at: Instant) -> None:
    """Notes the night whose report was made; one of an earlier night changes nothing."""
    site.reported = max(site.reported, event.day)
    site.touched.state = True
