"""The version of nqspy. Only loaded on demand."""

from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


@lru_cache(maxsize=1)
def version() -> str:
    """The version, digits and dots; ``0`` where it runs without having been installed."""
    try:
        return installed("nqspy")
    except PackageNotFoundError:
        return "0"
