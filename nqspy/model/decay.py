"""Decay of usage: half of a use is forgotten in each half-life (``set usage half_life=``).

Accounts, shares, caps and reports take their figures from here. Times are in ms.
"""

from functools import lru_cache
from math import expm1, log, log2


def remaining(span: float, half_life: int) -> float:
    """Return the part of a use that is left after a span."""
    left: float = 2.0 ** (-span / half_life)
    return left


@lru_cache(256)  # many uses over one span are charged at one instant
def remaining_of_even(span: float, half_life: int) -> float:
    """Return the part that is left, at the end of a span, of a use that was even over it: the integral of
    2^(-t/h) over the span, divided by the span. It is less the longer the span."""
    x = span / half_life * log(2)
    return -expm1(-x) / x if x > 1e-6 else 1.0


def span_to(part: float, half_life: int) -> float:
    """Return the span after which only 1 / ``part`` of a use is left."""
    return log2(part) * half_life


def lasting_use(rate: float, half_life: int) -> float:
    """Return the decayed use of a rate (ms each ms) that holds for ever."""
    return rate * half_life / log(2)
