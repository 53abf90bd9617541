"""The house of `core`, whose journals the shadow judges."""

from core.conftest import house as house
