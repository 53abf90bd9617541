"""The placements of the setting ``placement``: a new one is a file of this folder and a line here."""

from collections.abc import Mapping
from importlib import import_module

from nqspy.core.placement.placement import FirstBlock, Lowest, Nothing, Placement
from nqspy.model.board import blocks
from nqspy.model.domains import Domain
from nqspy.model.site import Site
from nqspy.model.tree import set_words

FILES = (
    "placement",  # lowest, contiguous, first_block, most_packed
    "slots",
)
"""Files of this folder that declare ``PLACEMENTS``."""

PLACEMENTS: Mapping[str, Placement] = {
    each.word: each for name in FILES for each in import_module(f"nqspy.core.placement.{name}").PLACEMENTS
}
set_words(Domain, "placement", {word: each.means for word, each in PLACEMENTS.items()})
_NOTHING, _FIRST_BLOCK, _LOWEST = Nothing(), FirstBlock(), Lowest()


def placement_of(domain: Domain) -> Placement:
    """Return the placement of a domain's requests."""
    return _NOTHING if domain.is_command else PLACEMENTS[domain.placement]


def nearest(domain: Domain) -> Placement:
    """Return the placement of class jobs: nearest to PE 0, in a row if that of the domain is; or that of the
    domain if it looks for PEs that few hold."""
    own = PLACEMENTS[domain.placement]
    return own if own.shares else _FIRST_BLOCK if own.in_a_row else _LOWEST


def size_of(site: Site, queue: str) -> int:
    """Return how many PEs one request of a queue can get if nothing is held: all of its domain or, if the
    placement gives PEs in a row, those of the largest block."""
    if not site.is_divided() or (domain := site.domain_of(queue)).is_command:
        return site.pes()
    own = site.pes_of(domain)
    return int(blocks(own.nonzero()[0])[1].max(initial=0) if placement_of(domain).in_a_row else own.sum())
