"""The site as backups have it: from one of them a past time is reached sooner than from the beginning."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from nqspy.model.site import Site
from nqspy.store import copies, schema
from nqspy.store.loading import load_site
from nqspy.store.migrations import STEPS, version
from nqspy.store.reader import Reader


def latest_before(reader: Reader, n: int) -> Site | None:
    """The site of the newest backup that knows no event after number ``n`` and none that the journal has
    not; None where there is none, or only such as other versions have made."""
    best: Site | None = None
    for site in _sites(reader.path):
        known = next(reader.events(after=site.n - 1, limit=1), None) if 0 < site.n <= n else None
        if known is not None and known.at == site.at and (best is None or best.n < site.n):
            best = site
    return best


def _sites(path: Path) -> Iterator[Site]:
    for copy in reversed(copies.listed(path)):
        try:
            db = schema.readonly(copy.path)
            try:
                connection = schema.connection(db)
                if version(connection) == len(STEPS):
                    yield load_site(connection)
            finally:
                db.close()
        except (*copies.SPOILT, msgspec.MsgspecError, KeyError):
            continue
