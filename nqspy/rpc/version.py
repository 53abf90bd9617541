"""The version of nqspy. Loaded only when needed."""

from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


@lru_cache(maxsize=1)
def version() -> str:
    """Return the version, digits and dots; ``0`` if it is not installed."""
    try:
        return installed("nqspy")
    except PackageNotFoundError:
        return "0"
