"""The placements of the setting ``placement``: a new one is a file of this folder and a line here."""

from collections.abc import Mapping
from importlib import import_module

from nqspy.core.placement.nothing import Nothing
from nqspy.core.placement.placement import Placement
from nqspy.model.domains import Domain
from nqspy.model.tree import set_words

FILES = (
    "lowest",
    "contiguous",
    "most_packed",
)
"""Files of this folder that declare a ``PLACEMENT``."""

_LISTED: tuple[Placement, ...] = tuple(
    import_module(f"nqspy.core.placement.{name}").PLACEMENT for name in FILES
)
PLACEMENTS: Mapping[str, Placement] = {placement.word: placement for placement in _LISTED}
_NOTHING = Nothing()
set_words(Domain, "placement", {placement.word: placement.means for placement in _LISTED})


def placement_of(domain: Domain) -> Placement:
    """Return the placement of a domain's requests."""
    return _NOTHING if domain.is_command else PLACEMENTS[domain.placement]
